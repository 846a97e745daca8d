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
pub use shared::{Glimpse, Lens, SEATS, known_seat, seat};
pub use slot::Slot;
pub use tidewheel_timer::{Forecast, Progress};
pub use typed::{
    Attributes, FirstLook, Found, Freed, IntoEntries, Overwritten, Removed, Soft, TypedStore,
};
