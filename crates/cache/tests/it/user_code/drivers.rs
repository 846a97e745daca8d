//! Threads and tasks that drive a cache outlive what panics there.

use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::SeqCst};
use std::task::{Context, Poll, Waker};

use tidewheel::{Cache, Driver, ManualClock};

use super::hooks::*;
use crate::loading::Heeded;

/// Ready when it is polled again.
fn a_poll_later() -> impl Future<Output = ()> {
    let mut polled = false;
    poll_fn(move |_| {
        if std::mem::replace(&mut polled, true) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
}

#[test]
fn the_task_that_drives_outlives_a_clock_that_panics() {
    // At the first reading of a step, of the sleep after it, and of the next step.
    for readings in 0..4 {
        let hands = ManualClock::new();
        let fails = Arc::new(AtomicI64::new(-1));
        let left = Arc::clone(&fails);
        // That many readings, and then one that panics.
        let reads = move || assert_ne!(left.fetch_sub(1, SeqCst), 0, "bang");
        let cache: Cache<u32, u32> = Cache::builder()
            .unbounded()
            .no_default_ttl()
            .clock(Heeded::new(&hands, reads))
            .driver(Driver::Task)
            .valid();
        let mut drive = std::pin::pin!(cache.drive(|_| a_poll_later()));
        let mut context = Context::from_waker(Waker::noop());
        cache.insert_with_ttl(1, 1, 5 * MS);
        cache.insert_with_ttl(2, 2, 5000 * MS);
        hands.advance(5 * MS);
        fails.store(readings, SeqCst);
        for _ in 0..10 {
            assert!(drive.as_mut().poll(&mut context).is_pending());
        }
        assert!(fails.load(SeqCst) < 0, "it was read");
        assert_eq!(cache.len(), 1);
    }
}
