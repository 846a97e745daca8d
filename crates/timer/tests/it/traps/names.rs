//! Names of timers that are gone: they reach nobody, however often their place was used again.

use std::collections::HashSet;

use tidewheel_timer::{HashedWheel, HierarchicalWheel, IndexedHeap, TimerQueue, TimerSet};

every_queue! {
    /// Row 23, with a count of reuses that wraps around: every 256th timer had the name of the
    /// first.
    fn handle_of_a_gone_timer_never_reaches_a_later_one_in_its_place(make) {
        let mut timers = TimerSet::new(make(0));
        let stays = timers.insert(1 << 20, 0);
        let gone = timers.insert(700, 0);
        assert!(timers.cancel(gone));
        for reuse in 0..300_000 {
            let later = timers.insert(700, 0);
            assert_ne!(later, gone, "after {reuse} reuses");
            assert_eq!(timers.deadline(gone), None, "after {reuse} reuses");
            assert!(!timers.cancel(gone) && timers.cancel(later));
        }
        assert!(timers.cancel(stays));
        timers.validate();
    }

    /// Names stay apart while timers come and go in no order, some of them staying for long.
    fn no_name_is_given_twice(make) {
        let mut timers = TimerSet::new(make(0));
        let mut names = HashSet::new();
        let (mut pending, mut random) = (Vec::new(), 1u64);
        for step in 0..200_000u64 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let many = 1 + (step / 20_000) * 20;
            if (random >> 33) % (2 * many) < many || pending.is_empty() {
                let id = timers.insert(step + (random >> 40) % 5_000, step);
                assert!(names.insert(id), "step {step}: {id:?} was given before");
                pending.push(id);
            }
            if pending.len() as u64 > many {
                let at = (random >> 20) as usize % pending.len();
                timers.cancel(pending.swap_remove(at));
            }
            if step % 1_000 == 999 {
                timers.advance(step, u32::MAX, |_| {});
                pending.retain(|id| timers.deadline(*id).is_some());
                timers.validate();
            }
        }
    }
}

/// A cell whose names are used up waits for its neighbours. A timer that stays for ever keeps only
/// a few such cells empty.
#[test]
fn timers_that_stay_do_not_hold_the_memory_of_those_that_come_and_go() {
    const STAY: usize = 2_000;
    let mut timers = TimerSet::new(HierarchicalWheel::new(0));
    let mut staying = Vec::new();
    let mut full = 0;
    for round in 0..STAY {
        staying.push(timers.insert(1 << 20, 0));
        let short: Vec<_> = (0..8).map(|_| timers.insert(500, 0)).collect();
        for id in short {
            for _ in 0..if round % 8 == 0 { 300 } else { 1 } {
                let id = timers.insert(500, 0);
                assert!(timers.cancel(id));
            }
            assert!(timers.cancel(id));
        }
        while timers.maintain(1024) {}
        full = full.max(timers.bytes());
    }
    assert!(full < 512 << 10, "{full} bytes for {STAY} timers");
}
