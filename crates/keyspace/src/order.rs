//! The order in which locks are taken. Debug builds panic if a thread breaks it.
//!
//! gate → shards, ascending → claims → trackers → hub → inboxes → the queue of events → that of
//! expired keys → that of records.
//!
//! A thread takes a lock only if every lock that it holds stands further left. So no threads can
//! wait for each other in a circle. A lock for which it would not wait may stand anywhere. A lock
//! that has a place in this order is a [`Ranked`], which records by itself that it is held. Release
//! builds record nothing: there a `Ranked` is its mutex and a [`HeldLock`] is empty.

#[cfg(debug_assertions)]
use std::cell::RefCell;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};

/// Attempts at a lock before the thread sleeps. They take about a microsecond.
const TRIES: u32 = 64;

/// Naps of a thread that waits for a lock which it may do without, and the length of one.
const BRIEF_WAITS: u32 = 5;
const BRIEF_WAIT: Duration = Duration::from_micros(100);

/// A lock's place in the order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rank {
    /// Exclusive use of the keyspace.
    Gate,
    /// The shard of that number.
    Shard(usize),
    /// The claims on shards that are locked for long.
    Claims,
    /// The registry of clients that track.
    Trackers,
    /// The registry of subscriptions.
    Hub,
    /// The inbox of an event loop.
    Inbox,
    /// The queue of keyspace events.
    Events,
    /// The queue of expired keys for streams.
    Expired,
    /// The queue of records.
    Records,
}

/// The record of one lock that this thread holds, or is about to take.
#[derive(Debug)]
#[must_use]
pub struct HeldLock {
    #[cfg(debug_assertions)]
    rank: Rank,
}

#[cfg(debug_assertions)]
thread_local! {
    static HELD: RefCell<Vec<Rank>> = const { RefCell::new(Vec::new()) };
}

impl HeldLock {
    /// Records a lock that is about to be taken.
    ///
    /// # Panics
    ///
    /// In debug builds, when this thread holds a lock of the same rank or of one further right.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn new(rank: Rank) -> Self {
        #[cfg(debug_assertions)]
        HELD.with_borrow(|held| {
            let last = held.iter().max();
            assert!(
                last.is_none_or(|last| *last < rank),
                "{rank:?} is locked while {last:?} is held"
            );
        });
        Self::unordered(rank)
    }

    /// The record of a lock for which the thread does not wait, whatever its rank.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn unordered(rank: Rank) -> Self {
        #[cfg(debug_assertions)]
        HELD.with_borrow_mut(|held| held.push(rank));
        #[cfg(not(debug_assertions))]
        let _ = rank;
        Self {
            #[cfg(debug_assertions)]
            rank,
        }
    }
}

/// For work that takes long: panics in debug builds if this thread holds the lock of a shard.
#[inline]
pub(crate) fn assert_no_shard_is_held() {
    #[cfg(debug_assertions)]
    HELD.with_borrow(|held| {
        let shard = held.iter().find(|rank| matches!(rank, Rank::Shard(_)));
        assert!(shard.is_none(), "{shard:?} is held meanwhile");
    });
}

#[cfg(debug_assertions)]
impl Drop for HeldLock {
    fn drop(&mut self) {
        // Fails only while the thread ends, when no lock is taken any more.
        let _ = HELD.try_with(|held| {
            let mut held = held.borrow_mut();
            if let Some(at) = held.iter().rposition(|rank| *rank == self.rank) {
                held.swap_remove(at);
            }
        });
    }
}

/// A lock with a place in the order.
#[derive(Debug)]
pub struct Ranked<T> {
    mutex: Mutex<T>,
    #[cfg(debug_assertions)]
    rank: Rank,
}

/// The value of a locked [`Ranked`]. Dropping the guard unlocks it.
#[derive(Debug)]
pub struct RankedGuard<'a, T> {
    guard: MutexGuard<'a, T>,
    #[allow(dead_code, reason = "dropped after the guard")]
    held: HeldLock,
}

impl<T> Ranked<T> {
    /// A lock of that rank.
    pub fn new(rank: Rank, value: T) -> Self {
        #[cfg(not(debug_assertions))]
        let _ = rank;
        Self {
            mutex: Mutex::new(value),
            #[cfg(debug_assertions)]
            rank,
        }
    }

    /// Waits for the lock and takes it.
    ///
    /// # Panics
    ///
    /// In debug builds, as [`HeldLock::new`] does.
    #[inline]
    pub fn lock(&self) -> RankedGuard<'_, T> {
        #[cfg(debug_assertions)]
        let held = HeldLock::new(self.rank);
        #[cfg(not(debug_assertions))]
        let held = HeldLock {};
        RankedGuard {
            guard: self.mutex.lock(),
            held,
        }
    }

    /// As [`lock`](Self::lock), for a lock that others hold for about a microsecond. It is tried
    /// for as long before the processor is given up: that, and waking again, would take longer.
    ///
    /// # Panics
    ///
    /// As [`lock`](Self::lock).
    #[inline]
    pub fn lock_soon(&self) -> RankedGuard<'_, T> {
        #[cfg(debug_assertions)]
        let held = HeldLock::new(self.rank);
        #[cfg(not(debug_assertions))]
        let held = HeldLock {};
        let guard = self.mutex.try_lock();
        let guard = guard.unwrap_or_else(|| self.wait());
        RankedGuard { guard, held }
    }

    #[cold]
    fn wait(&self) -> MutexGuard<'_, T> {
        for _ in 0..TRIES {
            std::hint::spin_loop();
            if let Some(guard) = self.mutex.try_lock() {
                return guard;
            }
        }
        self.mutex.lock()
    }

    /// Takes the lock if nobody has it. If somebody has, the caller will wait for it.
    ///
    /// # Panics
    ///
    /// As [`lock`](Self::lock).
    #[inline(always)]
    pub fn try_lock_in_order(&self) -> Option<RankedGuard<'_, T>> {
        #[cfg(debug_assertions)]
        let held = HeldLock::new(self.rank);
        #[cfg(not(debug_assertions))]
        let held = HeldLock {};
        let guard = self.mutex.try_lock()?;
        Some(RankedGuard { guard, held })
    }

    /// As [`lock_soon`](Self::lock_soon), but gives up: at once if `is_hopeless`, else after a
    /// fraction of a millisecond.
    ///
    /// # Panics
    ///
    /// As [`lock`](Self::lock).
    #[inline]
    pub fn lock_briefly(&self, is_hopeless: impl Fn() -> bool) -> Option<RankedGuard<'_, T>> {
        #[cfg(debug_assertions)]
        let held = HeldLock::new(self.rank);
        #[cfg(not(debug_assertions))]
        let held = HeldLock {};
        let guard = match self.mutex.try_lock() {
            Some(guard) => guard,
            None => self.wait_briefly(is_hopeless)?,
        };
        Some(RankedGuard { guard, held })
    }

    #[cold]
    fn wait_briefly(&self, is_hopeless: impl Fn() -> bool) -> Option<MutexGuard<'_, T>> {
        for _ in 0..TRIES {
            std::hint::spin_loop();
            if let Some(guard) = self.mutex.try_lock() {
                return Some(guard);
            }
        }
        (0..BRIEF_WAITS)
            .take_while(|_| !is_hopeless())
            .find_map(|_| self.mutex.try_lock_for(BRIEF_WAIT))
    }

    /// Takes the lock if nobody has it. Whoever does not wait can be in no circle, so the order
    /// does not matter.
    #[inline]
    pub fn try_lock(&self) -> Option<RankedGuard<'_, T>> {
        let guard = self.mutex.try_lock()?;
        #[cfg(debug_assertions)]
        let held = HeldLock::unordered(self.rank);
        #[cfg(not(debug_assertions))]
        let held = HeldLock {};
        Some(RankedGuard { guard, held })
    }
}

impl<T> Deref for RankedGuard<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        &self.guard
    }
}

impl<T> DerefMut for RankedGuard<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.guard
    }
}

#[cfg(all(test, debug_assertions))]
mod tests {
    use super::*;

    #[test]
    fn locks_may_be_taken_in_their_order_and_freed_in_any() {
        let gate = HeldLock::new(Rank::Gate);
        let first = HeldLock::new(Rank::Shard(1));
        let second = HeldLock::new(Rank::Shard(2));
        drop(first);
        drop(gate);
        let events = HeldLock::new(Rank::Events);
        drop(second);
        drop(events);
        drop(HeldLock::new(Rank::Gate));
    }

    #[test]
    fn a_lock_that_is_free_may_be_taken_out_of_order_if_nobody_waits_for_it() {
        let (first, second) = (
            Ranked::new(Rank::Shard(1), ()),
            Ranked::new(Rank::Shard(2), ()),
        );
        let higher = second.lock();
        let lower = first.try_lock().expect("it is free");
        assert!(second.try_lock().is_none());
        drop((higher, lower));
        drop(first.lock());
    }

    #[test]
    fn a_lock_that_is_tried_before_its_thread_sleeps_is_held_by_one_at_a_time() {
        let sum = Ranked::new(Rank::Shard(1), 0_u64);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..1_000).for_each(|_| *sum.lock_soon() += 1));
            }
            // Longer than the others try.
            let held = sum.lock();
            std::thread::yield_now();
            drop(held);
        });
        assert_eq!(*sum.lock(), 4_000);
    }

    #[test]
    #[should_panic(expected = "Shard(1) is locked while Some(Shard(2)) is held")]
    fn a_lock_that_is_tried_first_keeps_the_order_too() {
        let (first, second) = (
            Ranked::new(Rank::Shard(1), ()),
            Ranked::new(Rank::Shard(2), ()),
        );
        let _second = second.lock_soon();
        let _first = first.lock_soon();
    }

    #[test]
    #[should_panic(expected = "Shard(1) is locked while Some(Shard(2)) is held")]
    fn a_lower_shard_may_not_follow_a_higher_one() {
        let _second = HeldLock::new(Rank::Shard(2));
        let _first = HeldLock::new(Rank::Shard(1));
    }

    #[test]
    #[should_panic(expected = "Shard(0) is locked while Some(Hub) is held")]
    fn no_shard_may_be_locked_under_the_hub() {
        let _hub = HeldLock::new(Rank::Hub);
        let _shard = HeldLock::new(Rank::Shard(0));
    }
}
