//! Bug 5: everybody who misses asks the origin.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Condvar, Mutex};
use std::thread;
use std::time::Duration;

use tidewheel::Cache;

use super::stage::{Entries, LONG, MINUTE, SHORT, Scripted, StageClock, Valid, tidewheel};

const CALLERS: usize = 100;

/// An origin that answers when every caller has asked it, or when its patience is over. By then
/// every caller that was going to miss has missed.
struct Origin {
    asked: Mutex<usize>,
    more: Condvar,
    patience: Duration,
}

impl Origin {
    fn new(patience: Duration) -> Self {
        Self {
            asked: Mutex::new(0),
            more: Condvar::new(),
            patience,
        }
    }

    fn ask(&self) -> u32 {
        let mut asked = self.asked.lock().expect("whole");
        *asked += 1;
        self.more.notify_all();
        let waited = self
            .more
            .wait_timeout_while(asked, self.patience, |asked| *asked < CALLERS);
        drop(waited.expect("whole"));
        10
    }
}

/// Looks, asks the origin, stores.
struct LooksThenLoads(Entries);

impl Scripted for LooksThenLoads {
    fn get(&self, key: u32) -> Option<u32> {
        self.0.get(key)
    }

    fn set(&self, key: u32, value: u32, ttl: Duration) {
        self.0.set(key, value, ttl);
    }

    fn load(&self, key: u32, origin: Box<dyn FnOnce() -> u32 + '_>) -> u32 {
        self.get(key).unwrap_or_else(|| {
            let value = origin();
            self.set(key, value, MINUTE);
            value
        })
    }
}

/// A hundred callers want one cold key; how often is the origin asked?
fn loads_of_a_cold_key(cache: &dyn Scripted, patience: Duration) -> usize {
    let origin = Origin::new(patience);
    let answered = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..CALLERS {
            scope.spawn(|| {
                assert_eq!(cache.load(1, Box::new(|| origin.ask())), 10);
                answered.fetch_add(1, SeqCst);
            });
        }
    });
    assert_eq!(answered.into_inner(), CALLERS);
    origin.asked.into_inner().expect("whole")
}

#[test]
fn bug_05_every_miss_asks_the_origin() {
    let clock = StageClock::new();
    let faulty = LooksThenLoads(Entries::new(&clock));
    assert_eq!(loads_of_a_cold_key(&faulty, LONG), CALLERS);

    let cache: Cache<u32, u32> = tidewheel(&clock).valid();
    assert_eq!(loads_of_a_cold_key(&cache, SHORT), 1);
    assert_eq!(cache.stats().loads, 1);
    // Once it is dead, the next herd causes one more.
    clock.advance(MINUTE);
    assert_eq!(loads_of_a_cold_key(&cache, SHORT), 1);
    cache.validate();
}

/// The leader panics. One of its waiters loads, and the others wait for that one.
#[test]
fn when_the_leader_panics_one_other_loads() {
    let clock = StageClock::new();
    let cache: Cache<u32, u32> = tidewheel(&clock).valid();
    let asked = AtomicUsize::new(0);
    let origin = Origin::new(SHORT);
    let panicked: usize = thread::scope(|scope| {
        let callers: Vec<_> = (0..20)
            .map(|_| {
                scope.spawn(|| {
                    cache.get_or_load(1, || {
                        let first = asked.fetch_add(1, SeqCst) == 0;
                        let value = origin.ask();
                        assert!(!first, "the first leader gives up");
                        value
                    })
                })
            })
            .collect();
        let join = |caller: thread::ScopedJoinHandle<'_, u32>| caller.join().is_err();
        callers
            .into_iter()
            .map(join)
            .filter(|panicked| *panicked)
            .count()
    });
    assert_eq!((panicked, asked.into_inner()), (1, 2));
    assert_eq!(cache.get(&1), Some(10));
    cache.validate();
}
