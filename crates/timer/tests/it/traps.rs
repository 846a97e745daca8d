//! Bugs that have shipped in other timers, one named test each.
//!
//! The numbers are the rows of a list of such bugs, from which this crate was designed. Most of the
//! bugs come from wheels that count slots or rounds. This crate compares absolute ticks instead,
//! but the tests run against every queue all the same.
//!
//! Rows that cannot go wrong on this floor, and the floor that owns them:
//!
//! - 13 (fired but not yet deleted) and 14 (delete and insert change places): timer and entry under
//!   one lock. `store` holds both, `keyspace` the lock.
//! - 17 (drain and callbacks wait for each other): no callback runs here but the sink, which cannot
//!   reach the queue. `keyspace` publishes after the lock, `server` delivers after that.
//! - 21 (wall clock in deadlines): this crate reads no clock. `server` owns the clock, `keyspace`
//!   turns wall time into ticks at the edge.
//! - 26 (lost wake-up), the half that is about publishing outside the lock: `keyspace` publishes
//!   under it, `server` sleeps. The half that is about the value is tested here.
//! - 33 (a hash as identity): `store` compares keys.
//! - 35, the half that is about calendars and repeated timers: their owners. Sums are tested here.
//! - 36 (benchmark ids that collide): `lab`.

mod clocks;
mod early;
mod late;
mod memory;
mod moves;
mod names;
mod roll_over;
mod sinks;

use tidewheel_timer::{TimerId, TimerQueue, TimerSet};

/// Lengths of slots and turns of all queues here, and of wheels elsewhere.
const SPANS: [u64; 12] = [
    60,
    64,
    256,
    300,
    512,
    4096,
    1 << 16,
    1 << 17,
    1 << 24,
    1 << 30,
    1 << 32,
    1 << 36,
];

/// Everything that fires at `now`.
fn fired<Q: TimerQueue>(timers: &mut TimerSet<Q>, now: u64) -> Vec<TimerId> {
    let mut ids = Vec::new();
    let progress = timers.advance(now, u32::MAX, |id| ids.push(id));
    assert!(!progress.backlog);
    timers.validate();
    ids
}

/// The one pending timer fires at `at` and not a tick sooner.
fn fires_at<Q: TimerQueue>(timers: &mut TimerSet<Q>, id: TimerId, at: u64) {
    assert_eq!(fired(timers, at - 1), [], "early, before {at}");
    assert_eq!(fired(timers, at), [id], "late, at {at}");
}
