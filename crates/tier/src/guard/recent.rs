//! The invalidations that the engine has taken lately are kept here. If another server takes over
//! and lacks the last writes of the one before, they are repeated.
//!
//! A write counts as an invalidation of its key: to store its value again could replace a newer
//! one.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tidewheel_time::{Moment, nanos};

use super::pending::{BYTES, Invalidation, LIMIT};

/// The invalidations that were taken, for as long as they may be lost.
#[derive(Debug)]
pub(crate) struct Recent {
    lag: Duration,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    /// The number of times that another server has taken over.
    reign: u64,
    taken: VecDeque<(Moment, Invalidation)>,
    bytes: usize,
    /// The time at which the last invalidation was taken that there was no room for.
    dropped: Option<Moment>,
}

impl Recent {
    /// An invalidation that a server has taken may be lost for so long. Zero: nothing is kept.
    pub(crate) fn new(lag: Duration) -> Self {
        Self {
            lag,
            kept: Mutex::default(),
        }
    }

    /// The number of the server that is asked from now on.
    pub(crate) fn reign(&self) -> u64 {
        self.lock().reign
    }

    /// A server has taken an invalidation, which was sent to it in this reign. `false`: another one
    /// has taken over since, and may lack it.
    pub(crate) fn note(&self, what: &Invalidation, reign: u64, now: Moment) -> bool {
        if self.lag.is_zero() {
            return true;
        }
        let mut kept = self.lock();
        if kept.reign != reign {
            return false;
        }
        let lost_before = self.lost_before(now);
        while kept.taken.front().is_some_and(|(at, _)| *at < lost_before) {
            kept.forget_first();
        }
        if kept.taken.len() >= LIMIT || kept.bytes + what.length() > BYTES {
            kept.dropped = Some(now);
            (kept.taken, kept.bytes) = (VecDeque::new(), 0);
        } else {
            kept.bytes += what.length();
            kept.taken.push_back((now, what.clone()));
        }
        true
    }

    /// Returns what may be lost, each once: another server has taken over. If that was too much to
    /// keep, it is everything.
    pub(crate) fn taken_over(&self, now: Moment) -> Vec<Invalidation> {
        let mut kept = self.lock();
        let lost_before = self.lost_before(now);
        let Kept { taken, dropped, .. } = std::mem::take(&mut *kept);
        kept.reign += 1;
        if dropped.is_some_and(|at| at >= lost_before) {
            return vec![Invalidation::of_everything()];
        }
        let lost = taken.into_iter().filter(|(at, _)| *at >= lost_before);
        let mut lost: Vec<_> = lost.map(|(_, what)| what).collect();
        lost.sort_unstable();
        lost.dedup();
        lost
    }

    /// Invalidations that were taken before this are at every server.
    fn lost_before(&self, now: Moment) -> Moment {
        Moment(now.0.saturating_sub(nanos(self.lag)))
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn forget_first(&mut self) {
        if let Some((_, what)) = self.taken.pop_front() {
            self.bytes -= what.length();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn key(number: usize) -> Invalidation {
        Invalidation::Key(number.to_be_bytes().to_vec())
    }

    fn at(second: u64) -> Moment {
        Moment(second * SECOND)
    }

    #[test]
    fn what_was_taken_within_the_lag_is_repeated_once() {
        let recent = Recent::new(Duration::from_secs(10));
        for (number, second) in [(1, 0), (2, 5), (3, 9), (2, 10)] {
            assert!(recent.note(&key(number), 0, at(second)));
        }
        assert_eq!(recent.taken_over(at(12)), [key(2), key(3)]);
        assert_eq!(recent.taken_over(at(12)), [], "by the next server");
    }

    #[test]
    fn what_was_sent_to_the_server_before_is_not_taken() {
        let recent = Recent::new(Duration::from_secs(10));
        let reign = recent.reign();
        recent.taken_over(at(1));
        assert!(!recent.note(&key(1), reign, at(1)));
        assert!(recent.note(&key(1), recent.reign(), at(1)));
    }

    #[test]
    fn of_what_is_too_much_to_keep_everything_is_repeated_as_long_as_it_may_be_lost() {
        let recent = Recent::new(Duration::from_secs(10));
        (0..=LIMIT).for_each(|number| assert!(recent.note(&key(number), 0, at(1))));
        assert!(recent.note(&key(7), 0, at(9)));
        assert_eq!(recent.taken_over(at(11)), [Invalidation::of_everything()]);
        let large = Invalidation::Key(vec![0; BYTES / 2]);
        (0..3).for_each(|_| assert!(recent.note(&large, 1, at(12))));
        assert!(recent.note(&key(7), 1, at(20)));
        assert_eq!(
            recent.taken_over(at(23)),
            [key(7)],
            "the others are everywhere"
        );
    }

    #[test]
    fn without_a_lag_nothing_is_kept() {
        let recent = Recent::new(Duration::ZERO);
        assert!(recent.note(&key(1), 0, at(1)));
        assert_eq!(recent.taken_over(at(1)), []);
        assert!(recent.note(&key(1), 0, at(1)));
    }
}
