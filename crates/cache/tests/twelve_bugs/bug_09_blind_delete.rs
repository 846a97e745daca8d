//! Bug 9: a map whose single operations are atomic, and a lazy delete composed of two of them: look, then
//! delete by key. The delete does not ask whether it still means what was looked at.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tidewheel::{Cache, Clock};

use crate::bug_01_lazy_delete::{LazyCache, MetBy, fresh_value_after_race};
use crate::stage::{LONG, SHORT, StageClock, tidewheel};

/// Concurrent by itself: each operation is atomic, two of them are not.
#[derive(Default)]
struct AtomicMap<V> {
    stripes: [Mutex<HashMap<u32, Arc<V>>>; 4],
}

impl<V> AtomicMap<V> {
    fn stripe(&self, key: u32) -> std::sync::MutexGuard<'_, HashMap<u32, Arc<V>>> {
        self.stripes[key as usize % 4].lock().expect("whole")
    }

    fn load(&self, key: u32) -> Option<Arc<V>> {
        self.stripe(key).get(&key).cloned()
    }

    fn store(&self, key: u32, value: V) {
        self.stripe(key).insert(key, Arc::new(value));
    }

    fn delete(&self, key: u32) {
        self.stripe(key).remove(&key);
    }

    fn keys(&self) -> Vec<u32> {
        let keys = |map: &Mutex<HashMap<u32, _>>| -> Vec<u32> {
            map.lock().expect("whole").keys().copied().collect()
        };
        self.stripes.iter().flat_map(keys).collect()
    }
}

/// Takes the map's atomic operations for a cache's.
struct OverAtomicMap {
    clock: StageClock,
    map: AtomicMap<(&'static str, Duration)>,
}

impl LazyCache for OverAtomicMap {
    fn get(&self, key: u32) -> Option<&'static str> {
        let entry = self.map.load(key)?;
        if self.clock.now() < entry.1 {
            return Some(entry.0);
        }
        self.map.delete(key);
        None
    }

    fn set(&self, key: u32, value: &'static str, ttl: Duration) {
        self.map.store(key, (value, self.clock.now() + ttl));
    }

    fn sweep(&self) {
        for key in self.map.keys() {
            self.get(key);
        }
    }
}

#[test]
fn bug_09_a_blind_delete_over_a_concurrent_map() {
    for met_by in [MetBy::Reader, MetBy::Sweeper] {
        let clock = StageClock::new();
        let faulty: Arc<dyn LazyCache> = Arc::new(OverAtomicMap {
            clock: clock.clone(),
            map: AtomicMap::default(),
        });
        let seen = fresh_value_after_race(&faulty, &clock, met_by, LONG);
        assert_eq!(seen, None, "{met_by:?}: the faulty cache loses the update");

        let clock = StageClock::new();
        let cache: Cache<u32, &'static str> = tidewheel(&clock).build().expect("valid");
        let ours: Arc<dyn LazyCache> = Arc::new(cache.clone());
        let seen = fresh_value_after_race(&ours, &clock, met_by, SHORT);
        assert_eq!(seen, Some("fresh"), "{met_by:?}");
        cache.validate();
    }
}
