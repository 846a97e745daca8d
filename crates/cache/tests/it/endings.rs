//! The end of a cache with threads: `close` waits, `close_async` waits without blocking, and
//! dropping the last handle does not wait. (`drives.rs` has the ends of caches that a task drives.)

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::task::Poll;
use std::thread;

use tidewheel::{Builder, Cache, OnFull};

use crate::loading::{MS, Own, Told, Valid, heard, in_time, until};
use crate::manual_poll::block_on;

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
