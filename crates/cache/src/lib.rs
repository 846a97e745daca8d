//! An in-process cache whose entries live exactly as long as you asked.
//!
//! ```
//! use std::time::Duration;
//! use tidewheel::Cache;
//!
//! # fn main() -> Result<(), tidewheel::BuildError> {
//! let cache: Cache<String, u64> = Cache::builder()
//!     .max_capacity(100_000)
//!     .time_to_live(Duration::from_secs(60))
//!     .build()?;
//!
//! cache.insert("tea".to_string(), 7);
//! assert_eq!(cache.get("tea"), Some(7));
//! let price = cache.get_or_load("coffee".to_string(), || 9);
//! assert_eq!(price, 9);
//! # Ok(())
//! # }
//! ```
//!
//! A cache is `Send + Sync`; a clone is another handle to the same one. [`Cache::builder`] asks two questions,
//! and `build` fails until both are answered: how long do entries live, and how much may there be?
//!
//! # What is promised
//!
//! - **A read never returns an entry whose time is over.** It compares the deadline with the clock itself;
//!   whether the entry was removed already does not matter. One tick is a millisecond: times to live are
//!   rounded up to the next, so nothing dies early.
//! - **An entry is removed, its memory reused and its event sent by its deadline plus one tick plus the wait
//!   for the driver's budget, with no traffic at all.** Deadlines are in a timing wheel in the same shard as
//!   the entries; the driver sleeps until the next one. [`Stats::lateness`] tells how late it was,
//!   [`Stats::backlog`] how late it is.
//! - **No stall**: expiry holds a shard's lock for 16 entries at a time, whatever is due.
//! - **A panic of user code harms nobody else**: what it was called for is undone or finished, the entry that it
//!   concerned is gone at worst. One of a loader, closure, `Clone`, `Hash` or `Eq` reaches the caller whose call
//!   ran it; those of the listener and of `Drop` are counted ([`Stats::listener_panics`],
//!   [`Stats::drop_panics`]), for whoever meets them has nothing to do with them.
//! - **No user code under a lock**: loaders, listeners, weighers, `Expiry` and the drop of keys and values run
//!   outside. The exceptions are `Hash` and `Eq` (any shard lock), `Clone`, [`Cache::get_with`]'s closure,
//!   [`Cache::invalidate_if`]'s predicate and `expire_after_read` (reader lock); if one of these calls the same
//!   cache, it panics with a message instead of waiting for itself.
//! - **No operation's cost depends on how many entries there are**, except those that say so.
//!
//! # Time to live, entry by entry
//!
//! ```
//! use std::time::Duration;
//! use tidewheel::{Cache, Condition, Driver, Lifetime, ManualClock, Ttl};
//!
//! # fn main() -> Result<(), tidewheel::BuildError> {
//! let clock = ManualClock::new();
//! let cache: Cache<&str, &str> = Cache::builder()
//!     .max_capacity(1000)
//!     .no_default_ttl()
//!     .clock(clock.clone())
//!     .driver(Driver::Manual)
//!     .build()?;
//!
//! cache.insert_with_ttl("lease", "worker 3", Duration::from_secs(10));
//! assert!(cache.expire(&"lease", Duration::from_secs(30), Condition::IfLater));
//! assert_eq!(cache.ttl(&"lease"), Ttl::Left(Duration::from_secs(30)));
//! assert!(cache.persist(&"lease"));
//!
//! cache.insert_with("page", "<html>", Lifetime::ttl(Duration::from_secs(60)).tag("user:42"));
//! cache.invalidate_tag("user:42"); // O(1), however many entries have it
//! assert_eq!(cache.get(&"page"), None);
//! # Ok(())
//! # }
//! ```
//!
//! Sliding expiry is [`Builder::time_to_idle`]; a rule of your own is an [`Expiry`]; [`Builder::jitter`] spreads
//! what was stored together. [`Cache::freeze`] stops time for all entries while an origin is down.
//!
//! # Loading
//!
//! [`Cache::get_or_load`], [`Cache::try_get_or_load`] and [`Cache::optionally_get_or_load`] run one loader for
//! each key at a time, however many threads ask; the same with `_async` for tasks, on any runtime, and both
//! share one load. A leader that panics or is cancelled hands over. Past the *soft* deadline
//! ([`Builder::refresh_after`]) the old value is served while one caller, or the background refresher
//! ([`Builder::refresh_with`]), fetches the new one; after the *hard* one it is gone, except that
//! [`Builder::stale_on_error`] keeps it for a failing loader. [`Builder::negative_ttl`] remembers errors and
//! absences.
//!
//! # Changing a value
//!
//! [`Cache::update`] and [`Cache::entry`] change a key's value by a closure that runs once, atomically with
//! respect to every other writer of that key and without holding up any other key; [`Cache::compare_and_set`]
//! does it by version.
//!
//! # Who drives
//!
//! By default a thread of the cache's own, asleep until the next deadline. [`Driver::Task`] is a future for any
//! runtime ([`Cache::drive`]); [`Driver::Manual`] is you, with [`Cache::advance`], which together with a
//! [`ManualClock`] makes tests of expiry exact and instant:
//!
//! ```
//! # use std::time::Duration;
//! # use tidewheel::{Cache, Driver, ManualClock};
//! # fn main() -> Result<(), tidewheel::BuildError> {
//! let clock = ManualClock::new();
//! let cache: Cache<u32, u32> = Cache::builder()
//!     .unbounded()
//!     .time_to_live(Duration::from_secs(5))
//!     .clock(clock.clone())
//!     .driver(Driver::Manual)
//!     .build()?;
//! cache.insert(1, 1);
//! clock.advance(Duration::from_secs(5));
//! let progress = cache.advance(cache.now(), 1000);
//! assert_eq!((progress.expired, progress.backlog), (1, false));
//! # Ok(())
//! # }
//! ```
//!
//! # Eviction
//!
//! When the cache is full, entries that are due go first, then what the policy picks: S3-FIFO's shape with a
//! clock over the slots, which adapts how long newcomers are tried and whether returning keys are trusted. A
//! capacity is one number for all shards: weight is lent to them as they need it, so no entry lighter than the
//! capacity is refused. While threads insert at once, the weight may be over the capacity by what they are
//! inserting. [`Cache::pin`] exempts an entry from eviction.
//!
//! # Features
//!
//! `system` (default): the system's clock, and the threads of driver, listener and refresher. Without it nothing
//! here reads a clock or starts a thread: a [`Clock`] must be given and the driver be a task or manual.
//! `serde`: snapshots. `metrics`: counters, gauges and the lateness histogram through the `metrics` facade.
//!
//! # Coming from moka or quick_cache
//!
//! `COMPARE.md` in the repository has the table of names, and where each of them is the better choice.
#![forbid(unsafe_code)]

/// Compiles and runs the code of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod builder;
mod cache;
mod capacity;
mod cas;
mod clock;
mod config;
mod delivery;
mod driver;
mod entry;
mod error;
mod flight;
mod forecast;
mod fresh;
mod given;
mod inner;
mod invalidate;
mod iter;
mod lifetime;
mod load;
#[cfg(feature = "metrics")]
mod metrics;
mod midst;
mod pin;
mod quiet;
mod removal;
mod renewal;
mod room;
mod shard;
#[cfg(feature = "serde")]
mod snapshot;
mod stats;
mod sweep;
mod sync;
mod tags;
mod time;
mod ttl;

pub use builder::Builder;
pub use cache::{Cache, WeakCache};
pub use cas::{CompareError, Version};
#[cfg(feature = "system")]
pub use clock::SystemClock;
pub use clock::{Clock, ManualClock};
pub use driver::{Driver, Progress};
pub use entry::{Compute, Entry, EntryUpdate};
pub use equivalent::Equivalent;
pub use error::BuildError;
pub use forecast::Forecast;
pub use iter::{Entries, Iter, Keys};
pub use lifetime::{Condition, Expiry, Jitter, Lifetime, Loaded, Ttl};
pub use removal::{OnFull, Removal, RemovalCause};
#[cfg(feature = "serde")]
pub use snapshot::{RestoreError, Snapshot};
pub use stats::Stats;
