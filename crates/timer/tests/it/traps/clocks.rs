//! Clocks that run backwards, wrap, or stand at the end of time.

use tidewheel_timer::{HashedWheel, HierarchicalWheel, IndexedHeap, TimerQueue, TimerSet};

use super::{fired, fires_at};

every_queue! {
    /// Row 22: a clock that runs backwards fires early, panics, or makes what is due wait again.
    fn clock_that_runs_backwards_loses_nothing_and_fires_nothing_early(make) {
        let mut timers = TimerSet::new(make(1_000));
        let near = timers.insert(2_000, 1_000);
        assert_eq!(fired(&mut timers, 1_500), []);
        assert_eq!(fired(&mut timers, 3), []);
        let far = timers.insert(2_500, 7);
        assert!(timers.reschedule(far, 2_400, 900));
        assert_eq!(fired(&mut timers, 1_200), []);
        fires_at(&mut timers, near, 2_000);
        fires_at(&mut timers, far, 2_400);
    }

    /// Row 22: what was due stays due, whatever the clock reads at the next call.
    fn backlog_is_not_postponed_by_a_clock_that_runs_backwards(make) {
        let mut timers = TimerSet::new(make(0));
        for deadline in [10, 20, 30, 40] {
            timers.insert(deadline, 0);
        }
        assert!(timers.advance(100, 1, |_| {}).backlog);
        while timers.advance(5, 1, |_| {}).backlog {}
        assert_eq!(timers.len(), 0);
        // Neither is one that had passed when it was set.
        let waiting = timers.insert(500, 100);
        let passed = timers.insert(150, 200);
        assert_eq!(fired(&mut timers, 120), [passed]);
        fires_at(&mut timers, waiting, 500);
    }

    /// Row 29: a tick kept in 30, 32 or 36 bits wraps, and timers fire early, late or never.
    fn tick_counters_do_not_wrap(make) {
        for bits in [30, 31, 32, 36, 40, 48, 63] {
            let wrap = 1_u64 << bits;
            for before in [1, 100, 300, 70_000] {
                let mut now = wrap - before;
                let mut timers = TimerSet::new(make(now));
                let mut pending = Vec::new();
                for ttl in [1, 99, 100, 101, 299, 301, 69_999, 70_001, 80_000] {
                    pending.push((now + ttl, timers.insert(now + ttl, now)));
                }
                for (deadline, id) in pending {
                    if deadline > now + 1 {
                        assert_eq!(fired(&mut timers, deadline - 1), []);
                    }
                    now = deadline;
                    assert_eq!(fired(&mut timers, now), [id]);
                }
            }
        }
    }

    /// Row 29: two ticks with the same low bits are taken for each other.
    fn ticks_that_share_their_low_bits_are_not_confused(make) {
        let lap = 1_u64 << 32;
        for first in [5, 300, 70_000] {
            let mut timers = TimerSet::new(make(0));
            let moved = timers.insert(first + 2 * lap, 0);
            let stays = timers.insert(first + lap, 0);
            assert!(timers.reschedule(moved, first, 0));
            assert!(timers.reschedule(moved, first + lap, 0));
            assert!(timers.reschedule(moved, first + 2 * lap, 0));
            assert_eq!(fired(&mut timers, first), []);
            fires_at(&mut timers, stays, first + lap);
            // Cancelled, and its place given to a timer whose tick looks the same.
            assert!(timers.cancel(moved));
            let again = timers.insert(first + 3 * lap, first + lap);
            assert_eq!(fired(&mut timers, first + 2 * lap), []);
            fires_at(&mut timers, again, first + 3 * lap);
        }
    }

    /// Row 35: a sum of time overflows.
    fn nothing_overflows_at_the_end_of_time(make) {
        for before in [0, 1, 255, 300, 65_536, 70_000] {
            let now = u64::MAX - before;
            let mut timers = TimerSet::new(make(now));
            let last = timers.insert(u64::MAX, now);
            let due = timers.insert(now, now);
            timers.validate();
            assert_eq!(timers.forecast(now).iter().sum::<u64>(), 2);
            let mut ids = fired(&mut timers, now);
            ids.extend(fired(&mut timers, u64::MAX));
            assert!(ids.contains(&last) && ids.contains(&due) && ids.len() == 2);
            let after = timers.insert(u64::MAX, u64::MAX);
            assert!(timers.reschedule(after, 0, u64::MAX));
            assert_eq!(fired(&mut timers, u64::MAX), [after]);
            assert_eq!(timers.next_deadline(), None);
        }
    }

    /// Row 22: emptying the queue does not make it forget how late it is.
    fn drain_does_not_forget_the_clock(make) {
        let mut timers = TimerSet::new(make(0));
        timers.insert(10, 0);
        timers.insert(2_000, 1_000);
        timers.drain(|_| {});
        let passed = timers.insert(500, 3);
        let ahead = timers.insert(1_001, 3);
        assert_eq!(fired(&mut timers, 4), [passed]);
        fires_at(&mut timers, ahead, 1_001);
    }
}
