//! Cuts several commands, and prefetches their keys, before the first of them runs.
//!
//! Without this, each command of a pipeline of 16 GETs would wait for its key's memory. Here the
//! memory of all keys is requested first: see
//! [`Keyspace::prefetch`](tidewheel_keyspace::Keyspace::prefetch).

use tidewheel_keyspace::{Call, ResolvedCalls};
use tidewheel_resp::{Args, Batch, Limits};

use crate::state::loop_state::LoopState;

/// The most commands that are cut at once. Their entries wait in the processor's cache.
const BATCH_MAX: usize = 32;

/// Commands that were cut, with their rows and the hashes of their keys.
#[derive(Debug, Default)]
pub(super) struct PrefetchedBatch {
    batch: Batch,
    resolved: ResolvedCalls,
}

impl PrefetchedBatch {
    /// Cuts the next commands of `input`, and asks for the data of their keys.
    pub(super) fn fill(&mut self, state: &LoopState, db: u32, input: &[u8], limits: &Limits) {
        self.clear();
        self.batch.fill(input, limits, BATCH_MAX);
        let keyspace = &state.server.keyspace;
        for i in 0..self.batch.len() {
            keyspace.resolve_ahead(self.batch.args(input, i), &mut self.resolved);
        }
        if self.resolved.has_several_keys() && keyspace.is_worth_prefetching() {
            keyspace.prefetch(&state.seat, db, &self.resolved);
        }
    }

    /// Returns the number of commands that were cut.
    pub(super) fn len(&self) -> usize {
        self.batch.len()
    }

    /// Returns the end of a command in the input.
    pub(super) fn end(&self, i: usize) -> usize {
        self.batch.end(i)
    }

    /// Returns a command's arguments, and its resolved call if it has one.
    pub(super) fn call<'a>(&'a self, input: &'a [u8], i: usize) -> (Args<'a>, Option<Call<'a>>) {
        (self.batch.args(input, i), self.resolved.call(i))
    }

    /// Returns true if it has no command.
    pub(super) fn is_clear(&self) -> bool {
        self.batch.is_empty()
    }

    /// Forgets the commands.
    pub(super) fn clear(&mut self) {
        self.batch.clear();
        self.resolved.clear();
    }
}
