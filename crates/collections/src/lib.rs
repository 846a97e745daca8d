//! One collection: its members, their order, their deadlines.
//!
//! ```
//! use tidewheel_collections::{Change, Hash, Limits, NewDeadline};
//! use tidewheel_store::KeyHasher;
//!
//! let hasher = KeyHasher::new(42);
//! let limits = Limits { entries: 512, value: 64, integers: 512 };
//! let change = Change { now: 0, limits, hasher: &hasher };
//!
//! let mut session = Hash::new();
//! session.insert(b"user", b"alice", NewDeadline::None, &change);
//! session.insert(b"token", b"8f2c", NewDeadline::At(1_000), &change);
//!
//! session.expire(1_000, 32, |gone| assert_eq!(gone.key, b"token"));
//! assert_eq!(session.get().value(b"user"), Some(&b"alice"[..]));
//! assert_eq!(session.get().len(), 1);
//! ```
//!
//! # The parts
//!
//! Each collection has two types: [`HashRef`] reads, [`Hash`](enum@Hash) changes. Both have two
//! forms.
//!
//! - *Packed* is one string of bytes ([`Packed`]). The caller may keep it wherever it keeps bytes.
//! - *Large* is a structure of its own. A collection becomes large when an insert breaks its
//!   [`Limits`], and never goes back. For hashes and sets it is a [`Table`], which is a small
//!   store. For a [`ZSet`] it is such a store and a tree of scores, for a [`List`] a deque of
//!   chunks. A list goes back when the caller asks for it with [`List::pack`].
//!
//! # The rules
//!
//! - **Time is an argument.** A member is due when `now` has reached its deadline. The caller calls
//!   `expire` before it reads: a `Ref` type does not know the time, and shows every member that is
//!   there.
//! - **Work comes in steps.** `expire` and `maintain` take a budget. No operation on a large
//!   collection depends on its number of members, unless it says so.
//!
//! # How it is built
//!
//! - `hash/`, `set/`, `zset/`, `list/`: one type each. `mod.rs` changes it, `view.rs` or `read.rs`
//!   reads it. `view.rs` beside them has what hashes and sets have in common for reading.
//! - `stream/` is entries in chunks of the public form, and groups of consumers: see its page.
//! - `table.rs` is the large form of hashes and sets: a small store of bytes whose keys are the
//!   members. So it has the index, the scan, the wheel and the tidying of a shard.
//! - `order/` is the members of a sorted set by score: a tree of scores and block ids that knows
//!   how many members each branch has.
//! - `packed/` is the packed form: members in a row, a column of deadlines behind them once one is
//!   needed. A list has a column of lengths instead, since it is read from both ends.
//! - `walk.rs` walks over the members of a large collection in steps, and shows each as it was when
//!   the walk began.
//! - `change.rs` has the limits, and what a change needs to know.
//!
//! The limits between the forms are the public settings (`hash-max-listpack-entries` and so on),
//! within 4,096 members and 1 MiB, so that no insertion takes long.
#![forbid(unsafe_code)]

mod change;
mod hash;
mod list;
mod order;
mod packed;
mod random;
mod set;
mod shared;
mod stream;
mod table;
mod view;
mod walk;
mod zset;

pub use change::{Change, Limits, NewDeadline, PACKED_BYTES_MAX, PACKED_ENTRIES_MAX};
pub use hash::{Hash, HashRef};
pub use list::{LargeList, List, ListLimits, ListRef, Occurrences, PackedList, PackedListRef};
pub use packed::{DEADLINE_MAX, Member, Members, Packed, PackedPosition, PackedRef, overwrite};
pub use set::{Set, SetForm, SetRef};
pub use stream::{
    Consumer, Element, Fields, Group, Groups, Keep, Log, Needed, Pending, Stream, StreamEntry,
    StreamId, StreamLimits, Trim, Trimmed,
};
pub use table::{Entry, Table};
pub use walk::{CopiedMembers, Course, Walked};
pub use zset::{LargeZSet, Scored, Updated, ZSet, ZSetRef};
