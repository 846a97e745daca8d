//! An in-process cache whose entries live exactly as long as you asked.
//!
//! ```
//! use std::time::Duration;
//! use tidewheel::Cache;
//!
//! fn main() -> Result<(), tidewheel::BuildError> {
//!     let cache = Cache::<String, u64>::builder()
//!         .max_capacity(100_000)
//!         .time_to_live(Duration::from_secs(60))
//!         .build()?;
//!
//!     cache.insert("tea".to_string(), 7);
//!     assert_eq!(cache.get("tea"), Some(7));
//!     let price = cache.get_or_load("coffee".to_string(), || 9);
//!     assert_eq!(price, 9);
//!     Ok(())
//! }
//! ```
//!
//! Tasks await their loaders. However many ask for a user at the same time, the database is asked
//! once:
//!
//! ```
//! use std::time::Duration;
//! use tidewheel::Cache;
//!
//! #[tokio::main]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let users = Cache::<u64, String>::builder()
//!         .max_capacity(10_000)
//!         .time_to_live(Duration::from_secs(60))
//!         .build()?;
//!
//!     let name = users.try_get_or_load_async(7, find_user(7)).await?;
//!     assert_eq!(name, "user 7");
//!     Ok(())
//! }
//!
//! async fn find_user(id: u64) -> Result<String, std::io::Error> {
//!     Ok(format!("user {id}"))
//! }
//! ```
//!
//! A cache is `Send + Sync`; a clone is another handle to the same one. [`Cache::builder`] asks two
//! questions, and `build` fails until both are answered: how long do entries live, and how much may
//! there be?
//!
//! # What is promised
//!
//! - **A read never returns an entry whose time is over.** The read itself compares the deadline
//!   with the clock, so it does not matter whether the entry was removed already. One tick is a
//!   millisecond. Times to live are rounded up to whole ticks, so nothing dies early.
//! - **An entry is removed by its deadline plus one tick, even if nobody uses the cache.** Then its
//!   memory is free and its event sent. Deadlines are in a timing wheel in the same shard as the
//!   entries, and the driver sleeps until the next one. If more is due than the driver may do in
//!   one go, the rest waits. [`Stats::lateness`] shows how late entries were removed,
//!   [`Stats::backlog`] how late the driver is now.
//! - **No stall**: expiry holds a shard's lock for 16 entries at a time, however many are due.
//! - **A panic of user code harms nobody else.** The operation is undone or finished; at worst its
//!   own entry is gone. A panic of a loader, closure, `Clone`, `Hash` or `Eq` reaches the caller
//!   whose call ran it. Panics of the listener and of `Drop` are counted
//!   ([`Stats::listener_panics`], [`Stats::drop_panics`]), because the thread that runs these did
//!   not cause them.
//! - **No user code runs under a lock**: not loaders, listeners, weighers, `Expiry` or the drop of
//!   keys and values. The exceptions are `Hash` and `Eq` (under any shard lock), and `Clone`,
//!   [`Cache::view`]'s closure, [`Cache::invalidate_if`]'s predicate and `expire_after_read` (under
//!   the reader lock), and a [`Clock`] of your own (under any). If one of these calls the same
//!   cache, it panics with a message instead of waiting for itself.
//! - **No operation takes longer because the cache holds more entries**, except those that say so.
//!
//! # Time to live, entry by entry
//!
//! ```
//! use std::time::Duration;
//! use tidewheel::{Cache, Condition, Driver, Lifetime, ManualClock, Ttl};
//!
//! fn main() -> Result<(), tidewheel::BuildError> {
//!     let clock = ManualClock::new();
//!     let cache = Cache::<&str, &str>::builder()
//!         .max_capacity(1000)
//!         .no_default_ttl()
//!         .clock(clock.clone())
//!         .driver(Driver::Manual)
//!         .build()?;
//!
//!     cache.insert_with_ttl("lease", "worker 3", Duration::from_secs(10));
//!     assert!(cache.expire(&"lease", Duration::from_secs(30), Condition::IfLater));
//!     assert_eq!(cache.ttl(&"lease"), Ttl::Left(Duration::from_secs(30)));
//!     assert!(cache.persist(&"lease"));
//!
//!     cache.insert_with("page", "<html>", Lifetime::ttl(Duration::from_secs(60)).tag("user:42"));
//!     cache.invalidate_tag("user:42"); // O(1), however many entries have it
//!     assert_eq!(cache.get(&"page"), None);
//!     Ok(())
//! }
//! ```
//!
//! [`Cache::get_many`] and [`Cache::insert_many`] take many keys at once, which is faster where the
//! cache is larger than the processor's caches.
//!
//! [`Builder::time_to_idle`] is for sliding expiry, [`Builder::time_to_live_by`] for a time to live
//! that the value itself tells, and an [`Expiry`] for a rule of your own. [`Builder::jitter`]
//! spreads the ends of entries that were stored together. [`Cache::freeze`] stops time for all
//! entries, for example while an origin is down.
//!
//! # Loading
//!
//! [`Cache::get_or_load`], [`Cache::try_get_or_load`] and [`Cache::optionally_get_or_load`] run one
//! loader for each key at a time, however many threads ask. The methods that end in `_async` do the
//! same for tasks, on any runtime, and threads and tasks share one load. If a loader panics or is
//! cancelled, another caller loads.
//!
//! The loaders of these methods return the value itself, so the compiler knows its type: `||
//! "7".into()` and `|| Arc::new(handler)` for an `Arc<dyn Handler>` compile. A loader that also
//! says how long its value lives, or by which tags it is invalidated, returns a [`Loaded`], to one
//! method for all shapes of answers, [`Fetch::load_with`]:
//!
//! ```
//! use std::{io, sync::Arc, time::Duration};
//! use tidewheel::{Cache, Lifetime, Loaded};
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let cache = Cache::<u32, String>::builder().unbounded().no_default_ttl().build()?;
//!     let name: String = cache.get_or_load(7, || "seven".into());
//!     assert_eq!(name, "seven");
//!     let name: Result<String, Arc<io::Error>> = cache.fetch(8).load_with(|| {
//!         let (name, seconds) = ask_the_server()?;
//!         Ok(Loaded::new(name, Lifetime::ttl(Duration::from_secs(seconds)).tag("names")))
//!     }).value;
//!     assert_eq!(name?, "eight");
//!     Ok(())
//! }
//!
//! fn ask_the_server() -> io::Result<(String, u64)> {
//!     Ok(("eight".into(), 60))
//! }
//! ```
//!
//! - [`Cache::fetch_by_ref`] and [`Cache::entry_by_ref`] take a key by reference: a hit makes no
//!   key.
//! - [`Cache::get_or_load_many`] loads all keys that are missing with one call.
//! - [`Cache::fetch`] tells beside the answer where it comes from ([`Outcome`]), for a header such
//!   as `X-Cache`, and the error in whose place it answers an old value.
//! - [`Fetch::load_with_old`] and [`Builder::refresh_with_old`] give the loader the old value,
//!   which it may keep with [`Loaded::unchanged`]: HTTP's `If-None-Match` and "304 Not Modified".
//! - [`Presence`] says for how long an absence is remembered.
//!
//! An entry may have two deadlines. Past the *soft* one ([`Builder::refresh_after`]) the old value
//! is served while one caller, or the background refresher ([`Builder::refresh_with`], or
//! [`Builder::refresh_with_async`] with a future), fetches the new one; several keys at a time
//! ([`Builder::refresh_parallelism`]). Past the *hard* one the entry is gone, except that
//! [`Builder::stale_on_error`], or [`Lifetime::stale_for`] for one entry, keeps it for a loader
//! that fails. While there is an old value to serve, a failing origin is left alone for
//! [`Builder::error_backoff`]. [`Builder::negative_ttl`] remembers errors and absences,
//! [`Builder::error_ttl`] each error as long as you say of it.
//!
//! # Changing a value
//!
//! [`Cache::update`] and [`Cache::entry`] change a key's value by a closure, which runs once. No
//! other writer of that key runs meanwhile, and writers of other keys do not wait.
//! [`Cache::compare_and_set`] changes a value only if it still has the version that you read.
//! [`Entry::try_compute`] takes a closure that may fail, and tells what was removed or replaced.
//! For async closures there is [`Entry::compute_async`]: those of one key take turns, and every
//! other writer goes before them.
//!
//! # Drivers
//!
//! The driver removes entries that are due, calls the listener and refreshes. By default it is a
//! thread of the cache's own, which sleeps until the next deadline, and others for listener and
//! refresher. [`Driver::Task`] is a future for any runtime ([`Cache::drive`]); a listener and a
//! refresher may be futures then. A [`SharedDriver`] is one for many caches. With
//! [`Driver::Manual`] you call [`Cache::advance`] yourself, with a budget, or [`Cache::run_due`];
//! together with a [`ManualClock`] this makes tests of expiry exact and fast:
//!
//! ```
//! use std::time::Duration;
//! use tidewheel::{Cache, Driver, ManualClock};
//!
//! fn main() -> Result<(), tidewheel::BuildError> {
//!     let clock = ManualClock::new();
//!     let cache = Cache::<u32, u32>::builder()
//!         .unbounded()
//!         .time_to_live(Duration::from_secs(5))
//!         .clock(clock.clone())
//!         .driver(Driver::Manual)
//!         .build()?;
//!     cache.insert(1, 1);
//!     clock.advance(Duration::from_secs(5));
//!     assert_eq!(cache.run_due(), 1);
//!     Ok(())
//! }
//! ```
//!
//! When the last handle goes, the driver removes the entries and delivers the last
//! events; the drop waits for nobody. [`Cache::close`] waits for that, and [`Cache::close_async`]
//! does without blocking the thread.
//!
//! # Eviction
//!
//! When the cache is full, entries that are due go first, and then what the policy picks. A due
//! entry can only stay behind a live one while the driver is behind: an insertion looks past some
//! 300 records of the wheel that lie before it (of deadlines far ahead that time has jumped to, or
//! that were moved). The policy resembles S3-FIFO (Yang et al., SOSP 2023). It adapts how long it
//! tries new entries, and whether it trusts keys that come back. The capacity is one number for all
//! shards, which borrow from it as they need it. So an entry is never refused if it is lighter than
//! the capacity. While several threads insert, the weight may exceed the capacity by what they are
//! inserting. [`Cache::pin`] protects an entry from eviction. [`Cache::set_max_capacity`] changes
//! the capacity while the cache is in use.
//!
//! # Threads that stand still, and `fork`
//!
//! A thread may be stopped in the midst of a [`Cache::get`] that takes no lock: by a debugger, by a
//! signal handler that sleeps, or on a busy machine by a much lower priority. What all caches of
//! the process free meanwhile waits for it, up to 64 MiB. Then they let all reads take their locks,
//! and give memory back again, but for what readers could reach at that moment. When the thread
//! goes on, all of it comes back. A shard's reads need no lock again after the next write to it.
//!
//! A child that was made by `fork` without an `exec` must not use a cache, neither its parent's nor
//! one of its own: what other threads of the parent held at that moment stays held in the child for
//! ever.
//!
//! # Features
//!
//! - `system` (default): the system's clock, and the threads of driver, listener and refresher.
//!   Without it this crate reads no clock and starts no thread. You must then give it a [`Clock`],
//!   and the driver must be a task or manual.
//! - `serde`: snapshots.
//! - `metrics`: counters, gauges and the lateness histogram through the `metrics` facade.
//! - `bytemuck`: `Builder::read_by_copy`, by which reads take no lock for small types of your own.
//!
//! # Coming from moka or quick_cache
//!
//! `COMPARE.md` in the repository has the table of names, and says when another cache is the better
//! choice.
//!
//! # How it is built
//!
//! This section is for those who change the crate. The folders are floors: each uses those below it
//! only. (`Cache` and `Builder` know each other.)
//!
//! - `handle/`: the API, one file for each kind of verb.
//! - `load/`: one load per key, led, joined or waited for; refresh-ahead; closures that change a
//!   value. Its head says how a load begins and ends.
//! - `drive/`: the drivers, which remove due entries, call the listener and refresh. Its head has
//!   the table of drivers.
//! - `core/`: what the shards of a cache share: who locks them, and what is done after unlocking;
//!   the listener, and whose turn it is to tell it. Its head describes a look-up and an insertion,
//!   step by step.
//! - `shard/`: all rules, without a clock, a lock or a thread: what a reader sees (`sight`), who
//!   loads and how that ends (`loading`), storing, leaving, room. `shard/tags/`
//!   invalidates by name in O(1). `shard/tests/` compares a shard alone with a naive model, and
//!   finds the faults of `planted.rs`.
//! - `lifetime.rs`, `loaded.rs`, `time.rs`, `sync.rs`, `stats.rs`, `error.rs`: the ground.
//!
//! Invariants:
//!
//! - **No thread holds the locks of two shards of one cache.** Within a shard's lock a thread may
//!   take that of a flight. Queues, turns and wakers are behind mutexes of their own, held for a
//!   few instructions while nothing else is locked. Wakers are called with no lock held.
//! - **What leaves the store is dropped or announced exactly once.** The events of one key keep
//!   their order: they are queued under its shard's lock, and one thread at a time delivers.
//! - **Who waits for a load leads none.** A caller of many keys claims all that are missing without
//!   waiting, loads its own, and waits then. So callers with the same keys in any order do not wait
//!   for each other.
//! - **No writer waits for an async closure.** It supersedes the closure, as it supersedes a load,
//!   and the closure runs again.
//! - **A thread that others may wait for waits for no listener.** A thread in a loader, a closure
//!   or a listener never waits for room in the listener's queue; it delivers its events when it
//!   leaves. The same holds for a thread that holds a shard of another cache, in a closure of
//!   `view` for example.
//! - **A driver never waits for a listener.** When the listener's queue is full, the driver removes
//!   nothing more. What is due stays in memory, and invisible.
//! - **A refresh that ends in any way leaves no flight behind.** A value, an error, a panic, a drop
//!   of the future: each ends or vacates the flight, and those who wait go on.
//! - **A panic of a user's `Drop` harms nothing else.** Values are dropped one by one, when
//!   everything has been counted. The panic is counted too.
//! - **A soft deadline belongs to the value.** No read and no idle time moves it.
//! - **Of several ends the earliest counts.** Neither a read nor an `Expiry` takes an entry past
//!   its time to live. An end that was given by hand counts alone.
//! - **A failing origin is asked once in a back-off**, for each key of which an old value is kept.
//!   The old entry itself says when the next load is tried.
#![forbid(unsafe_code)]

/// Compiles and runs the code of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod core;
mod drive;
mod error;
mod handle;
mod lifetime;
mod load;
mod loaded;
mod planted;
mod quiet;
mod removal;
mod shard;
mod stats;
mod sync;
mod time;

pub use drive::driver::{Driver, SharedDriver};
pub use drive::step::Progress;
pub use equivalent::Equivalent;
pub use error::BuildError;
pub use handle::builder::Builder;
pub use handle::cache::{Cache, WeakCache};
pub use handle::cas::{CompareError, Version};
pub use handle::entry::{Entry, EntryUpdate};
pub use handle::fetch::Fetch;
pub use handle::forecast::Forecast;
pub use handle::iter::{Entries, Iter, Keys, TaggedEntries};
#[cfg(feature = "serde")]
pub use handle::snapshot::{RestoreError, Snapshot};
pub use lifetime::{Condition, Expiry, Jitter, Lifetime, Ttl};
pub use load::fetched::{Fetched, Outcome};
pub use load::form::{BorrowedKey, KeyForm, OwnedKey};
pub use load::latch::{Compute, Computed};
pub use load::loader_result::{LoaderResult, RefresherResult};
pub use loaded::{Loaded, Presence};
pub use removal::{Removal, RemovalCause};
pub use shard::rules::OnFull;
pub use stats::Stats;
#[cfg(feature = "system")]
pub use tidewheel_time::SystemClock;
pub use tidewheel_time::{Clock, DefaultHashBuilder, DefaultHasher, ManualClock};
