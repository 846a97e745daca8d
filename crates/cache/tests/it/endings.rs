//! The end of a cache with threads: `close` waits, `close_async` waits without blocking, and
//! dropping the last handle does not wait. (`drives.rs` has the ends of caches that a task drives.)

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::thread;

use tidewheel::{Builder, Cache, Driver, ManualClock, OnFull, RemovalCause};

use crate::loading::{MS, Own, Told, Valid, by_hand, heard, in_time, until};
use crate::manual_poll::{Alarm, block_on, poll, sleep};

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
        .valid();
    (cache, begun, go)
}

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
            .valid();
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

#[test]
fn a_slow_listener_delays_no_drop_and_still_gets_every_event() {
    in_time("all are told", || {
        let (go, gone) = channel::<()>();
        let gone = Mutex::new(gone);
        let told = Told::default();
        let tell = told.clone();
        let cache: Numbers = numbers()
            .eviction_listener(move |removal| {
                heard(&gone.lock().expect("whole"), "the test goes on");
                tell.tell(removal);
            })
            .valid();
        (0..3).for_each(|key| cache.insert(key, key));
        cache.remove(&0);
        drop(cache);
        assert_eq!(told.count(), 0);
        (0..3).for_each(|_| go.send(()).expect("the listener lives"));
        until("all are told", || told.count() == 3);
        let told = told.sorted();
        assert_eq!(told[0], (0, 0, RemovalCause::Removed));
        assert_eq!(told[2], (2, 2, RemovalCause::Closed));
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

#[test]
fn the_listener_or_the_refresher_may_drop_the_last_handle() {
    in_time("the handle is dropped", || {
        let told = Told::default();
        let tell = told.clone();
        let listening = last(|drop_it| {
            numbers()
                .eviction_listener(move |removal| {
                    tell.tell(removal);
                    drop_it();
                })
                .valid()
        });
        listening.with(|cache| {
            (0..3).for_each(|key| cache.insert(key, key));
            cache.remove(&0);
        });
        heard(&listening.dropped, "the listener has dropped it");
        until("all are told", || told.count() == 3);
        let refreshing = last(|drop_it| {
            numbers()
                .time_to_live(3600 * 1000 * MS)
                .refresh_after(0.0)
                .refresh_with(move |key: &u64| {
                    drop_it();
                    Ok::<_, String>(*key)
                })
                .valid()
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
    let told = Told::default();
    let builder = by_hand(&ManualClock::new()).eviction_listener(told.ear());
    let cache: Numbers = builder.valid();
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
    assert_eq!((loaded, told.count()), (2, 2));
    assert!(weak.upgrade().is_none());
}

#[test]
fn a_listener_may_await_close_async() {
    in_time("it is closed", || {
        let (slot, own) = Own::pair();
        let told = Told::default();
        let tell = told.clone();
        let cache: Numbers = numbers()
            .clock(ManualClock::new())
            .driver(Driver::Task)
            .eviction_listener_async(move |removal| {
                let cache = own.get();
                let tell = tell.clone();
                async move {
                    if let Some(cache) = cache {
                        cache.close_async().await;
                    }
                    tell.tell(removal);
                }
            })
            .valid();
        slot.set(&cache);
        (0..5).for_each(|key| cache.insert(key, key));
        cache.remove(&0);
        block_on(cache.drive(sleep));
        assert_eq!(told.count(), 5);
        block_on(cache.close_async());
    });
}

/// It took the threads' alarm, and left them asleep for good when it was dropped.
#[test]
fn a_task_beside_threads_ends_at_once_and_leaves_them_awake() {
    in_time("it has expired", || {
        let cache: Numbers = numbers().valid();
        let mut drive = Box::pin(cache.drive(sleep));
        assert!(poll(drive.as_mut(), &Alarm::new()).is_ready());
        drop(drive);
        cache.insert_with_ttl(1, 1, 5 * MS);
        until("it has expired", || cache.is_empty());
    });
}

/// With threads, it waits for a refresh in progress, and leaves the thread to others meanwhile.
#[test]
fn close_async_waits_for_threads_without_blocking() {
    in_time("it is closed", || {
        let (cache, begun, go) = refreshed_on_demand(numbers());
        cache.insert(1, 1);
        cache.get(&1);
        heard(&begun, "the refresh has begun");
        block_on(async {
            let mut close = pin!(cache.close_async());
            let first = poll_fn(|context| Poll::Ready(close.as_mut().poll(context))).await;
            assert!(first.is_pending(), "the refresh is in progress");
            go.send(()).expect("the refresher waits");
            close.await;
        });
        assert_eq!(cache.stats().refreshes_running, 0);
        assert!(cache.is_empty());
    });
}

#[test]
fn close_waits_for_a_blocking_listener_and_for_refreshes() {
    in_time("it is closed", || {
        let told = Told::default();
        let tell = told.clone();
        let cache: Numbers = numbers()
            .listener_queue(4, OnFull::Wait)
            .eviction_listener(move |removal| {
                thread::sleep(MS);
                tell.tell(removal);
            })
            .valid();
        (0..100).for_each(|key| cache.insert(key, key));
        cache.close();
        assert_eq!(told.count(), 100);
        let (cache, begun, go) = refreshed_on_demand(numbers());
        cache.insert(1, 1);
        cache.get(&1);
        heard(&begun, "the refresh has begun");
        let (say, closed) = channel();
        let closing = cache.clone();
        thread::spawn(move || {
            closing.close();
            let running = closing.stats().refreshes_running;
            say.send(running).expect("the test listens");
        });
        until("its entry has left", || cache.is_empty());
        assert!(closed.recv_timeout(20 * MS).is_err(), "it waits");
        go.send(()).expect("the refresher waits");
        assert_eq!(heard(&closed, "it is closed"), 0);
    });
}

/// On its own thread, and on that of a writer who helps it.
#[test]
fn a_listener_that_closes_its_cache_waits_for_no_refresh() {
    for on_its_own in [true, false] {
        in_time("the close returns", move || {
            let (slot, own) = Own::pair();
            let (say, closed) = channel();
            let builder = numbers().name("ending").listener_queue(1, OnFull::Wait);
            let builder = builder.eviction_listener(move |_| {
                let is_own = thread::current().name() == Some("ending-events");
                let cache = own.get();
                if let Some(cache) = cache.filter(|_| is_own == on_its_own) {
                    cache.close();
                    // Only the first time does anybody listen.
                    let _ = say.send(());
                }
            });
            let (cache, begun, go) = refreshed_on_demand(builder);
            slot.set(&cache);
            cache.insert(1, 1);
            cache.get(&1);
            heard(&begun, "the refresh has begun");
            until("the listener has closed it", || {
                (0..10).for_each(|value| cache.insert(2, value));
                closed.try_recv().is_ok()
            });
            assert_eq!(cache.stats().refreshes_running, 1, "it goes on");
            go.send(()).expect("the refresher waits");
        });
    }
}
