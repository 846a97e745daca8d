//! The steps of an incremental command.

use tidewheel_resp::Writer;

use crate::budget::Budget;
use crate::context::Context;
use crate::error::CommandError;

/// Begins an incremental command: checks its arguments and returns its steps.
#[derive(Debug, Clone, Copy)]
pub struct StepsFn(pub(crate) fn(&Context<'_, '_>) -> Result<Box<dyn Steps>, CommandError>);

/// The steps of one command over all keys, or of one that waits until due members are removed.
pub(crate) trait Steps: std::fmt::Debug + Send {
    /// Goes on until the budget is spent. True at the end.
    fn step(&mut self, ctx: &mut Context<'_, '_>, budget: &mut Budget) -> bool;

    /// Writes the head of the reply, which stands before the output of the steps.
    fn head(&self, out: &mut Writer);

    /// Bytes held, where they may be many.
    fn bytes(&self) -> usize {
        0
    }
}

/// The position of a command that visits all shards.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ShardCursor {
    pub(crate) shard: usize,
    /// The place in the shard's hash order.
    pub(crate) cursor: u32,
}

impl ShardCursor {
    /// The cost of locking a shard.
    pub(crate) const SHARD_COST: usize = 8;

    /// Goes on at `next` in the same shard, or else at the start of the next shard.
    pub(crate) fn advance(&mut self, next: Option<u32>) {
        match next {
            Some(cursor) => self.cursor = cursor,
            None => {
                self.shard += 1;
                self.cursor = 0;
            }
        }
    }

    /// Visits each shard from here on until the budget is spent. True at the end.
    pub(crate) fn each_shard(
        &mut self,
        ctx: &mut Context<'_, '_>,
        budget: &mut Budget,
        mut visit: impl FnMut(&mut Context<'_, '_>, &mut Budget, u32) -> Option<u32>,
    ) -> bool {
        while self.shard < ctx.keyspace.shards() {
            if budget.is_spent() {
                return false;
            }
            budget.spend(Self::SHARD_COST);
            if ctx.lock_shard(self.shard).is_err() {
                return false;
            }
            let next = visit(ctx, budget, self.cursor);
            ctx.unlock();
            self.advance(next);
        }
        true
    }
}
