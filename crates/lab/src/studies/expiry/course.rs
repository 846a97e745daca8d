//! A course calls a strategy over its entries on a virtual clock, at the times that it asks for.

use super::strategies::deadlines::Deadlines;
use super::strategies::{Entries, Expiry, Left, Strategy};
use crate::clock;

/// A strategy over its entries on a virtual clock.
pub(crate) struct Course {
    strategy: Box<dyn Expiry<Deadlines>>,
    entries: Deadlines,
    now_ms: u64,
    /// The entries that were found and not looked at yet.
    due: Vec<u32>,
    /// The number that had been found at the end of a call.
    marks: Vec<(u64, usize)>,
}

impl Course {
    /// The clock stands at `start_ms`.
    pub(crate) fn new(strategy: Strategy, entries: Deadlines, start_ms: u64, seed: u64) -> Self {
        Self {
            strategy: strategy.build(start_ms, seed, clock::mono_ns),
            entries,
            now_ms: start_ms,
            due: Vec::new(),
            marks: Vec::new(),
        }
    }

    /// Sets a deadline at `now_ms`, which is not before the last time.
    pub(crate) fn insert(&mut self, id: u32, deadline_ms: u64, now_ms: u64) {
        self.now_ms = now_ms;
        self.entries.set(id, deadline_ms);
        let entries = &mut self.entries;
        self.strategy.insert(entries, id, deadline_ms, now_ms);
    }

    /// The next call that the strategy asks for before `end_ms`.
    fn next_call(&self, end_ms: u64) -> Option<u64> {
        let at_ms = self.strategy.wake()?.max(self.now_ms);
        (at_ms < end_ms).then_some(at_ms)
    }

    fn call(&mut self, at_ms: u64) {
        self.now_ms = at_ms;
        let found = self.due.len();
        let (entries, due) = (&mut self.entries, &mut self.due);
        // A cleared deadline is all the removal that there is.
        while self.strategy.advance(entries, at_ms, u32::MAX, due) != Left::Nothing {}
        if self.due.len() > found {
            self.marks.push((at_ms, self.due.len()));
        }
    }

    /// Makes all calls that are asked for before `end_ms`.
    pub(crate) fn run_until(&mut self, end_ms: u64) {
        while let Some(at_ms) = self.next_call(end_ms) {
            self.call(at_ms);
        }
        self.now_ms = end_ms;
    }

    /// The same; the processor time of all calls together: most take less than a look at the clock.
    pub(crate) fn time_until(&mut self, end_ms: u64) -> u64 {
        let stretch = clock::Stretch::start();
        self.run_until(end_ms);
        stretch.stop()
    }

    /// The same; the processor time of the longest single call.
    pub(crate) fn longest_until(&mut self, end_ms: u64) -> u64 {
        let mut longest_ns = 0;
        while let Some(at_ms) = self.next_call(end_ms) {
            let stretch = clock::Stretch::start();
            self.call(at_ms);
            longest_ns = longest_ns.max(stretch.stop());
        }
        self.now_ms = end_ms;
        longest_ns
    }

    /// Heap bytes by the strategy's own account.
    pub(crate) fn own_bytes(&self) -> usize {
        self.strategy.bytes()
    }

    /// Tells of what was found since the last time: entry and time.
    pub(crate) fn settle(&mut self, mut found: impl FnMut(u32, u64)) {
        let mut from = 0;
        for (at_ms, to) in self.marks.drain(..) {
            for &id in &self.due[from..to] {
                found(id, at_ms);
            }
            from = to;
        }
        self.due.clear();
    }
}
