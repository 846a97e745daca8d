//! `Pace` limits the claims of a worker whose threads are busy.
//!
//! A due task belongs to the worker that can begin it. So a worker whose first due claim has waited
//! for a thread for a tenth of a second asks for nothing more, and what has waited for a second
//! goes back.
//!
//! A worker is *stuck* whose threads have all been busy with the same runs for half a second. It
//! asks for nothing, and does not wait until something is late: what is due within the next second
//! goes back then, so that others begin it in time.
//!
//! After that it asks only when a thread is free and nothing waits. It asks for as many claims as
//! there are free threads, and for some beyond: at first as many as it begins in a quarter of a
//! second. Those beyond double with each call, up to the runs of half a second. After a call that
//! brings fewer claims than it might, they double without this limit.

use std::time::Duration;

use super::{BATCH, SHARE};
use crate::worker::held::Claims;
use crate::worker::late::threads_for_late;

/// A worker is behind when a due claim has waited for so long.
const BEHIND: Duration = Duration::from_millis(100);

/// A due claim goes back that no thread has begun within this.
pub(super) const PATIENCE: Duration = Duration::from_secs(1);

/// A worker is stuck when no thread has been free for so long.
const STUCK: Duration = Duration::from_millis(500);

/// A stuck worker gives claims back so long before they are due.
const IN_TIME: Duration = Duration::from_secs(1);

/// The rate of runs is that of so long.
const QUARTER: Duration = Duration::from_millis(250);

/// The limit of a worker's claims.
#[derive(Debug)]
pub(super) struct Pace {
    /// Threads that run handlers; `None` if those do not hold them.
    threads: Option<usize>,
    /// Claims beyond what there are free threads for. As many as go in one call, unless some had to
    /// go back.
    beyond: usize,
    /// The time before which nothing is claimed, since some had to go back. The end of a run ends
    /// it.
    rest: Duration,
    rate: Rate,
}

/// The number of runs that begin in a quarter of a second.
#[derive(Debug, Default)]
struct Rate {
    latest: usize,
    /// The time of the count, and the number of runs until then.
    at: Duration,
    ran: u64,
}

impl Rate {
    fn count(&mut self, ran: u64, now: Duration) {
        let passed = now.saturating_sub(self.at);
        if passed >= QUARTER {
            let begun = ran.saturating_sub(self.ran) as f64;
            self.latest = (begun * QUARTER.div_duration_f64(passed)) as usize;
            (self.at, self.ran) = (now, ran);
        }
    }
}

impl Pace {
    pub(super) fn new(threads: Option<usize>) -> Self {
        let (beyond, rest) = (BATCH, Duration::ZERO);
        Self {
            threads,
            beyond,
            rest,
            rate: Rate::default(),
        }
    }

    /// True if some had to go back lately.
    pub(super) fn is_narrow(&self) -> bool {
        self.beyond < BATCH
    }

    /// The number of claims that may be asked for.
    pub(super) fn most(&self, held: &Claims, now: Duration) -> usize {
        let Some(threads) = self.threads else {
            return usize::MAX;
        };
        let waits = |time: Duration| {
            let since = held.waits_since();
            since.is_some_and(|since| since.saturating_add(time) <= now)
        };
        if is_stuck(held, now) {
            return 0;
        }
        let free = threads.saturating_sub(held.running());
        if !self.is_narrow() {
            return match (waits(BEHIND), waits(Duration::ZERO)) {
                (true, _) => 0,
                (_, true) => SHARE.saturating_add(self.rate.latest * 2),
                _ => usize::MAX,
            };
        }
        if free == 0 || now < self.rest || waits(Duration::ZERO) {
            return 0;
        }
        free.saturating_add(self.beyond)
    }

    /// Claims were asked for. There is a `throng` if they were as many as might be, and due soon.
    pub(super) fn asked(&mut self, throng: bool) {
        if !throng || self.beyond < 2 * self.rate.latest {
            self.beyond = (self.beyond * 2).clamp(1, BATCH);
        }
    }

    /// Notes the number of runs that have begun so far.
    pub(super) fn count(&mut self, ran: u64, now: Duration) {
        self.rate.count(ran, now);
    }

    /// A run has ended: its thread is free.
    pub(super) fn ran(&mut self) {
        self.rest = Duration::ZERO;
    }

    /// The time at which something has to go back, if threads are busy until then. A claim that is
    /// due and waits for no thread, since the engine's clock was set back, wakes nobody.
    pub(super) fn next(&self, held: &Claims) -> Option<Duration> {
        let due = held.waits_since().filter(|_| self.is_busy(held))?;
        let late = due.saturating_add(PATIENCE);
        let stuck = held.stuck_since().map(|since| since.saturating_add(STUCK));
        let in_time = stuck.map(|stuck| stuck.max(due.saturating_sub(IN_TIME)));
        Some(in_time.map_or(late, |in_time| in_time.min(late)))
    }

    /// True if all threads that may run late claims are busy.
    fn is_busy(&self, held: &Claims) -> bool {
        let is_busy = |threads| held.running() >= threads_for_late(threads);
        self.threads.is_some_and(is_busy)
    }

    /// Takes out what no thread begins in time, and asks for less.
    pub(super) fn give_back(&mut self, held: &mut Claims, now: Duration) -> Vec<u64> {
        let until = if is_stuck(held, now) {
            now.checked_add(IN_TIME)
        } else {
            now.checked_sub(PATIENCE).filter(|_| self.is_busy(held))
        };
        let Some(until) = until else {
            return Vec::new();
        };
        let keys = held.end_waiting(until, BATCH);
        if !keys.is_empty() {
            self.beyond = self.rate.latest.min(BATCH - 1);
            self.rest = now.saturating_add(PATIENCE);
        }
        keys
    }
}

fn is_stuck(held: &Claims, now: Duration) -> bool {
    let since = held.stuck_since();
    since.is_some_and(|since| since.saturating_add(STUCK) <= now)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::claim::{Claim, Fence};
    use crate::shape::timestamp::Timestamp;
    use crate::worker::held::Stage;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    /// Adds so many claims that are due at a time.
    fn add(held: &mut Claims, count: usize, at: Duration) -> Vec<u64> {
        let claim = Claim::new("a", Timestamp(0), Fence(1), Duration::from_secs(60));
        let add = |_| held.add(claim.clone(), at, at, false);
        (0..count).map(add).collect()
    }

    fn run(held: &mut Claims, keys: &[u64], now: Duration) {
        keys.iter().for_each(|key| assert!(held.begin(*key, now)));
    }

    #[test]
    fn a_worker_that_is_behind_asks_for_nothing_and_gives_back_after_a_second() {
        let (mut pace, mut held) = (Pace::new(Some(2)), Claims::new(Some(2)));
        let keys = add(&mut held, 5, MS(1000));
        run(&mut held, &keys[..2], MS(1000));
        assert_eq!(pace.most(&held, MS(999)), usize::MAX);
        assert_eq!(pace.most(&held, MS(1099)), SHARE);
        assert_eq!(pace.most(&held, MS(1100)), 0);
        // It is not stuck.
        held.set_stage(keys[0], Stage::Ended);
        run(&mut held, &keys[2..3], MS(1501));
        assert_eq!(pace.next(&held), Some(MS(2000)));
        assert_eq!(pace.give_back(&mut held, MS(1999)), [0; 0]);
        assert_eq!(pace.give_back(&mut held, MS(2000)), keys[3..]);
        assert!(!held.begin(keys[3], MS(2000)), "it is on its way back");
        assert_eq!((pace.is_narrow(), pace.next(&held)), (true, None));
    }

    #[test]
    fn a_worker_that_is_stuck_gives_back_what_is_due_soon_before_it_is_late() {
        let (mut pace, mut held) = (Pace::new(Some(2)), Claims::new(Some(2)));
        let keys = add(&mut held, 2, MS(0));
        let (soon, later) = (add(&mut held, 3, MS(900)), add(&mut held, 3, MS(2000)));
        run(&mut held, &keys, MS(0));
        assert_eq!(pace.most(&held, MS(499)), usize::MAX);
        assert_eq!(pace.next(&held), Some(MS(500)));
        assert_eq!(pace.give_back(&mut held, MS(499)), [0; 0]);
        assert_eq!(pace.most(&held, MS(500)), 0);
        assert_eq!(pace.give_back(&mut held, MS(500)), soon);
        assert_eq!(pace.next(&held), Some(MS(1000)));
        assert_eq!(pace.give_back(&mut held, MS(999)), [0; 0]);
        assert_eq!(pace.give_back(&mut held, MS(1000)), later);
        held.set_stage(keys[0], Stage::Ended);
        pace.ran();
        assert_eq!(pace.most(&held, MS(1001)), 1, "a thread is free");
    }

    #[test]
    fn it_asks_again_for_what_there_are_threads_for_and_for_more_each_time() {
        let (mut pace, mut held) = (Pace::new(Some(2)), Claims::new(Some(2)));
        let keys = add(&mut held, 3, MS(0));
        run(&mut held, &keys[..2], MS(0));
        assert_eq!(pace.give_back(&mut held, MS(1000)).len(), 1);
        held.set_stage(keys[0], Stage::Ended);
        assert_eq!(pace.most(&held, MS(1001)), 0, "it rests");
        pace.ran();
        for (most, throng) in [(1, true), (1, true), (1, false), (2, false), (3, false)] {
            assert_eq!(pace.most(&held, MS(1001)), most);
            pace.asked(throng);
        }
        pace.count(10, MS(1001));
        pace.count(20, MS(1501));
        for most in [5, 9, 17, 17] {
            assert_eq!(pace.most(&held, MS(1001)), most);
            pace.asked(true);
        }
        let waiting = add(&mut held, 1, MS(1010));
        assert_eq!(pace.most(&held, MS(1009)), 17, "it waits for its time");
        assert_eq!(pace.most(&held, MS(1010)), 0, "it waits for a thread");
        run(&mut held, &waiting, MS(1010));
        assert_eq!(pace.most(&held, MS(1010)), 0, "no thread is free");
    }

    #[test]
    fn what_waits_for_no_thread_stays() {
        for threads in [None, Some(2)] {
            let (mut pace, mut held) = (Pace::new(threads), Claims::new(threads));
            add(&mut held, 3, MS(0));
            assert_eq!(
                pace.next(&held),
                None,
                "the engine loop would not sleep any more"
            );
            assert_eq!(pace.give_back(&mut held, MS(5000)), [0; 0]);
        }
    }
}
