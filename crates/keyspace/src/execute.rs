//! Runs one command.
//!
//! 1. If the command may add data and `maxmemory` would be exceeded, room is made.
//! 2. Large arguments that will be stored are copied.
//! 3. The shards of the command's keys are locked, in the order of their numbers.
//! 4. The row's handler runs and writes its reply.
//! 5. The shards are unlocked, and sleepers are woken whose deadline became earlier.
//! 6. Large replies are copied, and large values dropped, without a lock.

use std::sync::Arc;

use tidewheel_resp::{Args, Writer};

use crate::call::Call;
use crate::claims::Blocked;
use crate::commands::handlers::{Handler, HandlerFn, handler};
use crate::context::Context;
use crate::demand::at_most_added;
use crate::error::CommandError;
use crate::gate::{Exclusive, Seat};
use crate::incremental::IncrementalCommand;
use crate::keyspace::Keyspace;
use crate::rows::Command;
use crate::rows::Flags;
use crate::session::Session;
use crate::time::{Now, Time};
use crate::waiters::Ticket;

/// A command that is not finished.
#[derive(Debug)]
#[must_use = "it is answered later"]
pub enum Unfinished {
    /// It goes on with [`Keyspace::go_on`].
    Incremental(Box<IncrementalCommand>),
    /// It waits for a key. [`Hooks::served`](crate::Hooks::served) is called when it was served.
    /// Whatever becomes of it, [`Keyspace::leave`] is called in the end.
    Waits(Arc<Ticket>),
    /// It has not begun: others have shards for long that it needs. Its client is to be
    /// [parked](Keyspace::park).
    Blocked(Blocked),
}

impl Keyspace {
    /// Runs one command to its end and appends its reply: [`begin`](Self::begin), and
    /// [`go_on`](Self::go_on) as often as it takes.
    pub fn execute(
        &self,
        seat: &mut Seat,
        row: &'static Command,
        session: &mut Session,
        time: Time,
        args: Args<'_>,
        out: &mut Writer,
    ) {
        let mut unfinished = self.begin(seat, row, session, time, args, out);
        while let Some(Unfinished::Incremental(command)) = unfinished {
            unfinished = self
                .go_on(seat, command, time, out)
                .map(Unfinished::Incremental);
        }
        debug_assert!(
            !matches!(unfinished, Some(Unfinished::Blocked(_))),
            "that is for clients that can be parked"
        );
    }

    /// Runs one command and appends its reply. Of a command over all keys it takes the first step.
    /// If something [`Unfinished`] comes back, the reply is still to come.
    ///
    /// The call is what [`resolve_ahead`](Self::resolve_ahead) made of these arguments, or the row
    /// that [`resolve`](crate::resolve()) found for them. A row that the server runs itself
    /// (`Handler::Host`) is answered with an error.
    ///
    /// The seat is the thread's permission to use the keyspace. If the thread has not entered it,
    /// it is entered for this command. A thread that [enters](Seat::enter) it for a batch [gives
    /// way](Seat::give_way) before each command, so that others can have the whole keyspace.
    ///
    /// # Panics
    ///
    /// May panic if the row does not allow that number of arguments.
    #[must_use = "a command that is dropped is never answered"]
    pub fn begin<'b>(
        &self,
        seat: &mut Seat,
        call: impl Into<Call<'b>>,
        session: &mut Session,
        time: Time,
        args: Args<'b>,
        out: &mut Writer,
    ) -> Option<Unfinished> {
        let call = call.into();
        let row = call.row;
        debug_assert!(row.check_arity(args.len()), "`resolve` has checked it");
        let Handler::Keys(handler) = handler(row) else {
            let now = Now::of(&self.timeline, time);
            let context = Context::new(self, session, now, args, out, Some(row));
            return self.begin_specially(seat, row, context);
        };
        if !seat.is_inside() {
            let visit = seat.visit();
            return self.begin(visit.seat, call, session, time, args, out);
        }
        let mut now = Now::of(&self.timeline, time);
        if row.flags.has(Flags::DENYOOM)
            && self.is_limited()
            && self.lacks(at_most_added(self, row, args))
        {
            match self.make_room_for(seat, row, session.db, args, &now) {
                Ok(later) => now = later,
                Err(error) => {
                    error.write(out);
                    return None;
                }
            }
        }
        let mark = out.mark();
        let mut context = Context::new(self, session, now, args, out, Some(row));
        context.seat = Some(seat);
        if let Err(blocked) = context.lock_keys(&row.keys, row.stored_argument, &call) {
            return Some(Unfinished::Blocked(blocked.of(&row.cost)));
        }
        if context.may_have_due()
            && let Some(later) = self.drain_due_first(row, &mut context)
        {
            context.finish();
            return Some(later);
        }
        if row.cost.grows()
            && context.takes_long(row)
            && let Some(ticket) = context.hand_over(row)
        {
            return Some(Unfinished::Waits(ticket));
        }
        context.note_reads(row);
        if let Err(error) = handler(&mut context) {
            if let Some(blocked) = context.blocked.take() {
                return Some(Unfinished::Blocked(context.give_up(mark, blocked)));
            }
            context.refuse(mark, &error);
        }
        context.finish();
        let ticket = context.ticket.take();
        // All that it held is released: dropping it would only check that again.
        debug_assert!(context.is_finished());
        std::mem::forget(context);
        ticket.map(Unfinished::Waits)
    }

    /// As [`begin`](Self::begin), for rows that do not lock the shards of their keys.
    #[cold]
    fn begin_specially(
        &self,
        seat: &mut Seat,
        row: &'static Command,
        mut context: Context<'_, '_>,
    ) -> Option<Unfinished> {
        match handler(row) {
            Handler::Whole(handler) => match self.without_long_commands() {
                Ok(no_long) => match no_long.alone(seat) {
                    Ok(alone) => execute_alone(alone, &mut context, handler),
                    Err(blocked) => return Some(Unfinished::Blocked(blocked)),
                },
                Err(blocked) => return Some(Unfinished::Blocked(blocked)),
            },
            Handler::Incremental(steps) => match IncrementalCommand::new(row, steps, &context) {
                Ok(command) => {
                    let command = self.go_on(seat, command, context.now.time, context.out);
                    return command.map(Unfinished::Incremental);
                }
                Err(error) => error.write(context.out),
            },
            _ => {
                let mark = context.out.mark();
                if let Err(error) = self.run_unlocked(row, &mut context) {
                    context.refuse(mark, &error);
                }
            }
        }
        None
    }

    /// Runs a row that looks at no keys.
    pub(crate) fn run_unlocked(
        &self,
        row: &'static Command,
        context: &mut Context<'_, '_>,
    ) -> Result<(), CommandError> {
        match handler(row) {
            Handler::Unlocked(handler) => handler(context),
            _ => Err(CommandError::NOT_HERE),
        }
    }

    /// Takes the next step of an incremental command. The last step appends the whole reply, and
    /// returns `None`. Threads that wait for the whole keyspace go first.
    #[must_use = "a command that is dropped is never answered"]
    pub fn go_on(
        &self,
        seat: &mut Seat,
        mut command: Box<IncrementalCommand>,
        time: Time,
        out: &mut Writer,
    ) -> Option<Box<IncrementalCommand>> {
        if !seat.try_give_way() && seat.is_shut_out() {
            return Some(command);
        }
        let visit = seat.visit();
        let arrived = command.step(self, Now::of(&self.timeline, time), false);
        drop(visit);
        if !arrived {
            return Some(command);
        }
        command.reply(out);
        None
    }
}

/// Runs a command that needs the whole keyspace for itself.
#[cold]
fn execute_alone(alone: Exclusive<'_>, context: &mut Context<'_, '_>, handler: HandlerFn) {
    let mark = context.out.mark();
    context.defers = true;
    let result = handler(context);
    context.keyspace.serve_everywhere(context.now);
    drop(alone);
    if let Err(error) = result {
        context.refuse(mark, &error);
    }
    context.finish();
}
