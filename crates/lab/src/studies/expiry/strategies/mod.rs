//! Strategies find the entries that are due; the caches of an experiment differ in them alone.
//!
//! A strategy learns of every deadline that is set, moved or forgotten, says when it wants to be
//! called next, and hands out what it found. Time is in milliseconds and an argument; the deadlines
//! themselves lie with the entries, whose owner a strategy reaches through [`Entries`].

use clap::ValueEnum;
use tidewheel_timer::{HashedWheel, HierarchicalWheel, IndexedHeap, Timer, Timers};

use self::fifo_lists::FifoLists;
use self::mixed_radix::MixedRadixWheel;
use self::queue::Queue;
pub(crate) use self::sampling::Sampling;
pub(crate) use self::scan::Scan;
use self::sorted_tree::SortedTree;
use crate::names;

pub(crate) mod deadlines;
mod fifo_lists;
mod mixed_radix;
mod queue;
mod sampling;
mod scan;
mod sorted_tree;
#[cfg(test)]
mod tests;

/// The deadline of what lives for ever.
pub(crate) const NEVER: u64 = u64::MAX;

/// The owner of the entries that have deadlines, by the numbers of their places.
pub(crate) trait Entries: Timers {
    /// One more than the highest place in use.
    fn bound(&self) -> u32;

    /// Stores a deadline; [`NEVER`] for none.
    fn set(&mut self, id: u32, deadline_ms: u64);

    /// Forgets the deadline of an entry that was found due.
    fn clear(&mut self, id: u32) {
        self.set(id, NEVER);
    }
}

/// The work that a call left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Left {
    /// Nothing that it knows of, until it is to be called next.
    Nothing,
    /// More that is due; others may have their turn first.
    Backlog,
    /// The call is not over: its owner removes what was found and calls again before anything else,
    /// since the removal counts against the time that the call may take.
    Unfinished,
}

impl Left {
    fn backlog(is_left: bool) -> Self {
        match is_left {
            true => Self::Backlog,
            false => Self::Nothing,
        }
    }
}

/// A strategy: it finds the entries that are due.
pub(crate) trait Expiry<E: Entries>: Send + Sync {
    /// Learns of a deadline of an entry that had none. The owner stores it, before the call or
    /// after.
    fn insert(&mut self, entries: &mut E, id: u32, deadline_ms: u64, now_ms: u64);

    /// Learns that a deadline moved; `old` is how it was. The owner stores the new one.
    fn reschedule(&mut self, entries: &mut E, id: u32, old: Timer, deadline_ms: u64, now_ms: u64) {
        if deadline_ms != old.deadline {
            self.cancel(entries, id, old);
            self.insert(entries, id, deadline_ms, now_ms);
        }
    }

    /// Learns that a deadline is gone; `old` is how it was. The owner clears it after the call.
    fn cancel(&mut self, entries: &mut E, id: u32, old: Timer);

    /// Appends what is due to `due` and clears it in the entries. Those that take a budget stop
    /// after so many; scan and sampling have none by nature.
    fn advance(&mut self, entries: &mut E, now_ms: u64, budget: u32, due: &mut Vec<u32>) -> Left;

    /// The time at which it wants to be called next; a time that has passed means now, `None` not
    /// before the next insert.
    fn wake(&self) -> Option<u64>;

    /// Heap bytes of its own, beside the 12 of deadline and registration in an entry.
    fn bytes(&self) -> usize;
}

/// A way to find what is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Strategy {
    /// Once a second a walk over every deadline.
    Scan,
    /// Ten times a second a few random entries, as Redis does.
    Sampling,
    /// A B-tree ordered by deadline.
    SortedTree,
    /// An indexed binary heap.
    #[value(name = "heap-2")]
    Heap2,
    /// An indexed heap of arity four.
    #[value(name = "heap-4")]
    Heap4,
    /// A queue for each distinct time to live.
    FifoLists,
    /// One level of 65,536 slots of a millisecond, with rounds.
    HashedWheel,
    /// Wheels of seconds, minutes, hours and days.
    MixedRadixWheel,
    /// Tidewheel's own.
    HierarchicalWheel,
}

/// The interval of the scan's walks.
const SCAN_MS: u64 = 1_000;
/// Slots of the hashed wheel: a turn of 65.5 s, so that deadlines of a minute lie within it.
const HASHED_SLOTS: usize = 1 << 16;

impl Strategy {
    /// An empty one that stands at `now_ms`. Scans and samplings come at times counted from there;
    /// samplings draw by the seed, and end by the clock in nanoseconds.
    pub(crate) fn build<E: Entries>(
        self,
        now_ms: u64,
        seed: u64,
        clock_ns: fn() -> u64,
    ) -> Box<dyn Expiry<E>> {
        match self {
            Self::Scan => Box::new(Scan::new(now_ms, SCAN_MS)),
            Self::Sampling => Box::new(Sampling::new(now_ms, seed, clock_ns)),
            Self::SortedTree => Box::new(SortedTree::default()),
            Self::Heap2 => Box::new(Queue(IndexedHeap::<2>::new(now_ms))),
            Self::Heap4 => Box::new(Queue(IndexedHeap::<4>::new(now_ms))),
            Self::FifoLists => Box::new(FifoLists::default()),
            Self::HashedWheel => Box::new(Queue(HashedWheel::new(HASHED_SLOTS, now_ms))),
            Self::MixedRadixWheel => Box::new(MixedRadixWheel::new(now_ms)),
            Self::HierarchicalWheel => Box::new(Queue(HierarchicalWheel::new(now_ms))),
        }
    }

    /// The greatest lateness of an entry when it is called as it asks; `None` when there is no
    /// bound.
    #[cfg(test)]
    pub(crate) fn late_at_most_ms(self) -> Option<u64> {
        match self {
            Self::Sampling => None,
            Self::Scan | Self::MixedRadixWheel => Some(1_000),
            _ => Some(0),
        }
    }
}

names::display_as_named!(Strategy);
