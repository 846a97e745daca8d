//! One collection: its members, their order, their deadlines.
#![forbid(unsafe_code)]

mod change;
mod packed;

pub use change::{Change, Limits, NewDeadline};
pub use packed::{DEADLINE_MAX, Member, Members, Packed, PackedRef, Place, overwrite};
