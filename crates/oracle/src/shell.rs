//! The shell of a keyspace under test.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use tidewheel_keyspace::{Garbage, Hooks, Served};

/// What the keyspace asks of its shell: garbage is dropped, and the stopwatch always moves.
#[derive(Debug, Default)]
pub(crate) struct Shell {
    stopwatch_ns: AtomicU64,
    pub(crate) served: Arc<Mutex<Vec<Served>>>,
}

impl Hooks for Shell {
    fn wake(&self, _shard: usize, _deadline: u64) {}

    fn reclaim(&self, garbage: Garbage) {
        drop(garbage);
    }

    fn stopwatch_ns(&self) -> u64 {
        self.stopwatch_ns.fetch_add(1, Relaxed)
    }

    fn served(&self, served: Served) {
        self.served.lock().expect("no panic").push(served);
    }
}
