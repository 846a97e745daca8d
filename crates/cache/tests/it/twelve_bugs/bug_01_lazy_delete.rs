//! Bug 1: a reader finds a dead entry, releases the lock, and then deletes the key. By then another
//! thread may have stored a fresh value, which is lost. A sweeper that collects first and deletes
//! afterwards does the same.

use std::collections::HashMap;
use std::sync::{Arc, RwLock};
use std::time::Duration;

use tidewheel::Clock;

use super::fresh_value_race::{Key, LazyCache, MetBy, When, assert_that_ours_loses_nothing, race};
use super::stage::StageClock;

/// Judges under one lock, deletes under another.
struct JudgesThenDeletes {
    clock: StageClock,
    entries: RwLock<HashMap<Key, (&'static str, Duration)>>,
}

impl JudgesThenDeletes {
    fn on(clock: &StageClock) -> Arc<dyn LazyCache> {
        Arc::new(Self {
            clock: clock.clone(),
            entries: RwLock::default(),
        })
    }

    fn delete(&self, key: &Key) {
        let gone = self.entries.write().expect("whole").remove_entry(key);
        drop(gone);
    }
}

impl LazyCache for JudgesThenDeletes {
    fn get(&self, key: u32) -> Option<&'static str> {
        let key = Key::new(key, &self.clock);
        let (value, deadline) = self.entries.read().expect("whole").get(&key).copied()?;
        if self.clock.now() < deadline {
            return Some(value);
        }
        self.delete(&key);
        None
    }

    fn set(&self, key: u32, value: &'static str, ttl: Duration) {
        let deadline = self.clock.now() + ttl;
        let key = Key::new(key, &self.clock);
        let mut entries = self.entries.write().expect("whole");
        entries.insert(key, (value, deadline));
    }

    fn sweep(&self) {
        let all: Vec<_> = {
            let entries = self.entries.read().expect("whole");
            let entries = entries.iter();
            entries.map(|(key, (_, end))| (key.clone(), *end)).collect()
        };
        let now = self.clock.now();
        for (key, deadline) in all {
            if now >= deadline {
                self.delete(&key);
            }
        }
    }

    fn len(&self) -> usize {
        self.entries.read().expect("whole").len()
    }
}

#[test]
fn bug_01_lost_update_by_a_lazy_delete() {
    for met_by in [MetBy::Reader, MetBy::Sweeper] {
        let outcome = race(JudgesThenDeletes::on, met_by, When::Read);
        assert!(
            outcome.lost > 0,
            "{met_by:?}: the faulty cache loses updates"
        );
    }
    assert_that_ours_loses_nothing();
}
