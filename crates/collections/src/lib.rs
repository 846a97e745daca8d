//! One collection: its members, their order, their deadlines.
#![forbid(unsafe_code)]

mod change;
mod hash;
mod list;
mod order;
mod packed;
mod random;
mod set;
mod table;
mod view;
mod zset;

pub use change::{Change, Limits, NewDeadline};
pub use hash::{Hash, HashRef};
pub use list::{LargeList, List, ListLimits, ListRef, Occurrences, PackedList, PackedListRef};
pub use packed::{DEADLINE_MAX, Member, Members, Packed, PackedRef, Place, overwrite};
pub use set::{Set, SetForm, SetRef};
pub use table::{Entry, Table};
pub use zset::{LargeZSet, Scored, Updated, ZSet, ZSetRef};
