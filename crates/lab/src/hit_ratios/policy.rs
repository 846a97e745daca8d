//! The caches that a trace is replayed on, and how: get, else insert.

use anyhow::Result;
use clap::ValueEnum;
use tidewheel::{Cache, Driver};

use super::bounds;
#[cfg(feature = "peers")]
use super::peers;
use super::replay::{Hasher, replay};
use crate::names;

/// A policy, in a cache of its own or as a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Policy {
    /// The offline optimum: nothing can be above.
    Opt,
    /// Least recently used, exact.
    Lru,
    /// Tidewheel's cache.
    Tidewheel,
    /// moka, its pending tasks run after every insertion.
    #[cfg(feature = "peers")]
    Moka,
    /// mini-moka, synchronised after every insertion.
    #[cfg(feature = "peers")]
    MiniMoka,
    /// quick_cache in its form for one thread.
    #[cfg(feature = "peers")]
    QuickCache,
    /// foyer's LRU, one shard.
    #[cfg(feature = "peers")]
    FoyerLru,
    /// foyer's S3-FIFO, one shard.
    #[cfg(feature = "peers")]
    FoyerS3fifo,
    /// foyer's W-TinyLFU, one shard.
    #[cfg(feature = "peers")]
    FoyerLfu,
    /// foyer's SIEVE, one shard.
    #[cfg(feature = "peers")]
    FoyerSieve,
    /// TinyUFO.
    #[cfg(feature = "peers")]
    Tinyufo,
}

names::display_as_named!(Policy);

impl Policy {
    /// Whether it is a bound or the subject, rather than somebody else's cache.
    pub(super) fn is_peer(self) -> bool {
        !matches!(self, Self::Opt | Self::Lru | Self::Tidewheel)
    }

    /// The version of the cache; empty for a bound.
    pub(super) fn version(self) -> &'static str {
        let package = match self {
            Self::Opt | Self::Lru => return "",
            Self::Tidewheel => None,
            #[cfg(feature = "peers")]
            Self::Moka => Some("moka"),
            #[cfg(feature = "peers")]
            Self::MiniMoka => Some("mini-moka"),
            #[cfg(feature = "peers")]
            Self::QuickCache => Some("quick_cache"),
            #[cfg(feature = "peers")]
            Self::FoyerLru | Self::FoyerS3fifo | Self::FoyerLfu | Self::FoyerSieve => {
                Some("foyer-memory")
            }
            #[cfg(feature = "peers")]
            Self::Tinyufo => Some("TinyUFO"),
        };
        names::or_ours(package)
    }

    /// How many requests find their key.
    pub(super) fn hits(self, keys: &[u64], capacity: usize) -> Result<u64> {
        Ok(match self {
            Self::Opt => bounds::optimal(keys, capacity),
            Self::Lru => bounds::lru(keys, capacity),
            Self::Tidewheel => tidewheel(keys, capacity)?,
            #[cfg(feature = "peers")]
            Self::Moka => peers::moka(keys, capacity),
            #[cfg(feature = "peers")]
            Self::MiniMoka => peers::mini_moka(keys, capacity),
            #[cfg(feature = "peers")]
            Self::QuickCache => peers::quick_cache(keys, capacity),
            #[cfg(feature = "peers")]
            Self::FoyerLru => peers::foyer(keys, capacity, foyer_memory::LruConfig::default()),
            #[cfg(feature = "peers")]
            Self::FoyerS3fifo => {
                peers::foyer(keys, capacity, foyer_memory::S3FifoConfig::default())
            }
            #[cfg(feature = "peers")]
            Self::FoyerLfu => peers::foyer(keys, capacity, foyer_memory::LfuConfig::default()),
            #[cfg(feature = "peers")]
            Self::FoyerSieve => peers::foyer(keys, capacity, foyer_memory::SieveConfig),
            #[cfg(feature = "peers")]
            Self::Tinyufo => peers::tinyufo(keys, capacity),
        })
    }
}

/// The cache as its users get it, shards and all, except that nobody drives it: nothing expires.
fn tidewheel(keys: &[u64], capacity: usize) -> Result<u64> {
    let cache = Cache::builder()
        .max_capacity(capacity as u64)
        .no_default_ttl()
        .driver(Driver::Manual)
        .hasher(Hasher::default())
        .build()?;
    let find = |key| cache.get_with(&key, |_: &()| ()).is_some();
    Ok(replay(keys, find, |key| cache.insert(key, ())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_policy_beats_the_optimum_and_ours_survives_a_loop() {
        let keys: Vec<u64> = (0..30_000).map(|at| at % 600).collect();
        let best = Policy::Opt.hits(&keys, 300).expect("runs");
        for policy in Policy::value_variants() {
            let hits = policy.hits(&keys, 300).expect("runs");
            assert!(hits <= best, "{policy}: {hits} of at most {best}");
        }
        let ours = Policy::Tidewheel.hits(&keys, 300).expect("runs");
        assert!(ours * 10 > best * 9, "{ours} of at most {best}");
    }
}
