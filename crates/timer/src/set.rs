//! Timers for programs that have no entries to keep them in: a slab of timers, and a queue over it.

use alloc::vec::Vec;

use crate::queue::{Forecast, Progress, TimerQueue, Timers};
use crate::slab::{Slab, TimerId};

/// Timers and the queue that orders them.
///
/// ```
/// use tidewheel_timer::{IndexedHeap, TimerSet};
///
/// let mut timers = TimerSet::new(IndexedHeap::<4>::new(0));
/// let id = timers.insert(10, 0);
/// assert!(timers.cancel(id));
/// assert!(!timers.cancel(id));
/// ```
#[derive(Debug)]
pub struct TimerSet<Q> {
    queue: Q,
    slab: Slab,
    /// Due timers that a sink did not get because it panicked. Empty outside of
    /// [`advance`](Self::advance).
    unseen: Vec<u32>,
}

/// A call of `advance`. It ends in the same way when the sink panics: timers that are due, but were
/// not handed over, are pending again.
struct Advancing<'a, Q: TimerQueue>(&'a mut TimerSet<Q>);

impl<Q: TimerQueue> Drop for Advancing<'_, Q> {
    #[inline]
    fn drop(&mut self) {
        let set = &mut *self.0;
        set.slab.set_base(set.queue.elapsed());
        if !set.unseen.is_empty() {
            set.file_unseen();
        }
        set.slab.settle();
    }
}

/// A batch on its way to the sink. If the sink panics, the rest of the batch goes to `unseen`.
struct Batch<'a> {
    due: core::slice::Iter<'a, u32>,
    unseen: &'a mut Vec<u32>,
}

impl Drop for Batch<'_> {
    #[inline]
    fn drop(&mut self) {
        if !self.due.as_slice().is_empty() {
            self.keep();
        }
    }
}

impl Batch<'_> {
    #[cold]
    fn keep(&mut self) {
        self.unseen.extend(self.due.by_ref());
    }
}

impl<Q: TimerQueue> TimerSet<Q> {
    /// An empty set over an empty queue.
    pub fn new(queue: Q) -> Self {
        let base = queue.elapsed();
        Self {
            queue,
            slab: Slab::new(base),
            unseen: Vec::new(),
        }
    }

    /// Adds a timer. A deadline that has passed is due at once.
    ///
    /// # Panics
    ///
    /// When 2^32 − 1 timers are pending. Also when all names of timers are used up, but not before
    /// 2^48 timers.
    #[inline]
    pub fn insert(&mut self, deadline: u64, now: u64) -> TimerId {
        let index = self.slab.allocate();
        self.queue.insert(&mut self.slab, index, deadline, now);
        self.slab.set_base(self.queue.elapsed());
        self.slab.set_deadline(index, deadline);
        self.slab.id(index)
    }

    /// The deadline of a pending timer; one that had passed when it was set reads as the moment it
    /// was set.
    pub fn deadline(&self, id: TimerId) -> Option<u64> {
        self.slab.find(id).map(|timer| timer.deadline)
    }

    /// Gives a pending timer a new deadline. Returns whether there was one.
    #[inline]
    pub fn reschedule(&mut self, id: TimerId, deadline: u64, now: u64) -> bool {
        let Some(old) = self.slab.find(id) else {
            return false;
        };
        self.queue
            .reschedule(&mut self.slab, id.index(), old, deadline, now);
        self.slab.set_base(self.queue.elapsed());
        self.slab.set_deadline(id.index(), deadline);
        true
    }

    /// Cancels a pending timer. Returns whether there was one.
    #[inline]
    pub fn cancel(&mut self, id: TimerId) -> bool {
        let Some(old) = self.slab.find(id) else {
            return false;
        };
        self.queue.cancel(&mut self.slab, id.index(), old);
        self.slab.release(id.index());
        true
    }

    /// Fires what is due: see [`TimerQueue::advance`]. If the sink panics, the due timers that it
    /// was not given stay pending.
    pub fn advance(&mut self, now: u64, budget: u32, mut sink: impl FnMut(TimerId)) -> Progress {
        let advancing = Advancing(self);
        let Self {
            queue,
            slab,
            unseen,
        } = &mut *advancing.0;
        queue.advance(slab, now, budget, |slab, due| {
            let mut batch = Batch {
                due: due.iter(),
                unseen,
            };
            for &index in batch.due.by_ref() {
                sink(slab.release(index));
            }
        })
    }

    #[cold]
    fn file_unseen(&mut self) {
        for index in self.unseen.drain(..) {
            let deadline = self.slab.timer(index).map_or(0, |timer| timer.deadline);
            let now = self.queue.elapsed();
            self.queue.insert(&mut self.slab, index, deadline, now);
        }
    }

    /// Hands out every pending timer and is empty before it does.
    pub fn drain(&mut self, sink: impl FnMut(TimerId)) {
        let mut ids = Vec::with_capacity(self.len());
        self.queue.drain(&mut self.slab, |slab, due| {
            ids.extend(due.iter().map(|&index| slab.release(index)));
        });
        self.slab.settle();
        ids.into_iter().for_each(sink);
    }

    /// See [`TimerQueue::next_deadline`].
    pub fn next_deadline(&self) -> Option<u64> {
        self.queue.next_deadline()
    }

    /// See [`TimerQueue::forecast`].
    pub fn forecast(&self, now: u64) -> Forecast {
        let mut forecast = [0; 65];
        self.queue.forecast(&self.slab, now, &mut forecast);
        forecast
    }

    /// See [`TimerQueue::maintain`].
    pub fn maintain(&mut self, budget: u32) -> bool {
        self.slab.settle();
        self.queue.maintain(&mut self.slab, budget)
    }

    /// Timers that are pending.
    pub fn len(&self) -> usize {
        self.slab.len()
    }

    /// Returns whether no timer is pending.
    pub fn is_empty(&self) -> bool {
        self.slab.len() == 0
    }

    /// Heap bytes held.
    pub fn bytes(&self) -> usize {
        self.queue.bytes() + self.slab.bytes()
    }

    /// The queue.
    pub fn queue(&self) -> &Q {
        &self.queue
    }

    /// Panics if the structure is broken. O(n).
    pub fn validate(&self) {
        self.queue.validate(&self.slab);
        assert_eq!(
            self.queue.len(),
            self.slab.len(),
            "queue and slab disagree on the count"
        );
    }
}
