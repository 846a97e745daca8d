//! Timers that are moved, replaced, cancelled, or whose names outlive them.

use tidewheel_timer::{
    HashedWheel, HierarchicalWheel, IndexedHeap, Timer, TimerQueue, TimerSet, Timers,
};

use super::{SPANS, fired, fires_at};

every_queue! {
    /// Row 9: a move that compares slot numbers instead of distances puts a timer one turn too late
    /// or too early, depending on where the hand stands.
    fn moved_timer_is_not_one_lap_off(make) {
        for phase in [0, 1, 31, 63, 64, 100, 255] {
            for set in [1, 20, 63, 64, 65, 120, 300, 600] {
                for moved in [1, 19, 60, 64, 65, 128, 299, 600] {
                    let mut timers = TimerSet::new(make(0));
                    assert_eq!(fired(&mut timers, phase), []);
                    let id = timers.insert(phase + set, phase);
                    let later = phase + set / 2;
                    assert_eq!(fired(&mut timers, later), []);
                    assert!(timers.reschedule(id, later + moved, later));
                    fires_at(&mut timers, id, later + moved);
                    assert!(timers.is_empty());
                }
            }
        }
    }

    /// Row 12: a value that is overwritten keeps the timer of the old value, which then deletes the
    /// new one.
    fn overwritten_timer_fires_once_at_its_last_deadline(make) {
        for last in [40, 400, 7_000, 80_000] {
            let mut timers = TimerSet::new(make(0));
            let id = timers.insert(300, 0);
            for deadline in [500, 200, 70_000, 100, 100_000, 100, 300, last] {
                assert!(timers.reschedule(id, deadline, 0));
                assert_eq!((timers.len(), timers.deadline(id)), (1, Some(deadline)));
            }
            fires_at(&mut timers, id, last);
            assert_eq!(fired(&mut timers, 200_000), [], "an old deadline came to life");
        }
    }

    /// Row 15: the old timer is removed, the new one refused, and nothing is left.
    fn arming_for_the_past_does_not_lose_the_timer(make) {
        let mut timers = TimerSet::new(make(1_000));
        let id = timers.insert(2_000, 1_000);
        assert!(timers.reschedule(id, 0, 1_000));
        assert_eq!(timers.len(), 1);
        assert_eq!(fired(&mut timers, 1_000), [id]);
        // Also when it has passed by more than 32 bits can tell.
        let mut timers = TimerSet::new(make(1 << 50));
        let ids = [0, 7, (1 << 50) - (1 << 31), (1 << 50) - (1 << 33) - 1]
            .map(|deadline| timers.insert(deadline, 1 << 50));
        let due = fired(&mut timers, 1 << 50);
        assert!(due.len() == 4 && ids.iter().all(|id| due.contains(id)));
    }

    /// Row 18: a move to less than a tick away fires at once and stays registered too.
    fn moving_by_less_than_a_tick_fires_once(make) {
        let mut timers = TimerSet::new(make(0));
        assert_eq!(fired(&mut timers, 50), []);
        let id = timers.insert(500, 50);
        assert!(timers.reschedule(id, 50, 50));
        assert_eq!(fired(&mut timers, 50), [id]);
        assert_eq!(fired(&mut timers, 5_000), []);
    }

    /// Row 23: a handle whose place was used again reaches the new timer.
    fn handle_of_a_gone_timer_does_not_reach_its_successor(make) {
        let mut timers = TimerSet::new(make(0));
        let old = timers.insert(10, 0);
        assert!(timers.cancel(old));
        for _ in 0..254 {
            let new = timers.insert(20, 0);
            assert_ne!(new, old);
            assert!(!timers.cancel(old) && !timers.reschedule(old, 5, 0));
            assert_eq!(timers.deadline(old), None);
            assert!(timers.cancel(new));
        }
        let new = timers.insert(20, 0);
        fires_at(&mut timers, new, 20);
        assert!(!timers.cancel(new), "it has fired");
    }

    /// Row 25: a timer is cancelled while its batch is being fired, and fires after all.
    fn timer_cancelled_between_two_calls_of_one_tick_does_not_fire(make) {
        let mut timers = TimerSet::new(make(0));
        let mut waiting: Vec<_> = (0..100).map(|_| timers.insert(700, 0)).collect();
        let mut fired_count = 0;
        loop {
            let mut ids = Vec::new();
            let backlog = timers.advance(700, 7, |id| ids.push(id)).backlog;
            timers.validate();
            fired_count += ids.len();
            for id in ids {
                let at = waiting.iter().position(|&w| w == id);
                waiting.remove(at.expect("it was cancelled, or has fired"));
            }
            // Each call's end takes away the next that would come, and moves one out of reach.
            if let Some(id) = waiting.pop() {
                assert!(timers.cancel(id));
            }
            if let Some(id) = waiting.pop() {
                assert!(timers.reschedule(id, 10_000, 700));
            }
            if !backlog {
                break;
            }
        }
        assert!(fired_count < 100 && !timers.is_empty());
        assert_eq!(timers.len(), fired(&mut timers, 10_000).len());
    }

    /// Row 32: a counter beside the structure is decremented twice, or not at all.
    fn count_is_right_after_every_way_out(make) {
        let mut timers = TimerSet::new(make(0));
        let ids: Vec<_> = (0..60).map(|i| timers.insert(100 + i * 30, 0)).collect();
        for &id in &ids[40..50] {
            assert!(timers.cancel(id) && !timers.cancel(id));
        }
        for &id in &ids[30..40] {
            timers.reschedule(id, 50, 0);
            timers.reschedule(id, 5_000, 0);
            timers.reschedule(id, 50, 0);
        }
        assert_eq!(timers.len(), 50);
        assert_eq!(fired(&mut timers, 50).len(), 10);
        assert_eq!(timers.len(), 40);
        assert_eq!(fired(&mut timers, 1_000).len(), 30);
        while timers.maintain(100) {}
        assert_eq!(timers.len(), 10);
        timers.validate();
        let mut drained = 0;
        timers.drain(|_| drained += 1);
        assert_eq!((drained, timers.len(), timers.is_empty()), (10, 0, true));
    }

    /// Row 24: the entry is gone, or its place holds an entry without a timer, while the queue
    /// still has a record of it.
    fn record_of_a_gone_entry_dies(make) {
        #[derive(Default)]
        struct Owner([Option<Timer>; 3]);
        impl Timers for Owner {
            fn timer(&self, id: u32) -> Option<Timer> {
                self.0[id as usize]
            }
            fn set_registration(&mut self, id: u32, registration: u32) {
                let timer = self.0[id as usize].as_mut().expect("the owner stores it first");
                timer.registration = registration;
            }
        }
        for span in SPANS {
            let (mut queue, mut owner) = (make(0), Owner::default());
            for id in 0..3 {
                let deadline = span + u64::from(id);
                owner.0[id as usize] = Some(Timer { deadline, registration: 0 });
                queue.insert(&mut owner, id, deadline, 0);
            }
            for id in [0, 1] {
                let old = owner.timer(id).expect("pending");
                queue.cancel(&mut owner, id, old);
                owner.0[id as usize] = None;
            }
            // The id 1 is given to a new timer, with another deadline.
            owner.0[1] = Some(Timer { deadline: 2 * span, registration: 0 });
            queue.insert(&mut owner, 1, 2 * span, 0);
            queue.validate(&owner);
            let mut fired = Vec::new();
            for now in [span, span + 1, span + 2, 2 * span - 1, 2 * span] {
                queue.advance(&mut owner, now, u32::MAX, |owner, ids| {
                    for &id in ids {
                        owner.0[id as usize] = None;
                        fired.push((now, id));
                    }
                });
                queue.validate(&owner);
            }
            assert_eq!(fired, [(span + 2, 2), (2 * span, 1)]);
            assert!(queue.is_empty());
        }
    }
}

/// Row 28: a timer that moves back and forth, always later than the tick of its record, keeps that
/// record and leaves no dead one.
#[test]
fn timer_moved_back_and_forth_beyond_its_record_leaves_no_dead_record() {
    let mut timers = TimerSet::new(HierarchicalWheel::new(0));
    let id = timers.insert(1_000, 0);
    for deadline in [90_000, 5_000, 1 << 30, 1_000, 3_000_000_000, 1_001] {
        assert!(timers.reschedule(id, deadline, 0));
        assert_eq!(timers.queue().dead(), 0);
    }
    fires_at(&mut timers, id, 1_001);
}
