//! One shard of typed entries.

mod attributes;
mod columns;
mod entries;
mod exchange;
mod extras;
mod leave;
mod overwrite;
mod published;
mod slots;
mod soft;
mod spots;
mod store;
mod tidy;
mod view;

pub use attributes::{Attributes, FirstLook, Found, Freed, Removed};
pub use entries::IntoEntries;
pub use overwrite::Overwritten;
pub(crate) use slots::page_slots;
pub use soft::Soft;
pub use store::TypedStore;
