//! A cache that is closed or dropped leaves nothing behind: no thread, no value, no event.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, Weak, mpsc};
use std::time::Duration;

use tidewheel::{Cache, Driver, ManualClock, RemovalCause};

const MS: Duration = Duration::from_millis(1);

/// Waits for what another thread does.
fn wait_until(what: &str, done: impl Fn() -> bool) {
    for _ in 0..5000 {
        if done() {
            return;
        }
        std::thread::park_timeout(2 * MS);
    }
    panic!("it never happened: {what}");
}

/// Threads of this process whose names begin so.
#[cfg(target_os = "linux")]
fn threads(name: &str) -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").expect("procfs");
    let names = tasks.filter_map(|task| {
        let path = task.ok()?.path().join("comm");
        std::fs::read_to_string(path).ok()
    });
    names.filter(|comm| comm.starts_with(name)).count()
}

/// A thread that was joined may stay listed for a moment.
#[cfg(target_os = "linux")]
fn threads_end(name: &str) {
    wait_until("the threads end", || threads(name) == 0);
}

fn listened(name: &str) -> (Cache<u32, Arc<u32>>, Arc<AtomicU64>) {
    let told = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&told);
    let cache = Cache::builder()
        .max_capacity(10_000)
        .no_default_ttl()
        .name(name)
        .eviction_listener(move |_| {
            count.fetch_add(1, SeqCst);
        })
        .build()
        .expect("valid");
    (cache, told)
}

#[test]
#[cfg(target_os = "linux")]
fn threads_are_gone_after_close_and_every_event_was_delivered() {
    let (cache, told) = listened("lk-close");
    wait_until("threads have their names", || threads("lk-close") == 2);
    for key in 0..5000 {
        cache.insert_with_ttl(
            key,
            Arc::new(key),
            Duration::from_millis(u64::from(key % 100)),
        );
    }
    cache.close();
    assert_eq!(told.load(SeqCst), 5000);
    threads_end("lk-close");
    cache.close();
    cache.insert(1, Arc::new(1));
    assert!(cache.is_empty() && cache.get(&1).is_none());
}

#[test]
#[cfg(target_os = "linux")]
fn threads_are_gone_after_the_last_handle_and_not_before() {
    let (cache, told) = listened("lk-drop");
    let other = cache.clone();
    cache.insert(1, Arc::new(1));
    wait_until("threads have their names", || threads("lk-drop") == 2);
    drop(cache);
    assert_eq!(threads("lk-drop"), 2);
    assert!(other.get(&1).is_some());
    drop(other);
    threads_end("lk-drop");
    assert_eq!(told.load(SeqCst), 1);
}

#[test]
#[cfg(target_os = "linux")]
fn a_hundred_caches_leave_no_thread_behind() {
    let mut heard = Vec::new();
    for round in 0..100 {
        let (cache, told) = listened("lk-many");
        cache.insert_with_ttl(round, Arc::new(1), MS);
        drop(cache);
        heard.push(told);
    }
    // A thread that has just started does not have its name yet.
    wait_until("all are told", || {
        heard.iter().all(|told| told.load(SeqCst) == 1)
    });
    threads_end("lk-many");
}

/// The listener's thread would wait for itself to end.
#[test]
#[cfg(target_os = "linux")]
fn the_last_handle_may_be_dropped_by_the_listener() {
    type Slot = Arc<Mutex<Option<Cache<u32, u32>>>>;
    let slot = Slot::default();
    let (send, done) = mpsc::channel();
    let send = Mutex::new(send);
    let mine = Arc::clone(&slot);
    let cache = Cache::builder()
        .unbounded()
        .no_default_ttl()
        .name("lk-self")
        .eviction_listener(move |removal| {
            // The guard is let go first: the drop closes the cache, whose events come here again.
            let last = mine.lock().expect("unpoisoned").take();
            drop(last);
            let event = (removal.key, removal.cause);
            let _ = send.lock().expect("unpoisoned").send(event);
        })
        .build()
        .expect("valid");
    for key in 0..100 {
        cache.insert(key, key);
    }
    cache.insert_with_ttl(1000, 0, 5 * MS);
    *slot.lock().expect("unpoisoned") = Some(cache);
    let mut closed = 0;
    for _ in 0..101 {
        let event = done.recv_timeout(Duration::from_secs(10));
        let (_, cause) = event.expect("every entry is announced");
        closed += u32::from(cause == RemovalCause::Closed);
    }
    assert_eq!(closed, 100);
    threads_end("lk-self");
}

/// `close` joined the listener's thread under a lock that the same thread wanted.
#[test]
fn the_listener_may_close_its_cache_while_another_thread_does() {
    for _ in 0..50 {
        let slot: Arc<Mutex<Option<Cache<u32, u32>>>> = Arc::default();
        let mine = Arc::clone(&slot);
        let inside = Arc::new(AtomicBool::new(false));
        let entered = Arc::clone(&inside);
        let cache = Cache::builder()
            .unbounded()
            .no_default_ttl()
            .eviction_listener(move |_| {
                let cache = mine.lock().expect("unpoisoned").clone();
                entered.store(true, SeqCst);
                if let Some(cache) = cache {
                    cache.close();
                }
            })
            .build()
            .expect("valid");
        *slot.lock().expect("unpoisoned") = Some(cache.clone());
        cache.insert(1, 1);
        cache.invalidate(&1);
        wait_until("the listener is called", || inside.load(SeqCst));
        let (send, done) = mpsc::channel();
        std::thread::spawn(move || {
            cache.close();
            let _ = send.send(());
        });
        let closed = done.recv_timeout(Duration::from_secs(10));
        closed.expect("close waits for itself");
        slot.lock().expect("unpoisoned").take();
    }
}

/// A thread that delivers events of one cache may close another cache. The events of the closed one
/// were dropped.
#[test]
fn a_listener_may_close_another_cache_whose_listener_hears_everything() {
    let clock = ManualClock::new();
    let heard = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&heard);
    let inner: Cache<u32, u32> = Cache::builder()
        .unbounded()
        .no_default_ttl()
        .shards(4)
        .clock(clock.clone())
        .driver(Driver::Manual)
        .eviction_listener(move |_| {
            count.fetch_add(1, SeqCst);
        })
        .build()
        .expect("valid");
    for key in 0..100 {
        inner.insert(key, key);
    }
    let slot = Mutex::new(Some(inner));
    let outer: Cache<u32, u32> = Cache::builder()
        .unbounded()
        .no_default_ttl()
        .clock(clock.clone())
        .driver(Driver::Manual)
        .eviction_listener(move |_| drop(slot.lock().expect("unpoisoned").take()))
        .build()
        .expect("valid");
    outer.insert(1, 1);
    outer.invalidate(&1);
    outer.advance(outer.now(), u32::MAX);
    assert_eq!(heard.load(SeqCst), 100);
}

/// A manual cache closed by its own listener: the events of shards already visited were lost.
#[test]
fn a_manual_cache_that_its_listener_closes_announces_everything() {
    for shards in [1, 2, 8] {
        let clock = ManualClock::new();
        let slot: Arc<Mutex<Option<Cache<u32, u32>>>> = Arc::default();
        let mine = Arc::clone(&slot);
        let heard = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&heard);
        let cache = Cache::builder()
            .unbounded()
            .no_default_ttl()
            .shards(shards)
            .clock(clock.clone())
            .driver(Driver::Manual)
            .eviction_listener(move |_| {
                count.fetch_add(1, SeqCst);
                let cache = mine.lock().expect("unpoisoned").take();
                if let Some(cache) = cache {
                    cache.close();
                }
            })
            .build()
            .expect("valid");
        for key in 0..100 {
            cache.insert(key, key);
        }
        *slot.lock().expect("unpoisoned") = Some(cache.clone());
        cache.invalidate(&50);
        cache.advance(cache.now(), u32::MAX);
        assert_eq!(heard.load(SeqCst), 100, "{shards} shards");
    }
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
    wait_until("what left is dropped", || {
        values
            .iter()
            .filter(|value| value.strong_count() > 0)
            .count()
            <= 100
    });
    let future = cache.drive(|_| std::future::pending());
    drop(cache);
    wait_until("the threads have dropped the rest", || {
        values.iter().all(|value| value.strong_count() == 0)
    });
    // The thread lets go of its share after it has dropped the last value; the future has none.
    wait_until("the listener is dropped with its cache", || {
        captured.upgrade().is_none()
    });
    drop(future);
}

#[test]
fn values_that_die_give_their_memory_back_with_nobody_calling() {
    let cache: Cache<u32, Arc<u32>> = Cache::builder()
        .unbounded()
        .time_to_live(20 * MS)
        .build()
        .expect("valid");
    let value = Arc::new(7);
    for key in 0..20_000 {
        cache.insert(key, Arc::clone(&value));
    }
    wait_until("values are dropped", || Arc::strong_count(&value) == 1);
    assert!(cache.is_empty());
    cache.validate();
}

#[test]
fn a_listener_with_a_weak_handle_does_not_keep_its_cache_open() {
    let slot: Arc<Mutex<Option<tidewheel::WeakCache<u32, u32>>>> = Arc::default();
    let heard = Arc::new(AtomicU64::new(0));
    let cache: Cache<u32, u32> = Cache::builder()
        .max_capacity(10)
        .no_default_ttl()
        .driver(Driver::Manual)
        .clock(ManualClock::new())
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
