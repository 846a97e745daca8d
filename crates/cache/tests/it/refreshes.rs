//! Background refreshes: how many at a time, what statistics say, and refreshes that are futures.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};

use tidewheel::{
    BuildError, Builder, Cache, Driver, Loaded, ManualClock, RefresherResult, SharedDriver,
};

use crate::loading::{MS, Valid, heard, in_time, until};

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
                .valid();
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

#[test]
fn without_a_task_to_poll_it_an_async_refresher_or_listener_is_refused() {
    let on = |driver: Driver| stale().clock(ManualClock::new()).driver(driver);
    let refresher =
        |driver| on(driver).refresh_with_async(|key| async move { Ok::<_, String>(key) });
    let listener = |driver| on(driver).eviction_listener_async(|_| async {});
    let refused = |option| Some(BuildError::NoTask { option });
    let shared = Driver::shared(&SharedDriver::threads());
    for driver in [Driver::Thread, Driver::Manual, shared] {
        let build = refresher(driver.clone()).build();
        assert_eq!(build.err(), refused("refresh_with_async"));
        let build = listener(driver).build();
        assert_eq!(build.err(), refused("eviction_listener_async"));
    }
    for driver in [Driver::Task, Driver::shared(&SharedDriver::task())] {
        refresher(driver.clone()).valid();
        listener(driver).valid();
    }
    let none = stale().refresh_parallelism(0).build();
    assert!(matches!(none, Err(BuildError::OutOfRange { .. })));
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
            .valid();
        cache.insert(1, 1);
        cache.get(&1);
        cache.run_refreshes(1);
        cache.peek(&1)
    }
    let (none, loaded) = (None::<Loaded<u64>>, || Loaded::from(2_u64));
    assert_eq!(refreshed(|_| Ok::<u64, String>(2)), Some(2));
    assert_eq!(refreshed(|_| Ok::<Option<u64>, String>(Some(2))), Some(2));
    assert_eq!(refreshed(|_| Ok::<Option<u64>, String>(None)), None);
    assert_eq!(refreshed(move |_| Ok::<_, String>(loaded())), Some(2));
    assert_eq!(refreshed(move |_| Ok::<_, String>(Some(loaded()))), Some(2));
    assert_eq!(refreshed(|_| Err::<Option<u64>, _>("down")), Some(1));
    assert_eq!(refreshed(move |_| loaded()), Some(2));
    assert_eq!(refreshed(move |_| none.clone()), None);
}
