//! Bug 1: a reader finds a dead entry, releases the lock, and then deletes the key. By then another
//! thread may have stored a fresh value, which is lost. A sweeper that collects first and deletes
//! afterwards does the same.

use std::collections::HashMap;
use std::sync::{Arc, RwLock};
use std::time::Duration;

use tidewheel::{Cache, Clock};

use super::fresh_value_race::{Key, LazyCache, MetBy, When, assert_that_ours_loses_nothing, race};
use super::stage::{MS, StageClock, tidewheel};

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

/// The driver reads the clock, and then removes the entries that are due. In between, other threads
/// replace these entries, in every shard.
#[test]
fn the_driver_removes_no_entry_that_was_replaced_after_it_looked_at_the_time() {
    let clock = StageClock::new();
    let cache: Cache<u32, &'static str> = tidewheel(&clock).build().expect("valid");
    for key in 0..1000 {
        cache.insert_with_ttl(key, "old", 10 * MS);
    }
    clock.advance(10 * MS);
    clock.at_next_reading({
        let cache = cache.clone();
        move || (0..1000).for_each(|key| cache.insert(key, "fresh"))
    });
    cache.advance(Duration::MAX, u32::MAX);
    assert_eq!(cache.stats().expirations, 1000, "the old ones were dead");
    assert!((0..1000).all(|key| cache.get(&key) == Some("fresh")));
    cache.validate();
}
