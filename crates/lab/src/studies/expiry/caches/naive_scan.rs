//! The obvious cache: one lock, one map, and once a second a walk over all of it.
//!
//! Written after the `SimpleScanCache` of "Killing O(n)". Its `get` also looks at the deadline, so
//! that the dead are not visible until the walk.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, RwLock};
use std::time::Duration;

use super::ticker::Ticker;
use crate::caches::subject::{Hasher, Key, Subject, Value};
use crate::clock;
use crate::locks::{read, write};

/// Values with their deadlines in nanoseconds.
pub(crate) type Map<K, V> = HashMap<K, (V, u64), Hasher>;

/// The walk: looks at every entry and removes the dead.
pub(crate) fn sweep<K: Key, V: Value>(map: &mut Map<K, V>, now_ns: u64) {
    map.retain(|_, (_, deadline_ns)| now_ns < *deadline_ns);
}

pub(crate) struct NaiveScan<K, V> {
    map: Arc<RwLock<Map<K, V>>>,
    ticker: Ticker,
}

impl<K: Key, V: Value> NaiveScan<K, V> {
    pub(crate) fn new() -> io::Result<Self> {
        let map = Arc::new(RwLock::new(Map::default()));
        let theirs = Arc::clone(&map);
        let ticker = Ticker::start(move || {
            let mut map = write(&theirs);
            sweep(&mut map, clock::mono_ns());
        })?;
        Ok(Self { map, ticker })
    }
}

impl<K: Key, V: Value> Subject<K, V> for NaiveScan<K, V> {
    fn get(&self, key: &K) -> Option<V> {
        let map = read(&self.map);
        let (value, deadline_ns) = map.get(key)?;
        (clock::mono_ns() < *deadline_ns).then(|| value.clone())
    }

    fn insert(&self, key: K, value: V, ttl: Option<Duration>) {
        let deadline = clock::deadline_ns(ttl);
        let mut map = write(&self.map);
        let replaced = map.insert(key, (value, deadline));
        drop(map);
        drop(replaced);
    }

    fn rest(&self, resting: bool) {
        self.ticker.rest(resting);
    }

    fn held(&self) -> Option<usize> {
        Some(read(&self.map).len())
    }
}
