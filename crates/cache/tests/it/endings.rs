//! The end of a cache: `close` waits, `close_async` waits without blocking, and dropping the last
//! handle does not wait.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::task::{Context, Poll, Waker};
use std::thread;

use tidewheel::{
    Builder, Cache, Driver, ManualClock, OnFull, Removal, RemovalCause, SharedDriver, WeakCache,
};

use crate::manual_poll::turn;
use crate::with_timeout::{MS, block_on, heard, in_time, sleep, until};

type Numbers = Cache<u64, u64>;

fn numbers() -> Builder<u64, u64> {
    Cache::builder().max_capacity(1000).no_default_ttl()
}

/// A cache whose refresher waits for a word of the test.
fn refreshed_on_demand(builder: Builder<u64, u64>) -> (Numbers, Receiver<()>, Sender<()>) {
    let (say, begun) = channel();
    let (go, gone) = channel::<()>();
    let gone = Mutex::new(gone);
    let cache = builder
        .time_to_live(3600 * 1000 * MS)
        .refresh_after(0.0)
        .refresh_with(move |key: &u64| {
            say.send(()).expect("the test listens");
            heard(&gone.lock().expect("whole"), "the origin answers");
            Ok::<_, String>(*key + 100)
        })
        .build()
        .expect("valid");
    (cache, begun, go)
}

#[cfg(feature = "system")]
#[test]
fn dropping_the_last_handle_in_mid_refresh_does_not_wait() {
    in_time("the drop returns", || {
        let (cache, begun, go) = refreshed_on_demand(numbers());
        cache.insert(1, 1);
        cache.get(&1);
        heard(&begun, "the refresh has begun");
        drop(cache);
        go.send(()).expect("the refresher still waits");
    });
}

/// The refresher needs the runtime's only thread, which waited for the refresher.
#[cfg(feature = "system")]
#[test]
fn dropping_the_last_handle_on_a_current_thread_runtime_in_mid_refresh_is_no_deadlock() {
    in_time("the drop returns", || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .expect("a runtime");
        let handle = runtime.handle().clone();
        let (say, begun) = channel();
        let (answered, answer) = channel();
        let cache = numbers()
            .refresh_after(0.0)
            .time_to_live(3600 * 1000 * MS)
            .refresh_with(move |key: &u64| {
                let (done, task_done) = channel();
                let key = *key;
                handle.spawn(async move { done.send(key + 100).expect("it waits") });
                say.send(()).expect("the test listens");
                let value = heard(&task_done, "the task has run");
                answered.send(value).expect("the test listens");
                Ok::<_, String>(value)
            })
            .build()
            .expect("valid");
        runtime.block_on(async move {
            cache.insert(1, 1);
            cache.get(&1);
            heard(&begun, "the refresh has begun");
            drop(cache);
            tokio::task::yield_now().await;
            until("the refresher is answered", || answer.try_recv().is_ok());
        });
    });
}

#[cfg(feature = "system")]
#[test]
fn a_slow_listener_delays_no_drop_and_still_gets_every_event() {
    in_time("all are told", || {
        let (go, gone) = channel::<()>();
        let gone = Mutex::new(gone);
        let told = Arc::new(Mutex::new(Vec::new()));
        let tell = Arc::clone(&told);
        let cache: Numbers = numbers()
            .eviction_listener(move |removal: Removal<u64, u64>| {
                heard(&gone.lock().expect("whole"), "the test goes on");
                tell.lock()
                    .expect("whole")
                    .push((removal.key, removal.cause));
            })
            .build()
            .expect("valid");
        (0..3).for_each(|key| cache.insert(key, key));
        cache.remove(&0);
        drop(cache);
        assert!(told.lock().expect("whole").is_empty());
        (0..3).for_each(|_| go.send(()).expect("the listener lives"));
        until("all are told", || told.lock().expect("whole").len() == 3);
        let mut told = told.lock().expect("whole").clone();
        told.sort_unstable_by_key(|(key, _)| *key);
        assert_eq!(told[0], (0, RemovalCause::Removed));
        assert_eq!(told[2], (2, RemovalCause::Closed));
    });
}

/// A cache, and what its user code drops: the last handle.
struct Last {
    handle: Arc<Mutex<Option<Numbers>>>,
    dropped: Receiver<()>,
}

/// `build` gets what drops the last handle, from wherever it is called.
fn last(build: impl FnOnce(Box<dyn Fn() + Send + Sync>) -> Numbers) -> Last {
    let handle: Arc<Mutex<Option<Numbers>>> = Arc::default();
    let own = Arc::clone(&handle);
    let (say, dropped) = channel();
    let cache = build(Box::new(move || {
        let cache = own.lock().expect("whole").take();
        if let Some(cache) = cache {
            drop(cache);
            say.send(()).expect("the test listens");
        }
    }));
    *handle.lock().expect("whole") = Some(cache);
    Last { handle, dropped }
}

impl Last {
    fn with(&self, act: impl FnOnce(&Numbers)) {
        let cache = self.handle.lock().expect("whole").clone();
        // Only the stored handle stays.
        let weak = cache.expect("not dropped yet").downgrade();
        if let Some(cache) = weak.upgrade() {
            act(&cache);
        }
    }
}

#[cfg(feature = "system")]
#[test]
fn the_listener_or_the_refresher_may_drop_the_last_handle() {
    in_time("the handle is dropped", || {
        let told = Arc::new(AtomicUsize::new(0));
        let tell = Arc::clone(&told);
        let listening = last(|drop_it| {
            numbers()
                .eviction_listener(move |_| {
                    tell.fetch_add(1, SeqCst);
                    drop_it();
                })
                .build()
                .expect("valid")
        });
        listening.with(|cache| {
            (0..3).for_each(|key| cache.insert(key, key));
            cache.remove(&0);
        });
        heard(&listening.dropped, "the listener has dropped it");
        until("all are told", || told.load(SeqCst) == 3);
        let refreshing = last(|drop_it| {
            numbers()
                .time_to_live(3600 * 1000 * MS)
                .refresh_after(0.0)
                .refresh_with(move |key: &u64| {
                    drop_it();
                    Ok::<_, String>(*key)
                })
                .build()
                .expect("valid")
        });
        refreshing.with(|cache| {
            cache.insert(1, 1);
            cache.get(&1);
        });
        heard(&refreshing.dropped, "the refresher has dropped it");
    });
}

#[test]
fn a_loader_may_drop_the_last_handle_but_its_callers() {
    let told = Arc::new(AtomicUsize::new(0));
    let tell = Arc::clone(&told);
    let cache: Numbers = numbers()
        .clock(ManualClock::new())
        .driver(Driver::Manual)
        .eviction_listener(move |_| {
            tell.fetch_add(1, SeqCst);
        })
        .build()
        .expect("valid");
    cache.insert(1, 1);
    let handle = Mutex::new(Some(cache.clone()));
    let weak = cache.downgrade();
    drop(cache);
    let caller = weak.upgrade().expect("one is left");
    let loaded = caller.get_or_load(2, || {
        drop(handle.lock().expect("whole").take());
        2_u64
    });
    drop(caller);
    assert_eq!((loaded, told.load(SeqCst)), (2, 2));
    assert!(weak.upgrade().is_none());
}

/// An async listener that takes a sleep for each event and notes its key.
fn slow_listener(
    told: &Arc<Mutex<Vec<u64>>>,
) -> impl Fn(Removal<u64, u64>) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send>>
+ Send
+ Sync
+ 'static {
    let told = Arc::clone(told);
    move |removal| {
        let told = Arc::clone(&told);
        Box::pin(async move {
            sleep(MS).await;
            told.lock().expect("whole").push(removal.key);
        })
    }
}

fn with_slow_listener(told: &Arc<Mutex<Vec<u64>>>) -> Numbers {
    numbers()
        .clock(ManualClock::new())
        .driver(Driver::Task)
        .eviction_listener_async(slow_listener(told))
        .build()
        .expect("valid")
}

#[test]
fn close_async_delivers_everything_though_no_task_was_spawned() {
    in_time("it is closed", || {
        let told = Arc::new(Mutex::new(Vec::new()));
        let cache = with_slow_listener(&told);
        (0..20).for_each(|key| cache.insert(key, key));
        cache.remove(&0);
        block_on(cache.close_async());
        let mut told = told.lock().expect("whole").clone();
        assert_eq!(told[0], 0);
        told.sort_unstable();
        assert_eq!(told, (0..20).collect::<Vec<_>>());
        cache.insert(1, 1);
        assert!(cache.is_empty());
        block_on(cache.close_async());
    });
}

#[test]
fn close_async_dropped_at_any_await_loses_nothing() {
    in_time("it is closed", || {
        for polls in 1..30 {
            let told = Arc::new(Mutex::new(Vec::new()));
            let cache = with_slow_listener(&told);
            (0..10).for_each(|key| cache.insert(key, key));
            {
                let mut close = pin!(cache.close_async());
                for _ in 0..polls {
                    let mut context = Context::from_waker(Waker::noop());
                    if close.as_mut().poll(&mut context).is_ready() {
                        break;
                    }
                    thread::sleep(MS / 4);
                }
            }
            block_on(cache.close_async());
            let mut told = told.lock().expect("whole").clone();
            told.sort_unstable();
            assert_eq!(told, (0..10).collect::<Vec<_>>(), "after {polls} polls");
        }
    });
}

#[test]
fn close_async_goes_on_where_a_task_stopped_that_is_gone_or_never_polled_again() {
    in_time("it is closed", || {
        for keep in [false, true] {
            let told = Arc::new(Mutex::new(Vec::new()));
            let cache = with_slow_listener(&told);
            (0..10).for_each(|key| cache.insert(key, key));
            cache.remove(&3);
            let mut drive = Box::pin(cache.drive(sleep));
            let mut context = Context::from_waker(Waker::noop());
            assert!(drive.as_mut().poll(&mut context).is_pending());
            let kept = keep.then_some(drive);
            block_on(cache.close_async());
            assert_eq!(told.lock().expect("whole").len(), 10);
            assert_eq!(told.lock().expect("whole")[0], 3);
            drop(kept);
        }
    });
}

#[test]
fn a_task_beside_close_async_shares_the_events_with_it() {
    in_time("both end", || {
        let told = Arc::new(Mutex::new(Vec::new()));
        let cache = with_slow_listener(&told);
        (0..50).for_each(|key| cache.insert(key, key));
        let drive = cache.drive(sleep);
        let task = thread::spawn(move || block_on(drive));
        cache.remove(&3);
        block_on(cache.close_async());
        task.join().expect("no panic");
        let mut told = told.lock().expect("whole").clone();
        told.sort_unstable();
        assert_eq!(told, (0..50).collect::<Vec<_>>());
    });
}

#[test]
fn the_task_delivers_the_last_events_when_the_last_handle_goes() {
    in_time("the task ends", || {
        let told = Arc::new(Mutex::new(Vec::new()));
        let cache = with_slow_listener(&told);
        (0..10).for_each(|key| cache.insert(key, key));
        let drive = cache.drive(sleep);
        // Never polled so far.
        drop(cache);
        block_on(drive);
        assert_eq!(told.lock().expect("whole").len(), 10);
        let told = Arc::new(Mutex::new(Vec::new()));
        let cache = with_slow_listener(&told);
        (0..10).for_each(|key| cache.insert(key, key));
        let mut drive = Box::pin(cache.drive(sleep));
        let mut context = Context::from_waker(Waker::noop());
        assert!(drive.as_mut().poll(&mut context).is_pending());
        drop(cache);
        block_on(drive);
        assert_eq!(told.lock().expect("whole").len(), 10);
    });
}

/// Somebody must do it: whoever goes last.
#[test]
fn a_task_that_is_dropped_after_the_last_handle_empties_the_cache() {
    let told = Arc::new(AtomicUsize::new(0));
    let tell = Arc::clone(&told);
    let cache: Numbers = numbers()
        .clock(ManualClock::new())
        .driver(Driver::Task)
        .eviction_listener(move |_| {
            tell.fetch_add(1, SeqCst);
        })
        .build()
        .expect("valid");
    (0..10).for_each(|key| cache.insert(key, key));
    let mut drive = Box::pin(cache.drive(|_| std::future::pending()));
    let mut context = Context::from_waker(Waker::noop());
    assert!(drive.as_mut().poll(&mut context).is_pending());
    drop(cache);
    assert_eq!(told.load(SeqCst), 0, "the task is to do it");
    drop(drive);
    assert_eq!(told.load(SeqCst), 10);
}

#[test]
fn a_listener_may_await_close_async() {
    in_time("it is closed", || {
        let slot: Arc<OnceLock<WeakCache<u64, u64>>> = Arc::default();
        let own = Arc::clone(&slot);
        let told = Arc::new(AtomicUsize::new(0));
        let tell = Arc::clone(&told);
        let cache: Numbers = numbers()
            .clock(ManualClock::new())
            .driver(Driver::Task)
            .eviction_listener_async(move |_| {
                let cache = own.get().and_then(WeakCache::upgrade);
                let tell = Arc::clone(&tell);
                async move {
                    if let Some(cache) = cache {
                        cache.close_async().await;
                    }
                    tell.fetch_add(1, SeqCst);
                }
            })
            .build()
            .expect("valid");
        assert!(slot.set(cache.downgrade()).is_ok());
        (0..5).for_each(|key| cache.insert(key, key));
        cache.remove(&0);
        block_on(cache.drive(sleep));
        assert_eq!(told.load(SeqCst), 5);
        block_on(cache.close_async());
    });
}

/// It took the threads' alarm, and left them asleep for good when it was dropped.
#[cfg(feature = "system")]
#[test]
fn a_task_beside_threads_ends_at_once_and_leaves_them_awake() {
    in_time("it has expired", || {
        let cache: Numbers = numbers().build().expect("valid");
        let mut drive = Box::pin(cache.drive(sleep));
        let mut context = Context::from_waker(Waker::noop());
        assert!(drive.as_mut().poll(&mut context).is_ready());
        drop(drive);
        cache.insert_with_ttl(1, 1, 5 * MS);
        until("it has expired", || cache.is_empty());
    });
}

/// With threads, it waits for a refresh in progress, and leaves the thread to others meanwhile.
#[cfg(feature = "system")]
#[test]
fn close_async_waits_for_threads_without_blocking() {
    in_time("it is closed", || {
        let (cache, begun, go) = refreshed_on_demand(numbers());
        cache.insert(1, 1);
        cache.get(&1);
        heard(&begun, "the refresh has begun");
        let closed = AtomicBool::new(false);
        block_on(async {
            let mut close = pin!(cache.close_async());
            let first = poll_fn(|context| Poll::Ready(close.as_mut().poll(context))).await;
            assert!(first.is_pending(), "the refresh is in progress");
            go.send(()).expect("the refresher waits");
            close.await;
            closed.store(true, SeqCst);
        });
        assert!(closed.load(SeqCst));
        assert_eq!(cache.stats().refreshes_running, 0);
        assert!(cache.is_empty());
    });
}

#[cfg(feature = "system")]
#[test]
fn close_waits_for_a_blocking_listener_and_for_refreshes() {
    in_time("it is closed", || {
        let told = Arc::new(AtomicUsize::new(0));
        let tell = Arc::clone(&told);
        let cache: Numbers = numbers()
            .listener_queue(4, OnFull::Wait)
            .eviction_listener(move |_| {
                thread::sleep(MS);
                tell.fetch_add(1, SeqCst);
            })
            .build()
            .expect("valid");
        (0..100).for_each(|key| cache.insert(key, key));
        cache.close();
        assert_eq!(told.load(SeqCst), 100);
    });
}

/// Three events of a cache on a driver: how many were told, counted whenever somebody asks.
fn three_events(driver: impl Into<Driver>, is_async: bool) -> (Numbers, Arc<AtomicUsize>) {
    let told = Arc::new(AtomicUsize::new(0));
    let tell = Arc::clone(&told);
    let builder = numbers().clock(ManualClock::new()).driver(driver);
    let builder = if is_async {
        builder.eviction_listener_async(move |_| {
            let tell = Arc::clone(&tell);
            async move {
                tell.fetch_add(1, SeqCst);
            }
        })
    } else {
        builder.eviction_listener(move |_| {
            tell.fetch_add(1, SeqCst);
        })
    };
    let cache = builder.build().expect("valid");
    (0..3).for_each(|key| cache.insert(key, key));
    cache.remove(&0);
    (cache, told)
}

#[test]
fn a_cache_that_ends_before_its_task_sees_it_loses_no_event() {
    for (is_async, is_polled) in [(true, true), (true, false), (false, true), (false, false)] {
        let what = format!("async {is_async}, polled {is_polled}");
        let driver = SharedDriver::task();
        let mut drive = Box::pin(driver.drive(|_| std::future::pending()));
        if is_polled {
            turn(&mut drive);
        }
        let (cache, told) = three_events(&driver, is_async);
        drop(cache);
        assert_eq!(told.load(SeqCst), 0, "the task is to do it: {what}");
        turn(&mut drive);
        assert_eq!(told.load(SeqCst), 3, "{what}");
        drop(driver);
        block_on(drive);
    }
}

#[test]
fn a_cache_that_is_built_before_the_shared_future_and_ends_before_its_first_poll_loses_no_event() {
    for is_async in [true, false] {
        let driver = SharedDriver::task();
        let (cache, told) = three_events(&driver, is_async);
        let drive = driver.drive(|_| std::future::pending());
        drop((cache, driver));
        assert_eq!(told.load(SeqCst), 0, "the task is to do it");
        block_on(drive);
        assert_eq!(told.load(SeqCst), 3, "async {is_async}");
    }
}

/// As with a cache's own task: whoever goes last does what can be done without waiting.
#[test]
fn without_a_future_of_the_shared_driver_the_drop_ends_the_cache() {
    let driver = SharedDriver::task();
    drop(driver.drive(|_| std::future::pending()));
    let (cache, told) = three_events(&driver, false);
    drop(cache);
    assert_eq!(told.load(SeqCst), 3, "nobody else is there");
    let drive = driver.drive(|_| std::future::pending());
    let (cache, told) = three_events(&driver, false);
    drop(cache);
    assert_eq!(told.load(SeqCst), 0);
    drop(drive);
    assert_eq!(told.load(SeqCst), 3, "dropped unpolled, it was the last");
}

#[test]
fn a_task_that_was_never_polled_ends_its_cache_all_the_same() {
    for is_async in [true, false] {
        let (cache, told) = three_events(Driver::Task, is_async);
        let drive = cache.drive(|_| std::future::pending());
        drop(cache);
        assert_eq!(told.load(SeqCst), 0, "the task is to do it");
        block_on(drive);
        assert_eq!(told.load(SeqCst), 3, "async {is_async}");
    }
}
