//! The driver of a cache: it removes due entries, sweeps invalidated ones, tidies memory, calls the
//! listener and refreshes.
//!
//! Three kinds of work are done when nobody calls: entries that are due are removed, the listener
//! is told of what left, and stale entries are loaded again. The `Driver` decides which thread or
//! task does each.
//!
//! | `Driver` | removes what is due | calls the listener | refreshes |
//! |---|---|---|---|
//! | `Thread` | a thread, `<name>-expiry` | a thread, `<name>-events` | up to `refresh_parallelism` threads |
//! | `Task` | the future of `Cache::drive` | the same future, which awaits an async listener | the same future, several refreshes at a time; `run_refreshes` for a blocking refresher |
//! | `Manual` | `advance` | `advance` | `run_refreshes` |
//! | shared threads | one thread for all its caches | one thread | threads that all its caches share |
//! | shared task | the future of `SharedDriver::drive` | the same | the same |
//!
//! One loop, `driving.rs`, is behind all of them. It is called in turns: each removes what is due
//! and says how long to sleep, and nothing in it waits. A thread (`worker_threads.rs`) and a shared
//! task (`registry.rs`) have a group of such loops, and give a turn to those that were woken and no
//! others (`group.rs`), so a step costs what is due, however many caches there are. The future of
//! one cache gives it a turn at each poll. The sleeps are a thread's or a runtime's.
//!
//! `Driver::Thread` starts such threads for one cache. A turn of a cache on a shared driver ends
//! after one hold of a shard's lock (16 entries) once it has taken 0.2 ms, and after 16 calls of
//! the listener: that much others wait for it.
//!
//! **The workers of a cache** are counted (`core/workers.rs`). When the last handle goes, it tells
//! the other workers to stop, and leaves. They empty the shards, deliver the events and leave too.
//! The last one to leave does what is left to do. So no drop waits for a thread. `close` waits
//! until the threads have left, unless somebody may be waiting for the calling thread.
//! `close_async` does the same as a future. Neither waits for a drive future, which might never be
//! polled again: they empty the shards and tell the listener themselves.
//!
//! **An async listener's future belongs to the cache**, not to the task that polls it. The holder
//! of the delivery turn polls it, and gives the turn back after each poll. So a task that is
//! dropped in the middle loses no event: the next drive future, or `close_async`, goes on with it.
//!
//! **Invariant: a wake-up is lost by neither of two layers.** Below is the alarm of each cache, as
//! with one driver. Above, the end of a sleep puts the cache into its group's list of those to have
//! a turn and then wakes the poller, which looks at the list before it sleeps.

mod background;
pub(crate) mod driver;
pub(crate) mod driving;
pub(crate) mod group;
mod registry;
mod shutdown;
pub(crate) mod step;
#[cfg(feature = "system")]
mod worker_threads;
