//! Bug 1: a reader finds a dead entry, lets go of the lock, and then deletes whatever lies under the key by
//! now: somebody's fresh value. The sweeper that collects first and deletes afterwards does the same.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, RwLock};
use std::time::Duration;

use tidewheel::{Cache, Clock};

use crate::stage::{Intruder, LONG, MINUTE, MS, SHORT, StageClock, tidewheel};

/// What the script asks of a cache.
pub(crate) trait LazyCache: Send + Sync {
    fn get(&self, key: u32) -> Option<&'static str>;
    fn set(&self, key: u32, value: &'static str, ttl: Duration);
    /// Removes what is dead.
    fn sweep(&self);
}

/// Judges under one lock, deletes under another.
struct JudgesThenDeletes {
    clock: StageClock,
    entries: RwLock<HashMap<u32, (&'static str, Duration)>>,
}

impl JudgesThenDeletes {
    fn new(clock: &StageClock) -> Self {
        Self {
            clock: clock.clone(),
            entries: RwLock::default(),
        }
    }
}

impl LazyCache for JudgesThenDeletes {
    fn get(&self, key: u32) -> Option<&'static str> {
        let (value, deadline) = self.entries.read().expect("whole").get(&key).copied()?;
        if self.clock.now() < deadline {
            return Some(value);
        }
        self.entries.write().expect("whole").remove(&key);
        None
    }

    fn set(&self, key: u32, value: &'static str, ttl: Duration) {
        let deadline = self.clock.now() + ttl;
        self.entries
            .write()
            .expect("whole")
            .insert(key, (value, deadline));
    }

    fn sweep(&self) {
        let all: Vec<_> = {
            let entries = self.entries.read().expect("whole");
            entries.iter().map(|(key, (_, end))| (*key, *end)).collect()
        };
        let now = self.clock.now();
        for (key, deadline) in all {
            if now >= deadline {
                self.entries.write().expect("whole").remove(&key);
            }
        }
    }
}

impl LazyCache for Cache<u32, &'static str> {
    fn get(&self, key: u32) -> Option<&'static str> {
        Self::get(self, &key)
    }

    fn set(&self, key: u32, value: &'static str, ttl: Duration) {
        self.insert_with_ttl(key, value, ttl);
    }

    fn sweep(&self) {
        self.advance(self.now(), u32::MAX);
    }
}

/// How the dead entry is met.
#[derive(Debug, Clone, Copy)]
pub(crate) enum MetBy {
    Reader,
    Sweeper,
}

/// A dead entry is met; a writer stores a fresh value at the moment at which it is judged; then the first
/// actor goes on. What does the next reader see?
pub(crate) fn fresh_value_after_race(
    cache: &Arc<dyn LazyCache>,
    clock: &StageClock,
    met_by: MetBy,
    patience: Duration,
) -> Option<&'static str> {
    cache.set(42, "old", 10 * MS);
    clock.advance(10 * MS);
    let writer = Arc::new(Mutex::new(None));
    clock.at_next_reading({
        let cache = Arc::clone(cache);
        let writer = Arc::clone(&writer);
        move || {
            let intruder = Intruder::enter(move || cache.set(42, "fresh", 5 * MINUTE));
            let _ = intruder.is_done_within(patience);
            *writer.lock().expect("whole") = Some(intruder);
        }
    });
    match met_by {
        MetBy::Reader => {
            let seen = cache.get(42);
            assert!(
                seen.is_none() || seen == Some("fresh"),
                "a dead value was served"
            );
        }
        MetBy::Sweeper => cache.sweep(),
    }
    let writer = writer.lock().expect("whole").take();
    writer.expect("the clock was read").leave();
    cache.get(42)
}

#[test]
fn bug_01_lost_update_by_a_lazy_delete() {
    for met_by in [MetBy::Reader, MetBy::Sweeper] {
        let clock = StageClock::new();
        let faulty: Arc<dyn LazyCache> = Arc::new(JudgesThenDeletes::new(&clock));
        let seen = fresh_value_after_race(&faulty, &clock, met_by, LONG);
        assert_eq!(seen, None, "{met_by:?}: the faulty cache loses the update");

        let clock = StageClock::new();
        let cache = tidewheel(&clock).build().expect("valid");
        let ours: Arc<dyn LazyCache> = Arc::new(cache.clone());
        let seen = fresh_value_after_race(&ours, &clock, met_by, SHORT);
        assert_eq!(seen, Some("fresh"), "{met_by:?}");
        cache.validate();
    }
}

/// Between the driver's look at the time and its removals, the entry it came for is replaced: many times
/// over, in every shard.
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
