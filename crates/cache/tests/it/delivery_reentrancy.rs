//! Delivery by a thread that is in the midst of user code: it neither waits for a listener that
//! waits for it, nor for itself, and what it caused is told all the same.

use std::cell::Cell;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::pin;
use std::sync::mpsc::channel;
use std::task::{Context, Waker};
use std::thread;
use std::time::Duration;

use tidewheel::{Builder, Cache, Driver, Removal};

use crate::loading::{Own, Told, Valid, full_at, heard};

type Numbers = Cache<u64, u64>;

/// A cache of a few entries whose listener notes whom it was told of, after `first`.
fn told_by(
    builder: Builder<u64, u64>,
    first: impl Fn(&Removal<u64, u64>) + Send + Sync + 'static,
) -> (Numbers, Told) {
    let told = Told::default();
    let tell = told.clone();
    let cache = builder
        .eviction_listener(move |removal: Removal<u64, u64>| {
            first(&removal);
            tell.tell(removal);
        })
        .valid();
    for key in 0..10 {
        cache.insert(key, key);
    }
    (cache, told)
}

/// Runs `act` on a thread of its own; fails if that never ends.
fn ends(what: &str, act: impl FnOnce() + Send + 'static) {
    let (say, over) = channel();
    let thread = thread::spawn(move || {
        act();
        say.send(()).expect("the test waits");
    });
    heard(&over, what);
    thread.join().expect("no panic");
}

/// The task woke itself at once, again and again, for an event that this thread may not deliver.
#[test]
fn a_task_that_is_polled_from_within_a_loader_or_a_listener_leaves_them_the_thread() {
    ends("the loader is done", || {
        let (cache, told_of) = told_by(full_at(100).driver(Driver::Task), |_| {});
        let slept = Cell::new(Duration::MAX);
        let mut drive = pin!(cache.drive(|sleep| {
            slept.set(sleep);
            std::future::pending()
        }));
        let mut context = Context::from_waker(Waker::noop());
        let loaded = cache.get_or_load(70, || {
            cache.remove(&5);
            for _ in 0..3 {
                assert!(drive.as_mut().poll(&mut context).is_pending());
            }
            71_u64
        });
        assert_eq!((loaded, told_of.keys()), (71, vec![]));
        assert!(slept.get() <= Duration::from_millis(1), "it looks again");
        assert!(drive.as_mut().poll(&mut context).is_pending());
        assert_eq!(told_of.keys(), [5]);
    });
    ends("the listener is done", || {
        let (slot, own) = Own::pair();
        let (cache, told_of) = told_by(full_at(100).driver(Driver::Task), move |removal| {
            let cache = own.cache();
            if removal.key == 5 {
                cache.remove(&6);
                let mut drive = pin!(cache.drive(|_| std::future::pending()));
                let mut context = Context::from_waker(Waker::noop());
                assert!(drive.as_mut().poll(&mut context).is_pending());
            }
        });
        slot.set(&cache);
        cache.remove(&5);
        cache.advance(cache.now(), u32::MAX);
        cache.advance(cache.now(), u32::MAX);
        assert_eq!(told_of.keys(), [5, 6]);
    });
}

/// Nobody delivered the events of a cache that was closed within a loader or closure.
#[test]
fn a_loader_or_closure_that_closes_its_cache_and_panics_leaves_no_event_untold() {
    let attempts: [fn(&Numbers); 3] = [
        |cache| {
            cache.get_or_load(70, || -> u64 {
                cache.close();
                resume_unwind(Box::new("meant"))
            });
        },
        |cache| {
            cache.update(&5, |_| {
                cache.close();
                resume_unwind(Box::new("meant"))
            });
        },
        |cache| {
            let mut load = pin!(cache.get_or_load_async(70, async {
                cache.close();
                resume_unwind(Box::new("meant"));
                #[allow(unreachable_code, reason = "the loader's type")]
                71_u64
            }));
            let _ = load.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        },
    ];
    for attempt in attempts {
        let (cache, told_of) = told_by(full_at(1), |_| {});
        assert!(catch_unwind(AssertUnwindSafe(|| attempt(&cache))).is_err());
        assert_eq!(told_of.keys().len(), 10);
    }
}
