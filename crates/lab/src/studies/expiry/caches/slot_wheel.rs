//! One lock, one map, and a ring of one-second slots of keys.
//!
//! A port of the timing wheel of "Killing O(n)" with what follows from it: each key of a slot is
//! deleted under the map's write lock of its own, outside the wheel's lock; nobody looks at
//! deadlines, so a key is visible until its slot is emptied; a key that was written again is
//! deleted by the older write's slot. The ring has room for two hours and more, as the longest
//! lives are of two hours: 60 slots would empty an hour's key within the minute.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, RwLock};
use std::time::Duration;

use super::ticker::Ticker;
use crate::caches::subject::{Hasher, Key, Subject, Value};
use crate::locks::{lock, read, write};

const SLOTS: usize = 8_192;

pub(crate) struct SlotWheel<K, V> {
    inner: Arc<Inner<K, V>>,
    ticker: Ticker,
}

struct Inner<K, V> {
    map: RwLock<HashMap<K, V, Hasher>>,
    wheel: Mutex<Wheel<K>>,
}

struct Wheel<K> {
    current: usize,
    slots: Vec<Vec<K>>,
}

impl<K: Key, V: Value> SlotWheel<K, V> {
    pub(crate) fn new() -> io::Result<Self> {
        let inner = Arc::new(Inner {
            map: RwLock::default(),
            wheel: Mutex::new(Wheel {
                current: 0,
                slots: (0..SLOTS).map(|_| Vec::new()).collect(),
            }),
        });
        let theirs: Arc<Inner<K, V>> = Arc::clone(&inner);
        let ticker = Ticker::start(move || theirs.tick())?;
        Ok(Self { inner, ticker })
    }
}

impl<K: Key, V: Value> Inner<K, V> {
    fn tick(&self) {
        let slot = {
            let mut wheel = lock(&self.wheel);
            let current = wheel.current;
            wheel.current = (current + 1) % SLOTS;
            std::mem::take(&mut wheel.slots[current])
        };
        for key in &slot {
            let mut map = write(&self.map);
            let removed = map.remove(key);
            drop(map);
            drop(removed);
        }
    }
}

impl<K: Key, V: Value> Subject<K, V> for SlotWheel<K, V> {
    fn get(&self, key: &K) -> Option<V> {
        read(&self.inner.map).get(key).cloned()
    }

    fn insert(&self, key: K, value: V, ttl: Option<Duration>) {
        let mut map = write(&self.inner.map);
        let replaced = map.insert(key.clone(), value);
        drop(map);
        drop(replaced);
        if let Some(ttl) = ttl {
            // A TTL below a second still waits for the next tick.
            let ticks = (ttl.as_secs() as usize).max(1);
            let mut wheel = lock(&self.inner.wheel);
            let slot = (wheel.current + ticks) % SLOTS;
            wheel.slots[slot].push(key);
        }
    }

    fn rest(&self, resting: bool) {
        self.ticker.rest(resting);
    }

    fn held(&self) -> Option<usize> {
        Some(read(&self.inner.map).len())
    }
}
