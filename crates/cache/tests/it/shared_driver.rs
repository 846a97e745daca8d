//! One driver for many caches: threads or a task; who joins and leaves; what one cache may take
//! from others.

use std::cell::Cell;
use std::future::pending;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::thread;
use std::time::Duration;

use tidewheel::{Builder, Cache, ManualClock, SharedDriver};

use crate::loading::{Heeded, MS, Told, Valid, in_time, until};
use crate::manual_poll::{Alarm, poll, turn};

fn numbers(driver: &SharedDriver) -> Builder<u64, u64> {
    Cache::builder()
        .max_capacity(1000)
        .time_to_live(20 * MS)
        .driver(driver)
}

/// Threads of this process with such a name.
#[cfg(target_os = "linux")]
fn threads_named(name: &str) -> Vec<String> {
    let tasks = std::fs::read_dir("/proc/self/task").expect("linux");
    let names = tasks.filter_map(|task| {
        let task = task.ok()?.path().join("comm");
        Some(std::fs::read_to_string(task).ok()?.trim().to_string())
    });
    names.filter(|own| own.starts_with(name)).collect()
}

#[cfg(target_os = "linux")]
#[test]
fn fifty_caches_are_three_threads() {
    in_time("all have expired", || {
        let driver = SharedDriver::threads_named("fifty", 4);
        assert!(threads_named("fifty").is_empty(), "nobody has joined");
        let told = Told::default();
        let caches: Vec<_> = (0..50)
            .map(|_| {
                numbers(&driver)
                    .refresh_after(0.9)
                    .refresh_with(|key: &u64| Ok::<_, String>(*key))
                    .eviction_listener(told.ear())
                    .valid()
            })
            .collect();
        for cache in &caches {
            (0..20).for_each(|key| cache.insert(key, key));
        }
        until("threads have their names", || {
            threads_named("fifty").len() >= 3
        });
        assert_eq!(threads_named("fifty").len(), 3);
        until("all have expired", || told.count() == 1000);
        assert!(caches.iter().all(Cache::is_empty));
        drop(driver);
        drop(caches);
        until("the threads have ended", || {
            threads_named("fifty").is_empty()
        });
    });
}

/// A value whose drop takes its time, or panics.
struct Costly(Duration);

impl Drop for Costly {
    fn drop(&mut self) {
        thread::sleep(self.0);
        if self.0 == Duration::ZERO && !thread::panicking() {
            std::panic::resume_unwind(Box::new("meant"));
        }
    }
}

#[test]
fn a_slow_or_panicking_cache_delays_others_by_a_hold_at_most() {
    in_time("it is over", || {
        let driver = SharedDriver::threads();
        let costly = |ttl| -> Cache<u64, Costly> {
            Cache::builder()
                .unbounded()
                .time_to_live(ttl)
                .shards(1)
                .driver(&driver)
                .valid()
        };
        let (slow, panicking) = (costly(5 * MS), costly(5 * MS));
        // 0.8 s of drops, and a listener that is called for as long.
        (0..400).for_each(|key| slow.insert(key, Costly(2 * MS)));
        (0..400).for_each(|key| panicking.insert(key, Costly(Duration::ZERO)));
        let (go, gone) = channel::<()>();
        let gone = Mutex::new(gone);
        let stuck = numbers(&driver)
            .time_to_live(5 * MS)
            .eviction_listener(move |_| {
                let _ = gone.lock().expect("whole").recv();
            })
            .valid();
        stuck.insert(1, 1);
        let punctual = numbers(&driver).valid();
        for key in 0..5 {
            punctual.insert_with_ttl(key, key, 10 * MS);
            until("it has expired", || punctual.is_empty());
        }
        // A hold drops 16 entries, which takes 32 ms; all of them take 800.
        assert!(!slow.is_empty(), "it came between");
        until("all are gone", || slow.is_empty() && panicking.is_empty());
        assert_eq!(panicking.stats().drop_panics, 400);
        drop(go);
    });
}

#[test]
fn caches_take_turns_at_the_refresh_threads() {
    in_time("both are refreshed", || {
        let driver = SharedDriver::threads_named("turns", 2);
        let (go, gone) = channel::<()>();
        let gone = Arc::new(Mutex::new(gone));
        let cache = |slow: bool| {
            let gone = Arc::clone(&gone);
            let cache = numbers(&driver)
                .time_to_live(3600 * 1000 * MS)
                .refresh_after(0.0)
                .refresh_parallelism(1)
                .refresh_with(move |key: &u64| {
                    if slow {
                        let _ = gone.lock().expect("whole").recv();
                    }
                    Ok::<_, String>(*key + 100)
                })
                .valid();
            (0..10).for_each(|key| cache.insert(key, key));
            (0..10).for_each(|key| {
                cache.get(&key);
            });
            cache
        };
        let slow = cache(true);
        until("the slow one runs", || slow.stats().refreshes_running == 1);
        let quick = cache(false);
        until("the quick one is through", || {
            quick.stats().refreshes_done == 10
        });
        assert_eq!(slow.stats().refreshes_begun, 1, "its own limit");
        drop(go);
        until("the slow one is through", || {
            slow.stats().refreshes_done == 10
        });
    });
}

/// Only caches that are looked at ask a clock what time it is.
#[test]
fn a_wake_up_looks_at_the_caches_that_have_something_to_do() {
    let driver = SharedDriver::task();
    let clock = ManualClock::new();
    let asked: Vec<Arc<AtomicUsize>> = (0..100).map(|_| Arc::default()).collect();
    let caches: Vec<_> = asked
        .iter()
        .map(|asked| {
            let asked = Arc::clone(asked);
            let clock = Heeded::new(&clock, move || _ = asked.fetch_add(1, SeqCst));
            numbers(&driver).clock(clock).valid()
        })
        .collect();
    let woken = Alarm::new();
    let mut drive = pin!(driver.drive(|_| pending()));
    (0..8).for_each(|_| assert!(poll(drive.as_mut(), &woken).is_pending()));
    let before: Vec<_> = asked.iter().map(|asked| asked.load(SeqCst)).collect();
    let wakes = woken.woken.load(SeqCst);
    caches[7].insert(1, 1);
    assert_eq!(woken.woken.load(SeqCst), wakes + 1);
    (0..8).for_each(|_| assert!(poll(drive.as_mut(), &woken).is_pending()));
    let after: Vec<_> = asked.iter().map(|asked| asked.load(SeqCst)).collect();
    for (number, (before, after)) in before.into_iter().zip(after).enumerate() {
        assert_eq!(before == after, number != 7, "cache {number}");
    }
}

thread_local! {
    /// The part of a [`Faulty`] timer that panics next.
    static FAULT: Cell<Fault> = const { Cell::new(Fault::None) };
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    None,
    Call,
    Poll,
    Drop,
}

fn panic_if(fault: Fault) {
    if FAULT.get() == fault {
        FAULT.set(Fault::None);
        std::panic::resume_unwind(Box::new("meant"));
    }
}

/// A runtime's timer that panics.
struct Faulty;

impl Faulty {
    fn sleep(_: Duration) -> Self {
        panic_if(Fault::Call);
        Self
    }
}

impl Future for Faulty {
    type Output = ();

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        panic_if(Fault::Poll);
        Poll::Pending
    }
}

impl Drop for Faulty {
    fn drop(&mut self) {
        panic_if(Fault::Drop);
    }
}

/// It ended in silence, and the caches were never driven again.
#[test]
fn a_panic_of_the_timer_ends_the_future_and_the_next_one_drives_all_caches() {
    for fault in [Fault::Call, Fault::Poll, Fault::Drop] {
        let driver = SharedDriver::task();
        let clock = ManualClock::new();
        let cache = || {
            let builder = numbers(&driver).time_to_live(100 * MS);
            builder.clock(clock.clone()).valid()
        };
        let caches = [cache(), cache()];
        let mut drive = Box::pin(driver.drive(Faulty::sleep));
        caches.iter().for_each(|cache| cache.insert(1, 1));
        turn(&mut drive);
        FAULT.set(fault);
        caches[0].insert_with_ttl(2, 2, 30 * MS);
        let panic = catch_unwind(AssertUnwindSafe(|| turn(&mut drive)));
        FAULT.set(Fault::None);
        let panic = panic.expect_err("it is the driver's");
        assert_eq!(panic.downcast_ref(), Some(&"meant"), "{fault:?}");
        drop(drive);
        let mut drive = Box::pin(driver.drive(Faulty::sleep));
        turn(&mut drive);
        clock.advance(200 * MS);
        turn(&mut drive);
        assert!(caches.iter().all(Cache::is_empty), "{fault:?}");
        caches.iter().for_each(|cache| cache.insert(3, 3));
        turn(&mut drive);
        clock.advance(200 * MS);
        turn(&mut drive);
        assert!(caches.iter().all(Cache::is_empty), "{fault:?}");
    }
}
