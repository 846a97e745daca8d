//! Bug 5: everybody who misses asks the origin.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use tidewheel::{Cache, Clock};

use super::stage::{LONG, MINUTE, SHORT, StageClock, tidewheel};

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

/// The script's view of a cache.
trait Loading: Send + Sync {
    fn load(&self, key: u32, origin: &Origin) -> u32;
}

/// Looks, asks the origin, stores.
struct LooksThenLoads {
    clock: StageClock,
    entries: Mutex<HashMap<u32, (u32, Duration)>>,
}

impl Loading for LooksThenLoads {
    fn load(&self, key: u32, origin: &Origin) -> u32 {
        let found = self.entries.lock().expect("whole").get(&key).copied();
        if let Some((value, deadline)) = found
            && self.clock.now() < deadline
        {
            return value;
        }
        let value = origin.ask();
        let deadline = self.clock.now() + MINUTE;
        let mut entries = self.entries.lock().expect("whole");
        entries.insert(key, (value, deadline));
        value
    }
}

impl Loading for Cache<u32, u32> {
    fn load(&self, key: u32, origin: &Origin) -> u32 {
        self.get_or_load(key, || origin.ask())
    }
}

/// A hundred callers want one cold key; how often is the origin asked?
fn loads_of_a_cold_key(cache: &dyn Loading, patience: Duration) -> usize {
    let origin = Origin::new(patience);
    let answered = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..CALLERS {
            scope.spawn(|| {
                assert_eq!(cache.load(1, &origin), 10);
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
    let faulty = LooksThenLoads {
        clock: clock.clone(),
        entries: Mutex::default(),
    };
    assert_eq!(loads_of_a_cold_key(&faulty, LONG), CALLERS);

    let cache: Cache<u32, u32> = tidewheel(&clock).build().expect("valid");
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
    let cache: Cache<u32, u32> = tidewheel(&clock).build().expect("valid");
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

/// At 80 % of its time to live one caller refreshes the entry, and the others get the old value
/// meanwhile. So a key that is in use never misses.
#[test]
fn a_key_in_use_is_refreshed_at_80_percent_and_never_misses() {
    let clock = StageClock::new();
    let cache: Arc<Cache<u32, u32>> = Arc::new(
        tidewheel(&clock)
            .time_to_live(Duration::from_secs(10))
            .refresh_after(0.8)
            .build()
            .expect("valid"),
    );
    cache.insert(1, 0);
    let mut loads = Vec::new();
    for second in 1..=40 {
        clock.advance(Duration::from_secs(1));
        cache.advance(cache.now(), u32::MAX);
        assert!(cache.get(&1).is_some(), "second {second}");
        let value = cache.get_or_load(1, || {
            loads.push(second);
            assert!(cache.get(&1).is_some(), "others are served meanwhile");
            second
        });
        assert!(
            value + 8 >= second,
            "no value is older than its soft deadline"
        );
    }
    assert_eq!(loads, [8, 16, 24, 32, 40]);
}
