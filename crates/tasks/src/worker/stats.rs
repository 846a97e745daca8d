//! A worker's statistics.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use tidewheel_time::Histogram;

/// A worker's counts of past events, and of the claims that it holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Claims that wait for their time in the wheel, or run, or whose end the engine does not know
    /// yet.
    pub held: usize,
    /// The number of those that run.
    pub running: usize,
    /// Claims that were taken.
    pub claimed: u64,
    /// Handlers that were called.
    pub ran: u64,
    /// Runs whose success the engine knows.
    pub done: u64,
    /// Runs that failed and are tried again.
    pub retried: u64,
    /// Runs that failed for the last time.
    pub dead: u64,
    /// The number of failures that were panics, or async runs that were dropped.
    pub panicked: u64,
    /// Ends of runs that the engine refused: the claim's fence was no longer the latest.
    pub refused: u64,
    /// Claims that were not run because their lease had ended.
    pub lapsed: u64,
    /// Claims that were not run because the engine had taken them back: cancelled, moved, or
    /// claimed by another.
    pub recalled: u64,
    /// Claims that were given back: at the end, or because they had been due for a second and no
    /// thread was free.
    pub released: u64,
    /// Leases that were extended, each time.
    pub extended: u64,
    /// Calls of the engine that failed.
    pub errors: u64,
    /// The engine's time less this machine's wall clock, in microseconds.
    pub offset_us: i64,
    /// Times at which that offset came to be more than a second. While it is, nothing is claimed
    /// ahead.
    pub skews: u64,
    /// True if it is so now.
    pub skewed: bool,
    /// The lateness of calls of handlers, by the engine's clock as far as the worker knows it.
    pub lateness: Lateness,
}

/// The lateness of calls of handlers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Lateness {
    /// Half of all runs were late by this at most.
    pub p50: Duration,
    /// 99 of 100.
    pub p99: Duration,
    /// The latest, exactly.
    pub max: Duration,
}

/// Counts while they are written.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) claimed: AtomicU64,
    pub(super) ran: AtomicU64,
    pub(super) done: AtomicU64,
    pub(super) retried: AtomicU64,
    pub(super) dead: AtomicU64,
    pub(super) panicked: AtomicU64,
    pub(super) refused: AtomicU64,
    pub(super) lapsed: AtomicU64,
    pub(super) recalled: AtomicU64,
    pub(super) released: AtomicU64,
    pub(super) extended: AtomicU64,
    pub(super) errors: AtomicU64,
    pub(super) skews: AtomicU64,
    pub(super) late_us: Histogram,
}

impl Counters {
    pub(super) fn record_late(&self, late: Duration) {
        let us = u64::try_from(late.as_micros()).unwrap_or(u64::MAX);
        self.late_us.record(us, 1);
    }

    pub(super) fn read(&self) -> Stats {
        let read = |counter: &AtomicU64| counter.load(Relaxed);
        Stats {
            claimed: read(&self.claimed),
            ran: read(&self.ran),
            done: read(&self.done),
            retried: read(&self.retried),
            dead: read(&self.dead),
            panicked: read(&self.panicked),
            refused: read(&self.refused),
            lapsed: read(&self.lapsed),
            recalled: read(&self.recalled),
            released: read(&self.released),
            extended: read(&self.extended),
            errors: read(&self.errors),
            skews: read(&self.skews),
            lateness: self.lateness(),
            ..Stats::default()
        }
    }

    fn lateness(&self) -> Lateness {
        let counts = self.late_us.read();
        let quantile = |part: f64| {
            let rank = (counts.count() as f64 * part).ceil() as u64;
            Duration::from_micros(counts.at_rank(rank))
        };
        Lateness {
            p50: quantile(0.5),
            p99: quantile(0.99),
            max: Duration::from_micros(counts.max()),
        }
    }
}

/// Adds one.
pub(super) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Relaxed);
}
