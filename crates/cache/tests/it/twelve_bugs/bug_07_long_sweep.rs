//! Bug 7: a sweep that walks every entry under the lock, while all readers and writers wait. A
//! related bug is a sweep with a budget that always begins at the same end, and never reaches the
//! other.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tidewheel::{Cache, Clock};

use super::stage::{Entries, MINUTE, MS, Scripted, StageClock, Valid, tidewheel};

const ALIVE: u32 = 20_000;
const DEAD: u32 = 20_000;

/// The most entries that one hold of the lock may touch, whatever their number: Tidewheel's
/// documented hold is 16.
const BOUND: u64 = 16;

/// Walks everything under one lock.
struct WalksAll(Entries);

impl Scripted for WalksAll {
    fn get(&self, key: u32) -> Option<u32> {
        self.0.get(key)
    }

    fn set(&self, key: u32, value: u32, ttl: Duration) {
        self.0.set(key, value, ttl);
    }

    fn sweep(&self, _: u32) -> u64 {
        let now = self.0.clock.now();
        let mut touched = 0;
        self.0.lock().retain(|_, (_, deadline)| {
            touched += 1;
            *deadline > now
        });
        touched
    }

    fn len(&self) -> usize {
        self.0.lock().len()
    }
}

/// Tidewheel drops values after it has released the lock. So when a value's `drop` runs, it can see
/// how many entries were removed under that lock.
struct Watched {
    cache: Cache<u32, Watcher>,
    log: Arc<Log>,
}

#[derive(Default)]
struct Log {
    cache: OnceLock<Cache<u32, Watcher>>,
    stored: AtomicU64,
    dropped: AtomicU64,
    longest: AtomicU64,
}

struct Watcher(Arc<Log>);

impl Drop for Watcher {
    fn drop(&mut self) {
        if let Some(cache) = self.0.cache.get() {
            // It would panic if this thread held one of the cache's locks.
            let gone = self.0.stored.load(SeqCst) - cache.len() as u64;
            let waiting = gone - self.0.dropped.fetch_add(1, SeqCst);
            self.0.longest.fetch_max(waiting, SeqCst);
        }
    }
}

impl Watched {
    fn new(clock: &StageClock) -> Self {
        let (log, cache) = (Arc::new(Log::default()), tidewheel(clock).valid());
        assert!(log.cache.set(Cache::clone(&cache)).is_ok());
        Self { cache, log }
    }
}

impl Scripted for Watched {
    fn get(&self, _: u32) -> Option<u32> {
        None
    }

    fn set(&self, key: u32, _: u32, ttl: Duration) {
        self.log.stored.fetch_add(1, SeqCst);
        let value = Watcher(Arc::clone(&self.log));
        self.cache.insert_with_ttl(key, value, ttl);
    }

    fn sweep(&self, budget: u32) -> u64 {
        let progress = self.cache.advance(self.cache.now(), budget);
        assert!(!progress.backlog);
        self.log.longest.load(SeqCst)
    }

    fn len(&self) -> usize {
        self.cache.len()
    }
}

/// Half of the entries die in the same tick; one sweep. Returns how many entries the longest hold
/// of a lock touched.
fn longest_hold(cache: &dyn Scripted, clock: &StageClock) -> u64 {
    for key in 0..ALIVE {
        cache.set(key, key, MINUTE);
    }
    for key in ALIVE..ALIVE + DEAD {
        cache.set(key, key, 10 * MS);
    }
    clock.advance(10 * MS);
    let longest = cache.sweep(u32::MAX);
    assert_eq!(cache.len(), ALIVE as usize);
    longest
}

#[test]
fn bug_07_a_sweep_that_holds_the_lock_over_every_entry() {
    let clock = StageClock::new();
    let faulty = WalksAll(Entries::new(&clock));
    assert_eq!(longest_hold(&faulty, &clock), u64::from(ALIVE + DEAD));

    let clock = StageClock::new();
    let ours = Watched::new(&clock);
    let longest = longest_hold(&ours, &clock);
    assert!((1..=BOUND).contains(&longest), "{longest} in one hold");
    // The values know the cache: without this both would stay for ever.
    ours.cache.close();
}

/// Looks at a budget of entries in each sweep, from the front.
struct LooksAtTheFront(Entries);

impl Scripted for LooksAtTheFront {
    fn get(&self, key: u32) -> Option<u32> {
        self.0.get(key)
    }

    fn set(&self, key: u32, value: u32, ttl: Duration) {
        self.0.set(key, value, ttl);
    }

    fn sweep(&self, budget: u32) -> u64 {
        let now = self.0.clock.now();
        let mut entries = self.0.lock();
        let front = entries.iter().take(budget as usize);
        let dead = front.filter_map(|(key, (_, end))| (*end <= now).then_some(*key));
        let dead: Vec<u32> = dead.collect();
        dead.iter().for_each(|key| _ = entries.remove(key));
        dead.len() as u64
    }

    fn len(&self) -> usize {
        self.0.lock().len()
    }
}

/// Living entries in front of dead ones, and sweeps that could have looked at all of them ten times
/// over.
fn dead_after_many_sweeps(cache: &dyn Scripted, clock: &StageClock) -> usize {
    for key in 0..1000 {
        cache.set(key, key, MINUTE);
    }
    for key in 1000..2000 {
        cache.set(key, key, 10 * MS);
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
    let faulty = LooksAtTheFront(Entries::new(&clock));
    assert_eq!(dead_after_many_sweeps(&faulty, &clock), 1000);

    let clock = StageClock::new();
    let cache = tidewheel(&clock).shards(16).valid();
    assert_eq!(dead_after_many_sweeps(&cache, &clock), 0);
    cache.validate();
}
