//! One shard of bytes.

mod blocks;
mod entry;
mod expire;
mod look;
mod objects;
mod store;
mod tidy;
mod value;
mod write;

pub use store::Store;
pub use value::{Expired, HandedBack, INLINE_MAX, NewValue, Seen, Value};
