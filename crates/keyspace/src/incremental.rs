//! A command that runs in steps, with other commands between them. It visits all keys, or it
//! [waits](crate::drain_due) until due members are removed.
//!
//! 1. [`Keyspace::begin`] takes the first step. For most keyspaces it is the only one: they are
//!    small.
//! 2. Otherwise an [`IncrementalCommand`] comes back. Its owner calls [`Keyspace::go_on`] until
//!    none comes back.
//! 3. The last step appends the whole reply. The command also ends when its reply exceeds the
//!    buffer's limit.
//!
//! Each step sees the current time and the changes that others have made since the last one.
//! Dropping it ends it without a reply.
//!
//! [`Keyspace::begin`]: crate::Keyspace::begin
//! [`Keyspace::go_on`]: crate::Keyspace::go_on

use tidewheel_resp::{Args, Writer};

use crate::budget::Budget;
use crate::claims::Blocked;
use crate::context::Context;
use crate::error::CommandError;
use crate::keyspace::Keyspace;
use crate::rows::Command;
use crate::session::Session;
use crate::steps::{Steps, StepsFn};
use crate::time::Now;

/// A reply longer than this is swapped into the output buffer instead of copied, if that buffer is
/// empty.
const COPY_MAX: usize = 64 << 10;

/// A command that runs in steps.
#[derive(Debug)]
pub struct IncrementalCommand {
    row: &'static Command,
    session: Session,
    steps: Box<dyn Steps>,
    /// The reply so far.
    body: Writer,
    /// The shard of the next step is locked for long.
    blocked: Option<Blocked>,
}

impl IncrementalCommand {
    /// A command that has not taken a step.
    pub(crate) fn new(
        row: &'static Command,
        steps: StepsFn,
        context: &Context<'_, '_>,
    ) -> Result<Box<Self>, CommandError> {
        Ok(Self::of(row, steps.0(context)?, context))
    }

    /// A command that takes these steps.
    pub(crate) fn of(
        row: &'static Command,
        steps: Box<dyn Steps>,
        context: &Context<'_, '_>,
    ) -> Box<Self> {
        let mut body = Writer::new(context.out.protocol());
        body.set_limit(context.out.limit());
        Box::new(Self {
            row,
            session: context.session.clone(),
            steps,
            body,
            blocked: None,
        })
    }

    /// The row of its command.
    #[must_use]
    pub fn row(&self) -> &'static Command {
        self.row
    }

    /// The reason why its last step went no further, if a shard is locked for long. Its client is
    /// [parked](crate::Keyspace::park) before the next step.
    pub fn take_blocked(&mut self) -> Option<Blocked> {
        self.blocked.take()
    }

    /// Bytes held.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.body.capacity() + self.steps.bytes()
    }

    /// Takes the next step. True at the end. `defers`: those who wait for keys are served later, by
    /// the caller.
    pub(crate) fn step(&mut self, keyspace: &Keyspace, now: Now, defers: bool) -> bool {
        let (session, args) = (&mut self.session, Args::from_slices(&[]));
        let row = Some(self.row);
        let mut context = Context::new(keyspace, session, now, args, &mut self.body, row);
        context.defers = defers;
        let arrived = self.steps.step(&mut context, &mut Budget::default());
        let over = context.out.is_over();
        context.finish();
        let blocked = context.blocked.take();
        drop(context);
        self.blocked = blocked;
        arrived || over
    }

    /// Takes all steps at one point in time, within a transaction, and appends the reply.
    pub(crate) fn run(&mut self, keyspace: &Keyspace, now: Now, out: &mut Writer) {
        while !self.step(keyspace, now, true) {}
        self.reply(out);
    }

    /// Appends the whole reply.
    pub(crate) fn reply(&mut self, out: &mut Writer) {
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
