//! What several tests use.

pub(crate) mod watched;

use std::sync::Arc;
use std::time::Duration;

use tidewheel_tasks::{ManualClock, MemoryStore};

pub(crate) const MS: fn(u64) -> Duration = Duration::from_millis;

/// The wall time at which virtual engines begin.
pub(crate) const EPOCH: Duration = Duration::from_secs(1_700_000_000);

/// A clock that is moved by hand, and an engine by its wall time.
pub(crate) fn engine() -> (ManualClock, Arc<MemoryStore>) {
    let clock = ManualClock::new();
    clock.set_wall(EPOCH);
    let store = MemoryStore::with_clock(clock.clone());
    (clock, Arc::new(store))
}

/// Random numbers of a seed.
#[derive(Debug)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (x ^ (x >> 31)) % end
    }

    pub(crate) fn one_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }
}
