//! The caches that can be measured: names, versions, abilities, constructors.

use anyhow::Result;
use clap::ValueEnum;
use tidewheel::Cache;

#[cfg(feature = "peers")]
use super::peers;
use super::subject::{Hasher, Key, Subject, Value};
use crate::names;
use crate::studies::expiry::caches::naive_scan::NaiveScan;
use crate::studies::expiry::caches::slot_wheel::SlotWheel;
use crate::studies::expiry::caches::strategy_cache::StrategyCache;
use crate::studies::expiry::strategies::Strategy;

/// A cache to measure. The peers are known in every build, and built with the feature `peers`
/// alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CacheKind {
    /// Tidewheel's cache.
    Tidewheel,
    /// A lock, a map, and a walk over all of it once a second.
    NaiveScan,
    /// A lock, a map, and a ring of one-second slots.
    SlotWheel,
    /// A lock, a map, and a look at a few random entries ten times a second.
    Sampling,
    /// A lock, a map, and a B-tree of deadlines.
    SortedTree,
    /// A lock, a map, and an indexed binary heap.
    #[value(name = "heap-2")]
    Heap2,
    /// A lock, a map, and an indexed heap of arity four.
    #[value(name = "heap-4")]
    Heap4,
    /// A lock, a map, and a queue for each distinct TTL.
    FifoLists,
    /// A lock, a map, and one wheel of 65,536 slots of a millisecond.
    HashedWheel,
    /// A lock, a map, and wheels of seconds, minutes, hours and days.
    MixedRadixWheel,
    /// A lock, a map, and Tidewheel's wheel.
    HierarchicalWheel,
    /// moka's sync cache.
    Moka,
    /// quick_cache's sync cache: no TTL.
    QuickCache,
    /// `cached::ShardedExpiringLruCache`.
    Cached,
    /// papaya's lock-free map with deadlines by hand and a sweep once a second.
    Papaya,
}

impl CacheKind {
    /// True if it stops at its capacity (the others hold whatever is inserted); and its package in
    /// the registry, if it has one.
    fn facts(self) -> (bool, Option<&'static str>) {
        match self {
            Self::Tidewheel => (true, None),
            Self::Moka => (true, Some("moka")),
            Self::QuickCache => (true, Some("quick_cache")),
            Self::Cached => (true, Some("cached")),
            Self::Papaya => (false, Some("papaya")),
            _ => (false, None),
        }
    }

    /// True if each entry may have a time to live of its own.
    pub(crate) fn has_ttl(self) -> bool {
        self != Self::QuickCache
    }

    pub(crate) fn has_capacity(self) -> bool {
        self.facts().0
    }

    /// The version that this binary was built with.
    pub(crate) fn version(self) -> &'static str {
        names::or_ours(self.facts().1)
    }

    /// True if this binary can build it.
    pub(crate) fn is_built(self) -> bool {
        cfg!(feature = "peers") || self.facts().1.is_none()
    }

    /// The strategy that finds its dead, for the caches that differ in that alone.
    fn strategy(self) -> Option<Strategy> {
        Strategy::from_str(&self.to_string(), false).ok()
    }

    /// True if it is one of the caches that differ in their strategy alone.
    pub(crate) fn is_strategy(self) -> bool {
        self.strategy().is_some()
    }

    /// An empty one with room for so many entries.
    pub(crate) fn build<K: Key, V: Value>(self, capacity: usize) -> Result<Box<dyn Subject<K, V>>> {
        Ok(match self {
            Self::Tidewheel => {
                let builder = Cache::builder().max_capacity(capacity as u64);
                Box::new(builder.no_default_ttl().hasher(Hasher::default()).build()?)
            }
            Self::NaiveScan => Box::new(NaiveScan::new()?),
            Self::SlotWheel => Box::new(SlotWheel::new()?),
            _ => match self.strategy() {
                Some(strategy) => Box::new(StrategyCache::new(strategy)?),
                #[cfg(feature = "peers")]
                None => return peers::build(self, capacity),
                #[cfg(not(feature = "peers"))]
                None => anyhow::bail!("{self} needs a laboratory built with the feature peers"),
            },
        })
    }
}

names::display_as_named!(CacheKind);
