//! Memory that threads read without a lock while another thread, which has the lock, changes
//! it.
//!
//! # The picture
//!
//! ```text
//!   Lens ──► Roots: a sequence number ──► ways ──► a bucket of the index ─┐ an id
//!                                     └─► spots ──► cells ◄───────────────┘
//! ```
//!
//! A reader needs three things, and each has a file:
//!
//! - **No torn values.** The writer makes the sequence number odd while it changes something
//!   ([`roots`]). A reader that sees an odd number, or another number afterwards, forgets what it
//!   has read, and goes the way of the lock. What both touch is atomic, word by word. So this is
//!   for values that consist of bits and nothing else: the [`plain`] types.
//! - **Memory that is still there.** A reader *pins* its thread, which takes two plain stores
//!   to a cache line of its own. Memory that was unlinked waits in [`limbo`] until every
//!   thread that was pinned then has let go.
//! - **Addresses that can be followed while they change.** Arrays are [`Block`]s, which never move.
//!   A larger one is another block.
//!
//! The rule for the writer is one line: unlink first, drop then. Everything that a reader can reach
//! lies in a `Block`, and a dropped `Block` goes to limbo by itself.
//!
//! A block's memory is the allocator's, or lies on a huge page ([`slabs`]).
//!
//! This is the only module with unsafe code.
//!
//! # Invariants
//!
//! **What a reader without the lock can reach lies in a [`Block`], is unlinked before it is
//! dropped, and is freed by limbo only.** A `Block` sees to the last; the index and the slots to
//! the second.
//!
//! **A copy is not yet a value.** It stays `MaybeUninit` until the sequence number is known to be
//! the same. Of a type that is not listed, most bits may be no value: so its slots are written only
//! while the number is odd (`Slots` panics otherwise), and a vacant slot is never taken for an
//! entry. Of listed types the compiler knows all that; of others each store does.
//!
//! **No code of users runs in a pinned thread.** It lets go while it asks a clock that was given.
//! So limbo is never kept waiting for long, unless the thread itself is stopped.
//!
//! **What waits in limbo is bounded**: 64 MiB, and what was shared at the moment at which it became
//! full. In a child made by `fork` the parent's other threads are stopped for ever, and limbo may
//! stay full.
#![allow(unsafe_code, reason = "the one module that may: see above")]

mod block;
mod cells;
mod lanes;
mod limbo;
mod memory;
mod plain;
mod roots;
mod seats;
mod slab;
mod slabs;
#[cfg(all(test, any(target_os = "linux", miri)))]
mod tests;
mod units;

pub(crate) use block::{Block, Purpose};
pub(crate) use cells::{Cells, DEADLINE_MAX, Entry, Loose, Own};
pub(crate) use lanes::{LANES, Lanes, first};
pub(crate) use limbo::{has_room, is_full, is_possible, look_again};
pub(crate) use plain::{are_listed, may_be_told};
pub use roots::{Lens, OptimisticRead};
pub(crate) use roots::{Roots, Spot, Ways};
pub use seats::{SEATS, known_seat, seat};
