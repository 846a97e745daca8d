//! Bug 11: the sweep, holding the lock, calls the operation that takes the lock.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use tidewheel::{Cache, Clock, OnFull};

use super::stage::{Intruder, LONG, MINUTE, MS, StageClock, Valid, tidewheel};
use crate::loading::Own;

/// The thread would wait for itself for ever.
#[derive(Debug, PartialEq, Eq)]
struct Deadlock;

/// With each entry that the sweep removes, the public operation removes its partner from within.
/// The lock is a plain one. When one thread takes it twice, the test is told, and does not hang.
struct SweepsByDelete(Mutex<Partners>);

/// An entry's partner and deadline, by key.
type Partners = HashMap<u32, (u32, Duration)>;

impl SweepsByDelete {
    fn lock(&self) -> Result<MutexGuard<'_, Partners>, Deadlock> {
        // There is only this thread, so a lock that is held is held by it.
        self.0.try_lock().map_err(|_| Deadlock)
    }

    fn delete(&self, key: u32) -> Result<(), Deadlock> {
        self.lock()?.remove(&key);
        Ok(())
    }

    fn sweep(&self, now: Duration) -> Result<(), Deadlock> {
        let entries = self.lock()?;
        let dead = entries.values().filter(|(_, deadline)| *deadline <= now);
        dead.into_iter()
            .try_for_each(|(partner, _)| self.delete(*partner))
    }
}

/// A value that removes its partner when it is dropped: the cache's own operation, in the middle of
/// the cache's own sweep.
struct Partnered(Option<(u32, Own<u32, Self>)>);

impl Drop for Partnered {
    fn drop(&mut self) {
        let partner = self.0.take();
        if let Some((partner, cache)) = partner.and_then(|(key, own)| Some((key, own.get()?))) {
            cache.invalidate(&partner);
        }
    }
}

#[test]
fn bug_11_a_sweep_that_takes_its_own_lock_again() {
    let clock = StageClock::new();
    let entries = (0..100).map(|key| (key, (key + 100, 10 * MS)));
    let faulty = SweepsByDelete(Mutex::new(entries.collect()));
    clock.advance(10 * MS);
    assert_eq!(faulty.sweep(clock.now()), Err(Deadlock));

    // One shard: what is called from within needs the very lock that the sweep uses. A thread that
    // would wait for a shard of a cache while it holds one panics instead.
    let (slot, own) = Own::pair();
    let cache: Cache<u32, Partnered> = tidewheel(&clock).shards(1).valid();
    slot.set(&cache);
    for key in 0..100 {
        let partner = (key + 100, own.clone());
        cache.insert_with_ttl(key, Partnered(Some(partner)), 10 * MS);
        cache.insert_with_ttl(key + 100, Partnered(None), MINUTE);
    }
    clock.advance(10 * MS);
    while cache.advance(cache.now(), u32::MAX).backlog {}
    assert!(cache.is_empty());
    cache.validate();
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
    let (slot, own) = Own::pair();
    let cache: Cache<u32, u32> = tidewheel(&clock)
        .shards(1)
        .listener_queue(queue, OnFull::Wait)
        .eviction_listener(move |removal| {
            if let Some(own) = own.get().filter(|_| removal.key < 100) {
                own.insert(removal.key + 100, removal.value);
                own.invalidate(&(removal.key + 1000));
                own.advance(own.now(), 1000);
            }
        })
        .valid();
    slot.set(&cache);
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
