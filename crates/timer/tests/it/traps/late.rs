//! Timers that fire late, not at all, or hang the tick.

use tidewheel_timer::{HashedWheel, HierarchicalWheel, IndexedHeap, TimerQueue, TimerSet};

use super::{SPANS, fired, fires_at};

every_queue! {
    /// Row 5: a timer filed in a slot that is done with waits for a whole turn.
    fn timer_in_the_current_slot_is_not_late_by_one_lap(make) {
        for span in SPANS {
            let mut timers = TimerSet::new(make(0));
            assert_eq!(fired(&mut timers, span), []);
            let now = timers.insert(span, span);
            assert_eq!(fired(&mut timers, span), [now]);
            for ttl in [1, span - 1, span] {
                let mut timers = TimerSet::new(make(span));
                let id = timers.insert(span + ttl, span);
                fires_at(&mut timers, id, span + ttl);
            }
        }
    }

    /// Row 6: timers of more than two spans go back into the slot that is being emptied, for ever.
    fn far_timers_sharing_a_slot_do_not_hang_the_tick(make) {
        let day = 24 * 3_600_000;
        let mut timers = TimerSet::new(make(0));
        let (a, b) = (timers.insert(2 * day + 7, 0), timers.insert(2 * day + 8, 0));
        for tick in (0..2 * day).step_by(3_600_000) {
            let progress = timers.advance(tick, u32::MAX, |_| panic!("early"));
            assert!(progress.moved <= 20, "the same records again and again");
        }
        assert_eq!(fired(&mut timers, 3 * day), [a, b]);
    }

    /// Row 10: a coarse slot holds an earlier timer than the fine slot that is looked at first.
    fn earlier_coarse_timer_is_not_hidden_by_a_later_fine_one(make) {
        for far in [700, 70_000, 17_000_000, 5_000_000_000] {
            let mut timers = TimerSet::new(make(0));
            let coarse = timers.insert(far, 0);
            assert_eq!(fired(&mut timers, far - 40), []);
            let fine = timers.insert(far + 20, far - 40);
            assert!(timers.next_deadline().is_some_and(|next| next <= far));
            fires_at(&mut timers, coarse, far);
            fires_at(&mut timers, fine, far + 20);
        }
    }

    /// Row 11: the next delay after a cascade or a removal is stale, lies in the past, or is that
    /// of the slot that was just emptied.
    fn next_deadline_holds_after_cascades_and_removals(make) {
        let mut timers = TimerSet::new(make(0));
        let ids = [300, 301, 70_000, 90_000].map(|deadline| timers.insert(deadline, 0));
        timers.cancel(ids[0]);
        assert!(timers.next_deadline().is_some_and(|next| next <= 301));
        assert_eq!(fired(&mut timers, 301), [ids[1]]);
        timers.cancel(ids[2]);
        let (mut now, mut wakes) = (301, 0);
        while now < 90_000 {
            let next = timers.next_deadline().expect("one is pending");
            assert!(next > now && next <= 90_000, "{next} at {now}");
            (now, wakes) = (next, wakes + 1);
            let progress = timers.advance(now, u32::MAX, |id| assert_eq!(id, ids[3]));
            assert!(progress.next_deadline.is_none_or(|next| next > now));
        }
        assert!(timers.is_empty());
        // A wheel of 64 slots goes round 1,402 times; it visits two slots in each.
        assert!(wakes <= 2 * 1_402, "{wakes} wake-ups");
    }

    /// Row 16: after a drain the index still knows the old timers, and a key that is set again
    /// never fires.
    fn drain_leaves_no_index_behind(make) {
        let mut timers = TimerSet::new(make(0));
        let old = [5, 5, 900, 1 << 20, 1 << 40, 0].map(|deadline| timers.insert(deadline, 0));
        let mut drained = Vec::new();
        timers.drain(|id| drained.push(id));
        drained.sort_by_key(|id| old.iter().position(|o| o == id));
        assert_eq!(drained, old);
        timers.validate();
        assert_eq!((timers.len(), timers.next_deadline()), (0, None));
        let new = [5, 900].map(|deadline| timers.insert(deadline, 0));
        for id in old {
            assert!(!timers.cancel(id) && !timers.reschedule(id, 7, 0));
        }
        fires_at(&mut timers, new[0], 5);
        fires_at(&mut timers, new[1], 900);
    }

    /// Row 19: a wheel that counts ticks loses those that are not delivered, and all timers are
    /// late by them from then on.
    fn lost_ticks_do_not_accumulate(make) {
        let mut timers = TimerSet::new(make(0));
        let mut pending: Vec<_> = (1..400).map(|i| (i * 13, timers.insert(i * 13, 0))).collect();
        let mut now = 0;
        for gap in [1, 0, 3, 700, 2, 1, 64, 65, 256, 1, 1_000].iter().cycle() {
            now += gap;
            let mut expected = pending.clone();
            expected.retain(|&(deadline, _)| deadline <= now);
            pending.drain(..expected.len());
            let expected: Vec<_> = expected.into_iter().map(|(_, id)| id).collect();
            assert_eq!(fired(&mut timers, now), expected);
            if pending.is_empty() {
                break;
            }
        }
    }

    /// Row 20: after a stall everything is caught up tick by tick, or in one hold of the lock.
    fn stall_is_caught_up_in_bounded_steps(make) {
        let (count, budget, hour) = (5_000, 100, 3_600_000);
        let mut timers = TimerSet::new(make(0));
        for i in 0..count {
            timers.insert(1 + i * 719, 0);
        }
        let (mut caught_up, mut last) = (0, 0);
        loop {
            let progress = timers.advance(hour, budget, |_| caught_up += 1);
            assert!(progress.fired + progress.moved <= budget);
            let next = progress.next_deadline.unwrap_or(u64::MAX);
            assert!(next >= last, "the bound runs backwards");
            last = next;
            if !progress.backlog {
                break;
            }
            assert!(next <= hour, "backlog, and nothing due");
        }
        assert_eq!(caught_up, count);
    }

    /// Row 20: time in which nothing happens costs nothing.
    fn a_century_of_nothing_is_one_step(make) {
        let century = 100 * 365 * 86_400_000;
        let mut timers = TimerSet::new(make(0));
        assert_eq!(fired(&mut timers, century), []);
        let id = timers.insert(century + 5, century);
        let progress = timers.advance(century + 4, 1, |_| panic!("early"));
        assert!(!progress.backlog);
        fires_at(&mut timers, id, century + 5);
    }

    /// Row 26: the sleeper is told of an earlier deadline at once, also when the queue was empty or
    /// has just become so.
    fn earlier_timer_lowers_the_next_deadline_at_once(make) {
        let mut timers = TimerSet::new(make(0));
        for _ in 0..3 {
            let now = timers.queue().elapsed();
            for ahead in [1 << 40, 1 << 20, 70_000, 5_000, 300, 64, 2] {
                timers.insert(now + ahead, now);
                assert!(timers.next_deadline().is_some_and(|next| next <= now + ahead));
            }
            assert_eq!(fired(&mut timers, now + 70_000).len(), 5);
            assert!(timers.next_deadline().is_some_and(|next| next <= now + (1 << 20)));
            timers.drain(|_| {});
            assert_eq!(timers.next_deadline(), None);
        }
    }

    /// Row 27: a timer that is armed for now by what it fires keeps all others waiting.
    fn rearming_for_now_does_not_starve_the_others(make) {
        let mut timers = TimerSet::new(make(0));
        let mut restless = timers.insert(10, 0);
        let patient = [11, 300, 301].map(|deadline| timers.insert(deadline, 0));
        let mut waiting = patient.to_vec();
        // Each call at 301 fires what was due when it began, and ends.
        for round in 0..3 {
            let ids = fired(&mut timers, 301);
            assert!(ids.contains(&restless));
            waiting.retain(|id| !ids.contains(id));
            assert!(waiting.is_empty(), "round {round}: still waiting: {waiting:?}");
            restless = timers.insert(301, 301);
        }
        assert_eq!(timers.len(), 1);
    }

    /// Row 31: placing and cascading read the clock apart from each other, and disagree.
    fn one_long_step_equals_many_short_ones(make) {
        let deadlines = || (0..2_000).map(|i| 1 + i * i * 37 % 150_000);
        let (mut long, mut short) = (TimerSet::new(make(0)), TimerSet::new(make(0)));
        for deadline in deadlines() {
            long.insert(deadline, 0);
            short.insert(deadline, 0);
        }
        let read = |timers: &TimerSet<Q>, id| timers.deadline(id);
        let mut pending: std::collections::HashMap<_, _> = std::collections::HashMap::new();
        let mut all = TimerSet::new(make(0));
        for deadline in deadlines() {
            let id = all.insert(deadline, 0);
            pending.insert(id, read(&all, id).expect("pending"));
        }
        let in_one: Vec<u64> = fired(&mut long, 150_000).iter().map(|id| pending[id]).collect();
        let mut in_many = Vec::new();
        for now in 0..=1_500 {
            short.advance(now * 100, u32::MAX, |id| in_many.push(pending[&id]));
        }
        let mut sorted: Vec<u64> = deadlines().collect();
        sorted.sort_unstable();
        assert_eq!(in_one, sorted);
        assert_eq!(in_many, sorted);
    }
}

/// Row 20: in a stall of an hour the production wheel touches each record three times: to move it
/// down from levels 2 and 1, and to fire it. So the number of calls is bounded, too.
#[test]
fn stall_is_caught_up_in_a_bounded_number_of_calls() {
    let (count, budget, hour) = (100_000, 1_000, 3_600_000);
    let mut timers = TimerSet::new(HierarchicalWheel::new(0));
    for i in 0..u64::from(count) {
        timers.insert(1 + i * 35, 0);
    }
    let mut calls = 1;
    while timers.advance(hour, budget, |_| {}).backlog {
        calls += 1;
    }
    assert!(timers.is_empty());
    assert!(calls <= 3 * count / budget + 1, "{calls} calls");
}

/// Row 20: the hashed wheel looks for the next record once a turn, not once a tick.
#[test]
fn hashed_wheel_catches_up_without_looking_at_all_records_at_each_tick() {
    let count = 200_000;
    let mut timers = TimerSet::new(HashedWheel::new(1 << 16, 0));
    for i in 0..count {
        timers.insert(1 + i * 3, 0);
    }
    // Ten turns. The square of the number of timers would take minutes.
    assert_eq!(fired(&mut timers, 3 * count).len() as u64, count);
}
