//! Caches that several files of tests begin with.

use std::time::Duration;

use tidewheel::{Builder, Cache, Driver, ManualClock, OnFull};

/// A thousand entries that live for 100 ms.
pub(crate) fn manual(clock: &ManualClock) -> Builder<u64, u64> {
    Cache::builder()
        .max_capacity(1000)
        .time_to_live(Duration::from_millis(100))
        .clock(clock.clone())
        .driver(Driver::Manual)
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
