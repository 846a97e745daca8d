//! The caches that a trace is replayed on, and how: get, else insert.

use std::fmt;

use anyhow::Result;
use tidewheel::{Cache, Driver};

use super::bounds;
#[cfg(feature = "peers")]
use super::peers::PEERS;
use super::replay::{Hasher, replay};
use crate::names;

/// A policy, in a cache of its own or as a bound.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Policy {
    /// On the command line and in reports.
    pub(super) name: &'static str,
    /// Of somebody else's cache, in the registry.
    package: Option<&'static str>,
    /// How many requests find their key in so many entries.
    pub(super) hits: fn(&[u64], usize) -> Result<u64>,
}

/// The bounds, and Tidewheel's cache.
const OURS: [Policy; 3] = [
    Policy::ours("opt", |keys, capacity| Ok(bounds::optimal(keys, capacity))),
    Policy::ours("lru", |keys, capacity| Ok(bounds::lru(keys, capacity))),
    Policy::ours("tidewheel", tidewheel),
];
#[cfg(not(feature = "peers"))]
const PEERS: [Policy; 0] = [];

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl Policy {
    const fn ours(name: &'static str, hits: fn(&[u64], usize) -> Result<u64>) -> Self {
        let package = None;
        Self {
            name,
            package,
            hits,
        }
    }

    /// Of somebody else's package.
    #[cfg(feature = "peers")]
    pub(super) const fn peer(
        name: &'static str,
        package: &'static str,
        hits: fn(&[u64], usize) -> Result<u64>,
    ) -> Self {
        Self {
            name,
            package: Some(package),
            hits,
        }
    }

    /// All that were built.
    pub(super) fn all() -> Vec<Self> {
        OURS.into_iter().chain(PEERS).collect()
    }

    /// The one of that name, for the command line.
    pub(super) fn named(name: &str) -> Result<Self, String> {
        let all = Self::all();
        let found = all.iter().find(|policy| policy.name == name);
        let known: Vec<&str> = all.iter().map(|policy| policy.name).collect();
        let unknown = || format!("there are {}", known.join(", "));
        found.copied().ok_or_else(unknown)
    }

    /// Whether it is somebody else's cache, rather than a bound or the subject.
    pub(super) fn is_peer(&self) -> bool {
        self.package.is_some()
    }

    /// The version of the cache; empty for a bound.
    pub(super) fn version(&self) -> &'static str {
        match self.name {
            "opt" | "lru" => "",
            _ => names::or_ours(self.package),
        }
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
        let best = bounds::optimal(&keys, 300);
        for policy in Policy::all() {
            let hits = (policy.hits)(&keys, 300).expect("runs");
            assert!(hits <= best, "{policy}: {hits} of at most {best}");
        }
        let ours = tidewheel(&keys, 300).expect("runs");
        assert!(ours * 10 > best * 9, "{ours} of at most {best}");
    }
}
