//! The caches that can be measured: names, versions, what they can do, how each is built.

use anyhow::{Context, Result};
use clap::ValueEnum;

use super::ours::Tidewheel;
#[cfg(feature = "peers")]
use super::peers;
use super::subject::{Key, Subject, Value};
use crate::names;
use crate::studies::expiry::caches::naive_scan::NaiveScan;
use crate::studies::expiry::caches::slot_wheel::SlotWheel;
use crate::studies::expiry::caches::strategy_cache::StrategyCache;
use crate::studies::expiry::strategies::Strategy;

/// A cache to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
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
    #[cfg(feature = "peers")]
    Moka,
    /// mini-moka's sync cache: one TTL for the whole cache.
    #[cfg(feature = "peers")]
    MiniMoka,
    /// quick_cache's sync cache: no TTL.
    #[cfg(feature = "peers")]
    QuickCache,
    /// stretto's sync cache.
    #[cfg(feature = "peers")]
    Stretto,
    /// `cached::ShardedExpiringLruCache`.
    #[cfg(feature = "peers")]
    Cached,
    /// foyer-memory with its LRU: no TTL.
    #[cfg(feature = "peers")]
    Foyer,
    /// pingora-memory-cache, which is TinyUFO with a TTL.
    #[cfg(feature = "peers")]
    Pingora,
    /// ttl_cache behind one mutex.
    #[cfg(feature = "peers")]
    TtlCache,
    /// papaya's lock-free map with deadlines by hand and a sweep once a second.
    #[cfg(feature = "peers")]
    Papaya,
}

/// What a cache knows of times to live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TtlOf {
    /// Each entry may have its own.
    Entry,
    /// All entries have the same.
    #[cfg_attr(not(feature = "peers"), expect(dead_code, reason = "peers are so"))]
    Cache,
    /// There is none.
    #[cfg_attr(not(feature = "peers"), expect(dead_code, reason = "peers are so"))]
    Nothing,
}

impl Kind {
    /// What it knows of times to live, whether it stops at its capacity (the others hold whatever is
    /// inserted), and its package in the registry, if it has one.
    fn facts(self) -> (TtlOf, bool, Option<&'static str>) {
        match self {
            Self::Tidewheel => (TtlOf::Entry, true, None),
            #[cfg(feature = "peers")]
            Self::Moka => (TtlOf::Entry, true, Some("moka")),
            #[cfg(feature = "peers")]
            Self::MiniMoka => (TtlOf::Cache, true, Some("mini-moka")),
            #[cfg(feature = "peers")]
            Self::QuickCache => (TtlOf::Nothing, true, Some("quick_cache")),
            #[cfg(feature = "peers")]
            Self::Stretto => (TtlOf::Entry, true, Some("stretto")),
            #[cfg(feature = "peers")]
            Self::Cached => (TtlOf::Entry, true, Some("cached")),
            #[cfg(feature = "peers")]
            Self::Foyer => (TtlOf::Nothing, true, Some("foyer-memory")),
            #[cfg(feature = "peers")]
            Self::Pingora => (TtlOf::Entry, true, Some("pingora-memory-cache")),
            #[cfg(feature = "peers")]
            Self::TtlCache => (TtlOf::Entry, true, Some("ttl_cache")),
            #[cfg(feature = "peers")]
            Self::Papaya => (TtlOf::Entry, false, Some("papaya")),
            _ => (TtlOf::Entry, false, None),
        }
    }

    pub(crate) fn ttl_of(self) -> TtlOf {
        self.facts().0
    }

    pub(crate) fn has_capacity(self) -> bool {
        self.facts().1
    }

    /// The version that this binary was built with.
    pub(crate) fn version(self) -> &'static str {
        names::or_ours(self.facts().2)
    }

    /// What finds its dead, for the caches that differ in that alone.
    fn strategy(self) -> Option<Strategy> {
        Strategy::from_str(&self.to_string(), false).ok()
    }

    /// Whether it is one of the caches that differ in their strategy alone.
    pub(crate) fn is_strategy(self) -> bool {
        self.strategy().is_some()
    }

    /// The cache that others' throughput is told as a ratio to, if it takes part.
    pub(crate) fn is_baseline(self) -> bool {
        self.facts().2 == Some("quick_cache")
    }

    /// An empty one with room for so many entries.
    pub(crate) fn build<K: Key, V: Value>(self, capacity: usize) -> Result<Box<dyn Subject<K, V>>> {
        let context = || format!("cannot build {self}");
        Ok(match self {
            Self::Tidewheel => Box::new(Tidewheel::new(capacity).with_context(context)?),
            Self::NaiveScan => Box::new(NaiveScan::new().with_context(context)?),
            Self::SlotWheel => Box::new(SlotWheel::new().with_context(context)?),
            #[cfg(feature = "peers")]
            Self::Moka => Box::new(peers::Moka::new(capacity)),
            #[cfg(feature = "peers")]
            Self::MiniMoka => Box::new(peers::MiniMoka::new(capacity)),
            #[cfg(feature = "peers")]
            Self::QuickCache => Box::new(peers::QuickCache::new(capacity)),
            #[cfg(feature = "peers")]
            Self::Stretto => Box::new(peers::Stretto::new(capacity).with_context(context)?),
            #[cfg(feature = "peers")]
            Self::Cached => Box::new(peers::Cached::new(capacity).with_context(context)?),
            #[cfg(feature = "peers")]
            Self::Foyer => Box::new(peers::Foyer::new(capacity)),
            #[cfg(feature = "peers")]
            Self::Pingora => Box::new(peers::Pingora::new(capacity)),
            #[cfg(feature = "peers")]
            Self::TtlCache => Box::new(peers::TtlCache::new(capacity)),
            #[cfg(feature = "peers")]
            Self::Papaya => Box::new(peers::Papaya::new().with_context(context)?),
            _ => {
                let strategy = self.strategy().with_context(context)?;
                Box::new(StrategyCache::new(strategy).with_context(context)?)
            }
        })
    }
}

names::display_as_named!(Kind);
