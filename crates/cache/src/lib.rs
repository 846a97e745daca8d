//! An in-process cache whose entries live exactly as long as you asked.
#![forbid(unsafe_code)]

mod builder;
mod cache;
mod capacity;
mod cas;
mod clock;
mod config;
mod driver;
mod entry;
mod error;
mod flight;
mod forecast;
mod inner;
mod invalidate;
mod iter;
mod lifetime;
mod load;
mod pin;
mod removal;
mod shard;
mod stats;
mod sweep;
mod sync;
mod tags;
mod time;

pub use builder::Builder;
pub use cache::Cache;
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
pub use stats::Stats;
