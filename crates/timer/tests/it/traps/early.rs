//! Timers that fire before their deadline.

use tidewheel_timer::{HashedWheel, HierarchicalWheel, IndexedHeap, TimerQueue, TimerSet};

use super::{SPANS, fired, fires_at};

every_queue! {
    /// Row 1: a slot number without rounds wraps, and a timer of more than one turn fires early.
    fn timer_longer_than_the_span_does_not_fire_early(make) {
        for span in SPANS {
            for ttl in [span + 1, span + span / 2, 2 * span + 1, 3 * span] {
                let mut timers = TimerSet::new(make(77));
                let id = timers.insert(77 + ttl, 77);
                assert_eq!(fired(&mut timers, 77 + ttl % span), [], "{ttl} of {span}");
                assert_eq!(fired(&mut timers, 77 + span), []);
                fires_at(&mut timers, id, 77 + ttl);
            }
        }
    }

    /// Row 2: the slot of a timer of exactly one turn is the current one, which is handled next.
    fn timer_of_exactly_the_span_does_not_fire_at_once(make) {
        for span in SPANS {
            let mut timers = TimerSet::new(make(1_000));
            let id = timers.insert(1_000 + span, 1_000);
            assert_eq!(fired(&mut timers, 1_000), []);
            assert_eq!(fired(&mut timers, 1_001), []);
            fires_at(&mut timers, id, 1_000 + span);
        }
    }

    /// Row 3: a deadline divided by the tick or by a level's granularity loses its remainder: 1.9 s
    /// becomes 1 s.
    fn deadline_is_not_rounded_down_to_a_coarser_tick(make) {
        for ttl in [1, 19, 255, 257, 1_900, 65_535, 65_537, 1_999_999, (1 << 24) + 1, (1 << 32) - 1] {
            let mut timers = TimerSet::new(make(5));
            let id = timers.insert(5 + ttl, 5);
            fires_at(&mut timers, id, 5 + ttl);
        }
    }

    /// Row 4: slots that are counted from the last tick shorten a timer by the time since then.
    fn phase_of_the_clock_does_not_shorten_a_timer(make) {
        for phase in (0..300).step_by(7) {
            for ttl in [1, 59, 64, 200, 256, 5_000] {
                let mut timers = TimerSet::new(make(0));
                // Something pending keeps the position behind the clock.
                let first = timers.insert(1, 0);
                let id = timers.insert(phase + ttl, phase);
                let mut early = fired(&mut timers, phase + ttl - 1);
                early.retain(|&other| other != first);
                assert_eq!(early, []);
                assert!(fired(&mut timers, phase + ttl).contains(&id));
            }
        }
    }

    /// Row 7: in the ring of the top level a far timer shares its slot with the present, and hides
    /// all nearer ones: timers stop after 2^30 ticks of uptime when one lies 2^36 ahead.
    fn top_level_ring_does_not_alias(make) {
        for uptime in [(1 << 30) - 1, 1 << 30, 1 << 32, (1 << 36) - 1, 1 << 36, (1 << 48) - 1] {
            let mut timers = TimerSet::new(make(uptime));
            let far = timers.insert(uptime + (1 << 36), uptime);
            let near = timers.insert(uptime + 333, uptime);
            assert!(timers.next_deadline().is_some_and(|next| next <= uptime + 333));
            fires_at(&mut timers, near, uptime + 333);
            fires_at(&mut timers, far, uptime + (1 << 36));
        }
    }

    /// Row 8: a deadline beyond the horizon panics, is clamped to one tick, or is forced to fire
    /// when the wheel is full.
    fn no_deadline_is_too_far(make) {
        for start in [0, 1 << 40, u64::MAX - (1 << 35)] {
            let mut timers = TimerSet::new(make(start));
            let mut far = Vec::new();
            for ahead in [(1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 32, 1 << 35] {
                far.push((start + ahead, timers.insert(start + ahead, start)));
            }
            for deadline in [u64::MAX - 1, u64::MAX] {
                timers.insert(deadline, start);
            }
            for (deadline, id) in far {
                assert!(!fired(&mut timers, deadline - 1).contains(&id));
                assert!(fired(&mut timers, deadline).contains(&id), "{deadline}");
            }
        }
    }

    /// Row 30: a length below one tick is rounded to never, to at once, or underflows.
    fn timer_of_no_length_is_due_now_and_of_one_tick_at_the_next(make) {
        let mut timers = TimerSet::new(make(500));
        let one = timers.insert(501, 500);
        let none = timers.insert(500, 500);
        assert_eq!(fired(&mut timers, 500), [none]);
        assert_eq!(fired(&mut timers, 501), [one]);
    }

    /// Row 34: a pause that shifts one level and not the others changes the order of deadlines.
    fn pause_keeps_the_order_and_the_distances(make) {
        let time = tidewheel_time::Timeline::new();
        let mut timers = TimerSet::new(make(0));
        let ids = [3, 200, 300, 70_000, 20_000_000].map(|ttl| (ttl, timers.insert(ttl, 0)));
        time.freeze(|| 2);
        assert_eq!(fired(&mut timers, time.now(1_000_000)), []);
        time.resume(|| 1_000_002);
        for (ttl, id) in ids {
            fires_at(&mut timers, id, time.now(1_000_000 + ttl));
        }
    }
}
