//! The worker threads of caches: none keeps the work of one cache waiting for another's, or for a
//! listener.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use tidewheel::{Builder, Cache, Driver, OnFull, SharedDriver};

use crate::loading::{MS, heard, in_time};

/// Every read asks for a refresh.
fn stale() -> Builder<u64, u64> {
    Cache::builder()
        .unbounded()
        .time_to_live(3600 * 1000 * MS)
        .refresh_after(0.0)
        .refresh_parallelism(1)
}

/// With two threads the other one would come to the second cache, whatever the first one does.
#[test]
fn a_lone_refresh_thread_goes_from_cache_to_cache() {
    in_time("both are refreshed", || {
        let driver = SharedDriver::threads_named("lone", 1);
        let (go, gone) = channel::<()>();
        let (say, said) = channel();
        let first = Mutex::new(Some(gone));
        let run = say.clone();
        let long = stale()
            .driver(&driver)
            .refresh_with(move |key: &u64| {
                run.send(("long", *key)).expect("heard");
                if let Some(gone) = first.lock().expect("whole").take() {
                    let _ = gone.recv();
                }
                Ok::<_, String>(*key)
            })
            .build()
            .expect("valid");
        let short = stale()
            .driver(&driver)
            .refresh_with(move |key: &u64| {
                say.send(("short", *key)).expect("heard");
                Ok::<_, String>(*key)
            })
            .build()
            .expect("valid");
        let ask = |cache: &Cache<u64, u64>, key| {
            cache.insert(key, key);
            assert_eq!(cache.get(&key), Some(key));
        };
        ask(&long, 0);
        assert_eq!(heard(&said, "the first runs"), ("long", 0));
        (1..5).for_each(|key| ask(&long, key));
        ask(&short, 0);
        drop(go);
        let two = [heard(&said, "the next"), heard(&said, "the one after")];
        assert!(two.contains(&("short", 0)), "it waits for all: {two:?}");
    });
}

/// A listener that says when it is called, and returns when the other end is dropped.
fn stuck() -> (impl Fn(), Receiver<()>, Sender<()>) {
    let (say, called) = channel();
    let (go, gone) = channel::<()>();
    let gone = Mutex::new(gone);
    let listen = move || {
        // The test may be over.
        let _ = say.send(());
        let _ = gone.lock().expect("whole").recv();
    };
    (listen, called, go)
}

/// What it stores over an old value causes events, and the queue is full.
#[test]
fn a_refresh_thread_waits_for_no_listener() {
    in_time("all are refreshed", || {
        let (listen, called, go) = stuck();
        let (say, said) = channel();
        let cache = stale()
            .eviction_listener(move |_| listen())
            .listener_queue(1, OnFull::Wait)
            .refresh_with(move |key: &u64| {
                say.send(*key).expect("heard");
                Ok::<_, String>(*key)
            })
            .build()
            .expect("valid");
        (0..4).for_each(|key| cache.insert(key, key));
        let writer = cache.clone();
        let writer = std::thread::spawn(move || writer.invalidate(&0));
        heard(&called, "the listener is called");
        for key in 1..4 {
            assert_eq!(cache.get(&key), Some(key));
            assert_eq!(heard(&said, "the listener is not waited for"), key);
        }
        drop(go);
        writer.join().expect("no panic");
    });
}

/// Removes a key of another cache where it is dropped.
struct Remover(Cache<u64, u64>, u64, Sender<u64>);

impl Drop for Remover {
    fn drop(&mut self) {
        self.0.invalidate(&self.1);
        // The test may be over.
        let _ = self.2.send(self.1);
    }
}

/// A value's `Drop` is user code that runs on the expiry thread, and neither in a listener nor in a
/// loader.
#[test]
fn an_expiry_thread_waits_for_no_listener_of_another_cache() {
    in_time("all have expired", || {
        let (listen, called, go) = stuck();
        let other = Cache::<u64, u64>::builder()
            .unbounded()
            .no_default_ttl()
            .eviction_listener(move |_| listen())
            .listener_queue(1, OnFull::Wait)
            .driver(Driver::Manual)
            .build()
            .expect("valid");
        (0..4).for_each(|key| other.insert(key, key));
        let writer = other.clone();
        let writer = std::thread::spawn(move || writer.invalidate(&0));
        heard(&called, "the listener is called");
        let (say, said) = channel();
        let cache = Cache::<u64, Arc<Remover>>::builder()
            .unbounded()
            .time_to_live(5 * MS)
            .build()
            .expect("valid");
        for key in 1..4 {
            cache.insert(key, Arc::new(Remover(other.clone(), key, say.clone())));
            assert_eq!(heard(&said, "the listener is not waited for"), key);
        }
        drop(go);
        writer.join().expect("no panic");
    });
}
