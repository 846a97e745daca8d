//! The entry points of code that only some caches need. Only the builder's method that asks for
//! such code names it.
//!
//! A program without a listener, or a refresher, or an idle time, so does not contain what calls or
//! counts one. That makes it a fifth smaller, and it is compiled in less time.

#![allow(
    clippy::type_complexity,
    reason = "each of these types is one function's, and used once"
)]

use std::hash::{BuildHasher, Hash};
use std::sync::OnceLock;
#[cfg(feature = "system")]
use std::sync::{Arc, Weak};

use tidewheel_store::Slot;
use tidewheel_time::Moment;

use crate::core::inner::{Inner, ShardCell};
#[cfg(feature = "system")]
use crate::core::workers::{Driven, WorkerGuard};
use crate::shard::Shard;
use crate::shard::ends::Renewal;
use crate::shard::rules::Hashed;

/// The hooks that the builder has set.
pub(crate) struct Hooks<K, V, S> {
    pub(crate) on_use: Option<UseHook<K, V, S>>,
    pub(crate) listener: Option<ListenerHook<K, V, S>>,
    pub(crate) refresh: Option<RefreshHook<K, V, S>>,
    /// Set by the first invalidation by tag.
    pub(crate) sweep: OnceLock<SweepHook<K, V, S>>,
}

/// The hook for reads that change their entry's end.
pub(crate) struct UseHook<K, V, S> {
    /// Slides the deadline; what to set when that takes the writer's lock.
    pub(crate) slide: fn(&Shard<K, V, S>, Slot, Moment) -> Option<Renewal>,
    /// Sets that.
    pub(crate) renew: fn(&Inner<K, V, S>, Hashed, &dyn Fn(&K) -> bool, Renewal),
}

impl<K: Hash + Eq, V, S: BuildHasher> UseHook<K, V, S> {
    /// The hook of a cache that has an idle time, or an `Expiry`.
    pub(crate) fn new() -> Self {
        Self {
            slide: Shard::slide,
            renew: |inner, hash, is, renewal| {
                inner.change(inner.cell(hash), |shard, now| {
                    shard.renew(hash, is, renewal, now);
                });
            },
        }
    }
}

/// The hook that tells the listener.
pub(crate) struct ListenerHook<K, V, S> {
    pub(crate) deliver: fn(&Inner<K, V, S>, bool),
    /// The work of the listener's thread, with at most so many calls of the listener in a turn.
    #[cfg(feature = "system")]
    pub(crate) drive: fn(Arc<Inner<K, V, S>>, usize, WorkerGuard) -> Box<dyn Driven>,
}

/// The hook that refreshes stale entries.
pub(crate) struct RefreshHook<K, V, S> {
    pub(crate) wanted: fn(&Inner<K, V, S>, &Shard<K, V, S>, Hashed, Slot, Moment) -> Option<K>,
    pub(crate) queue: fn(&Inner<K, V, S>, Hashed, K),
    /// Ends what is queued.
    pub(crate) stop: fn(&Inner<K, V, S>),
    /// The cache as threads see it that run its refreshes.
    #[cfg(feature = "system")]
    pub(crate) runs: fn(&Arc<Inner<K, V, S>>) -> Weak<dyn Runs>,
}

/// The hook that removes entries whose tags were invalidated.
pub(crate) struct SweepHook<K, V, S> {
    /// Removes the invalidated entries in some slots of a shard; returns where to go on.
    pub(crate) slots: fn(&Inner<K, V, S>, &ShardCell<K, V, S>, u32, u32) -> Option<u32>,
    /// One that a reader has found so.
    pub(crate) key: fn(&Inner<K, V, S>, Hashed, &dyn Fn(&K) -> bool),
}

/// A cache that has refreshes to run.
#[cfg(feature = "system")]
pub(crate) trait Runs: Send + Sync {
    /// Begins one more runner, if there is work for it and room; returns whether it did.
    fn begin(&self) -> bool;

    /// Runs one refresh; whether there is another.
    fn run_one(self: Arc<Self>) -> bool;
}

impl<K, V, S> Hooks<K, V, S> {
    pub(crate) const fn none() -> Self {
        Self {
            on_use: None,
            listener: None,
            refresh: None,
            sweep: OnceLock::new(),
        }
    }
}
