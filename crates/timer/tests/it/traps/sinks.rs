//! Sinks that panic: what was due and not handed over is due still.

use std::panic::{AssertUnwindSafe, catch_unwind};

use tidewheel_timer::{HashedWheel, HierarchicalWheel, IndexedHeap, TimerQueue, TimerSet};

use super::fires_at;

every_queue! {
    /// A sink that panics in the midst of a batch loses what is behind it, or leaves the queue
    /// torn.
    fn what_a_sink_that_panics_has_not_seen_comes_with_the_next_call(make) {
        for (count, bad) in [(1u64, 0u64), (5, 0), (40, 3), (700, 512), (3_000, 2_999)] {
            let mut timers = TimerSet::new(make(0));
            let ids: Vec<_> = (0..count).map(|n| timers.insert(100 + n % 7, 0)).collect();
            let later = timers.insert(5_000, 0);
            let mut fired = Vec::new();
            let outcome = catch_unwind(AssertUnwindSafe(|| {
                timers.advance(200, u32::MAX, |id| {
                    fired.push(id);
                    assert!(fired.len() as u64 <= bad, "a sink that panics");
                })
            }));
            assert!(outcome.is_err());
            assert_eq!(timers.len() as u64, count + 1 - (bad + 1));
            assert!(timers.next_deadline().is_some_and(|next| next <= 5_000));
            if bad + 1 < count {
                assert!(timers.next_deadline().is_some_and(|next| next <= 200));
            }
            timers.advance(200, u32::MAX, |id| fired.push(id));
            assert_eq!(fired.len() as u64, count, "{bad} of {count}");
            assert!(ids.iter().all(|id| fired.contains(id)));
            assert_eq!(timers.deadline(later), Some(5_000));
            timers.validate();
            fires_at(&mut timers, later, 5_000);
        }
    }
}
