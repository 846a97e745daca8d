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
//!   says was true within that time. Usually word of a change arrives within a millisecond. When
//!   the connection that brings it is lost, entries are believed for [`Tier::degraded_life`] more,
//!   and not at all if that is zero.
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
//! - `metrics`: the counters of [`TierStats`] through the `metrics` facade.
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
pub use core::names::{Names, Wire};
pub use core::plane::{Owners, Plane, Source};
pub use core::server::ServerId;
pub use embedded::Embedded;
pub use engine::{Answer, Backend, EngineError, Filled, Lease, Look, Looked, TagSaid};
pub use handle::builder::{Tier, Tiered};
pub use handle::cache::TieredCache;
pub use handle::held::Held;
pub use handle::life::{Given, Life};
pub use stats::TierStats;
#[cfg(feature = "valkey")]
pub use valkey::{OpenError, Valkey};
