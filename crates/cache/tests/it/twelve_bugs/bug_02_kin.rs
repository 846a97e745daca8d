//! Kin of bug 2: ends of a cache at awkward moments, and what its threads do while nobody lets them
//! go on.

#[cfg(feature = "system")]
use std::sync::mpsc;
use std::sync::{Arc, Mutex, OnceLock};

use tidewheel::{Cache, OnFull, RemovalCause};

#[cfg(feature = "system")]
use super::stage::{Intruder, LONG, Valid};
use super::stage::{MS, StageClock, tidewheel};

/// A listener closes its cache while events wait in all shards. None of them is lost.
#[test]
fn a_listener_that_closes_its_cache_still_hears_of_every_entry() {
    const KEYS: u32 = 1000;
    let clock = StageClock::new();
    let own: Arc<OnceLock<Cache<u32, u32>>> = Arc::default();
    let told = Arc::new(Mutex::new(Vec::new()));
    let cache: Cache<u32, u32> = tidewheel(&clock)
        .shards(16)
        .eviction_listener({
            let (own, told) = (Arc::downgrade(&own), Arc::clone(&told));
            move |removal| {
                let closes = removal.cause == RemovalCause::Expired;
                told.lock().expect("whole").push(removal.key);
                let own = own.upgrade().filter(|_| closes);
                if let Some(cache) = own.as_ref().and_then(|own| own.get()) {
                    cache.close();
                }
            }
        })
        .valid();
    assert!(own.set(cache.clone()).is_ok());
    for key in 0..KEYS {
        cache.insert(key, key);
    }
    (KEYS - 16..KEYS).for_each(|key| cache.insert_with_ttl(key, key, 10 * MS));
    clock.advance(10 * MS);
    cache.advance(cache.now(), u32::MAX);
    let mut told = told.lock().expect("whole").clone();
    // The sixteen replaced values are told of as well.
    assert_eq!(told.len(), KEYS as usize + 16);
    told.sort_unstable();
    told.dedup();
    assert_eq!(told.len(), KEYS as usize);
}

/// Two threads close the cache. One of them waits for the listener's thread, on which the listener
/// is the other one.
#[cfg(feature = "system")]
#[test]
fn a_listener_may_close_its_cache_while_another_thread_does() {
    let own: Arc<OnceLock<Cache<u32, u32>>> = Arc::default();
    let (entered, entry) = mpsc::channel();
    let (let_go, held) = mpsc::channel::<()>();
    let held = Mutex::new(held);
    let cache: Cache<u32, u32> = Cache::builder()
        .max_capacity(100)
        .no_default_ttl()
        .eviction_listener({
            let own = Arc::downgrade(&own);
            move |_| {
                // Only the first time does anybody listen.
                let _ = entered.send(());
                let _ = held.lock().expect("whole").recv();
                let own = own.upgrade().expect("the test holds it");
                own.get().expect("set before use").close();
            }
        })
        .valid();
    assert!(own.set(cache.clone()).is_ok());
    cache.insert(1, 1);
    cache.invalidate(&1);
    entry.recv_timeout(LONG).expect("the listener is called");
    let closer = Intruder::enter(move || cache.close());
    assert!(!closer.is_done_within(20 * MS), "it waits for the listener");
    drop(let_go);
    assert!(closer.is_done_within(LONG));
    closer.leave();
}

/// The events of one cache fill another whose own listener has a short queue: its bound holds.
#[test]
fn a_cache_that_is_filled_by_anothers_listener_keeps_its_queue_short() {
    const QUEUE: usize = 8;
    let clock = StageClock::new();
    let waiting = Arc::new(Mutex::new((0_usize, 0_usize)));
    let second: Cache<u32, u32> = tidewheel(&clock)
        .max_capacity(1)
        .listener_queue(QUEUE, OnFull::Wait)
        .eviction_listener({
            let waiting = Arc::clone(&waiting);
            move |_| waiting.lock().expect("whole").0 -= 1
        })
        .valid();
    let first: Cache<u32, u32> = tidewheel(&clock)
        .max_capacity(1)
        .eviction_listener({
            let (second, waiting) = (second.clone(), Arc::clone(&waiting));
            move |removal| {
                waiting.lock().expect("whole").0 += 1;
                second.insert(removal.key, removal.value);
                let mut waiting = waiting.lock().expect("whole");
                waiting.1 = waiting.1.max(waiting.0);
            }
        })
        .valid();
    (0..1000).for_each(|key| first.insert(key, key));
    first.advance(first.now(), 1000);
    second.advance(second.now(), 1000);
    let (_, most) = *waiting.lock().expect("whole");
    assert!(most <= QUEUE + 2, "{most} events for a queue of {QUEUE}");
}
