//! Bug 11: the sweep, holding the lock, calls the operation that takes the lock.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, Weak};
use std::time::Duration;

use tidewheel::{Cache, Clock, OnFull};

use super::stage::{Intruder, LONG, MINUTE, MS, StageClock, tidewheel};

/// The thread would wait for itself for ever.
#[derive(Debug, PartialEq, Eq)]
struct Deadlock;

/// The script's view of a cache: with each entry that it removes, the public operation removes
/// another one from within.
trait Removing {
    fn set(&self, key: u32, partner: Option<u32>, ttl: Duration);
    fn sweep(&self) -> Result<(), Deadlock>;
    fn len(&self) -> usize;
}

/// Partner and deadline of each key.
type Entries = HashMap<u32, (Option<u32>, Duration)>;

/// Its lock is a plain one. When one thread takes it twice, the test is told, and does not hang.
struct SweepsByDelete {
    clock: StageClock,
    entries: Mutex<Entries>,
}

impl SweepsByDelete {
    fn lock(&self) -> Result<MutexGuard<'_, Entries>, Deadlock> {
        // There is only this thread, so a lock that is held is held by it.
        self.entries.try_lock().map_err(|_| Deadlock)
    }

    fn delete(&self, key: u32) -> Result<(), Deadlock> {
        self.lock()?.remove(&key);
        Ok(())
    }
}

impl Removing for SweepsByDelete {
    fn set(&self, key: u32, partner: Option<u32>, ttl: Duration) {
        let deadline = self.clock.now() + ttl;
        self.lock().expect("free").insert(key, (partner, deadline));
    }

    fn sweep(&self) -> Result<(), Deadlock> {
        let now = self.clock.now();
        let entries = self.lock()?;
        for (key, (partner, deadline)) in entries.iter() {
            if *deadline <= now {
                self.delete(*key)?;
                if let Some(partner) = partner {
                    self.delete(*partner)?;
                }
            }
        }
        Ok(())
    }

    fn len(&self) -> usize {
        self.lock().expect("free").len()
    }
}

/// A value that removes its partner when it is dropped: the cache's own operation, in the middle of
/// the cache's own sweep.
struct Partnered {
    partner: Option<u32>,
    cache: Weak<OnceLock<Cache<u32, Self>>>,
}

impl Drop for Partnered {
    fn drop(&mut self) {
        if let (Some(partner), Some(cache)) = (self.partner, self.cache.upgrade())
            && let Some(cache) = cache.get()
        {
            cache.invalidate(&partner);
        }
    }
}

struct Partners {
    cache: Arc<OnceLock<Cache<u32, Partnered>>>,
}

impl Partners {
    fn cache(&self) -> &Cache<u32, Partnered> {
        self.cache.get().expect("set at once")
    }
}

impl Removing for Partners {
    fn set(&self, key: u32, partner: Option<u32>, ttl: Duration) {
        let cache = Arc::downgrade(&self.cache);
        let value = Partnered { partner, cache };
        self.cache().insert_with_ttl(key, value, ttl);
    }

    fn sweep(&self) -> Result<(), Deadlock> {
        // A thread that would wait for a shard of a cache while it holds one panics instead.
        let swept = catch_unwind(AssertUnwindSafe(|| {
            let cache = self.cache();
            while cache.advance(cache.now(), u32::MAX).backlog {}
        }));
        swept.map_err(|_| Deadlock)
    }

    fn len(&self) -> usize {
        self.cache().len()
    }
}

fn removal_within_removal(cache: &dyn Removing, clock: &StageClock) -> Result<usize, Deadlock> {
    for key in 0..100 {
        cache.set(key, Some(key + 100), 10 * MS);
        cache.set(key + 100, None, MINUTE);
    }
    clock.advance(10 * MS);
    cache.sweep()?;
    Ok(cache.len())
}

#[test]
fn bug_11_a_sweep_that_takes_its_own_lock_again() {
    let clock = StageClock::new();
    let faulty = SweepsByDelete {
        clock: clock.clone(),
        entries: Mutex::default(),
    };
    assert_eq!(removal_within_removal(&faulty, &clock), Err(Deadlock));

    let clock = StageClock::new();
    let ours = Partners {
        cache: Arc::default(),
    };
    // One shard: what is called from within needs the very lock that the sweep uses.
    let cache = tidewheel(&clock).shards(1).build().expect("valid");
    assert!(ours.cache.set(cache).is_ok());
    assert_eq!(removal_within_removal(&ours, &clock), Ok(0));
    ours.cache().validate();
}

/// The listener may call every operation, on the entry that has just left and on others, whether or
/// not its queue has room.
#[test]
fn a_listener_may_call_its_cache() {
    for queue in [1000, 1] {
        // On a thread of its own, so that a listener that waits for itself fails the test and does
        // not hang it.
        let plays = Intruder::enter(move || listener_calls_its_cache(queue));
        assert!(plays.is_done_within(LONG), "a queue of {queue}");
        plays.leave();
    }
}

fn listener_calls_its_cache(queue: usize) {
    let clock = StageClock::new();
    let own: Arc<OnceLock<Cache<u32, u32>>> = Arc::default();
    let cache: Cache<u32, u32> = tidewheel(&clock)
        .shards(1)
        .listener_queue(queue, OnFull::Wait)
        .eviction_listener({
            let own = Arc::downgrade(&own);
            move |removal| {
                let own = own.upgrade().expect("the test holds it");
                let own = own.get().expect("set before use");
                if removal.key < 100 {
                    own.insert(removal.key + 100, removal.value);
                    own.invalidate(&(removal.key + 1000));
                    own.advance(own.now(), 1000);
                }
            }
        })
        .build()
        .expect("valid");
    assert!(own.set(cache.clone()).is_ok());
    for key in 0..10 {
        cache.insert_with_ttl(key, key, 10 * MS);
        cache.insert(key + 1000, key);
    }
    clock.advance(10 * MS);
    while cache.advance(cache.now(), u32::MAX).backlog {}
    let kept = (0..10).filter(|key| cache.get(&(key + 100)) == Some(*key));
    assert_eq!((kept.count(), cache.len()), (10, 10));
    cache.validate();
}

/// A key whose comparison calls the cache: the named exception. It must not hang.
#[derive(Clone)]
struct Meddler(u32, Weak<OnceLock<Cache<Self, u32>>>);

impl Hash for Meddler {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl PartialEq for Meddler {
    fn eq(&self, other: &Self) -> bool {
        if let Some(cache) = self.1.upgrade() {
            let _ = cache.get().expect("set before use").len();
        }
        self.0 == other.0
    }
}

impl Eq for Meddler {}

#[test]
fn what_runs_under_a_lock_by_its_nature_panics_rather_than_waits_for_itself() {
    let clock = StageClock::new();
    let own: Arc<OnceLock<Cache<Meddler, u32>>> = Arc::default();
    let cache = tidewheel(&clock).build().expect("valid");
    assert!(own.set(Cache::clone(&cache)).is_ok());
    let harmless = Meddler(1, Weak::new());
    cache.insert(harmless.clone(), 10);
    let meddler = Meddler(1, Arc::downgrade(&own));
    let message = |panic: Box<dyn std::any::Any + Send>| {
        panic
            .downcast::<&str>()
            .map_or_else(|_| String::new(), |message| message.to_string())
    };
    let by_eq = catch_unwind(AssertUnwindSafe(|| cache.get(&meddler)));
    let by_closure = catch_unwind(AssertUnwindSafe(|| {
        cache.view(&harmless, |_| cache.insert(Meddler(2, Weak::new()), 20))
    }));
    for caught in [by_eq.map(|_| ()), by_closure.map(|_| ())] {
        let message = message(caught.expect_err("it panics"));
        assert!(message.contains("called from within"), "{message}");
    }
    // Nothing is left locked.
    cache.insert(harmless.clone(), 11);
    assert_eq!(cache.get(&harmless), Some(11));
    cache.validate();
}
