//! Commands that walk over everything, in steps: between two steps others have their turn.
//!
//! 1. [`Keyspace::begin`] takes the first step. Most keyspaces are small, and it was the last one.
//! 2. As long as a [`Walk`] comes back, its owner hands it to [`Keyspace::go_on`] when it likes.
//! 3. The last step appends the whole reply. A walk whose reply exceeds the buffer's limit ends there.
//!
//! Each step sees the time anew, and what others have changed meanwhile. A walk that is dropped is over.

use tidewheel_resp::{Args, Writer};

use crate::command::{Command, CommandError};
use crate::context::Context;
use crate::gate::Seat;
use crate::keyspace::{Keyspace, Session};
use crate::time::{Now, Time};

/// What one step may cost, in units of about a hundred nanoseconds.
const STEP_BUDGET: usize = 1024;

/// A longer reply moves with its buffer if nothing is in its way.
const COPY_MAX: usize = 64 << 10;

/// A command that is not finished.
#[derive(Debug)]
pub struct Walk {
    row: &'static Command,
    session: Session,
    steps: Box<dyn Steps>,
    /// The reply so far.
    body: Writer,
}

/// How a command begins that walks over everything.
#[derive(Debug, Clone, Copy)]
pub struct WalkFn(pub(crate) fn(&Context<'_, '_>) -> Result<Box<dyn Steps>, CommandError>);

/// What such a command does again and again.
pub(crate) trait Steps: std::fmt::Debug + Send {
    /// Goes on until the budget is spent. True at the end.
    fn step(&mut self, ctx: &mut Context<'_, '_>, budget: &mut Budget) -> bool;

    /// Writes what comes before all that the steps wrote.
    fn head(&self, out: &mut Writer);

    /// Bytes held, where they may be many.
    fn bytes(&self) -> usize {
        0
    }
}

/// What is left of a step.
#[derive(Debug)]
pub(crate) struct Budget(usize);

impl Budget {
    pub(crate) fn spend(&mut self, cost: usize) {
        self.0 = self.0.saturating_sub(cost);
    }

    pub(crate) fn is_spent(&self) -> bool {
        self.0 == 0
    }
}

impl Walk {
    /// The command that it is.
    #[must_use]
    pub fn row(&self) -> &'static Command {
        self.row
    }

    /// Bytes held.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.body.capacity() + self.steps.bytes()
    }
}

impl Keyspace {
    /// The first step of a command that walks.
    pub(crate) fn set_out(
        &self,
        seat: &mut Seat,
        row: &'static Command,
        walk: WalkFn,
        context: &mut Context<'_, '_>,
    ) -> Option<Box<Walk>> {
        let steps = match walk.0(context) {
            Ok(steps) => steps,
            Err(error) => {
                error.write(context.out);
                return None;
            }
        };
        let mut body = Writer::new(context.out.protocol());
        body.set_limit(context.out.limit());
        let walk = Walk {
            row,
            session: context.session.clone(),
            steps,
            body,
        };
        self.go_on(seat, Box::new(walk), context.now.time, context.out)
    }

    /// Takes the next step of a walk. `None` at the end: then the reply was appended, all at once. Exclusive
    /// users that wait go first.
    #[must_use = "a walk that is dropped is never answered"]
    pub fn go_on(
        &self,
        seat: &mut Seat,
        mut walk: Box<Walk>,
        time: Time,
        out: &mut Writer,
    ) -> Option<Box<Walk>> {
        seat.give_way();
        let visit = seat.visit();
        let now = Now::of(&self.timeline, time);
        let arrived = walk.step(self, now);
        drop(visit);
        if !arrived {
            return Some(walk);
        }
        walk.reply(out);
        None
    }
}

impl Walk {
    fn step(&mut self, keyspace: &Keyspace, now: Now) -> bool {
        let (session, args) = (&mut self.session, Args::from_slices(&[]));
        let mut context = Context::new(keyspace, session, now, args, &mut self.body, false);
        let arrived = self.steps.step(&mut context, &mut Budget(STEP_BUDGET));
        let over = context.out.is_over();
        context.finish();
        arrived || over
    }

    fn reply(&mut self, out: &mut Writer) {
        if self.body.is_over() {
            out.refuse();
        } else if out.is_empty() && self.body.len() > COPY_MAX {
            let mut head = Writer::new(self.body.protocol());
            self.steps.head(&mut head);
            self.body.raw_first(head.as_bytes());
            self.body.set_limit(out.limit());
            std::mem::swap(out, &mut self.body);
        } else {
            self.steps.head(out);
            out.raw(self.body.as_bytes());
        }
    }
}

/// Where a walk over all shards stands.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Place {
    pub(crate) shard: usize,
    /// The place in the shard's hash order.
    pub(crate) cursor: u32,
}

impl Place {
    /// What locking a shard costs.
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
            ctx.lock_shard(self.shard);
            let next = visit(ctx, budget, self.cursor);
            ctx.unlock();
            self.advance(next);
        }
        true
    }
}
