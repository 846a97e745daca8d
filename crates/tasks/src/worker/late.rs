//! A bound on late claims: only so many of those that were late when they came run at the same
//! time. So claims that are on time find a thread, also when all claims of a dead worker come at
//! once.

use std::collections::{HashSet, VecDeque};

/// The number of late claims for each thread that are on their way, while nothing is held that is
/// on time.
const DEEP: usize = 16;

/// The number of threads that may run late claims while others are on time: an eighth is kept for
/// these.
pub(super) fn threads_for_late(threads: usize) -> usize {
    threads.saturating_sub(threads.div_ceil(8)).max(1)
}

/// Late claims, by their numbers.
#[derive(Debug)]
pub(super) struct Late {
    waiting: VecDeque<u64>,
    /// On their way to a handler, or with one.
    begun: HashSet<u64>,
    /// Threads that run handlers; `None` if those do not hold them.
    threads: Option<usize>,
}

impl Late {
    pub(super) fn new(threads: Option<usize>) -> Self {
        Self {
            waiting: VecDeque::new(),
            begun: HashSet::new(),
            threads,
        }
    }

    pub(super) fn add(&mut self, key: u64) {
        self.waiting.push_back(key);
    }

    /// The next late claim that may begin. `ahead` says whether claims are held that are on time:
    /// these keep an eighth of the threads.
    pub(super) fn next(&mut self, ahead: bool) -> Option<u64> {
        let most = self.threads.map_or(usize::MAX, |threads| {
            if ahead {
                threads_for_late(threads)
            } else {
                threads.saturating_mul(DEEP)
            }
        });
        if self.begun.len() >= most {
            return None;
        }
        let key = self.waiting.pop_front()?;
        self.begun.insert(key);
        Some(key)
    }

    /// Notes that it has ended, or is not run.
    pub(super) fn ended(&mut self, key: u64) {
        self.begun.remove(&key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begun(threads: Option<usize>, ahead: bool) -> usize {
        let mut late = Late::new(threads);
        (0..1000).for_each(|key| late.add(key));
        std::iter::from_fn(|| late.next(ahead)).count()
    }

    #[test]
    fn an_eighth_of_the_threads_is_kept_for_what_is_on_time() {
        assert_eq!(begun(Some(64), true), 56);
        assert_eq!((begun(Some(2), true), begun(Some(1), true)), (1, 1));
        assert_eq!((begun(Some(2), false), begun(None, true)), (32, 1000));
    }

    #[test]
    fn the_next_begins_when_one_has_ended() {
        let mut late = Late::new(Some(2));
        (1..4).for_each(|key| late.add(key));
        assert_eq!((late.next(true), late.next(true)), (Some(1), None));
        late.ended(1);
        assert_eq!(late.next(true), Some(2));
    }
}
