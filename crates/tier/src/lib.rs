//! A second tier for the cache, on Valkey or Redis.
//!
//! ```
//! use std::time::Duration;
//! use tidewheel::Cache;
//! use tidewheel_tier::{Embedded, Raw, Tier, Tiered, TieredCache};
//!
//! # fn main() -> Result<(), tidewheel::BuildError> {
//! # let engine = Embedded::new();
//! // let engine = Valkey::open("redis://127.0.0.1:6379")?;
//! let cache: TieredCache<String, String> = Cache::builder()
//!     .max_capacity(100_000)
//!     .no_default_ttl()
//!     .tiered(Tier::new("shop", engine, Raw).time_to_live(Duration::from_secs(60)))?;
//!
//! let price = cache.get_or_load("tea".to_string(), || "7".to_string());
//! assert_eq!(price, "7");
//! # Ok(())
//! # }
//! ```
//!
//! The cache in the process is the *first tier*, the engine the *second*: many processes share it.
//! What one of them has loaded, the others read from there; of all that miss a key at the same
//! time, in all processes, one loads it.
//!
//! # What is promised
//!
//! - **A hit is at most as old as the bound** ([`Tier::staleness`], a second if not set): what it
//!   says was true within that time. Usually the message of a change arrives within a millisecond.
//!   When the connection that brings it is lost, entries are believed for [`Tier::degraded_life`]
//!   more, and not at all if that is zero.
//! - **An entry ends no later than in the engine**, in any process.
//! - **One loader at a time for a key, in all processes**, as long as the engine answers and the
//!   loader returns within [`Tier::lease`]. If its process dies, another one loads when the lease
//!   has run out. A loader that is slower than that, or whose key is written or invalidated
//!   meanwhile, stores nothing.
//! - **No clock of one machine is compared with that of another.**
//! - **If the engine is away, loads go on** without it, and what they bring lives for a short time
//!   in the process.
//!
//! - **A failover undoes nothing that was acknowledged lately**: an engine with asynchronous
//!   replication may lose in it what it has taken. Each process invalidates again, at the new
//!   server, what it has written and invalidated within [`Tier::failover_lag`]. What was written by
//!   a process that has died is not repeated. Every entry has an end.
//!
//! # Features
//!
//! - `valkey`: the engines. Without it there is [`Embedded`], in this process.
//! - `postcard`, `json`: values by serde. [`Raw`] keeps bytes and text as they are.
//! - `lz4`: `Tier::compress_above`.
//! - `metrics`: [`TierStats`], and what the first tier counts, through the `metrics` facade.
//!
//! # How it is built
//!
//! This section is for those who change the crate. The folders, from the top down:
//!
//! - `races/`: seeded interleavings of processes, engine and network. Each rule is switched off
//!   once, to see that the test notices.
//! - `handle/`: what users call: builder, loads for threads and tasks, writes, invalidations.
//! - `flow/`: one miss: look, lease, wait, load, fill, and what is answered when something of it
//!   fails.
//! - `valkey/`: the engine. `data.rs` sends commands through the crate `redis`, `scripts.rs` has
//!   what runs in the engine, `moving.rs` slots of a Cluster that are half moved. `push/` has the
//!   watching connections, with a file for each way in which primaries are found.
//! - `embedded/`: the same in this process, over a clock of the caller's.
//! - `guard/`: circuit breaker; invalidations that wait for an engine that is away; what it has
//!   taken lately, and may lose.
//! - `core/`: the protocol without sockets. Its head lists the fourteen holes that it closes.
//!
//! **Two kinds of connections.** The *data connections* ask the engine for values, and write them.
//! The *invalidation stream* has a connection of its own to each primary. There it asks for a
//! message of every change below the namespace's prefix (CLIENT TRACKING with BCAST), and sends a
//! heartbeat. Nothing orders the two, so replies and invalidation messages race.
//!
//! **A watch** is an unbroken time of watching one primary. It has a number that all entries share
//! that were read during it: until when it may be believed. The heartbeat moves that ahead: to the
//! time at which an answered heartbeat was *sent*, plus the bound. A broken connection, an
//! announcement that everything was flushed, and a change of topology end the watch for good; the
//! next one is another object. Each entry of the first tier holds the watch that it was read under.
//!
//! **One read's walk.**
//!
//! 1. The first tier has the entry. Its watch may be believed, and so may those of its tags: a hit.
//!    The cache compares its clock once, with the entry's end and with its watch's
//!    (`view_until_tick`).
//! 2. Otherwise one caller of the process goes on, and the others wait for it. Its load is
//!    registered in the first tier *before* anything is sent: that is the *fill token*. An
//!    invalidation message of this key supersedes the load, as any writer does, and what it read is
//!    answered and not stored.
//! 3. It notes the time and the watch, and asks the engine with one script: for the value with its
//!    time to live, or else for the lease of the key.
//! 4. There is a fresh value: it is stored under that watch, and ends at the noted time plus the
//!    time to live, at the latest.
//! 5. It has the lease: it runs the loader, and stores what that brings, if the lease is still its
//!    own.
//! 6. Somebody else has the lease: an old value is answered, if there is one past its soft
//!    deadline. If not, it waits for an invalidation message, looks again from time to time, and
//!    takes over when the lease has run out.
//! 7. The engine is away: the loader runs, and what it brings lives for a short time in the first
//!    tier alone. If the loader fails too, an old value is answered.
//!
//! Invariants, besides the fourteen rules and the promises above:
//!
//! - **What is kept was answered by the server that is watched.** A watch has the server's id, and
//!   so has each answer; the first tier keeps nothing where they differ. Otherwise a server that
//!   was the primary could fill it, under the watch of its successor. Where one server has
//!   everything, such an answer is none; in a Cluster it may be of the node that a slot is moving
//!   to.
//! - **Only the holder of the lease fills.** Writing and invalidating a key end its lease in the
//!   same step. While a slot of a Cluster is half moved, a command may not name two keys of it.
//!   Then the lease of a key that has no value is in the value's own place; writing and
//!   invalidating end the lease first.
//! - **What was invalidated is no answer to an error.** While the engine is there, only it says
//!   what may still be answered. While it is away, a value is answered that was not invalidated as
//!   far as this process knows.
//! - **What was learnt unwatched ends when watching begins**: values and versions of tags alike.
//! - **An old load brings back no invalidated value.** An entry carries the version of each of its
//!   tags. A version that is fetched after the load is used only if the tag was not invalidated
//!   while it ran.
//! - **Nothing is read while an invalidation waits.** Each that failed is tried again first, by
//!   whoever reads, by whoever has written, and by the backend from time to time. One that fails
//!   again while it is tried goes on waiting. A write of a key first has that key's and its tags'
//!   taken, or fails: they would take the new value away.
//! - **What a server has taken lately is repeated before its successor is read.** All that was sent
//!   within the engine's lag waits as if it had failed. Nobody reads from the successor until it is
//!   watched, and for one bound after it took over: others may still have something to repeat.
//! - **Every queue is bounded.** Waiting invalidations above their limit become one of the whole
//!   namespace; watched tags above theirs are forgotten, with the entries that have them.
//! - **The order of locks**: the stream's lock, then nothing. No lock of the tier is held while the
//!   first tier, a loader, a codec or a waker is called.
#![forbid(unsafe_code)]

/// Compiles and runs the code of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod codec;
mod core;
mod embedded;
mod engine;
mod flow;
mod guard;
mod handle;
#[cfg(test)]
mod races;
mod stats;
#[cfg(feature = "valkey")]
mod valkey;

#[cfg(feature = "json")]
pub use codec::Json;
#[cfg(feature = "postcard")]
pub use codec::Postcard;
pub use codec::{Codec, CodecError, Raw, TierKey};
pub use core::invalidation_stream::{InvalidationStream, Owners, Source};
pub use core::names::{Names, Wire};
pub use core::server::ServerId;
pub use embedded::Embedded;
pub use engine::{Answer, Backend, EngineError, Filled, Lease, Look, Looked, TagAnswer};
pub use handle::builder::{Tier, Tiered};
pub use handle::cache::TieredCache;
pub use handle::held::Held;
pub use handle::life::{Given, Life};
pub use stats::TierStats;
#[cfg(feature = "valkey")]
pub use valkey::{OpenError, Valkey};
