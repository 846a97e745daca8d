//! The earliest deadline of something that is behind a lock, for threads that do not hold the lock.

use crate::sync::{
    AtomicU64,
    Ordering::{Relaxed, SeqCst},
};

/// Nothing is due, ever.
pub const NEVER: u64 = u64::MAX;

/// A published lower bound of the next deadline: nothing is due before it.
///
/// There are two ways to write it:
///
/// - The bound of what one lock protects is [published](Self::publish) by a thread that holds that
///   lock.
/// - The bound of several such things together is [lowered](Self::lower) by any thread. The thread
///   that looks after them computes it again in three steps: [`forget`](Self::forget), read their
///   bounds, [`lower`](Self::lower).
///
/// Each write comes before the writer's call of [`Alarm::lowered`](crate::Alarm::lowered), which
/// explains why no wake-up is lost.
#[derive(Debug)]
pub struct Soonest(AtomicU64);

impl Default for Soonest {
    fn default() -> Self {
        Self::new()
    }
}

impl Soonest {
    /// Nothing is due.
    #[must_use]
    pub fn new() -> Self {
        Self(AtomicU64::new(NEVER))
    }

    /// The bound.
    #[inline]
    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.load(SeqCst)
    }

    /// Says what the next deadline is now. The caller holds the lock. Tells whether it has become
    /// earlier: then the sleeper must be told.
    #[inline]
    pub fn publish(&self, deadline: u64) -> bool {
        let before = self.0.load(Relaxed);
        if deadline != before {
            self.0.store(deadline, SeqCst);
        }
        deadline < before
    }

    /// Something is due at `deadline`. Tells whether the bound has become earlier.
    #[inline]
    pub fn lower(&self, deadline: u64) -> bool {
        deadline < self.0.fetch_min(deadline, SeqCst)
    }

    /// Forgets the bound, before what it is made of is read again. What is lowered from here on is
    /// kept; what was lowered before is seen by the reading that follows.
    pub fn forget(&self) {
        self.0.swap(NEVER, SeqCst);
    }
}

#[cfg(all(test, not(all(shuttle, feature = "shuttle"))))]
mod tests {
    use super::*;

    #[test]
    fn what_is_lowered_while_the_rest_is_read_again_is_kept() {
        let soonest = Soonest::new();
        assert!(soonest.lower(50));
        assert!(!soonest.lower(60));
        soonest.forget();
        assert!(soonest.lower(20), "somebody else, meanwhile");
        assert!(!soonest.lower(90), "what was read again");
        assert_eq!(soonest.get(), 20);
    }

    #[test]
    fn only_an_earlier_deadline_concerns_a_sleeper() {
        let soonest = Soonest::new();
        let told = [10, 10, 20, 5, NEVER].map(|deadline| soonest.publish(deadline));
        assert_eq!(told, [true, false, false, true, false]);
        assert_eq!(soonest.get(), NEVER);
    }
}
