//! Runs one command: finds its row, checks it, executes it, counts it.

use std::sync::Arc;

use tidewheel_keyspace::CommandError;
use tidewheel_keyspace::rows::Flags;
use tidewheel_keyspace::{
    Blocked, Call, Command, IncrementalCommand, RAISED, Ticket, Unfinished, is_run_here,
};
use tidewheel_resp::Args;

use crate::clients::checks;
use crate::clients::connection::{Connection, Replies, WaitingCommand};
use crate::commands::foreign_protocol;
use crate::commands::host::script::UNLOGGED;
use crate::commands::host::transaction::{refused, runs_at_once};
use crate::commands::turn::{CommandStep, Turn};
use crate::config::{ClientAccess, DENIED};
use crate::counters::latency::LatencyEvent;
use crate::scripts::running::Kind;
use crate::state::observer::Observe as _;
use crate::users::DenialContext;

/// The start of the error reply to a command that found no memory.
const NO_MEMORY: &[u8] = b"-OOM ";

impl Turn<'_> {
    /// Runs one command. `call` is what is known of it already.
    #[inline(always)]
    pub(crate) fn command<'b>(
        &mut self,
        conn: &mut Connection,
        args: Args<'b>,
        call: Option<Call<'b>>,
    ) -> CommandStep {
        self.state.tally.commands += 1;
        let mark = self.out.mark();
        let call = match call {
            Some(call) => call,
            None => match tidewheel_keyspace::resolve(args) {
                Ok(row) => row.into(),
                Err(why) => return self.refuse_unresolved(conn, args, mark, why),
            },
        };
        let row = call.row;
        let shared = self.state.seat.bits();
        if conn.checks | u16::from(shared) != 0
            && let Some(step) = self.check(conn, row, args)
        {
            return self.after_refusal(conn, Some(row), mark, step);
        }
        conn.command = row.name;
        if row.slow {
            self.notes.guard.ask(self.state);
        }
        let is_quick = !row.slow && row.keys.first != 0;
        let (state, counts) = (&*self.state, &mut self.notes.counts);
        let began_ns = counts
            .add(row, || &state.handle().command_counts)
            .then(|| state.server.clock.monotonic_ns());
        let step = self.execute(conn, call, args);
        if matches!(step, CommandStep::Blocked | CommandStep::WaitsForLog) {
            // It counts when it runs.
            self.state.tally.commands -= 1;
            self.notes.counts.take_back();
            self.out.truncate(mark);
            return step;
        }
        // Time may have passed, so the clock is read before the next command: a command without
        // keys may have walked everything or slept, and making room takes time.
        let delay_ns = self.state.seat.take_delay_ns();
        let is_quick = is_quick || std::mem::take(&mut self.ran_briefly);
        if !is_quick || delay_ns > 0 {
            self.state.note_slow();
            self.state
                .note_event(LatencyEvent::EvictionCycle, delay_ns / 1_000);
        }
        if step != CommandStep::Waiting {
            let walks = matches!(step, CommandStep::Walking | CommandStep::Begun);
            self.state
                .server
                .observer
                .advance_clock(&self.state.server.clock, args, walks);
        }
        if let Some(began_ns) = began_ns
            && !self.lacked_memory(mark)
        {
            self.note_time(conn, row, args, began_ns, step);
        }
        if shared & checks::MONITORED != 0 {
            self.show(conn, row, args);
        }
        self.after(conn, Some(row), true, mark, step)
    }

    /// Answers input that names no command, or a command in a wrong form.
    #[cold]
    fn refuse_unresolved(
        &mut self,
        conn: &mut Connection,
        args: Args<'_>,
        mark: usize,
        why: CommandError,
    ) -> CommandStep {
        let row = named(args);
        let name = args.get(0).filter(|_| row.is_none());
        if let Some(protocol) = name.and_then(foreign_protocol::by_name) {
            return self.refuse_protocol(conn, protocol);
        }
        // The public servers look for a subcommand of DEBUG once it may run.
        let parent = args.get(0).and_then(tidewheel_keyspace::lookup);
        if let Some(debug) = parent.filter(|row| row.name == "debug" && args.len() > 1) {
            self.follow_users(conn);
            let refused = self.refuse_unpermitted(conn, row.unwrap_or(debug), args);
            if let Some(step) = refused {
                return self.after_refusal(conn, Some(debug), mark, step);
            }
        }
        self.refuse_call(conn, row, why);
        self.after_refusal(conn, row, mark, CommandStep::Done)
    }

    /// Refuses the input of a client that speaks another protocol: nothing of it is answered or
    /// run.
    #[cold]
    pub(crate) fn refuse_protocol(
        &mut self,
        conn: &Connection,
        protocol: foreign_protocol::ForeignProtocol,
    ) -> CommandStep {
        let (client, address) = (conn.client.id, &conn.client.peer);
        tracing::warn!(client, %address, "closed: it speaks {protocol}, nothing of that was run");
        CommandStep::Close
    }

    /// Answers a command that is not run. An EXEC that is refused ends its transaction; any other
    /// spoils it.
    #[cold]
    fn refuse_call(
        &mut self,
        conn: &mut Connection,
        row: Option<&'static Command>,
        why: CommandError,
    ) {
        // If it has waited for the log, that is over.
        conn.log_wait = None;
        if row.is_some_and(|row| row.name == "exec") {
            refused(&why).write(self.out);
            self.leave_transaction(conn);
        } else {
            why.write(self.out);
            conn.fail_queue();
        }
    }

    /// Runs the command in the keyspace, or as one of the server's own.
    #[inline]
    fn execute<'b>(
        &mut self,
        conn: &mut Connection,
        call: Call<'b>,
        args: Args<'b>,
    ) -> CommandStep {
        let row = call.row;
        if !is_run_here(row) {
            return self.host(conn, row, args);
        }
        let state = &mut *self.state;
        let (keyspace, session) = (&state.server.keyspace, &mut conn.session);
        let seat = &mut state.seat;
        match keyspace.begin(seat, call, session, state.time, args, self.out) {
            None => CommandStep::Done,
            Some(Unfinished::Incremental(mut walk)) => {
                if let Some(blocked) = walk.take_blocked()
                    && self.park_or_refuse(conn, &blocked) == CommandStep::Done
                {
                    return CommandStep::Done;
                }
                conn.walk = Some(walk);
                CommandStep::Walking
            }
            Some(Unfinished::Waits(ticket)) => self.wait_for_key(conn, row, ticket),
            Some(Unfinished::Blocked(blocked)) => self.park_or_refuse(conn, &blocked),
        }
    }

    /// Returns why a command is refused, if a script has run for so long with shards that it needs.
    pub(crate) fn busy(&self, blocked: &Blocked) -> Option<CommandError> {
        let is_busy = self.state.seat.bits() & checks::BUSY != 0
            && self.state.server.keyspace.is_busy_with_script(blocked);
        is_busy.then(|| self.busy_with_script())
    }

    /// What a client is told whom a long script keeps out: the one of its own loop, if there is
    /// one.
    #[cold]
    fn busy_with_script(&self) -> CommandError {
        let others = || (self.state.server.loops.iter()).find_map(|handle| handle.script.long());
        let kind = self.state.handle().script.long().or_else(others);
        CommandError::fixed(kind.unwrap_or(Kind::Script).busy())
    }

    /// As [`park`](Self::park); but a command that needs a long script's shards is refused.
    #[cold]
    pub(crate) fn park_or_refuse(
        &mut self,
        conn: &mut Connection,
        blocked: &Blocked,
    ) -> CommandStep {
        match self.busy(blocked) {
            Some(why) => {
                why.write(self.out);
                CommandStep::Done
            }
            None => self.park(conn, blocked),
        }
    }

    /// Shards are locked for long that a command needs: its client waits, and nobody else.
    #[cold]
    pub(crate) fn park(&mut self, conn: &mut Connection, blocked: &Blocked) -> CommandStep {
        self.blocked = true;
        self.state.tally.parked_commands += 1;
        if let Some(waiter) = conn.session.waiter {
            conn.parked = (self.state.server.keyspace).park(waiter, blocked, &mut conn.resumed);
        }
        CommandStep::Blocked
    }

    /// Lets a client wait for a key.
    #[cold]
    fn wait_for_key(
        &mut self,
        conn: &mut Connection,
        row: &'static Command,
        ticket: Arc<Ticket>,
    ) -> CommandStep {
        // It counts when it is answered.
        self.state.tally.commands -= 1;
        self.notes.counts.take_back();
        // The tick is rounded down, so the next one is the first that is not too early.
        let now = self.state.time.tick;
        let until = ticket.ms.map(|ms| now.saturating_add(ms).saturating_add(1));
        *conn.client.waiting.lock() = Some(Arc::clone(&ticket));
        conn.waiting = Some(Box::new(WaitingCommand {
            row,
            ticket,
            until,
            held: false,
        }));
        CommandStep::Waiting
    }

    /// Takes the next step of a command that walks over everything.
    pub(crate) fn go_on(&mut self, conn: &mut Connection, walk: Box<IncrementalCommand>) {
        let (mark, row) = (self.out.mark(), walk.row());
        let state = &mut *self.state;
        state.renew_time();
        let began_ns = state.server.clock.monotonic_ns();
        let (keyspace, seat) = (&state.server.keyspace, &mut state.seat);
        conn.walk = keyspace.go_on(seat, walk, state.time, self.out);
        let blocked = conn.walk.as_mut().and_then(|walk| walk.take_blocked());
        if let Some(blocked) = blocked {
            let reads = !row.flags.has(Flags::WRITE);
            match self.busy(&blocked).filter(|_| reads) {
                Some(why) => {
                    conn.walk = None;
                    why.write(self.out);
                }
                None => {
                    self.park(conn, &blocked);
                }
            }
        }
        let state = &mut *self.state;
        state.note_slow();
        state
            .server
            .observer
            .advance_clock_by_step(&state.server.clock);
        let took_ns = state.server.clock.monotonic_ns().saturating_sub(began_ns);
        self.note_more_time(conn, took_ns, conn.walk.is_none());
        if conn.walk.is_none() {
            self.after(conn, Some(row), true, mark, CommandStep::Done);
        }
    }

    /// Runs the next part of a command that has begun.
    pub(crate) fn next_part(&mut self, conn: &mut Connection, args: Args<'_>) -> CommandStep {
        let mark = self.out.mark();
        let Ok(row) = tidewheel_keyspace::resolve(args) else {
            unreachable!("it has begun");
        };
        self.state.renew_time();
        let began_ns = self.state.server.clock.monotonic_ns();
        let step = self.host(conn, row, args);
        if step == CommandStep::Blocked {
            return step;
        }
        self.state.note_slow();
        self.state
            .server
            .observer
            .advance_clock_by_step(&self.state.server.clock);
        let took_ns = self
            .state
            .server
            .clock
            .monotonic_ns()
            .saturating_sub(began_ns);
        self.note_more_time(conn, took_ns, step != CommandStep::Begun);
        self.after(conn, Some(row), true, mark, step)
    }

    /// Does what [`after`](Self::after) does, for a command that was not run.
    #[cold]
    fn after_refusal(
        &mut self,
        conn: &mut Connection,
        row: Option<&'static Command>,
        mark: usize,
        step: CommandStep,
    ) -> CommandStep {
        if step != CommandStep::Paused {
            // It does not count, since it has not run. One that is queued counts when it runs.
            self.state.tally.commands -= 1;
        }
        self.after(conn, row, false, mark, step)
    }

    /// Counts errors. Removes a reply that the client does not want.
    #[inline(always)]
    fn after(
        &mut self,
        conn: &mut Connection,
        row: Option<&'static Command>,
        ran: bool,
        mark: usize,
        step: CommandStep,
    ) -> CommandStep {
        if matches!(
            step,
            CommandStep::Walking | CommandStep::Begun | CommandStep::Waiting
        ) {
            // What goes on by itself has taken along whether its reads are tracked.
            if conn.checks & checks::CACHING != 0 {
                self.end_caching(conn, row);
            }
            return step;
        }
        let ran = !self.count_error(row, ran, mark) && ran;
        conn.traffic.commands += u64::from(ran);
        if conn.checks & (checks::MUTED | checks::CACHING) != 0
            && !matches!(step, CommandStep::Paused | CommandStep::Blocked)
        {
            self.after_checked(conn, row, mark, step);
        }
        step
    }

    /// What CLIENT REPLY and CLIENT CACHING have said concerns this command.
    #[cold]
    fn after_checked(
        &mut self,
        conn: &mut Connection,
        row: Option<&'static Command>,
        mark: usize,
        step: CommandStep,
    ) {
        self.end_caching(conn, row);
        if conn.checks & checks::MUTED != 0 {
            self.mute(conn, mark, step);
        }
    }

    /// CLIENT CACHING has concerned this command, and concerns no later one. A transaction is one
    /// command in this.
    #[cold]
    fn end_caching(&mut self, conn: &mut Connection, row: Option<&'static Command>) {
        let lasts = conn.checks & checks::QUEUING != 0
            || row.is_some_and(|row| row.name.starts_with("client|"));
        if !lasts {
            conn.set(checks::CACHING, false);
            conn.tracking_changed();
        }
    }

    /// Removes a reply that the client does not want.
    #[cold]
    fn mute(&mut self, conn: &mut Connection, mark: usize, step: CommandStep) {
        if step != CommandStep::Pushed {
            self.state.server.observer.take_back(self.out, mark);
            self.out.truncate(mark);
        }
        conn.replies = match conn.replies {
            Replies::SkipThisAndNext => Replies::SkipThis,
            Replies::SkipThis => Replies::On,
            kept => kept,
        };
        conn.set(checks::MUTED, conn.replies != Replies::On);
    }

    /// Counts a reply if it is an error. True if it says that the command has not run after all.
    #[inline]
    pub(crate) fn count_error(
        &mut self,
        row: Option<&'static Command>,
        ran: bool,
        mark: usize,
    ) -> bool {
        self.out.as_bytes().get(mark) == Some(&b'-') && self.note_error(row, ran, mark)
    }

    #[cold]
    fn note_error(&mut self, row: Option<&'static Command>, ran: bool, mark: usize) -> bool {
        let server = Arc::clone(&self.state.server);
        let shared = &server.loops[self.state.index].command_counts;
        if std::mem::take(&mut self.error_is_counted) {
            if let Some(row) = row {
                self.notes.counts.failed_again(row, ran, shared);
            }
            return false;
        }
        self.state.tally.errors += 1;
        let reply = self.out.as_bytes().get(mark..).unwrap_or_default();
        // To the public servers a command without memory has not run.
        let refused = ran && self.lacked_memory(mark);
        if refused {
            let commands = &mut self.state.tally.commands;
            *commands = commands.saturating_sub(1);
            self.notes.counts.take_back();
        }
        self.notes
            .counts
            .failed(row, ran && !refused, reply, shared);
        refused
    }

    /// Returns true if the reply from `mark` on says that the command found no memory.
    fn lacked_memory(&self, mark: usize) -> bool {
        let reply = self.out.as_bytes().get(mark..);
        reply.is_some_and(|reply| reply.starts_with(NO_MEMORY))
    }

    /// Returns the reason for which this connection may not run a command, if there is one.
    fn refusal(&self, conn: &Connection, row: &Command) -> Option<CommandError> {
        match conn.access(&self.state.server.config) {
            ClientAccess::Denied => return Some(CommandError::fixed(DENIED)),
            ClientAccess::WithPassword if !row.flags.has(Flags::NO_AUTH) => {
                return Some(CommandError::fixed("NOAUTH Authentication required."));
            }
            ClientAccess::WithPassword | ClientAccess::Free => {}
        }
        if conn.checks & checks::SUBSCRIBER != 0 && !is_allowed_for_subscribers(row) {
            let name = row.name;
            return Some(CommandError::quoting(format!(
                "ERR Can't execute '{name}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / \
                 RESET are allowed in this context"
            )));
        }
        let refused = conn.checks & checks::MONITOR != 0 && is_denied_to_monitors(row);
        refused.then_some(CommandError::fixed(
            "ERR Replica can't interact with the keyspace",
        ))
    }

    /// Answers a command that this connection or its user may not run. `None` lets it pass.
    #[cold]
    fn refuse_unpermitted(
        &mut self,
        conn: &mut Connection,
        row: &'static Command,
        args: Args<'_>,
    ) -> Option<CommandStep> {
        if let Some(why) = self.refusal(conn, row) {
            let denied = why.text() == DENIED;
            self.refuse_call(conn, Some(row), why);
            return Some(if denied {
                CommandStep::Close
            } else {
                CommandStep::Done
            });
        }
        if conn.checks & checks::LIMITED == 0 {
            return None;
        }
        let seen = match &conn.queue {
            Some(queue) => (DenialContext::Transaction, queue.db(conn.session.db)),
            None => (DenialContext::TopLevel, conn.session.db),
        };
        conn.command = row.name;
        let why = self.denied(conn, (row, args), seen)?;
        self.refuse_call(conn, Some(row), why);
        Some(CommandStep::Done)
    }

    /// Checks that only concern few connections or moments. `None` lets the command pass.
    #[cold]
    fn check(
        &mut self,
        conn: &mut Connection,
        row: &'static Command,
        args: Args<'_>,
    ) -> Option<CommandStep> {
        // Beside a long script that has everything, its loop goes on outside.
        let mut is_inside = true;
        if self.state.seat.bits() & RAISED != 0 {
            is_inside = self.state.seat.try_give_way();
            if !is_inside {
                self.ends_now();
            }
            self.state.refresh_time();
            // It may have been for a change of rights.
            self.follow_users(conn);
        } else if conn.checks & checks::LIMITED != 0 {
            self.follow_users(conn);
        }
        // Read after giving way: it may have been for a pause.
        let shared = self.state.seat.bits();
        let refused = self.refuse_unpermitted(conn, row, args);
        if refused.is_some() {
            return refused;
        }
        if shared & checks::LOADING != 0 && !runs_while_loading(row) {
            let why = "LOADING Redis is loading the dataset in memory";
            self.refuse_call(conn, Some(row), CommandError::fixed(why));
            return Some(CommandStep::Done);
        }
        if (self.state.beside_script || !is_inside) && !runs_beside_script(row) {
            let why = self.busy_with_script();
            self.refuse_call(conn, Some(row), why);
            return Some(CommandStep::Done);
        }
        if shared & checks::UNLOGGED != 0 && self.is_unlogged(conn, row, args) {
            self.refuse_call(conn, Some(row), UNLOGGED);
            return Some(CommandStep::Done);
        }
        let mut changes = || {
            row.name == "exec" && conn.queue.as_ref().is_some_and(|queue| queue.writes())
                || self.may_write(row, args)
        };
        let waits =
            shared & checks::PAUSE_ALL != 0 || (shared & checks::PAUSE_WRITE != 0 && changes());
        if waits {
            self.state.tally.commands -= 1;
            return Some(CommandStep::Paused);
        }
        (conn.checks & checks::QUEUING != 0 && !runs_at_once(row))
            .then(|| self.queue(conn, row, args))
    }
}

impl Turn<'_> {
    /// Returns true if a command, or one that EXEC would run, is refused while the log cannot be
    /// written.
    fn is_unlogged(&mut self, conn: &Connection, row: &Command, args: Args<'_>) -> bool {
        let queue = conn.queue.as_deref().filter(|_| row.name == "exec");
        let mut queued = queue.iter().flat_map(|queue| queue.calls());
        self.is_refused_unlogged(row, args)
            || queued.any(|(row, args)| self.is_refused_unlogged(row, args))
    }
}

/// Returns true if a command may run while the snapshot is loaded: it shows no key, and changes
/// none. Those of DEBUG would.
fn runs_while_loading(row: &Command) -> bool {
    row.flags.has(Flags::LOADING) && (!row.name.starts_with("debug|") || row.name == "debug|help")
}

/// Returns true if a command may run while its loop is in a script: it looks at no keys.
fn runs_beside_script(row: &Command) -> bool {
    row.flags.has(Flags::ALLOW_BUSY) && row.name != "watch"
}

/// Returns the row of a command that cannot be run as it was sent.
#[cold]
fn named(args: Args<'_>) -> Option<&'static Command> {
    match args.get(0).and_then(tidewheel_keyspace::lookup) {
        Some(parent) if parent.has_subcommands() => {
            args.get(1).and_then(|name| parent.subcommand(name))
        }
        row => row,
    }
}

/// Returns true if a RESP2 subscriber may run the command.
fn is_allowed_for_subscribers(row: &Command) -> bool {
    matches!(
        row.name,
        "subscribe"
            | "psubscribe"
            | "ssubscribe"
            | "unsubscribe"
            | "punsubscribe"
            | "sunsubscribe"
            | "ping"
            | "quit"
            | "reset"
    )
}

/// Returns true if a monitor may not run the command: the public servers treat monitors as
/// replicas.
fn is_denied_to_monitors(row: &Command) -> bool {
    row.flags.has(Flags::WRITE)
        || row.flags.has(Flags::READONLY)
        || matches!(row.name, "publish" | "spublish")
}
