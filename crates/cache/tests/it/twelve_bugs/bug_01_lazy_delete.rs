//! Bugs 1 and 9: look, then delete by key. By then another thread may have stored a fresh value,
//! which is lost. It makes no difference whether a lock is taken twice (bug 1), or each of the two
//! is an atomic operation of a concurrent map (bug 9). A sweeper that collects first and deletes
//! afterwards does the same.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tidewheel::Clock;

use super::fresh_value_race::{Key, LazyCache, MetBy, When, assert_that_ours_loses_nothing, race};
use super::stage::StageClock;

/// Each lock of the map is an atomic operation; two of them are not.
struct LooksThenDeletes {
    clock: StageClock,
    map: Mutex<HashMap<Key, (&'static str, Duration)>>,
    /// True if the sweeper collects first.
    collects: bool,
}

impl LooksThenDeletes {
    fn on(clock: &StageClock, collects: bool) -> Arc<dyn LazyCache> {
        Arc::new(Self {
            clock: clock.clone(),
            map: Mutex::default(),
            collects,
        })
    }

    fn delete(&self, key: &Key) {
        let gone = self.map.lock().expect("whole").remove_entry(key);
        drop(gone);
    }
}

impl LazyCache for LooksThenDeletes {
    fn get(&self, key: u32) -> Option<&'static str> {
        let key = Key::new(key, &self.clock);
        let (value, deadline) = self.map.lock().expect("whole").get(&key).copied()?;
        if self.clock.now() < deadline {
            return Some(value);
        }
        self.delete(&key);
        None
    }

    fn set(&self, key: u32, value: &'static str, ttl: Duration) {
        let deadline = self.clock.now() + ttl;
        let key = Key::new(key, &self.clock);
        self.map
            .lock()
            .expect("whole")
            .insert(key, (value, deadline));
    }

    fn sweep(&self) {
        let map = self.map.lock().expect("whole");
        let all: Vec<_> = map
            .iter()
            .map(|(key, (_, end))| (key.clone(), *end))
            .collect();
        drop(map);
        if !self.collects {
            return all.iter().for_each(|(key, _)| _ = self.get(key.number()));
        }
        let now = self.clock.now();
        let dead = all.into_iter().filter(|(_, deadline)| now >= *deadline);
        dead.for_each(|(key, _)| self.delete(&key));
    }

    fn len(&self) -> usize {
        self.map.lock().expect("whole").len()
    }
}

fn loses_updates(collects: bool) {
    for met_by in [MetBy::Reader, MetBy::Sweeper] {
        let faulty = |clock: &StageClock| LooksThenDeletes::on(clock, collects);
        let outcome = race(faulty, met_by, When::Read);
        assert!(outcome.lost > 0, "{met_by:?}: the faulty cache loses none");
    }
    assert_that_ours_loses_nothing();
}

#[test]
fn bug_01_lost_update_by_a_lazy_delete() {
    loses_updates(true);
}

#[test]
fn bug_09_a_blind_delete_over_a_concurrent_map() {
    loses_updates(false);
}
