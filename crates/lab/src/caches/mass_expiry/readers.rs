//! A closed-loop reader of live keys, whose histogram is made before any byte is counted.

use std::sync::atomic::{AtomicBool, Ordering};

use super::super::mortal::Mortal;
use super::super::subject::{Key, Subject};
use super::watch::Times;
use crate::clock;
use crate::latency::Latencies;
use crate::rng::Rng;

/// What readers found.
#[derive(Default)]
pub(super) struct Read {
    pub(super) latencies: Latencies,
    pub(super) misses: u64,
    /// From the first deadline on.
    pub(super) cpu_ns: u64,
}

impl Read {
    /// Reads the first `live` keys at random until it is told to stop.
    pub(super) fn run(
        mut self,
        cache: &dyn Subject<u64, Mortal>,
        (live, seed): (u64, u64),
        times: Times,
        stop: &AtomicBool,
    ) -> Self {
        let mut rng = Rng::new(seed);
        let mut cpu_before = None;
        while !stop.load(Ordering::Relaxed) {
            let key = u64::of(rng.below(live));
            let from = clock::mono_ns();
            let found = cache.get(&key);
            let now = clock::mono_ns();
            self.misses += u64::from(found.is_none());
            drop(found);
            // A stall that begins before the end counts, however long it lasts.
            if now >= times.first_ns && from < times.reads_end_ns {
                self.latencies.record(now - from);
                cpu_before.get_or_insert_with(clock::thread_cpu_ns);
            }
        }
        self.cpu_ns = cpu_before.map_or(0, |before| clock::thread_cpu_ns() - before);
        self
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.latencies.add(&other.latencies);
        self.misses += other.misses;
        self.cpu_ns += other.cpu_ns;
    }
}
