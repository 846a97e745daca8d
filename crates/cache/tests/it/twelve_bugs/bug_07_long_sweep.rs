//! Bug 7: a sweep that walks every entry under the lock, while all readers and writers wait. A
//! related bug is a sweep with a budget that always begins at the same end, and never reaches the
//! other.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use tidewheel::{Cache, Clock};

use super::stage::{MINUTE, MS, StageClock, tidewheel};

const ALIVE: u32 = 20_000;
const DEAD: u32 = 20_000;

/// The most entries that one hold of the lock may touch, whatever their number: Tidewheel's
/// documented hold is 16.
const BOUND: u64 = 16;

/// The script's view of a cache.
trait Sweeping {
    fn set(&self, key: u32, ttl: Duration);
    /// Removes all that is dead; returns how many entries the longest hold of a lock touched.
    fn sweep(&self) -> u64;
    fn len(&self) -> usize;
}

/// Walks everything under one lock.
struct WalksAll {
    clock: StageClock,
    deadlines: Mutex<BTreeMap<u32, Duration>>,
}

impl Sweeping for WalksAll {
    fn set(&self, key: u32, ttl: Duration) {
        let deadline = self.clock.now() + ttl;
        self.deadlines.lock().expect("whole").insert(key, deadline);
    }

    fn sweep(&self) -> u64 {
        let now = self.clock.now();
        let mut touched = 0;
        self.deadlines.lock().expect("whole").retain(|_, deadline| {
            touched += 1;
            *deadline > now
        });
        touched
    }

    fn len(&self) -> usize {
        self.deadlines.lock().expect("whole").len()
    }
}

/// Tidewheel drops values after it has released the lock. So when a value's `drop` runs, it can see
/// how many entries were removed under that lock.
struct Watched {
    cache: Cache<u32, DropRecorder>,
    log: Arc<Log>,
}

#[derive(Default)]
struct Log {
    cache: OnceLock<Cache<u32, DropRecorder>>,
    stored: AtomicU64,
    dropped: AtomicU64,
    longest: AtomicU64,
}

struct DropRecorder(Arc<Log>);

impl Drop for DropRecorder {
    fn drop(&mut self) {
        let Some(cache) = self.0.cache.get() else {
            return;
        };
        // Calls the cache from within `drop`: it would panic if this thread held one of its locks.
        let left = cache.len() as u64;
        let gone = self.0.stored.load(SeqCst) - left;
        let waiting = gone - self.0.dropped.fetch_add(1, SeqCst);
        self.0.longest.fetch_max(waiting, SeqCst);
    }
}

impl Watched {
    fn new(clock: &StageClock) -> Self {
        let log = Arc::new(Log::default());
        let cache = tidewheel(clock).build().expect("valid");
        let handle: Cache<u32, DropRecorder> = Cache::clone(&cache);
        assert!(log.cache.set(handle).is_ok());
        Self { cache, log }
    }
}

impl Sweeping for Watched {
    fn set(&self, key: u32, ttl: Duration) {
        self.log.stored.fetch_add(1, SeqCst);
        self.cache
            .insert_with_ttl(key, DropRecorder(Arc::clone(&self.log)), ttl);
    }

    fn sweep(&self) -> u64 {
        let progress = self.cache.advance(self.cache.now(), u32::MAX);
        assert!(!progress.backlog);
        self.log.longest.load(SeqCst)
    }

    fn len(&self) -> usize {
        self.cache.len()
    }
}

/// Half of the entries die in the same tick; one sweep.
fn longest_hold(cache: &dyn Sweeping, clock: &StageClock) -> u64 {
    for key in 0..ALIVE {
        cache.set(key, MINUTE);
    }
    for key in ALIVE..ALIVE + DEAD {
        cache.set(key, 10 * MS);
    }
    clock.advance(10 * MS);
    let longest = cache.sweep();
    assert_eq!(cache.len(), ALIVE as usize);
    longest
}

#[test]
fn bug_07_a_sweep_that_holds_the_lock_over_every_entry() {
    let clock = StageClock::new();
    let faulty = WalksAll {
        clock: clock.clone(),
        deadlines: Mutex::default(),
    };
    assert_eq!(longest_hold(&faulty, &clock), u64::from(ALIVE + DEAD));

    let clock = StageClock::new();
    let ours = Watched::new(&clock);
    let longest = longest_hold(&ours, &clock);
    assert!((1..=BOUND).contains(&longest), "{longest} in one hold");
    // The values know the cache: without this both would stay for ever.
    ours.cache.close();
}

/// Looks at a budget of entries in each sweep, from the front.
struct LooksAtTheFront {
    clock: StageClock,
    deadlines: Mutex<BTreeMap<u32, Duration>>,
}

/// The script's view of a sweep with a budget.
trait Budgeted {
    fn set(&self, key: u32, ttl: Duration);
    fn sweep(&self, budget: u32);
    fn len(&self) -> usize;
}

impl Budgeted for LooksAtTheFront {
    fn set(&self, key: u32, ttl: Duration) {
        let deadline = self.clock.now() + ttl;
        self.deadlines.lock().expect("whole").insert(key, deadline);
    }

    fn sweep(&self, budget: u32) {
        let now = self.clock.now();
        let mut deadlines = self.deadlines.lock().expect("whole");
        let dead: Vec<u32> = deadlines
            .iter()
            .take(budget as usize)
            .filter_map(|(key, deadline)| (*deadline <= now).then_some(*key))
            .collect();
        for key in dead {
            deadlines.remove(&key);
        }
    }

    fn len(&self) -> usize {
        self.deadlines.lock().expect("whole").len()
    }
}

impl Budgeted for Cache<u32, u32> {
    fn set(&self, key: u32, ttl: Duration) {
        self.insert_with_ttl(key, key, ttl);
    }

    fn sweep(&self, budget: u32) {
        let before = Self::len(self);
        let progress = self.advance(self.now(), budget);
        assert!(progress.expired + progress.moved <= u64::from(budget));
        assert_eq!(progress.expired, (before - Self::len(self)) as u64);
    }

    fn len(&self) -> usize {
        Self::len(self)
    }
}

/// Living entries in front of dead ones, and sweeps that could have looked at all of them ten times
/// over.
fn dead_after_many_sweeps(cache: &dyn Budgeted, clock: &StageClock) -> usize {
    for key in 0..1000 {
        cache.set(key, MINUTE);
    }
    for key in 1000..2000 {
        cache.set(key, 10 * MS);
    }
    clock.advance(10 * MS);
    for _ in 0..200 {
        cache.sweep(100);
    }
    cache.len() - 1000
}

#[test]
fn a_sweep_with_a_budget_comes_to_every_dead_entry() {
    let clock = StageClock::new();
    let faulty = LooksAtTheFront {
        clock: clock.clone(),
        deadlines: Mutex::default(),
    };
    assert_eq!(dead_after_many_sweeps(&faulty, &clock), 1000);

    let clock = StageClock::new();
    let cache = tidewheel(&clock).shards(16).build().expect("valid");
    assert_eq!(dead_after_many_sweeps(&cache, &clock), 0);
    cache.validate();
}
