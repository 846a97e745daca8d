//! Bug 8: a timer for every store. There are as many timers as stores, a timer does not know that
//! its value was replaced, and what fires waits in a queue without an end.

use std::collections::{BTreeMap, VecDeque};
use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tidewheel::{Cache, Clock, OnFull};

use super::stage::{
    Entries, Intruder, LONG, MINUTE, MS, SECOND, Scripted, StageClock, Valid, tidewheel,
};

const STORES: u32 = 1000;

/// Every store starts a timer that will send its key to the sweeper.
struct TimerPerStore {
    entries: Entries,
    timers: Mutex<BTreeMap<Duration, Vec<u32>>>,
    to_sweep: Mutex<VecDeque<u32>>,
}

impl TimerPerStore {
    fn new(clock: &StageClock) -> Self {
        Self {
            entries: Entries::new(clock),
            timers: Mutex::default(),
            to_sweep: Mutex::default(),
        }
    }

    /// The timers' half: those that are due put their keys into the queue.
    fn ring(&self) {
        let mut timers = self.timers.lock().expect("whole");
        let later = timers.split_off(&(self.entries.clock.now() + Duration::from_nanos(1)));
        let due = std::mem::replace(&mut *timers, later);
        let mut to_sweep = self.to_sweep.lock().expect("whole");
        to_sweep.extend(due.into_values().flatten());
    }
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
        self.ring();
        let keys = std::mem::take(&mut *self.to_sweep.lock().expect("whole"));
        for key in &keys {
            self.entries.lock().remove(key);
        }
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
    let faulty = TimerPerStore::new(&clock);
    let (outlives, touched) = one_key_stored_often(&faulty, &clock);
    assert!(!outlives, "the first value's timer takes the last value");
    assert_eq!(touched, u64::from(STORES), "a timer for every store");

    let clock = StageClock::new();
    let cache = tidewheel(&clock).valid();
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
        "{touched} records for {KEYS} entries after {} stores",
        KEYS * ROUNDS
    );
    cache.validate();
}

/// The faulty queue takes whatever fires. Tidewheel stops removing when the listener's queue is
/// full. Entries that are due are invisible all the same.
#[test]
fn what_fires_does_not_pile_up_before_a_listener_that_is_stuck() {
    const BURST: u32 = 10_000;
    const QUEUE: usize = 100;
    let clock = StageClock::new();
    let faulty = TimerPerStore::new(&clock);
    (0..BURST).for_each(|key| faulty.set(key, 0, SECOND));
    clock.advance(SECOND);
    faulty.ring();
    let piled_up = faulty.to_sweep.lock().expect("whole").len();
    assert_eq!(piled_up, BURST as usize);

    let clock = StageClock::new();
    let (let_go, held) = mpsc::channel::<()>();
    let held = Mutex::new(held);
    let (arrived, arrival) = mpsc::channel();
    let told = Arc::new(Mutex::new(0));
    let cache: Cache<u32, u32> = tidewheel(&clock)
        .listener_queue(QUEUE, OnFull::Wait)
        .eviction_listener({
            let told = Arc::clone(&told);
            move |_| {
                // Nobody listens any more once the test knows.
                let _ = arrived.send(());
                // Stuck until the test lets go, and never again.
                let _ = held.lock().expect("whole").recv();
                *told.lock().expect("whole") += 1;
            }
        })
        .valid();
    (0..BURST).for_each(|key| cache.insert_with_ttl(key, 0, SECOND));
    clock.advance(SECOND);
    let stuck = Intruder::enter({
        let cache = cache.clone();
        move || {
            cache.insert(BURST, 0);
            cache.invalidate(&BURST);
            cache.advance(cache.now(), 0);
        }
    });
    arrival.recv_timeout(LONG).expect("the listener is called");
    let meanwhile = Intruder::enter({
        let cache = cache.clone();
        move || {
            let progress = cache.advance(cache.now(), u32::MAX);
            assert!(progress.backlog, "it stops");
        }
    });
    assert!(
        meanwhile.is_done_within(LONG),
        "expiry waits for the listener"
    );
    meanwhile.leave();
    let gone = 1 + BURST as usize - cache.len();
    assert!(
        (QUEUE..QUEUE + 32).contains(&gone),
        "{gone} removed for a queue of {QUEUE}"
    );
    assert!((0..BURST).all(|key| cache.get(&key).is_none()));
    drop(let_go);
    stuck.leave();
    while cache.advance(cache.now(), u32::MAX).backlog {}
    assert_eq!(*told.lock().expect("whole"), BURST + 1, "none was lost");
    assert_eq!(cache.len(), 0);
}
