//! EVAL, EVALSHA, both without changes, and SCRIPT; and what a call of a function shares with them.
//!
//! A script runs on its client's loop as a transaction does: the shards of its keys are locked, and
//! nobody sees the data between its commands. How much it locks is [learned](Learned). A call
//! that needs more ends the run, and the script begins again with more, if it has changed nothing;
//! otherwise the missing shards are taken if nobody has them.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tidewheel_keyspace::rows::Flags;
use tidewheel_keyspace::{
    Begun, Command, CommandError, Reach, Session, Transaction, is_run_here, lookup,
};
use tidewheel_resp::{Args, Writer, parse_i64};
use tidewheel_scripts::{Engine, Host, ScriptError, ScriptFlags, Sha, shebang};

use super::transaction::runs_under_locks;
use super::{HandlerResult, error};
use crate::clients::checks;
use crate::clients::connection::Connection;
use crate::clients::monitors;
use crate::clients::pause::is_write;
use crate::commands::call;
use crate::commands::turn::{CommandStep, Turn};
use crate::scripts::bodies::{Body, Learned};
use crate::scripts::libraries::Library;
use crate::scripts::running::{Kill, Kind, Running, SHOWN_BYTES, Shown};
use crate::scripts::{Interpreter, load_again, log, put_back, take_interpreter};
use crate::state::long_script::LongScript;
use crate::state::loop_state::LoopState;
use crate::state::observer::Observe as _;
use crate::users::DenialContext;

/// Words of a call that take no memory of their own.
const FEW: usize = 16;

/// The time between two looks at the other clients of a long script's loop.
const ATTEND_NS: u64 = 1_000_000;

/// Bytes of a call's error by which it is known again in a script's reply.
const ERROR_KEPT: usize = 256;

/// Lines that monitors see later, and the bytes of the longest.
const SHOWN_MAX: usize = 256;
const SHOWN_LINE_MAX: usize = 4 << 10;

/// What a script and each of its calls count towards the next reading of the clock.
const WORK: usize = 8;
const WORK_PER_CALL: usize = 3;

const NO_SCRIPT: &str = "NOSCRIPT No matching script. Please use EVAL.";
const NEGATIVE: &str = "ERR Number of keys can't be negative";
const TOO_MANY_KEYS: &str = "ERR Number of keys can't be greater than number of args";
const NOT_FOR_SCRIPTS: &str = "ERR This Redis command is not allowed from script";
const UNKNOWN: &str = "ERR Unknown Redis command called from script";
const ARITY: &str = "ERR Wrong number of args calling Redis command from script";
const READ_ONLY: &str = "ERR Write commands are not allowed from read-only scripts.";
const NO_MEMORY: &str = "OOM command not allowed when used memory > 'maxmemory'.";
const MAY_WRITE: &str = "ERR Can not execute a script with write flag using *_ro command.";
const OUT_OF_REACH: &str = "ERR the script has changed data, and then needs a key that it has not \
                            declared and others use now; it will reach for it in its next run";
const AGAIN: &str = "ERR the script begins again with more locks";
/// The reply to a command that would change data while the log cannot be written.
pub(crate) const UNLOGGED: CommandError = CommandError::fixed(
    "MISCONF Errors writing to the AOF file: data cannot be changed until the log can be written, see the server's log",
);

const KILLED: &str = "ERR Error running script: Script killed by user with SCRIPT KILL.";
const STOPPING: &str = "ERR Error running script: the server stops";
const NOT_BUSY: &str = "NOTBUSY No scripts in execution right now.";
const UNKILLABLE: &str = "UNKILLABLE Sorry the script already executed write commands against the \
                          dataset. You can either wait the script termination or kill the server \
                          in a hard way using the SHUTDOWN NOSAVE command.";

/// How a call names its script, and what it may do.
#[derive(Debug, Clone, Copy)]
pub(super) struct Form {
    pub(super) by_name: bool,
    pub(super) reads: bool,
}

pub(super) fn refused(why: &ScriptError) -> CommandError {
    CommandError::quoting(why.to_string())
}

/// Checks how many of the words behind a call's third are keys.
pub(super) fn key_count(number: i64, args: Args<'_>) -> Result<usize, CommandError> {
    let number = usize::try_from(number).map_err(|_| error(NEGATIVE))?;
    if number > args.len() - 3 {
        return Err(error(TOO_MANY_KEYS));
    }
    Ok(number)
}

/// Returns true if more than `maxmemory` is used, with the words of a call, and nothing can be
/// evicted.
pub(super) fn is_full(state: &mut LoopState, args: Args<'_>) -> bool {
    let keyspace = &state.server.keyspace;
    if !keyspace.exceeds_limit() {
        return keyspace.is_full(args.iter().map(<[u8]>::len).sum());
    }
    keyspace.shrink(&mut state.seat, state.time);
    keyspace.exceeds_limit()
}

/// What a call runs.
#[derive(Clone, Copy)]
pub(super) enum Code<'c> {
    Script(&'c Body),
    /// The function at that place of its library.
    Function(&'c Library, usize),
}

impl<'c> Code<'c> {
    fn flags(self) -> ScriptFlags {
        match self {
            Self::Script(body) => body.flags,
            Self::Function(library, at) => library.functions[at].registered.flags,
        }
    }

    fn learned(self) -> &'c Learned {
        match self {
            Self::Script(body) => &body.learned,
            Self::Function(library, at) => &library.functions[at].learned,
        }
    }

    fn kind(self) -> Kind {
        match self {
            Self::Script(_) => Kind::Script,
            Self::Function(..) => Kind::Function,
        }
    }

    fn run(
        self,
        engine: &mut Engine,
        (keys, args): (&[&[u8]], &[&[u8]]),
        host: &mut dyn Host,
        out: &mut Writer,
    ) {
        match self {
            Self::Script(body) => engine.run(&body.name, &body.text, keys, args, host, out),
            Self::Function(library, at) => {
                let name = &library.functions[at].registered.name;
                engine.call((library.id, at), name, (keys, args), host, out);
            }
        }
    }
}

impl Turn<'_> {
    pub(super) fn eval(
        &mut self,
        conn: &mut Connection,
        args: Args<'_>,
        form: Form,
    ) -> HandlerResult {
        self.show_call(conn, args);
        let number = parse_i64(&args[2]).ok_or(CommandError::NOT_AN_INTEGER)?;
        let keys = key_count(number, args)?;
        let body = match form.by_name {
            true => Sha::parse(&args[1]).and_then(|name| self.find_script(&name)),
            false => Some(self.add_script(&args[1])?),
        };
        let body = body.ok_or_else(|| error(NO_SCRIPT))?;
        self.run_code(conn, Code::Script(&body), args, keys, form.reads)
    }

    /// Shows monitors the call of a script or a function, before what it calls, and also if there
    /// is none of that name.
    pub(super) fn show_call(&mut self, conn: &Connection, args: Args<'_>) {
        if self.state.seat.bits() & checks::MONITORED != 0 {
            self.show_from(
                conn.session.db,
                &conn.client.peer.for_monitors(),
                args.iter(),
            );
        }
    }

    /// Runs a script or a function with the words of its call, of which so many are keys.
    pub(super) fn run_code(
        &mut self,
        conn: &mut Connection,
        code: Code<'_>,
        args: Args<'_>,
        keys: usize,
        reads: bool,
    ) -> HandlerResult {
        let flags = code.flags();
        let full = is_full(self.state, args);
        if flags.has_shebang && !flags.no_writes {
            if full && !flags.allow_oom {
                return Err(error(NO_MEMORY));
            }
            if reads {
                return Err(error(MAY_WRITE));
            }
        }
        let mut few = [&[][..]; FEW];
        let mut many = Vec::new();
        let words = args.from(3);
        let words = match few.get_mut(..words.len()) {
            Some(few) => {
                few.iter_mut()
                    .zip(words.iter())
                    .for_each(|(to, word)| *to = word);
                &*few
            }
            None => {
                many.extend(words.iter());
                &many[..]
            }
        };
        let mut interpreter = take_interpreter().map_err(|why| refused(&why))?;
        let limits = Limits {
            reads: reads || flags.no_writes,
            full: full && !flags.allow_oom,
        };
        let given = words.split_at(keys);
        let outcome = self.run_script(conn, &mut interpreter, (code, args), given, limits);
        put_back(interpreter);
        outcome
    }

    /// Returns true if a pause of writes holds a call back. Of a script or a function with flags
    /// these say whether it writes.
    pub(crate) fn may_write(&mut self, row: &Command, args: Args<'_>) -> bool {
        match self.script_flags(row, args) {
            Some(flags) if flags.has_shebang => !flags.no_writes,
            _ => is_write(row),
        }
    }

    /// Returns true if a command is refused while the log cannot be written, as the public servers
    /// do it: those that change data, and PING. A script that does not say whether it changes
    /// something runs up to the call that does.
    pub(crate) fn is_refused_unlogged(&mut self, row: &Command, args: Args<'_>) -> bool {
        let says_so = |flags: ScriptFlags| flags.has_shebang && !flags.no_writes;
        row.flags.has(Flags::WRITE)
            || row.name == "ping"
            || self.script_flags(row, args).is_some_and(says_so)
    }

    /// What the script or function that a command calls says of itself, if it is there.
    fn script_flags(&mut self, row: &Command, args: Args<'_>) -> Option<ScriptFlags> {
        let text = args.get(1).unwrap_or_default();
        match row.name {
            "eval" => shebang(text).ok(),
            "evalsha" => Sha::parse(text)
                .and_then(|name| self.find_script(&name))
                .map(|body| body.flags),
            "fcall" => {
                let state = &mut *self.state;
                let found = state.scripts.function(&state.server.libraries, text);
                found.map(|(library, at)| library.functions[at].registered.flags)
            }
            _ => None,
        }
    }

    fn find_script(&mut self, name: &Sha) -> Option<Arc<Body>> {
        let state = &mut *self.state;
        state.scripts.find(&state.server.scripts, name)
    }

    fn add_script(&mut self, text: &[u8]) -> Result<Arc<Body>, CommandError> {
        let name = Sha::of(text);
        if let Some(body) = self.find_script(&name) {
            return Ok(body);
        }
        let state = &mut *self.state;
        let added = state.scripts.add(&state.server.scripts, name, text);
        added.map_err(|why| refused(&why))
    }

    /// Runs a script until it has all that it reaches for.
    fn run_script(
        &mut self,
        conn: &mut Connection,
        interpreter: &mut Interpreter,
        (code, call): (Code<'_>, Args<'_>),
        (keys, rest): (&[&[u8]], &[&[u8]]),
        limits: Limits,
    ) -> HandlerResult {
        let server = Arc::clone(&self.state.server);
        let mut reach = match self.in_transaction {
            true => Reach::Whole,
            false => code.learned().reach(),
        };
        loop {
            if let Code::Function(library, _) = code
                && !interpreter.engine.has_library(library.id)
            {
                let loaded = load_again(&server, &mut interpreter.engine, library);
                self.state.note_slow();
                self.follow_clock();
                loaded.map_err(|why| refused(&why))?;
            }
            let (seat, time) = (&mut self.state.seat, self.state.time);
            let begun = server
                .keyspace
                .script(seat, time, reach, keys.iter().copied());
            let transaction = match begun {
                Begun::Runs(transaction) => transaction,
                Begun::Blocked(blocked) => return Ok(self.park_or_refuse(conn, &blocked)),
                Begun::Changed => unreachable!("a script watches no key"),
            };
            server.observer.script_begins(time, limits.full);
            let Interpreter { engine, reply } = &mut *interpreter;
            reply.clear();
            reply.set_protocol(self.out.protocol());
            reply.set_limit(self.out.limit().saturating_sub(self.out.len()));
            let mut session = conn.session.clone();
            session.in_script = true;
            let (nested, whole) = (self.in_transaction, reach == Reach::Whole);
            let running = &server.loops[self.state.index].script;
            running.begin(code.kind());
            self.in_transaction = true;
            let mut run = Run {
                turn: self,
                conn,
                code,
                call,
                transaction,
                session,
                limits,
                whole,
                acted: false,
                wrote: false,
                calls: 0,
                began_ns: None,
                attended_ns: 0,
                long: None,
                last_error: Vec::new(),
                calls_shown: Vec::new(),
                lacks: None,
            };
            code.run(engine, (keys, rest), &mut run, reply);
            let Run {
                transaction,
                acted,
                lacks,
                calls,
                began_ns,
                last_error,
                calls_shown,
                ..
            } = run;
            self.in_transaction = nested;
            running.end();
            if began_ns.is_some() {
                running.show(None);
                self.state.note_slow();
            } else {
                self.state.note_work(WORK + calls * WORK_PER_CALL, 0);
            }
            self.follow_clock();
            self.ran_briefly = began_ns.is_none();
            transaction.end(
                &mut self.state.seat,
                self.state.time,
                &mut Writer::default(),
            );
            if let Some(more) = lacks {
                code.learned().reaches(more);
                self.state.tally.scripts_again += 1;
                if !acted {
                    reach = more;
                    continue;
                }
            }
            code.learned().has_run();
            for line in calls_shown {
                self.show_line(&line);
            }
            // It has raised the error of a call, or returned it.
            self.error_is_counted =
                !last_error.is_empty() && reply.as_bytes().starts_with(&last_error);
            if reply.is_over() {
                self.error_is_counted = false;
                self.out.refuse();
            } else {
                self.out.raw(reply.as_bytes());
            }
            if !nested && conn.subscriptions.is_some() && conn.checks & checks::MUTED == 0 {
                self.publish_and_append_messages(conn);
            }
            return Ok(CommandStep::Done);
        }
    }

    /// Reads the clock if much has been done since it was read. In a transaction time stands still.
    pub(super) fn follow_clock(&mut self) {
        if !self.in_transaction && self.state.renew_time() {
            // Whether the turn is over is asked before the next command.
            self.state.note_slow();
        }
    }

    pub(super) fn script_load(&mut self, args: Args<'_>) -> HandlerResult {
        let body = self.add_script(&args[2])?;
        self.out.bulk(body.name.as_bytes());
        Ok(CommandStep::Done)
    }

    pub(super) fn script_exists(&mut self, args: Args<'_>) -> HandlerResult {
        self.out.array(args.len() - 2);
        for name in args.from(2) {
            let is_there = Sha::parse(name).is_some_and(|name| self.find_script(&name).is_some());
            self.out.integer(is_there.into());
        }
        Ok(CommandStep::Done)
    }

    pub(super) fn script_flush(&mut self, args: Args<'_>) -> HandlerResult {
        let is_known =
            |mode: &[u8]| mode.eq_ignore_ascii_case(b"SYNC") || mode.eq_ignore_ascii_case(b"ASYNC");
        if args.len() > 3 || args.get(2).is_some_and(|mode| !is_known(mode)) {
            return Err(error("ERR SCRIPT FLUSH only support SYNC|ASYNC option"));
        }
        self.state.server.scripts.clear();
        self.done()
    }

    pub(super) fn script_kill(&mut self) -> HandlerResult {
        self.kill(Kind::Script)
    }

    /// Ends what runs on any loop, if it is of that kind.
    pub(super) fn kill(&mut self, kind: Kind) -> HandlerResult {
        let loops = self.state.server.loops.iter();
        match loops.map(|handle| handle.script.kill(kind)).max() {
            Some(Kill::Killed) => self.done(),
            Some(Kill::Unkillable) => Err(error(UNKILLABLE)),
            Some(Kill::Other(other)) => Err(error(other.busy())),
            Some(Kill::Nothing) | None => Err(error(NOT_BUSY)),
        }
    }

    pub(super) fn script_show(&mut self, args: Args<'_>) -> HandlerResult {
        let found = Sha::parse(&args[2]).and_then(|name| self.find_script(&name));
        let body = found.ok_or_else(|| error(NO_SCRIPT))?;
        self.out.bulk(&body.text);
        Ok(CommandStep::Done)
    }
}

/// The row that the words of a call name.
pub(super) fn named_by(args: Args<'_>) -> Option<&'static Command> {
    let named = args.get(0).and_then(lookup)?;
    match args.get(1) {
        Some(name) if named.has_subcommands() => named.subcommand(name),
        _ => Some(named),
    }
}

/// What a run may not do.
#[derive(Debug, Clone, Copy)]
struct Limits {
    /// It only reads.
    reads: bool,
    /// It may not add data.
    full: bool,
}

/// Writes the answer to TIME.
/// One run of a script.
struct Run<'r, 't, 'a> {
    turn: &'r mut Turn<'t>,
    conn: &'r mut Connection,
    code: Code<'r>,
    /// The words of the call.
    call: Args<'r>,
    transaction: Transaction<'a>,
    session: Session,
    limits: Limits,
    whole: bool,
    /// It has changed data, or told somebody something: it cannot begin again.
    acted: bool,
    /// It has changed data: it cannot be ended.
    wrote: bool,
    calls: usize,
    /// The time at which it was first asked whether it may go on.
    began_ns: Option<u64>,
    /// The time at which other clients were last looked at.
    attended_ns: u64,
    /// Set when it has run for so long that others are refused.
    long: Option<LongScript>,
    /// The last error reply to a call.
    last_error: Vec<u8>,
    /// Lines for monitors, until it is known that it does not begin again.
    calls_shown: Vec<Vec<u8>>,
    /// It needs more of the keyspace than it has.
    lacks: Option<Reach>,
}

impl Run<'_, '_, '_> {
    /// The row of a call, if a script may run it.
    fn row(&mut self, args: Args<'_>) -> Result<&'static Command, CommandError> {
        let named = named_by(args).ok_or((None, UNKNOWN));
        let row = named.map_err(|(row, why)| (row, error(why)));
        let row = row.and_then(|row| match self.refusal(row, args) {
            Some(why) => Err((Some(row), why)),
            None => Ok(row),
        });
        row.map_err(|(row, why)| {
            let mut reply = Writer::default();
            why.write(&mut reply);
            self.call_failed(row, false, reply.as_bytes());
            why
        })
    }

    /// Why a script may not run a call.
    fn refusal(&self, row: &'static Command, args: Args<'_>) -> Option<CommandError> {
        if !row.check_arity(args.len()) {
            return Some(error(ARITY));
        }
        if row.flags.has(Flags::NOSCRIPT) && !self.may_debug(row) {
            return Some(error(NOT_FOR_SCRIPTS));
        }
        if self.conn.checks & checks::LIMITED != 0
            && let Some(why) = self.turn.denied(
                self.conn,
                (row, args),
                (DenialContext::Script, self.session.db),
            )
        {
            return Some(why);
        }
        if is_write(row) && self.limits.reads {
            Some(error(READ_ONLY))
        } else if self.limits.full && !self.wrote && row.flags.has(Flags::DENYOOM) {
            // What has begun to change data goes on.
            Some(error(NO_MEMORY))
        } else {
            None
        }
    }

    fn may_debug(&self, row: &Command) -> bool {
        matches!(row.name, "debug|protocol" | "debug|sleep")
            && self.turn.state.server.scripts_debug.load(Ordering::Relaxed)
    }

    /// Counts a call that was answered with an error.
    #[cold]
    fn call_failed(&mut self, row: Option<&'static Command>, ran: bool, reply: &[u8]) {
        let turn = &mut *self.turn;
        let shared = &turn.state.server.loops[turn.state.index].command_counts;
        turn.state.tally.errors += 1;
        turn.notes.counts.failed(row, ran, reply, shared);
        self.last_error.clear();
        let line = reply.trim_ascii_end();
        (self.last_error).extend_from_slice(&line[..line.len().min(ERROR_KEPT)]);
    }

    /// Sees to it that a call has all that it reaches for.
    fn reach(&mut self, row: &'static Command, args: Args<'_>) -> Result<(), CommandError> {
        let lacks = match runs_under_locks(row) {
            _ if self.whole => None,
            true => self.transaction.lacks(row, args),
            false => Some(Reach::Whole),
        };
        let Some(more) = lacks else {
            return Ok(());
        };
        if !self.acted {
            self.lacks = self.lacks.max(Some(more));
            return Err(error(AGAIN));
        }
        if more == Reach::Shards && !row.reaches_others() && self.transaction.lock_more(row, args) {
            return Ok(());
        }
        self.lacks = self.lacks.max(Some(more));
        Err(error(OUT_OF_REACH))
    }

    fn run(&mut self, args: Args<'_>, out: &mut Writer) -> Result<(), CommandError> {
        if self.lacks.is_some() && !self.acted {
            return Err(error(AGAIN));
        }
        self.calls += 1;
        // Its user's rights may have been taken away while it runs.
        self.turn.follow_users(self.conn);
        let row = self.row(args)?;
        self.reach(row, args)?;
        let tells = !is_run_here(row);
        let writes = row.flags.has(Flags::WRITE);
        if writes && !self.wrote {
            if self.turn.state.seat.bits() & checks::UNLOGGED != 0 {
                return Err(UNLOGGED);
            }
            if !self.running().writes() {
                return Err(error(KILLED));
            }
            self.wrote = true;
        }
        self.acted |= tells || writes;
        let turn = &mut *self.turn;
        let counts = &turn.state.server.loops[turn.state.index].command_counts;
        turn.notes.counts.add(row, || counts);
        turn.state.tally.commands += 1;
        self.conn.traffic.commands += 1;
        let mark = out.mark();
        if tells {
            std::mem::swap(turn.out, out);
            turn.host(self.conn, row, args);
            std::mem::swap(turn.out, out);
        } else if self.long.is_some() && row.name == "time" {
            // One that waits by TIME would wait for ever.
            turn.state.server.clock.now().write(out);
        } else {
            self.transaction.call(row, &mut self.session, args, out);
        }
        if out.as_bytes().get(mark) == Some(&b'-') {
            self.call_failed(Some(row), true, &out.as_bytes()[mark..]);
        }
        if self.turn.state.seat.bits() & checks::MONITORED != 0 {
            self.show(row, args);
        }
        Ok(())
    }

    /// Keeps the line with which monitors see a call.
    #[cold]
    fn show(&mut self, row: &Command, args: Args<'_>) {
        if row.flags.has(Flags::ADMIN) || row.flags.has(Flags::SKIP_MONITOR) {
            return;
        }
        let shown = (0..args.len()).map(|at| call::shown(row, args, at));
        let line = monitors::line(self.turn.state.time, self.session.db, &"lua", shown);
        let is_long = line.len() > SHOWN_LINE_MAX;
        self.calls_shown.push(line);
        if self.acted || is_long || self.calls_shown.len() >= SHOWN_MAX {
            for line in self.calls_shown.drain(..) {
                self.turn.show_line(&line);
            }
        }
    }

    /// It has run for so long that others are refused. Serves the other clients of its loop now and
    /// then, who may end it.
    #[cold]
    fn lasts_long(&mut self, now_ns: u64) -> Option<String> {
        let turn = &mut *self.turn;
        let server = &turn.state.server;
        if self.long.is_none() {
            let (client, address) = (self.conn.client.id, &self.conn.client.peer);
            tracing::warn!(client, %address, "a script runs for long");
            self.long = Some(LongScript::new(
                Arc::clone(server),
                turn.state.index,
                self.code.kind(),
            ));
            self.transaction.lasts_long(&mut turn.state.seat);
        }
        if now_ns.saturating_sub(self.attended_ns) >= ATTEND_NS {
            turn.others.attend(turn.state);
            self.attended_ns = turn.state.server.clock.monotonic_ns();
        }
        let killed = self.running().is_killed();
        killed.then(|| KILLED.to_owned())
    }

    fn running(&self) -> &Running {
        &self.turn.state.handle().script
    }

    /// Says what runs since then, if it is a function.
    #[cold]
    fn show_function(&self, began_ns: u64) {
        let Code::Function(library, at) = self.code else {
            return;
        };
        let mut bytes = 0;
        let words = self.call.iter().take_while(|word| {
            bytes += word.len() + size_of::<Box<[u8]>>();
            bytes <= SHOWN_BYTES
        });
        self.running().show(Some(Shown {
            name: library.functions[at].registered.name.clone(),
            command: words.map(Box::from).collect(),
            began_ns,
        }));
    }
}

impl Host for Run<'_, '_, '_> {
    fn call(&mut self, args: Args<'_>, out: &mut Writer) {
        if let Err(why) = self.run(args, out) {
            why.write(out);
        }
    }

    fn may_call(&mut self, args: Args<'_>) -> Option<bool> {
        self.turn.follow_users(self.conn);
        let place = self.turn.state.server.place(self.session.db);
        named_by(args).map(|row| self.conn.user.check(row, args, place).is_ok())
    }

    fn log(&mut self, level: i64, text: &[u8]) {
        log(level, text);
    }

    fn interrupt(&mut self) -> Option<String> {
        if self.lacks.is_some() && !self.acted {
            return Some(AGAIN.to_owned());
        }
        if self.turn.state.server.stopping.load(Ordering::Acquire) {
            // All data goes with the process.
            return Some(STOPPING.to_owned());
        }
        if self.running().is_killed() {
            return Some(KILLED.to_owned());
        }
        let now_ns = self.turn.state.server.clock.monotonic_ns();
        let began_ns = match self.began_ns {
            Some(began_ns) => began_ns,
            None => {
                self.began_ns = Some(now_ns);
                self.show_function(now_ns);
                self.transaction.lasts(&mut self.turn.state.seat);
                now_ns
            }
        };
        let ms = self.turn.state.settings.script_ms;
        if ms > 0 && now_ns.saturating_sub(began_ns) / 1_000_000 >= ms {
            return self.lasts_long(now_ns);
        }
        None
    }
}
