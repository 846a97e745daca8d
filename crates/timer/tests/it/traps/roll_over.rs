//! A million timers of one length, across the moment when a coarse slot becomes the present.
//!
//! Elsewhere the slot is split at its start, all of it under one lock, and what is due then waits.

use tidewheel_timer::{HierarchicalWheel, TimerSet};

/// Fires a tick: 333,000 a second.
const RATE: u64 = 333;

/// Records that one tick may touch. A timer is touched three times on its way.
const BUDGET: u32 = 1_024;

/// Ticks that a timer may be late by.
const LATENESS: u64 = 2;

/// Sets `RATE` timers a tick until there are `count`, each `ttl` ahead, so that the middle one is
/// due at `boundary`; then runs a driver that sleeps to `next_deadline` and spends at most `BUDGET`
/// a tick.
fn one_ttl(count: u64, ttl: u64, boundary: u64) {
    let loading = count.div_ceil(RATE);
    let start = boundary - ttl - loading / 2;
    let mut timers = TimerSet::new(HierarchicalWheel::new(start));
    let (mut set, mut now) = (0, start);
    let mut deadlines = Vec::with_capacity(count as usize);
    let mut worst = 0;
    while set < count || !timers.is_empty() {
        if set == count {
            // A driver that has caught up sleeps; it must be woken in time for the splitting, too.
            let next = timers.next_deadline().expect("timers are pending");
            now = next.max(now + 1);
        } else {
            now += 1;
        }
        for _ in 0..RATE.min(count - set) {
            timers.insert(now + ttl, now);
            deadlines.push(now + ttl);
            set += 1;
        }
        let mut fired = 0;
        let progress = timers.advance(now, BUDGET, |_| fired += 1);
        assert!(progress.fired + progress.moved <= BUDGET);
        // They fire in the order of their deadlines, which is that in which they were set.
        let first = deadlines.len() - timers.len() - fired;
        for &deadline in &deadlines[first..first + fired] {
            assert!(deadline <= now, "early");
            worst = worst.max(now - deadline);
        }
        if let Some(&waiting) = deadlines.get(first + fired) {
            worst = worst.max(now.saturating_sub(waiting));
        }
        assert!(
            worst <= LATENESS,
            "{worst} ticks late at {now}, boundary {boundary}"
        );
    }
    assert_eq!(set, count);
}

#[test]
fn roll_over_of_one_ttl_is_flat() {
    // Half a minute, half an hour and six hours: down from levels 1, 2 and 3.
    one_ttl(1_000_000, 30_000, (1 << 40) + (5 << 16));
    one_ttl(1_000_000, 1_800_000, (1 << 40) + (5 << 24));
    one_ttl(1_000_000, 6 * 3_600_000, (1 << 40) + (5 << 24));
}

#[test]
fn roll_over_of_the_highest_levels_is_flat() {
    one_ttl(100_000, 60 * 86_400_000, 7 << 32);
    one_ttl(100_000, 1 << 41, 7 << 40);
}

#[test]
#[ignore = "10M timers take 200 MB and some seconds; run by name"]
fn roll_over_of_one_ttl_is_flat_for_10m() {
    one_ttl(10_000_000, 60_000, (1 << 40) + (5 << 16));
    one_ttl(10_000_000, 1_800_000, (1 << 40) + (5 << 24));
}
