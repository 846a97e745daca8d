//! Bugs 1 and 9: look, then delete by key. By then another thread may have stored a fresh value,
//! which is lost. It makes no difference whether a lock is taken twice (bug 1), or each of the two
//! is an atomic operation of a concurrent map (bug 9). A sweeper that collects first and deletes
//! afterwards does the same. A read that moves a deadline is akin: it decides under one lock and
//! acts under the next.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tidewheel::{Cache, Clock, Expiry, Ttl};

use super::fresh_value_race::{Key, LazyCache, MetBy, When, assert_that_ours_loses_nothing, race};
use super::stage::{Intruder, MINUTE, MS, SHORT, StageClock, Valid, tidewheel};

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

/// Readings of the clock that one operation may take, and more.
const READINGS: u32 = 8;

/// A value that is read once has ten more milliseconds, unless it is the fresh one.
struct DiesSoonAfterARead;

impl Expiry<u32, &'static str> for DiesSoonAfterARead {
    fn expire_after_create(&self, _: &u32, _: &&'static str) -> Option<Duration> {
        Some(MINUTE)
    }

    fn expire_after_read(
        &self,
        _: &u32,
        value: &&'static str,
        left: Option<Duration>,
    ) -> Option<Duration> {
        if *value == "old" { Some(10 * MS) } else { left }
    }
}

#[test]
fn a_read_of_the_old_value_does_not_move_the_deadline_of_a_fresh_one() {
    for reading in 0..READINGS {
        let clock = StageClock::new();
        let cache: Cache<u32, &'static str> =
            tidewheel(&clock).expire_after(DiesSoonAfterARead).valid();
        cache.insert(1, "old");
        let writer = Arc::new(Mutex::new(None));
        clock.at_reading(reading, {
            let (cache, writer) = (cache.clone(), Arc::clone(&writer));
            move || {
                let intruder =
                    Intruder::enter(move || cache.insert_with_ttl(1, "fresh", 5 * MINUTE));
                let _ = intruder.is_done_within(SHORT);
                *writer.lock().expect("whole") = Some(intruder);
            }
        });
        cache.get(&1);
        let writer = writer.lock().expect("whole").take();
        let Some(writer) = writer else {
            clock.forget();
            continue;
        };
        writer.leave();
        assert_eq!(cache.peek(&1), Some("fresh"), "reading {reading}");
        assert_eq!(
            cache.ttl(&1),
            Ttl::Left(5 * MINUTE),
            "the writer steps in at reading {reading}"
        );
        cache.validate();
    }
}
