//! A cache that is closed or dropped leaves nothing behind: no thread, no value, no event.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use tidewheel::{Cache, ManualClock, RemovalCause};

use crate::loading::{Told, by_hand, until};

/// A thread that delivers events of one cache may close another cache. The events of the closed one
/// were dropped.
#[test]
fn a_listener_may_close_another_cache_whose_listener_hears_everything() {
    let clock = ManualClock::new();
    let heard = Told::default();
    let inner: Cache<u32, u32> = by_hand(&clock)
        .shards(4)
        .eviction_listener(heard.ear())
        .build()
        .expect("valid");
    for key in 0..100 {
        inner.insert(key, key);
    }
    let slot = Mutex::new(Some(inner));
    let outer: Cache<u32, u32> = by_hand(&clock)
        .eviction_listener(move |_| drop(slot.lock().expect("unpoisoned").take()))
        .build()
        .expect("valid");
    outer.insert(1, 1);
    outer.invalidate(&1);
    outer.advance(outer.now(), u32::MAX);
    assert_eq!(heard.count(), 100);
}

#[test]
fn every_value_and_the_cache_itself_are_dropped() {
    let alive = Arc::new(());
    let captured = Arc::downgrade(&alive);
    let (values, cache): (Vec<Weak<u32>>, Cache<u32, Arc<u32>>) = {
        let cache = Cache::builder()
            .max_capacity(100)
            .time_to_live(Duration::from_secs(60))
            .eviction_listener(move |_| {
                let _ = &alive;
            })
            .build()
            .expect("valid");
        let values = (0..500).map(|key| {
            let value = Arc::new(key);
            cache.insert(key % 200, Arc::clone(&value));
            Arc::downgrade(&value)
        });
        (values.collect(), cache)
    };
    until("what left is dropped", || {
        values
            .iter()
            .filter(|value| value.strong_count() > 0)
            .count()
            <= 100
    });
    let future = cache.drive(|_| std::future::pending());
    drop(cache);
    until("the threads have dropped the rest", || {
        values.iter().all(|value| value.strong_count() == 0)
    });
    // The thread lets go of its share after it has dropped the last value; the future has none.
    until("the listener is dropped with its cache", || {
        captured.upgrade().is_none()
    });
    drop(future);
}

#[test]
fn a_listener_with_a_weak_handle_does_not_keep_its_cache_open() {
    let slot: Arc<Mutex<Option<tidewheel::WeakCache<u32, u32>>>> = Arc::default();
    let heard = Arc::new(AtomicU64::new(0));
    let cache: Cache<u32, u32> = by_hand(&ManualClock::new())
        .max_capacity(10)
        .eviction_listener({
            let (slot, heard) = (Arc::clone(&slot), Arc::clone(&heard));
            move |removal| {
                heard.fetch_add(1, SeqCst);
                let weak = slot.lock().expect("whole").clone().expect("set");
                if removal.cause == RemovalCause::Removed {
                    let own = weak.upgrade().expect("the cache is open");
                    own.insert(removal.key + 100, removal.value);
                } else {
                    assert!(weak.upgrade().is_none(), "the last handle is gone");
                }
            }
        })
        .build()
        .expect("valid");
    *slot.lock().expect("whole") = Some(cache.downgrade());
    cache.insert(1, 1);
    cache.invalidate(&1);
    cache.advance(cache.now(), 100);
    assert_eq!(cache.get(&101), Some(1));
    drop(cache);
    assert_eq!(
        heard.load(SeqCst),
        2,
        "the entry that was left is announced"
    );
}
