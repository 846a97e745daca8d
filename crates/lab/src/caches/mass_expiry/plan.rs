//! What a run of `caches mass-expiry` does, and when what begins and ends.

use super::super::mortal::Mortal;
use super::super::subject::Subject;

pub(super) type Cache = dyn Subject<u64, Mortal>;

/// What a run does.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    pub(super) entries: u64,
    pub(super) live: u64,
    pub(super) window_ns: u64,
    /// Reads count until so long after the last deadline.
    pub(super) tail_ns: u64,
    /// The watch is given up so long after the last deadline.
    pub(super) watch_ns: u64,
    pub(super) interleaved: bool,
    pub(super) seed: u64,
}

/// When what begins and ends, on the monotonic clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    /// First and last deadline.
    pub(super) first_ns: u64,
    pub(super) last_ns: u64,
    /// Reads under way in between are counted.
    pub(super) reads_end_ns: u64,
    pub(super) give_up_ns: u64,
}
