//! What several files of tests begin with: caches on a clock moved by hand, loaders that fail or
//! must not run, waits for other threads.

use std::sync::mpsc;
use std::time::Duration;

use tidewheel::{Builder, Cache, Driver, ManualClock, OnFull};

/// The clock's tick.
pub(crate) const MS: Duration = Duration::from_millis(1);

/// Options of a small cache whose entries live for 100 ms.
pub(crate) fn manual(clock: &ManualClock) -> Builder<u64, u64> {
    Cache::builder()
        .max_capacity(1000)
        .time_to_live(100 * MS)
        .clock(clock.clone())
        .driver(Driver::Manual)
}

/// Waits until a condition holds, at most ten seconds.
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let (_alive, never) = mpsc::channel::<()>();
    for _ in 0..10_000 {
        if holds() {
            return;
        }
        // A pause of a millisecond: nobody ever sends.
        let pause = never.recv_timeout(MS);
        assert!(pause.is_err());
    }
    panic!("waited in vain until {what}");
}

/// Returns what another thread says; a panic if it says nothing.
pub(crate) fn heard<T>(from: &mpsc::Receiver<T>, what: &str) -> T {
    match from.recv_timeout(Duration::from_secs(20)) {
        Ok(heard) => heard,
        Err(_) => panic!("waited in vain until {what}"),
    }
}

/// A cache whose writers wait while `limit` events are in the listener's queue.
pub(crate) fn full_at(limit: usize) -> Builder<u64, u64> {
    Cache::builder()
        .max_capacity(1000)
        .no_default_ttl()
        .clock(ManualClock::new())
        .driver(Driver::Manual)
        .listener_queue(limit, OnFull::Wait)
}

/// A loader for what is there already.
pub(crate) fn unreached() -> u64 {
    unreachable!("the value is there")
}

/// A loader's error.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Failure(pub(crate) u32);
