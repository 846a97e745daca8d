//! MULTI, EXEC, DISCARD, WATCH and UNWATCH.
//!
//! 1. After MULTI, commands are queued, and answered with QUEUED.
//! 2. EXEC runs them as one [`Transaction`]. The keyspace's own commands run over its locks.
//! 3. The server's own commands run between them. PUBLISH and a few others can do so under the
//!    locks of shards. With any other, the transaction takes the whole keyspace, so that such a
//!    command may lock what it needs.

use std::sync::Arc;

use tidewheel_keyspace::rows::Flags;
use tidewheel_keyspace::{Begun, Command, CommandError, Transaction, Watching, is_run_here};
use tidewheel_resp::Args;

use super::{HandlerResult, error};
use crate::clients::checks;
use crate::clients::connection::Connection;
use crate::clients::queue::QueuedCommands;
use crate::commands::turn::{CommandStep, Turn};
use crate::process::long_work::Work;
use crate::users::DenialContext;

/// Returns true if a command runs at once although others are queued.
pub(crate) fn runs_at_once(row: &Command) -> bool {
    matches!(
        row.name,
        "exec" | "discard" | "multi" | "watch" | "quit" | "reset"
    )
}

/// Returns true if a command can run while shards are locked.
pub(super) fn runs_under_locks(row: &Command) -> bool {
    is_run_here(row)
        || matches!(
            row.name,
            "publish" | "spublish" | "ping" | "echo" | "debug|sleep" | "debug|protocol"
        )
}

impl Turn<'_> {
    pub(super) fn multi(&mut self, conn: &mut Connection) -> HandlerResult {
        if conn.queue.is_some() {
            return Err(error("ERR MULTI calls can not be nested"));
        }
        conn.queue = Some(Box::default());
        conn.set(checks::QUEUING, true);
        self.done()
    }

    pub(super) fn discard(&mut self, conn: &mut Connection) -> HandlerResult {
        if take_queue(conn).is_none() {
            return Err(error("ERR DISCARD without MULTI"));
        }
        self.forget_watched(conn);
        self.done()
    }

    pub(super) fn watch(&mut self, conn: &mut Connection, args: Args<'_>) -> HandlerResult {
        if conn.queue.is_some() {
            return Err(error("ERR WATCH inside MULTI is not allowed"));
        }
        let begun = conn.begun.as_ref().map(|begun| begun.done);
        let mut part = self.begin_part(conn);
        let (state, db) = (&mut *self.state, conn.session.db);
        let watching = conn.watching.get_or_insert_default();
        for key in args.from(1 + part.done) {
            if !part.takes(key) {
                break;
            }
            let keyspace = &state.server.keyspace;
            let watched = keyspace.watch(&mut state.seat, state.time, db, key, watching);
            if let Err(blocked) = watched {
                // This part is run again: a key that is watched already stays so.
                self.restart_part(conn, begun);
                return Ok(self.park(conn, &blocked));
            }
        }
        let all = part.done == args.len() - 1;
        if all {
            self.out.ok();
        }
        Ok(self.end_part(conn, part, all, CommandStep::Done))
    }

    pub(super) fn unwatch(&mut self, conn: &mut Connection) -> HandlerResult {
        self.forget_watched(conn);
        self.done()
    }

    /// Watches nothing any more.
    pub(crate) fn forget_watched(&mut self, conn: &mut Connection) {
        if let Some(watching) = conn.watching.take() {
            let server = &self.state.server;
            match self.state.beside_script {
                // This thread has locked shards.
                true => server.long_work.add(Work::Unwatch(watching)),
                false => server.unwatch(watching),
            }
        }
    }

    /// Leaves MULTI, and forgets the watched keys.
    pub(crate) fn leave_transaction(&mut self, conn: &mut Connection) {
        take_queue(conn);
        self.forget_watched(conn);
    }

    /// Queues a command, or refuses it.
    #[cold]
    pub(crate) fn queue(
        &mut self,
        conn: &mut Connection,
        row: &'static Command,
        args: Args<'_>,
    ) -> CommandStep {
        let limit = self.state.settings.query_buffer_limit;
        let shared = conn.shared_limit(&self.state.settings);
        // While it is copied, the command is held twice.
        let arrived = self.command_bytes;
        let (full, no_memory) = (
            self.state.server.keyspace.is_full(0),
            CommandError::OUT_OF_MEMORY,
        );
        let Some(queue) = conn.queue.as_deref_mut() else {
            unreachable!("the check says that it queues");
        };
        let held = queue.held_bytes_with(args);
        let refusal = if row.flags.has(Flags::NO_MULTI) {
            Some("ERR Command not allowed inside a transaction")
        } else if full {
            Some(no_memory.text())
        } else if held as u64 > limit {
            Some("ERR the queued commands exceed client-query-buffer-limit")
        } else if held.saturating_add(arrived) as u64 > shared {
            Some("ERR the queued commands exceed maxmemory-clients")
        } else {
            None
        };
        if let Some(text) = refusal {
            queue.fail();
            self.out.error(text);
        } else {
            if !queue.has_failed() {
                let writes = self.may_write(row, args);
                let databases = self.state.server.place(0).databases;
                if let Some(queue) = conn.queue.as_deref_mut() {
                    queue.push(row, args, (writes, databases));
                }
            }
            self.out.simple("QUEUED");
            conn.command = row.name;
        }
        CommandStep::Done
    }

    pub(super) fn exec(&mut self, conn: &mut Connection) -> HandlerResult {
        let Some(queue) = take_queue(conn) else {
            return Err(error("ERR EXEC without MULTI"));
        };
        let outcome = if queue.has_failed() {
            Err(error(
                "EXECABORT Transaction discarded because of previous errors.",
            ))
        } else {
            self.run_queue(conn, &queue)
        };
        if outcome == Ok(CommandStep::Blocked) {
            conn.queue = Some(queue);
            conn.set(checks::QUEUING, true);
            return outcome;
        }
        // Its commands have named themselves.
        conn.command = "exec";
        self.forget_watched(conn);
        outcome
    }

    fn run_queue(&mut self, conn: &mut Connection, queue: &QueuedCommands) -> HandlerResult {
        let calls = queue.calls();
        let whole = !calls.clone().all(|(row, _)| runs_under_locks(row));
        let server = Arc::clone(&self.state.server);
        let nothing = Watching::default();
        let watching = conn.watching.as_deref().unwrap_or(&nothing);
        let state = &mut *self.state;
        let (seat, db) = (&mut state.seat, conn.session.db);
        let keyspace = &server.keyspace;
        let begun = keyspace.transaction(seat, state.time, db, calls.clone(), watching, whole);
        let mut transaction = match begun.map_err(|why| aborted(why.text()))? {
            Begun::Runs(transaction) => transaction,
            Begun::Changed => {
                self.out.null_array();
                return Ok(CommandStep::Done);
            }
            Begun::Blocked(blocked) => {
                return match self.busy(&blocked) {
                    Some(why) => Err(aborted(why.text())),
                    None => Ok(self.park(conn, &blocked)),
                };
            }
        };
        let mut last = CommandStep::Done;
        let mut listened = conn.subscriptions.is_some();
        self.in_transaction = true;
        self.out.array(queue.len());
        for (row, args) in calls {
            if self.run_queued(conn, &mut transaction, row, args) == CommandStep::Close {
                last = CommandStep::Close;
            }
            listened |= conn.subscriptions.is_some();
        }
        self.state.refresh_time();
        transaction.end(&mut self.state.seat, self.state.time, self.out);
        self.in_transaction = false;
        // Whether the turn is over was not asked meanwhile: it is before the next command.
        self.state.note_slow();
        if listened && conn.checks & checks::MUTED == 0 {
            // What it has heard follows all replies, also if it does not listen any more.
            self.publish_and_append_messages(conn);
        }
        Ok(last)
    }

    fn run_queued(
        &mut self,
        conn: &mut Connection,
        transaction: &mut Transaction<'_>,
        row: &'static Command,
        args: Args<'_>,
    ) -> CommandStep {
        let mark = self.out.mark();
        let state = &mut *self.state;
        let counted = self
            .notes
            .counts
            .add(row, || &state.handle().command_counts);
        let began_ns = counted.then(|| state.server.clock.monotonic_ns());
        // What the user may do can have changed since it was queued.
        let denied = match conn.checks & checks::LIMITED {
            0 => None,
            _ => {
                conn.command = "exec";
                let seen = (DenialContext::Transaction, conn.session.db);
                self.denied(conn, (row, args), seen)
            }
        };
        conn.command = row.name;
        let may_run = denied.is_none();
        let step = if let Some(why) = denied {
            why.write(self.out);
            CommandStep::Done
        } else if is_run_here(row) {
            transaction.run(row, &mut conn.session, args, self.out);
            CommandStep::Done
        } else {
            self.host(conn, row, args)
        };
        if !may_run {
            self.notes.counts.take_back();
        } else if let Some(began_ns) = began_ns {
            self.note_time(conn, row, args, began_ns, step);
        }
        if self.state.seat.bits() & checks::MONITORED != 0 {
            self.show(conn, row, args);
        }
        self.state.tally.commands += u64::from(may_run);
        let refused = self.count_error(Some(row), may_run, mark);
        conn.traffic.commands += u64::from(may_run && !refused);
        step
    }
}

/// Returns the error reply to an EXEC that cannot be run as it was sent: that ends the transaction.
pub(crate) fn refused(why: &CommandError) -> CommandError {
    let text = why.text();
    aborted(text.strip_prefix("ERR ").unwrap_or(text))
}

fn take_queue(conn: &mut Connection) -> Option<Box<QueuedCommands>> {
    conn.set(checks::QUEUING, false);
    conn.queue.take()
}

fn aborted(why: &str) -> CommandError {
    CommandError::quoting(format!("EXECABORT Transaction discarded because of: {why}"))
}
