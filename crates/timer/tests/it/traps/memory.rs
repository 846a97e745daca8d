//! Memory that lazy cancelling, moving and mass fires leave behind.

use std::collections::HashSet;

use tidewheel_timer::{HashedWheel, HierarchicalWheel, IndexedHeap, TimerQueue, TimerSet};

/// The memory that an almost empty set may hold: the rings of eight levels or 4,096 slots, a page
/// of cells, and some 1,300 dead records that are tolerated whatever the number of the living, each
/// in a chunk of its own and every other chunk free.
const FLOOR: usize = 512 << 10;

/// Bytes that a pending timer may take: a record of 8 in a chunk that is half empty, its 9 bytes in
/// the slab, and as much again in dead records; the heap's node is 16 and its vector may be half
/// empty.
const PER_TIMER: usize = 52;

fn bound(live: usize) -> usize {
    FLOOR + PER_TIMER * live
}

fn tidy<Q: TimerQueue>(timers: &mut TimerSet<Q>) {
    let mut calls = 0;
    while timers.maintain(64) {
        calls += 1;
        assert!(calls < 100_000, "tidying does not end");
    }
    timers.validate();
}

every_queue! {
    /// Cancelled timers keep their memory until their slot is met: a load that sets a far deadline
    /// and cancels it, as every request with a time-out does, never gets there.
    fn cancelling_and_setting_without_an_advance_leaves_bounded_memory(make) {
        for ahead in [0, 30_000, 1 << 35] {
            let mut timers = TimerSet::new(make(5));
            let mut peak = 0;
            for i in 0..300_000 {
                let id = timers.insert(5 + ahead + i % 30_000 * ahead.min(1), 5);
                assert!(timers.cancel(id));
                peak = peak.max(timers.bytes());
            }
            assert!(peak <= bound(0), "{peak} bytes for no timer, {ahead} ahead");
            timers.validate();
        }
    }

    /// The same beside timers that live.
    fn cancel_storm_leaves_memory_in_proportion_to_the_living(make) {
        let mut timers = TimerSet::new(make(0));
        let live = 10_000;
        for i in 0..live {
            timers.insert(60_000 + i * 7, 0);
        }
        for i in 0..300_000 {
            let id = timers.insert(30_000 + i % 30_000, 0);
            assert!(timers.cancel(id));
        }
        let bytes = timers.bytes();
        assert!(bytes <= bound(live as usize), "{bytes} bytes for {live} timers");
        assert_eq!(timers.len(), live as usize);
    }

    /// Many at once, and no insert after it: tidying in steps gives the memory back.
    fn mass_cancel_gives_memory_back_when_tidied(make) {
        let mut timers = TimerSet::new(make(0));
        let ids: Vec<_> = (0..200_000).map(|i| timers.insert(30_000 + i % 30_000, 0)).collect();
        let full = timers.bytes();
        for &id in &ids[1_000..] {
            assert!(timers.cancel(id));
        }
        tidy(&mut timers);
        let left = timers.bytes();
        assert!(left <= bound(1_000), "{left} of {full} bytes left for 1,000 timers");
        let mut count = 0;
        timers.advance(60_000, u32::MAX, |_| count += 1);
        assert_eq!(count, 1_000);
    }

    /// Row 28 and every sliding expiry: each move leaves something behind, or rewrites links.
    fn moving_one_timer_a_million_times_leaves_memory_flat(make) {
        let mut timers = TimerSet::new(make(0));
        let id = timers.insert(2_000_000, 0);
        for i in 0..1_000_000 {
            assert!(timers.reschedule(id, 2_000_000 - i, 0));
        }
        assert!(timers.bytes() <= bound(1), "earlier: {} bytes", timers.bytes());
        for i in 0..1_000_000 {
            assert!(timers.reschedule(id, 2_000_000 + i, 0));
        }
        assert!(timers.bytes() <= bound(1), "later: {} bytes", timers.bytes());
        assert_eq!(timers.len(), 1);
        timers.validate();
        let mut fired = Vec::new();
        timers.advance(2_999_998, u32::MAX, |id| fired.push(id));
        assert_eq!(fired, []);
        timers.advance(2_999_999, u32::MAX, |id| fired.push(id));
        assert_eq!(fired, [id]);
    }

    /// Row 28: a sliding deadline costs one store, and one move each time that the old tick is met.
    fn sliding_timer_is_touched_once_a_length_not_once_a_hit(make) {
        let mut timers = TimerSet::new(make(0));
        let ids: Vec<_> = (0..100).map(|_| timers.insert(1_000, 0)).collect();
        let mut moved = 0;
        for now in 1..=10_000 {
            for &id in &ids {
                assert!(timers.reschedule(id, now + 1_000, now));
            }
            moved += timers.advance(now, u32::MAX, |_| panic!("early")).moved;
        }
        // Ten lengths have passed; each meets a record once, after it came down two levels at most.
        assert!(moved <= 100 * 11 * 3, "{moved} records touched for 1,000,000 hits");
    }

    /// A timer that is cancelled and set again for the tick it had (PERSIST and EXPIREAT of a
    /// midnight) gets its id back, and then its dead record looks like the living one: each in
    /// turn, many times.
    fn cancelling_and_setting_again_for_the_same_tick_leaves_bounded_memory(make) {
        let midnight = 80_000_000;
        for live in [1, 20, 5_000] {
            let mut timers = TimerSet::new(make(0));
            let mut ids: Vec<_> = (0..live).map(|_| timers.insert(midnight, 0)).collect();
            let mut peak = 0;
            for _ in 0..200_000 / live {
                for id in &mut ids {
                    assert!(timers.cancel(*id));
                    *id = timers.insert(midnight, 0);
                    peak = peak.max(timers.bytes());
                }
            }
            assert!(peak <= bound(live), "{peak} bytes for {live} timers");
            tidy(&mut timers);
            let mut waiting: HashSet<_> = ids.into_iter().collect();
            timers.advance(midnight, u32::MAX, |id| assert!(waiting.remove(&id)));
            assert!(waiting.is_empty());
        }
    }

    /// Memory of a peak that has fired is never given back.
    fn memory_goes_back_after_a_mass_fire(make) {
        let mut timers = TimerSet::new(make(0));
        for round in 0..3_u64 {
            let now = round * 100_000;
            let keep = timers.insert(now + 90_000, now);
            for i in 0..300_000 {
                timers.insert(now + 30_000 + i % 1_000, now);
            }
            let full = timers.bytes();
            let progress = timers.advance(now + 40_000, u32::MAX, |_| {});
            assert_eq!((progress.fired, timers.len()), (300_000, 1));
            tidy(&mut timers);
            let left = timers.bytes();
            assert!(left <= bound(1), "{left} of {full} bytes left for one timer");
            assert!(timers.cancel(keep));
        }
    }

    /// Names given out before the memory went back stay refused when it is used again.
    fn handles_of_a_mass_fire_stay_refused(make) {
        let mut timers = TimerSet::new(make(0));
        let old: Vec<_> = (0..20_000).map(|_| timers.insert(10, 0)).collect();
        timers.advance(10, u32::MAX, |_| {});
        let new: Vec<_> = (0..20_000).map(|_| timers.insert(20, 10)).collect();
        for &id in &old {
            assert!(!timers.cancel(id) && timers.deadline(id).is_none());
        }
        assert_eq!(timers.len(), new.len());
        for id in new {
            assert!(timers.cancel(id));
        }
    }

    /// A deadline too far for 32 bits is kept aside, and stays there when it is moved near.
    fn far_deadlines_that_come_near_leave_nothing_behind(make) {
        let mut timers = TimerSet::new(make(0));
        for _ in 0..4 {
            let ids: Vec<_> = (0..20_000).map(|_| timers.insert(1 << 40, 0)).collect();
            for &id in &ids {
                assert!(timers.reschedule(id, 50_000, 0));
                assert_eq!(timers.deadline(id), Some(50_000));
            }
            for id in ids {
                assert!(timers.cancel(id));
            }
            tidy(&mut timers);
            assert!(timers.bytes() <= bound(0), "{} bytes", timers.bytes());
        }
    }

    /// Tidying that is interrupted in a slot goes on there after the slot was emptied in part, or
    /// filled again, and follows a link to what is gone.
    fn tidying_goes_on_after_the_slot_has_changed(make) {
        for budget in [1, 3, 17, 60] {
            let mut timers = TimerSet::new(make(0));
            let ids: Vec<_> = (0..4_000).map(|_| timers.insert(100, 0)).collect();
            let mut alive: Vec<_> = ids.iter().copied().step_by(8).collect();
            for id in ids.into_iter().filter(|id| !alive.contains(id)).collect::<Vec<_>>() {
                assert!(timers.cancel(id));
            }
            let mut now = 100;
            while timers.maintain(budget) || timers.len() > 40 {
                timers.validate();
                timers.advance(now, 30, |id| alive.retain(|&other| other != id));
                timers.validate();
                alive.push(timers.insert(now, now));
                now += u64::from(timers.len().is_multiple_of(7));
            }
            assert_eq!(timers.len(), alive.len());
            timers.drain(|id| assert!(alive.contains(&id)));
        }
    }
}
