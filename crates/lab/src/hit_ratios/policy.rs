//! Replays a trace on a cache: get, else insert.

use anyhow::Result;
use tidewheel::{Cache, Driver};

use super::bounds::{Hasher, events, lru, optimum};
#[cfg(feature = "peers")]
use super::peers::PEERS;
use crate::names::Choice;

/// Counts the requests that find their key in so many entries.
pub(super) type Hits = fn(&[u64], usize) -> Result<u64>;

/// A policy, in a cache of its own or as a bound.
pub(super) type Policy = Choice<Hits>;

/// The bounds, and Tidewheel's cache.
const OURS: [Policy; 3] = [
    Policy::ours("opt", |keys, capacity| Ok(optimum(&events(keys), capacity))),
    Policy::ours("lru", |keys, capacity| {
        Ok(lru(&events(keys), capacity, false))
    }),
    Policy::ours("tidewheel", tidewheel),
];
#[cfg(not(feature = "peers"))]
const PEERS: [Policy; 0] = [];

/// All policies that were built.
pub(super) fn all() -> Vec<Policy> {
    OURS.into_iter().chain(PEERS).collect()
}

/// The one of that name, for the command line.
pub(super) fn named(name: &str) -> Result<Policy, String> {
    let found = all().into_iter().find(|policy| policy.name == name);
    let known: Vec<&str> = all().iter().map(|policy| policy.name).collect();
    found.ok_or_else(|| format!("there are {}", known.join(", ")))
}

/// The cache as its users get it, shards and all, except that nobody drives it: nothing expires.
fn tidewheel(keys: &[u64], capacity: usize) -> Result<u64> {
    let cache = Cache::builder()
        .max_capacity(capacity as u64)
        .no_default_ttl()
        .driver(Driver::Manual)
        .hasher(Hasher::default())
        .build()?;
    let find = |key| cache.view(&key, |_: &()| ()).is_some();
    Ok(replay(keys, find, |key| cache.insert(key, ())))
}

/// Counts the keys that `find` finds; the others are handed to `add`.
pub(super) fn replay(
    keys: &[u64],
    mut find: impl FnMut(u64) -> bool,
    mut add: impl FnMut(u64),
) -> u64 {
    let mut hits = 0;
    for &key in keys {
        if find(key) {
            hits += 1;
        } else {
            add(key);
        }
    }
    hits
}
