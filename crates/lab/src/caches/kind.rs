//! The caches that can be measured: names, versions, what they can do, how each is built.

use std::fmt;

use anyhow::{Context, Result, bail};
use clap::ValueEnum;

use super::article_wheel::ArticleWheel;
use super::naive_scan::NaiveScan;
use super::ours::Tidewheel;
#[cfg(feature = "peers")]
use super::peers;
use super::strategy_cache::StrategyCache;
use super::subject::{Key, Subject, Value};
use crate::strategies::Strategy;
use crate::versions;

/// A cache to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    /// Tidewheel's cache.
    Tidewheel,
    /// A lock, a map, and a walk over all of it once a second.
    NaiveScan,
    /// The first article's map and ring of one-second slots.
    ArticleWheel,
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
    #[cfg_attr(
        not(feature = "peers"),
        expect(dead_code, reason = "only peers are so")
    )]
    Cache,
    /// There is none.
    #[cfg_attr(
        not(feature = "peers"),
        expect(dead_code, reason = "only peers are so")
    )]
    Nothing,
}

/// What every cache of a run is built with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    /// Entries that must fit.
    pub(crate) capacity: usize,
}

impl Kind {
    pub(crate) fn ttl_of(self) -> TtlOf {
        match self {
            #[cfg(feature = "peers")]
            Self::MiniMoka => TtlOf::Cache,
            #[cfg(feature = "peers")]
            Self::QuickCache | Self::Foyer => TtlOf::Nothing,
            _ => TtlOf::Entry,
        }
    }

    /// What finds its dead, for the caches that differ in that alone.
    fn strategy(self) -> Option<Strategy> {
        Some(match self {
            Self::Sampling => Strategy::Sampling,
            Self::SortedTree => Strategy::SortedTree,
            Self::Heap2 => Strategy::Heap2,
            Self::Heap4 => Strategy::Heap4,
            Self::FifoLists => Strategy::FifoLists,
            Self::HashedWheel => Strategy::HashedWheel,
            Self::MixedRadixWheel => Strategy::MixedRadixWheel,
            Self::HierarchicalWheel => Strategy::HierarchicalWheel,
            _ => return None,
        })
    }

    /// Whether it is one of the caches that differ in their strategy alone.
    pub(crate) fn is_strategy(self) -> bool {
        self.strategy().is_some()
    }

    /// Whether it stops at its capacity; the others hold whatever is inserted.
    pub(crate) fn has_capacity(self) -> bool {
        match self {
            Self::NaiveScan | Self::ArticleWheel => false,
            _ if self.is_strategy() => false,
            #[cfg(feature = "peers")]
            Self::Papaya => false,
            _ => true,
        }
    }

    /// The cache that others' throughput is told as a ratio to, if it takes part.
    pub(crate) fn is_baseline(self) -> bool {
        match self {
            #[cfg(feature = "peers")]
            Self::QuickCache => true,
            _ => false,
        }
    }

    /// The name in the registry, for the version; `None` for what is written here.
    fn package(self) -> Option<&'static str> {
        match self {
            #[cfg(feature = "peers")]
            Self::Moka => Some("moka"),
            #[cfg(feature = "peers")]
            Self::MiniMoka => Some("mini-moka"),
            #[cfg(feature = "peers")]
            Self::QuickCache => Some("quick_cache"),
            #[cfg(feature = "peers")]
            Self::Stretto => Some("stretto"),
            #[cfg(feature = "peers")]
            Self::Cached => Some("cached"),
            #[cfg(feature = "peers")]
            Self::Foyer => Some("foyer-memory"),
            #[cfg(feature = "peers")]
            Self::Pingora => Some("pingora-memory-cache"),
            #[cfg(feature = "peers")]
            Self::TtlCache => Some("ttl_cache"),
            #[cfg(feature = "peers")]
            Self::Papaya => Some("papaya"),
            _ => None,
        }
    }

    /// The version that this binary was built with.
    pub(crate) fn version(self) -> &'static str {
        self.package()
            .and_then(versions::of)
            .unwrap_or(env!("CARGO_PKG_VERSION"))
    }

    pub(crate) fn build<K: Key, V: Value>(
        self,
        settings: &Settings,
    ) -> Result<Box<dyn Subject<K, V>>> {
        let built: Result<Box<dyn Subject<K, V>>> = match self {
            Self::Tidewheel => Tidewheel::new(settings).map(boxed),
            Self::NaiveScan => NaiveScan::new().map(boxed).map_err(Into::into),
            Self::ArticleWheel => ArticleWheel::new().map(boxed).map_err(Into::into),
            #[cfg(feature = "peers")]
            Self::Moka => Ok(boxed(peers::Moka::new(settings))),
            #[cfg(feature = "peers")]
            Self::MiniMoka => Ok(boxed(peers::MiniMoka::new(settings))),
            #[cfg(feature = "peers")]
            Self::QuickCache => Ok(boxed(peers::QuickCache::new(settings))),
            #[cfg(feature = "peers")]
            Self::Stretto => peers::Stretto::new(settings).map(boxed),
            #[cfg(feature = "peers")]
            Self::Cached => peers::Cached::new(settings).map(boxed),
            #[cfg(feature = "peers")]
            Self::Foyer => Ok(boxed(peers::Foyer::new(settings))),
            #[cfg(feature = "peers")]
            Self::Pingora => Ok(boxed(peers::Pingora::new(settings))),
            #[cfg(feature = "peers")]
            Self::TtlCache => Ok(boxed(peers::TtlCache::new(settings))),
            #[cfg(feature = "peers")]
            Self::Papaya => peers::Papaya::new().map(boxed).map_err(Into::into),
            _ => match self.strategy() {
                Some(strategy) => StrategyCache::new(strategy).map(boxed).map_err(Into::into),
                None => bail!("nothing builds it"),
            },
        };
        built.with_context(|| format!("cannot build {self}"))
    }
}

fn boxed<'a, K: Key, V: Value>(subject: impl Subject<K, V> + 'a) -> Box<dyn Subject<K, V> + 'a> {
    Box::new(subject)
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self
            .to_possible_value()
            .map_or_else(String::new, |value| value.get_name().to_owned());
        f.write_str(&name)
    }
}
