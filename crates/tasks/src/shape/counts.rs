//! How many tasks of a queue a store has.

use crate::shape::look::State;

/// How many tasks of a queue a store has, by state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Counts {
    /// Those that wait for their time, or for a worker.
    pub pending: u64,
    /// Those that a worker has; on NATS, those that were handed over.
    pub claimed: u64,
    /// Results that are kept.
    pub done: u64,
    /// Dead letters.
    pub dead: u64,
}

impl Counts {
    /// Adds tasks of a state.
    pub fn add(&mut self, state: State, count: u64) {
        let counted = match state {
            State::Pending => &mut self.pending,
            State::Claimed => &mut self.claimed,
            State::Done => &mut self.done,
            State::Dead => &mut self.dead,
        };
        *counted += count;
    }
}
