//! The watch counts the dead that are still held, and their bytes.

use super::super::mortal;
use crate::clock;
use crate::heap;

/// The interval of the watch: its own resolution.
const EVERY_NS: u64 = 1_000_000;

/// The times of a phase, on the monotonic clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    /// First and last deadline.
    pub(super) first_ns: u64,
    pub(super) last_ns: u64,
    /// Reads under way in between are counted.
    pub(super) reads_end_ns: u64,
    pub(super) give_up_ns: u64,
}

/// The counts before the cache existed, and those that it was filled with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Base {
    pub(super) alive: i64,
    pub(super) bytes: isize,
    pub(super) dying: u64,
    pub(super) live: u64,
}

/// The results of the watch; times are after the last deadline and negative before it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Watched {
    pub(super) dropped_99_ns: Option<i64>,
    pub(super) dropped_all_ns: Option<i64>,
    pub(super) bytes_90_ns: Option<i64>,
    pub(super) dead_left: i64,
    /// Of the bytes that the dead had, their share of all by number.
    pub(super) dead_bytes_left: Option<f64>,
    pub(super) full_bytes: Option<isize>,
}

/// Looks until everything is back, but not before the reads have ended.
pub(super) fn watch(base: Base, times: Times) -> Watched {
    let full_bytes = heap::counted().map(|bytes| bytes - base.bytes);
    let dead_share = base.dying as f64 / (base.dying + base.live) as f64;
    let mut watched = Watched {
        full_bytes,
        ..Watched::default()
    };
    let mut at = times.first_ns;
    loop {
        at += EVERY_NS;
        clock::sleep_until(at);
        let now = clock::mono_ns();
        let after = now as i64 - times.last_ns as i64;
        let dead = mortal::alive() - base.alive - base.live as i64;
        watched.dead_left = dead.max(0);
        watched.dead_bytes_left = heap::counted().zip(full_bytes).map(|(bytes, full)| {
            let back = (full - (bytes - base.bytes)) as f64;
            1.0 - back / (full as f64 * dead_share).max(1.0)
        });
        let few_bytes_left = watched.dead_bytes_left.is_some_and(|left| left <= 0.1);
        for (slot, reached) in [
            (
                &mut watched.dropped_99_ns,
                dead <= (base.dying / 100) as i64,
            ),
            (&mut watched.dropped_all_ns, dead <= 0),
            (&mut watched.bytes_90_ns, few_bytes_left),
        ] {
            if reached {
                slot.get_or_insert(after);
            }
        }
        let complete = watched.dropped_all_ns.is_some()
            && (watched.bytes_90_ns.is_some() || full_bytes.is_none());
        if now >= times.give_up_ns || (complete && now >= times.reads_end_ns) {
            return watched;
        }
    }
}
