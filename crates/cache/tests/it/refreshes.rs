//! Background refreshes: how many at a time, what statistics say, and refreshes that are futures.

use std::future::{Future, pending, poll_fn};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::thread;

use tidewheel::{
    BuildError, Builder, Cache, Driver, Loaded, ManualClock, RefresherResult, SharedDriver,
};

use crate::manual_poll::turn;
use crate::with_timeout::{MS, block_on, heard, in_time, sleep, until};

type Numbers = Cache<u64, u64>;

/// Every read asks for a refresh.
fn stale() -> Builder<u64, u64> {
    Cache::builder()
        .max_capacity(1000)
        .time_to_live(3600 * 1000 * MS)
        .refresh_after(0.0)
        .refresh_queue(100)
}

/// The number of refreshes that run, and the most that ran at a time.
#[derive(Default)]
struct Gauge {
    now: AtomicUsize,
    most: AtomicUsize,
}

impl Gauge {
    fn enter(&self) {
        let now = self.now.fetch_add(1, SeqCst) + 1;
        self.most.fetch_max(now, SeqCst);
    }

    fn leave(&self) {
        self.now.fetch_sub(1, SeqCst);
    }
}

/// One thread refreshed 20 keys a second, of 100 that were read, and statistics did not say so.
#[cfg(feature = "system")]
#[test]
fn threads_refresh_in_parallel_up_to_the_limit_and_statistics_tell() {
    in_time("all are refreshed", || {
        for limit in [1, 4, 7] {
            let gauge = Arc::new(Gauge::default());
            let at_it = Arc::clone(&gauge);
            let (go, gone) = channel::<()>();
            let gone = Mutex::new(gone);
            let cache: Numbers = stale()
                .refresh_parallelism(limit)
                .refresh_with(move |key: &u64| {
                    at_it.enter();
                    // Whoever has the lock waits for a word; the others wait for the lock: all are
                    // running.
                    heard(&gone.lock().expect("whole"), "the origin answers");
                    at_it.leave();
                    if *key == 0 {
                        Err("none")
                    } else {
                        Ok(*key + 100)
                    }
                })
                .build()
                .expect("valid");
            (0..30).for_each(|key| cache.insert(key, key));
            (0..30).for_each(|key| {
                cache.get(&key);
            });
            until("as many run as may", || {
                gauge.now.load(SeqCst) == limit && cache.stats().refreshes_running as usize == limit
            });
            let stats = cache.stats();
            assert_eq!(stats.refreshes_begun as usize, limit);
            assert_eq!(stats.refreshes_queued as usize, 30 - limit);
            (0..30).for_each(|_| go.send(()).expect("the refresher lives"));
            until("all are refreshed", || cache.stats().refreshes_done == 29);
            until("nothing runs", || cache.stats().refreshes_running == 0);
            let stats = cache.stats();
            assert_eq!((stats.refreshes_begun, stats.refreshes_failed), (30, 1));
            assert_eq!((stats.refreshes_skipped, stats.refreshes_queued), (0, 0));
            assert_eq!(cache.peek(&7), Some(107));
            assert_eq!(gauge.most.load(SeqCst), limit);
        }
    });
}

fn on_a_task(
    builder: Builder<u64, u64>,
    load: impl Fn(u64) -> Pin<Box<dyn Future<Output = Result<u64, String>> + Send>>
    + Send
    + Sync
    + 'static,
) -> Numbers {
    builder
        .clock(ManualClock::new())
        .driver(Driver::Task)
        .refresh_with_async(load)
        .build()
        .expect("valid")
}

#[test]
fn the_drive_future_polls_refreshes_side_by_side_up_to_the_limit() {
    in_time("all are refreshed", || {
        let gauge = Arc::new(Gauge::default());
        let at_it = Arc::clone(&gauge);
        let cache = on_a_task(stale().refresh_parallelism(5), move |key| {
            let at_it = Arc::clone(&at_it);
            Box::pin(async move {
                at_it.enter();
                sleep(MS).await;
                at_it.leave();
                Ok(key + 100)
            })
        });
        let drive = cache.drive(sleep);
        let task = thread::spawn(move || block_on(drive));
        (0..50).for_each(|key| cache.insert(key, key));
        (0..50).for_each(|key| {
            cache.get(&key);
        });
        until("all are refreshed", || {
            (0..50).all(|key| cache.peek(&key) == Some(key + 100))
        });
        assert_eq!(gauge.most.load(SeqCst), 5);
        assert_eq!(cache.run_refreshes(10), 0, "they are the task's");
        block_on(cache.close_async());
        task.join().expect("the task ends");
        let stats = cache.stats();
        assert_eq!((stats.refreshes_begun, stats.refreshes_done), (50, 50));
    });
}

#[test]
fn a_writer_supersedes_a_refresh_that_is_a_future() {
    let (go, gone) = channel::<()>();
    let gone = Arc::new(Mutex::new(gone));
    let cache = on_a_task(stale(), move |key| {
        let gone = Arc::clone(&gone);
        Box::pin(async move {
            poll_fn(|_| match gone.lock().expect("whole").try_recv() {
                Ok(()) => Poll::Ready(()),
                Err(_) => Poll::Pending,
            })
            .await;
            Ok(key + 100)
        })
    });
    let mut drive = Box::pin(cache.drive(|_| pending()));
    cache.insert(1, 1);
    cache.insert(2, 2);
    for key in [1, 2] {
        cache.get(&key);
        turn(&mut drive);
    }
    assert_eq!(cache.stats().refreshes_running, 2);
    cache.insert(1, 11);
    go.send(()).expect("it listens");
    go.send(()).expect("it listens");
    // They are polled when they are woken: nobody has woken these.
    turn(&mut drive);
    assert_eq!(cache.stats().refreshes_running, 2);
    drop(drive);
    assert_eq!(cache.stats().refreshes_failed, 2);
    assert_eq!((cache.peek(&1), cache.peek(&2)), (Some(11), Some(2)));
}

#[test]
fn a_refresh_that_was_superseded_stores_nothing() {
    in_time("it is over", || {
        let cache = on_a_task(stale(), move |key| {
            Box::pin(async move {
                sleep(20 * MS).await;
                Ok(key + 100)
            })
        });
        let drive = cache.drive(sleep);
        let task = thread::spawn(move || block_on(drive));
        cache.insert(1, 1);
        cache.get(&1);
        until("it runs", || cache.stats().refreshes_running == 1);
        cache.insert(1, 11);
        until("it is over", || cache.stats().refreshes_done == 1);
        assert_eq!(cache.peek(&1), Some(11));
        cache.close();
        task.join().expect("the task ends");
    });
}

#[test]
fn a_refresh_that_panics_or_fails_as_a_future_keeps_the_old_value_and_harms_no_other() {
    let hook = |key: u64| -> Pin<Box<dyn Future<Output = Result<u64, String>> + Send>> {
        assert!(key != 4, "meant");
        Box::pin(async move {
            match key {
                1 => std::panic::resume_unwind(Box::new("meant")),
                2 => Err(String::from("none")),
                _ => Ok(key + 100),
            }
        })
    };
    let cache = on_a_task(stale(), hook);
    let mut drive = Box::pin(cache.drive(|_| pending()));
    (1..5).for_each(|key| cache.insert(key, key));
    (1..5).for_each(|key| {
        cache.get(&key);
    });
    turn(&mut drive);
    let values: Vec<_> = (1..5).map(|key| cache.peek(&key)).collect();
    assert_eq!(values, [Some(1), Some(2), Some(103), Some(4)]);
    let stats = cache.stats();
    assert_eq!((stats.refreshes_done, stats.refreshes_failed), (1, 3));
    assert_eq!(stats.load_errors, 3);
    // Not at once again.
    cache.get(&1);
    turn(&mut drive);
    assert_eq!(cache.stats().refreshes_begun, 4);
}

#[test]
fn a_task_that_is_dropped_in_mid_refresh_leaves_the_key_to_who_waits_for_it() {
    in_time("the waiter has loaded", || {
        let clock = ManualClock::new();
        let cache: Numbers = Cache::builder()
            .max_capacity(1000)
            .time_to_live(10 * MS)
            .refresh_after(0.5)
            .clock(clock.clone())
            .driver(Driver::Task)
            .refresh_with_async(|_| pending::<Result<u64, String>>())
            .build()
            .expect("valid");
        cache.insert(1, 1);
        clock.advance(6 * MS);
        assert_eq!(cache.get(&1), Some(1));
        let mut drive = Box::pin(cache.drive(|_| pending()));
        turn(&mut drive);
        assert_eq!(cache.stats().refreshes_running, 1);
        clock.advance(6 * MS);
        // It is over: whoever wants it waits for the refresh.
        let mut load = pin!(cache.get_or_load_async(1, async { 2_u64 }));
        let mut context = Context::from_waker(Waker::noop());
        assert!(load.as_mut().poll(&mut context).is_pending());
        drop(drive);
        assert_eq!(block_on(load), 2);
        assert_eq!(cache.stats().refreshes_running, 0);
    });
}

#[test]
fn a_refresh_may_ask_its_cache_for_another_key_but_not_for_its_own() {
    in_time("it has panicked", || {
        let slot: Arc<std::sync::OnceLock<tidewheel::WeakCache<u64, u64>>> = Arc::default();
        let own = Arc::clone(&slot);
        let cache = on_a_task(stale(), move |key| {
            let cache = own.get().and_then(tidewheel::WeakCache::upgrade);
            Box::pin(async move {
                let cache = cache.ok_or("closed")?;
                let asked = if key == 1 { 10 } else { key };
                // Of a key that is over, or was never there.
                cache.invalidate(&asked);
                Ok(cache.get_or_load_async(asked, async { 7_u64 }).await)
            })
        });
        assert!(slot.set(cache.downgrade()).is_ok());
        cache.insert(1, 1);
        cache.get(&1);
        let mut drive = Box::pin(cache.drive(|_| pending()));
        turn(&mut drive);
        assert_eq!(cache.peek(&1), Some(7));
    });
}

#[test]
fn without_a_task_to_poll_it_an_async_refresher_or_listener_is_refused() {
    let refresher = |driver: Driver| {
        stale()
            .clock(ManualClock::new())
            .refresh_with_async(|key| async move { Ok::<_, String>(key) })
            .driver(driver)
            .build()
            .map(drop)
    };
    let listener = |driver: Driver| {
        stale()
            .clock(ManualClock::new())
            .eviction_listener_async(|_| async {})
            .driver(driver)
            .build()
            .map(drop)
    };
    let refused = |option| Err(BuildError::NoTask { option });
    let mut without = vec![Driver::Thread, Driver::Manual];
    #[cfg(feature = "system")]
    without.push(Driver::shared(&SharedDriver::threads()));
    for driver in without {
        assert_eq!(refresher(driver.clone()), refused("refresh_with_async"));
        assert_eq!(listener(driver), refused("eviction_listener_async"));
    }
    for driver in [Driver::Task, Driver::shared(&SharedDriver::task())] {
        assert_eq!(refresher(driver.clone()), Ok(()));
        assert_eq!(listener(driver), Ok(()));
    }
    let none = stale().refresh_parallelism(0).build();
    assert!(matches!(none, Err(BuildError::OutOfRange { .. })));
}

/// The same of futures; and what was written meanwhile stays.
#[test]
fn what_an_async_refresher_says_is_gone_goes_unless_it_was_written_meanwhile() {
    let written = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&written);
    let cache: Numbers = stale()
        .refresh_with_async(move |_| {
            let flag = Arc::clone(&flag);
            async move {
                poll_fn(|context| {
                    context.waker().wake_by_ref();
                    match flag.load(SeqCst) {
                        true => Poll::Ready(()),
                        false => Poll::Pending,
                    }
                })
                .await;
                None::<Loaded<u64>>
            }
        })
        .clock(ManualClock::new())
        .driver(Driver::Task)
        .build()
        .expect("valid");
    let mut drive = Box::pin(cache.drive(|_| pending()));
    for key in 1..=2 {
        cache.insert(key, key);
        cache.get(&key);
    }
    let mut context = Context::from_waker(Waker::noop());
    while cache.stats().refreshes_running < 2 {
        assert!(drive.as_mut().poll(&mut context).is_pending());
    }
    cache.insert(2, 20);
    written.store(true, SeqCst);
    turn(&mut drive);
    assert_eq!((cache.peek(&1), cache.peek(&2)), (None, Some(20)));
    assert_eq!(cache.stats().refreshes_done, 2);
}

#[test]
fn a_refresher_returns_what_it_likes() {
    fn refreshed<R: RefresherResult<u64>>(
        load: impl Fn(&u64) -> R + Send + Sync + 'static,
    ) -> Option<u64> {
        let cache: Numbers = stale()
            .refresh_with(load)
            .clock(ManualClock::new())
            .driver(Driver::Manual)
            .build()
            .expect("valid");
        cache.insert(1, 1);
        cache.get(&1);
        cache.run_refreshes(1);
        cache.peek(&1)
    }
    type Error = String;
    assert_eq!(refreshed(|_| Ok::<u64, Error>(2)), Some(2));
    assert_eq!(refreshed(|_| Ok::<Option<u64>, Error>(Some(2))), Some(2));
    assert_eq!(refreshed(|_| Ok::<Option<u64>, Error>(None)), None);
    assert_eq!(
        refreshed(|_| Ok::<Loaded<u64>, Error>(Loaded::from(2))),
        Some(2)
    );
    assert_eq!(
        refreshed(|_| Ok::<_, Error>(Some(Loaded::from(2_u64)))),
        Some(2)
    );
    assert_eq!(refreshed(|_| Ok::<Option<Loaded<u64>>, Error>(None)), None);
    assert_eq!(refreshed(|_| Err::<Option<u64>, _>(Error::new())), Some(1));
    assert_eq!(refreshed(|_| Loaded::from(2_u64)), Some(2));
    assert_eq!(refreshed(|_| None::<Loaded<u64>>), None);
}
