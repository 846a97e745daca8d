//! Helpers for tests of loads: caches on a clock moved by hand, loaders that fail or must not run.

use std::sync::mpsc;
use std::time::Duration;

use tidewheel::{Builder, Cache, Driver, ManualClock};

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

/// A loader for what is there already.
pub(crate) fn unreached() -> u64 {
    unreachable!("the value is there")
}

/// A loader's error.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Failure(pub(crate) u32);
