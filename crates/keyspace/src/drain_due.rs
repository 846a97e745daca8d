//! Drains a collection with very many due members in steps, before a command sees it.
//!
//! An example: a hash has a million fields, and half of them are due in the same millisecond.
//! Before a pass of expiry gets to it, a client sends HLEN. No command may count a dead field, and
//! no loop may stop for half a million removals.
//!
//! 1. After a command has locked its keys, it looks whether its shards have something due. Mostly
//!    they have not.
//! 2. If they have, it removes at most [`DRAIN_STEP`](crate::context::DRAIN_STEP) due members
//!    of its keys. Mostly none are left, and it runs.
//! 3. Otherwise it becomes an [`IncrementalCommand`], whose steps remove as many each. The last one
//!    runs the command.
//!
//! Commands of a transaction and blocking commands do not wait like this: they remove all that is
//! due.

use tidewheel_resp::{Args, Writer};

use crate::budget::Budget;
use crate::commands::handlers::{Handler, handler};
use crate::context::Context;
use crate::execute::Unfinished;
use crate::incremental::IncrementalCommand;
use crate::keyspace::Keyspace;
use crate::rows::Command;
use crate::rows::Flags;
use crate::steps::Steps;

/// A command that waits until the due members of its keys are gone.
#[derive(Debug)]
struct DelayedCommand {
    row: &'static Command,
    args: Vec<Box<[u8]>>,
}

impl Keyspace {
    /// The command as an incremental one, if very many members of its keys are due and must be
    /// drained first. The shards of its keys are locked.
    #[cold]
    pub(crate) fn drain_due_first(
        &self,
        row: &'static Command,
        context: &mut Context<'_, '_>,
    ) -> Option<Unfinished> {
        if row.flags.has(Flags::BLOCKING) || !context.drain_due_members(row) {
            return None;
        }
        let args = context.args.iter().map(Box::from).collect();
        let steps = Box::new(DelayedCommand { row, args });
        let command = IncrementalCommand::of(row, steps, context);
        Some(Unfinished::Incremental(command))
    }
}

impl DelayedCommand {
    /// Runs the command, unless members of its keys are still due. True if it has run.
    fn run(&self, ctx: &mut Context<'_, '_>) -> bool {
        let Handler::Keys(handler) = handler(self.row) else {
            unreachable!("only such a command is delayed");
        };
        let words: Vec<&[u8]> = self.args.iter().map(|arg| &**arg).collect();
        let args = Args::from_slices(&words);
        let (keyspace, now, mark) = (ctx.keyspace, ctx.now, ctx.out.mark());
        let (session, out) = (&mut *ctx.session, &mut *ctx.out);
        let mut context = Context::new(keyspace, session, now, args, out, Some(self.row));
        let locked = context.lock_keys(&self.row.keys, self.row.stored_argument, &self.row.into());
        if let Err(blocked) = locked {
            drop(context);
            ctx.blocked = Some(blocked);
            return false;
        }
        let runs = !context.drain_due_members(self.row);
        if runs {
            context.note_reads(self.row);
        }
        if runs && let Err(error) = handler(&mut context) {
            context.refuse(mark, &error);
        }
        context.finish();
        let blocked = context.blocked.take();
        drop(context);
        let runs = runs && blocked.is_none();
        if !runs {
            ctx.out.truncate(mark);
        }
        ctx.blocked = blocked;
        runs
    }
}

impl Steps for DelayedCommand {
    fn step(&mut self, ctx: &mut Context<'_, '_>, _: &mut Budget) -> bool {
        // A command that was delayed before CLIENT PAUSE changes nothing until that is over.
        let is_held = self.row.flags.has(Flags::WRITE) && ctx.keyspace.is_paused();
        !is_held && self.run(ctx)
    }

    fn head(&self, _: &mut Writer) {}

    fn bytes(&self) -> usize {
        self.args.iter().map(|arg| arg.len()).sum()
    }
}
