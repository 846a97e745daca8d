//! One shard of typed entries.

mod attributes;
mod columns;
mod entries;
mod exchange;
mod extras;
mod leave;
mod slots;
mod soft;
mod store;
mod tidy;
mod view;

pub use attributes::{Attributes, FirstLook, Found, Freed, Removed};
pub use entries::IntoEntries;
pub use soft::Soft;
pub use store::TypedStore;
