//! Bug 8: a timer for every store. There are as many timers as stores, and a timer does not know
//! that its value was replaced.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use tidewheel::{Cache, Clock};

use super::stage::{Entries, MINUTE, MS, SECOND, Scripted, StageClock, Valid, tidewheel};

const STORES: u32 = 1000;

/// Every store starts a timer that will remove its key.
struct TimerPerStore {
    entries: Entries,
    timers: Mutex<BTreeMap<Duration, Vec<u32>>>,
}

impl Scripted for TimerPerStore {
    fn get(&self, key: u32) -> Option<u32> {
        self.entries.get(key)
    }

    fn set(&self, key: u32, value: u32, ttl: Duration) {
        self.entries.set(key, value, ttl);
        let deadline = self.entries.clock.now() + ttl;
        let mut timers = self.timers.lock().expect("whole");
        timers.entry(deadline).or_default().push(key);
    }

    fn sweep(&self, _: u32) -> u64 {
        let mut timers = self.timers.lock().expect("whole");
        let later = timers.split_off(&(self.entries.clock.now() + Duration::from_nanos(1)));
        let due = std::mem::replace(&mut *timers, later);
        let keys: Vec<u32> = due.into_values().flatten().collect();
        keys.iter()
            .for_each(|key| _ = self.entries.lock().remove(key));
        keys.len() as u64
    }
}

/// One key, stored a thousand times, a millisecond apart. Returns whether the last value outlives
/// the first one's deadline, and how many timers were touched until all was quiet.
fn one_key_stored_often(cache: &dyn Scripted, clock: &StageClock) -> (bool, u64) {
    for value in 0..STORES {
        cache.set(1, value, 10 * SECOND);
        clock.advance(MS);
    }
    clock.advance(9 * SECOND);
    let mut touched = cache.sweep(u32::MAX);
    let outlives = cache.get(1) == Some(STORES - 1);
    for _ in 0..20 {
        clock.advance(SECOND);
        touched += cache.sweep(u32::MAX);
    }
    assert_eq!(cache.get(1), None);
    (outlives, touched)
}

#[test]
fn bug_08_a_timer_for_every_store() {
    let clock = StageClock::new();
    let faulty = TimerPerStore {
        entries: Entries::new(&clock),
        timers: Mutex::default(),
    };
    let (outlives, touched) = one_key_stored_often(&faulty, &clock);
    assert!(!outlives, "the first value's timer takes the last value");
    assert_eq!(touched, u64::from(STORES), "a timer for every store");

    let clock = StageClock::new();
    let cache: Cache<u32, u32> = tidewheel(&clock).valid();
    let (outlives, touched) = one_key_stored_often(&cache, &clock);
    assert!(outlives);
    // One entry, one record: it is re-filed on its way down the wheel's levels, however often the
    // key was stored.
    assert!(touched <= 16, "{touched} records touched");
    assert_eq!(cache.stats().expirations, 1);
    cache.validate();
}

/// A deadline that moves earlier leaves a dead record. Dead records are swept before they outnumber
/// the living by much.
#[test]
fn dead_timers_are_swept_though_deadlines_move_earlier_all_the_time() {
    const KEYS: u32 = 1000;
    const ROUNDS: u32 = 200;
    let clock = StageClock::new();
    let cache: Cache<u32, u32> = tidewheel(&clock).shards(1).valid();
    for round in 0..ROUNDS {
        let ttl = MINUTE - round * 100 * MS;
        (0..KEYS).for_each(|key| cache.insert_with_ttl(key, round, ttl));
    }
    clock.advance(MINUTE - (ROUNDS - 1) * 100 * MS);
    let touched = cache.sweep(u32::MAX);
    assert_eq!(cache.len(), 0);
    assert!(
        touched <= u64::from(10 * KEYS),
        "{touched} for {KEYS} entries"
    );
    cache.validate();
}
