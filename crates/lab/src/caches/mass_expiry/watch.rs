//! The watch over the dead: how many are still held, and how many bytes.

use super::super::mortal;
use super::plan::{Plan, Times};
use crate::clock;
use crate::heap;
use crate::proc;

/// How often the watch looks: its own resolution.
const EVERY_NS: u64 = 1_000_000;

/// What was there before the cache.
#[derive(Clone, Copy, Debug)]
pub(super) struct Base {
    pub(super) alive: i64,
    pub(super) bytes: isize,
}

/// What the watch saw; times are after the last deadline and negative before it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Watched {
    pub(super) dropped_99_ns: Option<i64>,
    pub(super) dropped_all_ns: Option<i64>,
    pub(super) bytes_90_ns: Option<i64>,
    pub(super) dead_left: i64,
    /// Of the bytes that the dead had, their share of all by number.
    pub(super) dead_bytes_left: Option<f64>,
    pub(super) full_bytes: Option<isize>,
    pub(super) full_rss: Option<u64>,
    pub(super) end_rss: Option<u64>,
}

/// Looks until everything is back, but not before the reads have ended.
pub(super) fn expiry(plan: &Plan, base: Base, times: Times) -> Watched {
    let rss = || proc::rss_bytes(std::process::id());
    let full_bytes = heap::counted().map(|bytes| bytes - base.bytes);
    let dead_share = plan.entries as f64 / (plan.entries + plan.live) as f64;
    let dead_bytes = full_bytes.map(|bytes| bytes as f64 * dead_share);
    let mut watched = Watched {
        full_bytes,
        full_rss: rss(),
        ..Watched::default()
    };
    let mut at = times.first_ns;
    loop {
        at += EVERY_NS;
        clock::sleep_until(at);
        let now = clock::mono_ns();
        let after = now as i64 - times.last_ns as i64;
        let dead = mortal::alive() - base.alive - plan.live as i64;
        let back = heap::counted()
            .zip(full_bytes)
            .map(|(bytes, full)| (full - (bytes - base.bytes)) as f64);
        watched.dead_left = dead.max(0);
        watched.dead_bytes_left = back
            .zip(dead_bytes)
            .map(|(back, dead)| 1.0 - back / dead.max(1.0));
        let reached = |slot: &mut Option<i64>, condition: bool| {
            if condition {
                slot.get_or_insert(after);
            }
        };
        reached(
            &mut watched.dropped_99_ns,
            dead as f64 <= plan.entries as f64 / 100.0,
        );
        reached(&mut watched.dropped_all_ns, dead <= 0);
        reached(
            &mut watched.bytes_90_ns,
            watched.dead_bytes_left.is_some_and(|left| left <= 0.1),
        );
        let complete = watched.dropped_all_ns.is_some()
            && (watched.bytes_90_ns.is_some() || full_bytes.is_none());
        if now >= times.give_up_ns || (complete && now >= times.reads_end_ns) {
            watched.end_rss = rss();
            return watched;
        }
    }
}

/// The same looks, so that the control is disturbed as much, and nothing to see.
pub(super) fn control(base: Base, times: Times) -> Watched {
    let mut at = times.first_ns;
    let mut alive = base.alive;
    while clock::mono_ns() < times.reads_end_ns {
        at += EVERY_NS;
        clock::sleep_until(at);
        alive = alive.max(mortal::alive()).max(heap::allocated() as i64);
    }
    std::hint::black_box(alive);
    Watched::default()
}
