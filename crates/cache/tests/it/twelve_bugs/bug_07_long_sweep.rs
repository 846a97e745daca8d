//! Bug 7: a sweep that walks every entry under the lock, while all readers and writers wait.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, OnceLock};

use tidewheel::{Cache, Clock};

use super::stage::{Entries, MINUTE, MS, Scripted, StageClock, Valid, tidewheel};

/// Half of the entries die in the same tick.
const ALIVE: u32 = 20_000;
const DEAD: u32 = 20_000;

/// The most entries that one hold of the lock may touch, whatever their number: Tidewheel's
/// documented hold is 16.
const BOUND: u64 = 16;

/// Tidewheel drops values after it has released the lock. So when a value's `drop` runs, it can see
/// how many entries were removed under that lock.
#[derive(Default)]
struct Log {
    cache: OnceLock<Cache<u32, Watcher>>,
    dropped: AtomicU64,
    longest: AtomicU64,
}

struct Watcher(Arc<Log>);

impl Drop for Watcher {
    fn drop(&mut self) {
        if let Some(cache) = self.0.cache.get() {
            // It would panic if this thread held one of the cache's locks.
            let gone = u64::from(ALIVE + DEAD) - cache.len() as u64;
            let waiting = gone - self.0.dropped.fetch_add(1, SeqCst);
            self.0.longest.fetch_max(waiting, SeqCst);
        }
    }
}

#[test]
fn bug_07_a_sweep_that_holds_the_lock_over_every_entry() {
    let ttls = (0..ALIVE + DEAD).map(|key| (key, if key < ALIVE { MINUTE } else { 10 * MS }));
    let clock = StageClock::new();
    let faulty = Entries::new(&clock);
    ttls.clone()
        .for_each(|(key, ttl)| faulty.set(key, key, ttl));
    clock.advance(10 * MS);
    // It walks everything under one lock.
    let mut touched = 0;
    let now = clock.now();
    faulty.lock().retain(|_, (_, deadline)| {
        touched += 1;
        *deadline > now
    });
    assert_eq!(touched, ALIVE + DEAD);

    let log = Arc::new(Log::default());
    let cache = tidewheel(&clock).valid();
    for (key, ttl) in ttls {
        cache.insert_with_ttl(key, Watcher(Arc::clone(&log)), ttl);
    }
    assert!(log.cache.set(Cache::clone(&cache)).is_ok());
    clock.advance(10 * MS);
    let progress = cache.advance(cache.now(), u32::MAX);
    assert!(!progress.backlog && cache.len() == ALIVE as usize);
    let longest = log.longest.load(SeqCst);
    assert!((1..=BOUND).contains(&longest), "{longest} in one hold");
    // The values know the cache: without this both would stay for ever.
    cache.close();
}

/// Living entries in front of dead ones, and sweeps of a few that could have looked at all of them
/// ten times over. If each began at the front, none would come to the dead.
#[test]
fn a_sweep_with_a_budget_comes_to_every_dead_entry() {
    let clock = StageClock::new();
    let cache: Cache<u32, u32> = tidewheel(&clock).shards(16).valid();
    (0..1000).for_each(|key| cache.set(key, key, MINUTE));
    (1000..2000).for_each(|key| cache.set(key, key, 10 * MS));
    clock.advance(10 * MS);
    for _ in 0..200 {
        cache.sweep(100);
    }
    assert_eq!(cache.len(), 1000);
    cache.validate();
}
