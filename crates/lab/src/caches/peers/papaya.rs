//! papaya: a lock-free map, and what its users write themselves for a TTL: a deadline in the value,
//! looked at by `get`, and a thread that walks the map once a second.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use papaya::HashMap;

use super::super::subject::{Hasher, Key, Subject, Sweeps, Value};
use super::super::ticker::Ticker;
use crate::clock;

type Map<K, V> = HashMap<K, (V, u64), Hasher>;

pub(in super::super) struct Papaya<K, V> {
    map: Arc<Map<K, V>>,
    ticker: Ticker,
}

impl<K: Key, V: Value> Papaya<K, V> {
    pub(in super::super) fn new() -> io::Result<Self> {
        let map: Arc<Map<K, V>> = Arc::new(HashMap::with_hasher(Hasher::default()));
        let theirs = Arc::clone(&map);
        let ticker = Ticker::start(move || {
            let now = clock::mono_ns();
            theirs.pin().retain(|_, (_, deadline)| now < *deadline);
        })?;
        Ok(Self { map, ticker })
    }
}

impl<K: Key, V: Value> Subject<K, V> for Papaya<K, V> {
    fn get(&self, key: &K) -> Option<V> {
        self.map
            .pin()
            .get(key)
            .filter(|(_, deadline)| clock::mono_ns() < *deadline)
            .map(|(value, _)| value.clone())
    }

    fn insert(&self, key: K, value: V, ttl: Option<Duration>) {
        self.map.pin().insert(key, (value, clock::deadline_ns(ttl)));
    }

    fn rest(&self, resting: bool) {
        self.ticker.rest(resting);
    }

    fn sweeps(&self) -> Option<Sweeps> {
        Some(self.ticker.sweeps())
    }
}
