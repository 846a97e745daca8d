//! One shard of expiring data: what lives, how to find it, and when it ends.
//!
//! A [`Store`] keeps keys with a value, a deadline, four bits of tag and 24 bits of access history.
//! It knows no locks, no clocks and no protocol: the caller locks it, and passes the time in.
//!
//! ```
//! use tidewheel_store::{KeyHasher, NewValue, Store};
//!
//! let hasher = KeyHasher::new(42);
//! let mut store: Store<()> = Store::new(hasher.clone());
//! let hash = hasher.hash(b"session");
//! store.insert(hash, b"session", 0, NewValue::Inline(b"alice"), Some(1_000), 0);
//!
//! store.expire(999, u32::MAX, |_| unreachable!("not yet"));
//! assert!(store.find(hash, b"session").is_some());
//! store.expire(1_000, u32::MAX, |gone| assert_eq!(gone.key, b"session"));
//! assert!(store.find(hash, b"session").is_none());
//! ```
//!
//! There are two stores. [`Store`] keeps bytes, and is what the server uses. [`TypedStore`] keeps
//! entries `(K, V)` with an eviction policy, and is what the cache and the scheduler use.
//!
//! # The parts
//!
//! - `index` finds an entry by its key's hash. Both stores have one.
//! - The wheel of `tidewheel-timer` says which entries are due. Both stores have one.
//! - In `bytes`, `entry` lays out an entry in one block, and `blocks` keeps blocks in pages of one
//!   size, so that memory goes back. `store` ties them together with index and wheel.
//! - `typed` keeps typed entries in slots, and `policy` says whom to evict.
//!
//! # What is promised
//!
//! - **A timer cannot outlive its entry**: all four parts are in one struct, changed by one call.
//! - **No operation's cost depends on the number of entries.** The index grows by segments, the
//!   wheel moves in budgets, memory is tidied by [`Store::maintain`] in budgets.
//! - **Memory goes back**: empty pages at once, sparse pages when they were emptied, the index when
//!   it shrinks.
//! - A 16-byte key with a 32-byte value and a deadline takes about 85 bytes in all.
//!
//! # How it is built
//!
//! Both stores have the same index, the same wheel and the same order of hashes.
//!
//! - `typed/` keeps entries in slots of eight bytes beside key and value, and what few entries have
//!   (weight, soft deadline, label) in columns beside a page.
//! - `bytes/` keeps an entry in one block. A block's id is its page and its offset, so index and
//!   wheel need no table from ids to blocks. An entry moves when it grows, or when its page is
//!   emptied: that changes one word of the index and files a new timer record. A new value of the
//!   same length goes where the old one was.
//! - `policy/` says whom to evict.
//! - `index/` finds entries by hash: cache-line buckets in segments of at most 32 KiB, in the order
//!   of the hashes.
//! - `shared/` is memory that is read without the lock while another thread changes it. It is the
//!   only module with unsafe code.
//!
//! An entry has 8 bits of the wheel's registration, those of quarters of a second. They tell the
//! wheel under which tick of the last 65 s before its deadline a timer is registered: an earlier
//! deadline that is still after that needs no new record. A dead record looks alive more often than
//! with all 32 bits. That costs moves until a sweep drops it; no deadline comes early or is lost,
//! because the deadline itself decides.
//!
//! **Invariant: no operation's cost depends on the number of entries.** Segments grow by a fifth,
//! and split and merge one at a time. Pages are emptied a few entries at a time. `cargo bench -p
//! tidewheel-store --bench worst_operation` prints the worst single operation while ten million
//! entries come and go.
//!
//! **Invariant: memory is in proportion to the entries, whatever their hashes.** The directory of
//! the index is bounded. A full segment that may not split hands its entries over to one ordered
//! tree, the *crowd* (`index/crowd.rs`). An operation there takes time logarithmic in the crowd,
//! and linear only in the entries of the same place.
//!
//! **Invariant: a scan visits every entry that stays exactly once.** The index is in the order of
//! the hashes, and the cursor is a hash. So growth, splits and moves do not disturb a scan.
#![deny(unsafe_code)]
#![cfg_attr(
    not(feature = "bytes"),
    allow(dead_code, reason = "index and slots have methods for both stores")
)]

#[cfg(feature = "bytes")]
mod bytes;
#[cfg(feature = "bytes")]
mod hasher;
mod index;
mod policy;
mod prefetch;
mod shared;
mod slot;
mod typed;

#[cfg(feature = "bytes")]
pub use bytes::{Expired, HandedBack, INLINE_MAX, NewValue, Seen, Store, Value};
#[cfg(feature = "bytes")]
pub use hasher::KeyHasher;
pub use prefetch::prefetch;
pub use shared::{Lens, OptimisticRead, SEATS, known_seat, seat};
pub use slot::Slot;
pub use tidewheel_timer::{Forecast, Progress, Span};
pub use typed::{
    Attributes, FirstLook, Found, Freed, IntoEntries, Overwritten, Removed, Soft, TypedStore,
};
