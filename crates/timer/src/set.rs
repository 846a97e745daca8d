//! Timers for those who have no entries of their own: a slab and a queue over it.
//!
//! A timer takes nine bytes of slab: the queue's registration, the low 32 bits of its deadline, and a
//! generation. Deadlines lie within 2^31 ticks of the queue's position, which tells the other bits;
//! those that do not (25 days ahead at one tick a millisecond) keep their full value in a side map.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;

use crate::queue::{Forecast, Progress, Timer, TimerQueue, Timers};

/// Names a timer of a [`TimerSet`]. A name outlives its timer harmlessly: it is refused, unless its
/// place has been reused a multiple of 256 times since.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TimerId {
    index: u32,
    generation: u8,
}

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
}

impl<Q: TimerQueue> TimerSet<Q> {
    /// An empty set over an empty queue.
    pub fn new(queue: Q) -> Self {
        let base = queue.elapsed();
        Self {
            queue,
            slab: Slab::new(base),
        }
    }

    /// Adds a timer. A deadline that has passed is due at once.
    ///
    /// # Panics
    ///
    /// When 2^32 − 1 timers are pending.
    #[inline]
    pub fn insert(&mut self, deadline: u64, now: u64) -> TimerId {
        let index = self.slab.allocate();
        self.queue.insert(&mut self.slab, index, deadline, now);
        self.slab.base = self.queue.elapsed();
        self.slab.set_deadline(index, deadline);
        TimerId {
            index,
            generation: self.slab.cell(index).generation(),
        }
    }

    /// The deadline of a pending timer; one that had passed when it was set reads as the moment it
    /// was set.
    pub fn deadline(&self, id: TimerId) -> Option<u64> {
        self.find(id).map(|timer| timer.deadline)
    }

    /// Gives a pending timer a new deadline. Returns whether there was one.
    #[inline]
    pub fn reschedule(&mut self, id: TimerId, deadline: u64, now: u64) -> bool {
        let Some(old) = self.find(id) else {
            return false;
        };
        self.queue
            .reschedule(&mut self.slab, id.index, old, deadline, now);
        self.slab.base = self.queue.elapsed();
        self.slab.set_deadline(id.index, deadline);
        true
    }

    /// Cancels a pending timer. Returns whether there was one.
    #[inline]
    pub fn cancel(&mut self, id: TimerId) -> bool {
        let Some(old) = self.find(id) else {
            return false;
        };
        self.queue.cancel(&mut self.slab, id.index, old);
        self.slab.release(id.index);
        true
    }

    /// Fires what is due: see [`TimerQueue::advance`].
    pub fn advance(&mut self, now: u64, budget: u32, mut sink: impl FnMut(TimerId)) -> Progress {
        let progress = self
            .queue
            .advance(&mut self.slab, now, budget, |slab, due| {
                for &index in due {
                    let generation = slab.cell(index).generation();
                    slab.release(index);
                    sink(TimerId { index, generation });
                }
            });
        self.slab.base = self.queue.elapsed();
        progress
    }

    /// Hands out every pending timer and is empty afterwards.
    pub fn drain(&mut self, mut sink: impl FnMut(TimerId)) {
        self.queue.drain(&mut self.slab, |slab, due| {
            for &index in due {
                let generation = slab.cell(index).generation();
                slab.release(index);
                sink(TimerId { index, generation });
            }
        });
    }

    /// See [`TimerQueue::next_deadline`].
    pub fn next_deadline(&self) -> Option<u64> {
        self.queue.next_deadline()
    }

    /// See [`TimerQueue::forecast`].
    pub fn forecast(&self, now: u64) -> Forecast {
        let mut forecast = [0; 65];
        self.queue.forecast(now, &mut forecast);
        forecast
    }

    /// See [`TimerQueue::maintain`].
    pub fn maintain(&mut self, budget: u32) -> bool {
        self.queue.maintain(&mut self.slab, budget)
    }

    /// Timers that are pending.
    pub fn len(&self) -> usize {
        self.slab.len
    }

    /// Whether no timer is pending.
    pub fn is_empty(&self) -> bool {
        self.slab.len == 0
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
            self.slab.len,
            "queue and slab disagree on the count"
        );
    }

    #[inline]
    fn find(&self, id: TimerId) -> Option<Timer> {
        if self.slab.pages.get((id.index / PAGE) as usize).is_none()
            || self.slab.cell(id.index).generation() != id.generation
        {
            return None;
        }
        self.slab.timer(id.index)
    }
}

/// Cells a page holds.
const PAGE: u32 = 1024;

/// Low bits that mark a cell without a timer.
const FREE: u32 = u32::MAX;

/// Low bits that mark a deadline that is kept in the side map.
const FAR: u32 = u32::MAX - 1;

/// Registration (or next free cell), low bits of the deadline, generation.
#[derive(Debug, Clone, Copy)]
struct Cell([u8; 9]);

impl Cell {
    #[inline]
    fn registration(&self) -> u32 {
        u32::from_le_bytes([self.0[0], self.0[1], self.0[2], self.0[3]])
    }

    #[inline]
    fn set_registration(&mut self, registration: u32) {
        self.0[..4].copy_from_slice(&registration.to_le_bytes());
    }

    #[inline]
    fn low(&self) -> u32 {
        u32::from_le_bytes([self.0[4], self.0[5], self.0[6], self.0[7]])
    }

    #[inline]
    fn set_low(&mut self, low: u32) {
        self.0[4..8].copy_from_slice(&low.to_le_bytes());
    }

    #[inline]
    fn generation(&self) -> u8 {
        self.0[8]
    }
}

#[derive(Debug)]
struct Slab {
    pages: Vec<Box<[Cell]>>,
    free: u32,
    len: usize,
    /// The queue's position, from which the low bits of a deadline are completed.
    base: u64,
    far: BTreeMap<u32, u64>,
}

impl Slab {
    fn new(base: u64) -> Self {
        Self {
            pages: Vec::new(),
            free: u32::MAX,
            len: 0,
            base,
            far: BTreeMap::new(),
        }
    }

    #[inline]
    fn cell(&self, index: u32) -> &Cell {
        &self.pages[(index / PAGE) as usize][(index % PAGE) as usize]
    }

    #[inline]
    fn cell_mut(&mut self, index: u32) -> &mut Cell {
        &mut self.pages[(index / PAGE) as usize][(index % PAGE) as usize]
    }

    #[inline]
    fn allocate(&mut self) -> u32 {
        if self.free == u32::MAX {
            self.add_page();
        }
        let index = self.free;
        self.free = self.cell(index).registration();
        self.len += 1;
        index
    }

    #[cold]
    fn add_page(&mut self) {
        let base = self.pages.len() as u32 * PAGE;
        assert!(base < u32::MAX - PAGE, "2^32 timers are pending");
        let mut cell = Cell([0; 9]);
        cell.set_low(FREE);
        let mut page = vec![cell; PAGE as usize].into_boxed_slice();
        for (cell, next) in page.iter_mut().zip(base + 1..) {
            cell.set_registration(next);
        }
        page[PAGE as usize - 1].set_registration(self.free);
        self.pages.push(page);
        self.free = base;
    }

    #[inline]
    fn release(&mut self, index: u32) {
        let free = self.free;
        let cell = self.cell_mut(index);
        let was_far = cell.low() == FAR;
        cell.set_low(FREE);
        cell.set_registration(free);
        cell.0[8] = cell.0[8].wrapping_add(1);
        if was_far {
            self.far.remove(&index);
        }
        self.free = index;
        self.len -= 1;
    }

    #[inline]
    fn set_deadline(&mut self, index: u32, deadline: u64) {
        let deadline = deadline.max(self.base);
        let low = deadline as u32;
        let was_far = self.cell(index).low() == FAR;
        if deadline - self.base < 1 << 31 && low < FAR {
            self.cell_mut(index).set_low(low);
            if was_far {
                self.far.remove(&index);
            }
        } else {
            self.cell_mut(index).set_low(FAR);
            self.far.insert(index, deadline);
        }
    }

    fn bytes(&self) -> usize {
        self.pages.len() * PAGE as usize * size_of::<Cell>()
            + self.pages.capacity() * size_of::<Box<[Cell]>>()
            + self.far.len() * 2 * size_of::<(u32, u64)>()
    }
}

impl Timers for Slab {
    #[inline]
    fn timer(&self, index: u32) -> Option<Timer> {
        let cell = self.cell(index);
        let low = cell.low();
        let deadline = match low {
            FREE => return None,
            FAR => *self.far.get(&index)?,
            _ => {
                let ahead = low.wrapping_sub(self.base as u32) as i32;
                self.base.saturating_add_signed(i64::from(ahead))
            }
        };
        Some(Timer {
            deadline,
            registration: cell.registration(),
        })
    }

    #[inline]
    fn set_registration(&mut self, index: u32, registration: u32) {
        self.cell_mut(index).set_registration(registration);
    }
}
