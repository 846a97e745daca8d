//! Bug 9: a map whose single operations are atomic, and a lazy delete composed of two of them:
//! look, then delete by key. The delete does not ask whether it still means what was looked at.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tidewheel::Clock;

use super::fresh_value_race::{Key, LazyCache, MetBy, When, assert_that_ours_loses_nothing, race};
use super::stage::StageClock;

/// Concurrent by itself: each operation is atomic, two of them are not.
#[derive(Default)]
struct AtomicMap<V> {
    stripes: [Mutex<HashMap<Key, Arc<V>>>; 4],
}

impl<V> AtomicMap<V> {
    fn stripe(&self, key: &Key) -> std::sync::MutexGuard<'_, HashMap<Key, Arc<V>>> {
        self.stripes[key.number() as usize % 4]
            .lock()
            .expect("whole")
    }

    fn load(&self, key: &Key) -> Option<Arc<V>> {
        self.stripe(key).get(key).cloned()
    }

    fn store(&self, key: Key, value: V) {
        self.stripe(&key).insert(key, Arc::new(value));
    }

    fn delete(&self, key: &Key) {
        let gone = self.stripe(key).remove_entry(key);
        drop(gone);
    }

    fn keys(&self) -> Vec<u32> {
        let keys = |map: &Mutex<HashMap<Key, _>>| -> Vec<u32> {
            map.lock().expect("whole").keys().map(Key::number).collect()
        };
        self.stripes.iter().flat_map(keys).collect()
    }
}

/// Takes the map's atomic operations for a cache's.
struct OverAtomicMap {
    clock: StageClock,
    map: AtomicMap<(&'static str, Duration)>,
}

impl OverAtomicMap {
    fn on(clock: &StageClock) -> Arc<dyn LazyCache> {
        Arc::new(Self {
            clock: clock.clone(),
            map: AtomicMap::default(),
        })
    }
}

impl LazyCache for OverAtomicMap {
    fn get(&self, key: u32) -> Option<&'static str> {
        let key = Key::new(key, &self.clock);
        let entry = self.map.load(&key)?;
        if self.clock.now() < entry.1 {
            return Some(entry.0);
        }
        self.map.delete(&key);
        None
    }

    fn set(&self, key: u32, value: &'static str, ttl: Duration) {
        let deadline = self.clock.now() + ttl;
        self.map
            .store(Key::new(key, &self.clock), (value, deadline));
    }

    fn sweep(&self) {
        for key in self.map.keys() {
            self.get(key);
        }
    }

    fn len(&self) -> usize {
        self.map.keys().len()
    }
}

#[test]
fn bug_09_a_blind_delete_over_a_concurrent_map() {
    for met_by in [MetBy::Reader, MetBy::Sweeper] {
        let outcome = race(OverAtomicMap::on, met_by, When::Read);
        assert!(
            outcome.lost > 0,
            "{met_by:?}: the faulty cache loses updates"
        );
    }
    assert_that_ours_loses_nothing();
}
