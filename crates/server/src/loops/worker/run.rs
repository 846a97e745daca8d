//! Runs the commands of a connection's input, and sends their replies.

use std::io;

use tidewheel_keyspace::{Call, IncrementalCommand};
use tidewheel_resp::{Args, Limits, Parsed, Parser};

use super::buffers::{Cutter, REPLIES_KEEP};
use super::limits::SEND_MARK;
use crate::clients::checks;
use crate::clients::connection::{Connection, Link, OUTPUT_SOFT_MARK};
use crate::commands::foreign_protocol;
use crate::commands::turn::{CommandStep, Turn};
use crate::config::Settings;
use crate::net::byte_stream::ByteStream;
use crate::net::output::write_some;
use crate::state::log::Trouble;
use crate::state::loop_state::LoopState;
use crate::state::observer::Observe as _;

/// A remainder longer than this is handed over with its buffer, not copied.
pub(crate) const ADOPT_MIN: usize = 64 << 10;

/// The reason for which commands stopped being run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Halt {
    /// The next command is not whole: at least this many bytes are missing.
    Starved(usize),
    /// CLIENT PAUSE holds the next command back.
    Paused,
    /// The client does not read its replies.
    Unread,
    /// The turn has lasted long enough.
    Spent,
    /// The next command was not run: shards that it needs are locked for long.
    Blocked,
    /// The next command waits for the log.
    WaitsForLog,
    /// A command goes on before the next one is run.
    Walking,
    /// A command has begun and stays in the input until it is done.
    Begun,
    /// A command waits for a key.
    Waiting,
    /// No more commands of this connection.
    Closing,
}

impl Halt {
    /// Returns the bytes that the next command still needs; 0 if it could run without more.
    pub(super) fn wanted(self) -> usize {
        match self {
            Self::Starved(wanted) => wanted,
            _ => 0,
        }
    }

    /// Notes at the connection that it is paused or about to close.
    pub(super) fn note(self, conn: &mut Connection) {
        match self {
            Self::Closing => conn.closing = true,
            Self::Paused => conn.paused = true,
            Self::Starved(_)
            | Self::Unread
            | Self::Spent
            | Self::Blocked
            | Self::WaitsForLog
            | Self::Walking
            | Self::Begun
            | Self::Waiting => {}
        }
    }
}

impl Turn<'_> {
    /// Goes one step on with a command that walks.
    pub(super) fn continue_walk<S: ByteStream>(
        &mut self,
        link: &mut Link<S>,
        walk: Box<IncrementalCommand>,
    ) -> io::Result<()> {
        let mark = self.out.len();
        self.limit_replies(&link.conn);
        self.go_on(&mut link.conn, walk);
        if self.out.is_over() {
            self.close_for_long_reply(&mut link.conn);
            return Ok(());
        }
        if link.conn.walk.is_none() {
            self.state
                .server
                .observer
                .ended(link.conn.client.id, self.out, mark);
        }
        if link.conn.walk.is_none() {
            self.append_own_events(&mut link.conn);
        }
        if self.out.len() >= SEND_MARK {
            self.send(link)?;
        }
        self.state.renew_time();
        Ok(())
    }

    /// Runs the commands of `input` in order. Returns the bytes consumed and why it stopped.
    pub(super) fn run<S: ByteStream>(
        &mut self,
        link: &mut Link<S>,
        cutter: &mut Cutter<'_>,
        input: &[u8],
    ) -> (usize, Halt) {
        // A command that was sent after a CONFIG SET was answered runs with the new setting.
        self.state.follow_settings();
        link.conn.follow_users(&self.state.settings.users);
        self.notes
            .counts
            .time_all(self.state.settings.diagnosis.times_every_call());
        self.limit_replies(&link.conn);
        let ours = limits(&self.state.settings);
        if std::mem::take(&mut link.conn.events_follow) {
            self.publish_and_append_messages(&mut link.conn);
        }
        let mut at = 0;
        if let Some(bytes) = link.conn.begun.as_ref().map(|begun| begun.bytes) {
            if let Some(halt) = self.run_begun(link, cutter.parser, input, bytes) {
                let done = link.conn.begun.is_none();
                return (if done { bytes } else { 0 }, halt);
            }
            at = bytes;
        }
        loop {
            let (used, halt) = self.run_batch(link, cutter, &input[at..], &ours);
            at += used;
            let halt = match halt {
                Some(halt) => Some(halt),
                None => {
                    let (used, halt) = self.run_next(link, cutter.parser, &input[at..], &ours);
                    at += used;
                    halt
                }
            };
            if let Some(halt) = halt {
                return (at, halt);
            }
        }
    }

    /// Runs the commands at the start of the input that can be cut ahead. Returns the bytes
    /// consumed, and why it stopped, unless a command is next that can not.
    fn run_batch<S: ByteStream>(
        &mut self,
        link: &mut Link<S>,
        cutter: &mut Cutter<'_>,
        input: &[u8],
        limits: &Limits,
    ) -> (usize, Option<Halt>) {
        let mut at = 0;
        // A client that has given no password gets other limits.
        while cutter.parser.is_idle() && !link.conn.lacks_password(&self.state.server.config) {
            if link.conn.is_killed() {
                // By another loop, just now. The next look at it closes it.
                return (at, Some(Halt::Spent));
            }
            let rest = &input[at..];
            cutter
                .prefetched
                .fill(self.state, link.conn.session.db, rest, limits);
            let mut done = 0;
            for i in 0..cutter.prefetched.len() {
                if self.is_over_time() {
                    return (at + done, Some(Halt::Spent));
                }
                if link.conn.lacks_password(&self.state.server.config) {
                    break;
                }
                let (args, call) = cutter.prefetched.call(rest, i);
                let len = cutter.prefetched.end(i) - done;
                let (used, halt) = self.run_cut(link, args, call, len);
                done += used;
                if halt == Some(Halt::Begun) {
                    // What it has seen is another command.
                    cutter.parser.reset();
                }
                if halt.is_some() {
                    return (at + done, halt);
                }
            }
            at += done;
            if done == 0 {
                break;
            }
        }
        (at, None)
    }

    /// Runs the next command, of any shape. Returns the bytes consumed, and why no other may
    /// follow.
    fn run_next<S: ByteStream>(
        &mut self,
        link: &mut Link<S>,
        parser: &mut Parser,
        input: &[u8],
        ours: &Limits,
    ) -> (usize, Option<Halt>) {
        if self.is_over_time() && !input.is_empty() {
            return (0, Some(Halt::Spent));
        }
        let limits = match link.conn.lacks_password(&self.state.server.config) {
            false => ours,
            true => &Limits::UNAUTHENTICATED,
        };
        if let Some(protocol) = foreign_protocol::by_opening(input) {
            return self.close_foreign(&link.conn, protocol, input.len());
        }
        match parser.parse(input, limits) {
            Ok(Parsed::Complete { consumed }) => match parser.args(input) {
                args if args.is_empty() => (consumed, None),
                args if input.first() == Some(&b'*') => self.run_alone(link, args, consumed),
                args => match foreign_protocol::by_line(args) {
                    None => self.run_alone(link, args, consumed),
                    Some(protocol) => self.close_foreign(&link.conn, protocol, input.len()),
                },
            },
            Ok(Parsed::Incomplete { wanted }) => (0, Some(Halt::Starved(wanted))),
            Err(why) => {
                self.refuse(&link.conn, &why);
                (input.len(), Some(Halt::Closing))
            }
        }
    }

    /// Runs the next part of the command at the start of the input. Returns why no other may
    /// follow.
    #[cold]
    fn run_begun<S: ByteStream>(
        &mut self,
        link: &mut Link<S>,
        parser: &mut Parser,
        input: &[u8],
        bytes: usize,
    ) -> Option<Halt> {
        if parser.args(input).is_empty() {
            // It was cut ahead, with others, so it has few arguments. It was within its limits
            // then.
            let limits = Limits {
                bulk: usize::MAX,
                ..Limits::DEFAULT
            };
            let cut = parser.parse(input, &limits);
            debug_assert_eq!(cut, Ok(Parsed::Complete { consumed: bytes }));
        }
        self.command_bytes = bytes;
        let mark = self.out.len();
        let args = parser.args(input);
        let step = self.next_part(&mut link.conn, args);
        self.observe(&link.conn, step, args, (mark, true));
        let halt = self.halt(&mut link.conn, step);
        if self.out.len() >= SEND_MARK && self.send(link).is_err() {
            return Some(Halt::Closing);
        }
        self.state.renew_time();
        halt
    }

    /// Returns true if other connections must have their turn.
    #[inline]
    fn is_over_time(&mut self) -> bool {
        self.state.renew_time() && self.is_spent()
    }

    /// Runs one command of so many bytes of which nothing is known yet.
    #[inline(never)]
    fn run_alone<S: ByteStream>(
        &mut self,
        link: &mut Link<S>,
        args: Args<'_>,
        len: usize,
    ) -> (usize, Option<Halt>) {
        self.run_cut(link, args, None, len)
    }

    /// Runs one command of so many bytes. Returns the bytes consumed, and why no other may follow.
    #[inline(always)]
    fn run_cut<'b, S: ByteStream>(
        &mut self,
        link: &mut Link<S>,
        args: Args<'b>,
        call: Option<Call<'b>>,
        len: usize,
    ) -> (usize, Option<Halt>) {
        self.command_bytes = len;
        if let Some(halt) = self.run_one(&mut link.conn, args, call) {
            // A command that waits for the end of a pause, for others or for the log was not run,
            // and one that has begun is not done.
            let done = !matches!(
                halt,
                Halt::Paused | Halt::Blocked | Halt::WaitsForLog | Halt::Begun
            );
            let used = if done { len } else { 0 };
            return (used, Some(halt));
        }
        if self.out.len() >= SEND_MARK {
            match self.send(link) {
                Err(_) => return (len, Some(Halt::Closing)),
                Ok(()) if link.conn.output.len() >= OUTPUT_SOFT_MARK => {
                    return (len, Some(Halt::Unread));
                }
                Ok(()) => {}
            }
        }
        (len, None)
    }

    /// Runs one command, whose length is [`command_bytes`](Self::command_bytes). Returns why no
    /// other may follow.
    #[inline(always)]
    fn run_one<'b>(
        &mut self,
        conn: &mut Connection,
        args: Args<'b>,
        call: Option<Call<'b>>,
    ) -> Option<Halt> {
        let mark = self.out.len();
        let step = self.command(conn, args, call);
        let answered = self.out.len().saturating_sub(mark);
        self.observe(conn, step, args, (mark, false));
        self.append_own_events(conn);
        let bytes = self.command_bytes + answered;
        if self.state.note_work(args.len(), bytes) {
            self.note_big(conn, args);
        }
        self.halt(conn, step)
    }

    /// Returns the reason for which no other command may follow one that was run.
    #[inline(always)]
    fn halt(&mut self, conn: &mut Connection, step: CommandStep) -> Option<Halt> {
        if self.out.is_over() {
            self.close_for_long_reply(conn);
            return Some(Halt::Closing);
        }
        match step {
            CommandStep::Done | CommandStep::Pushed => None,
            CommandStep::Walking => Some(Halt::Walking),
            CommandStep::Begun => Some(Halt::Begun),
            CommandStep::Waiting => Some(Halt::Waiting),
            CommandStep::Paused => Some(Halt::Paused),
            CommandStep::Blocked => Some(Halt::Blocked),
            CommandStep::WaitsForLog => Some(Halt::WaitsForLog),
            CommandStep::Close => Some(Halt::Closing),
        }
    }

    /// Closes a connection whose input is another protocol's. The rest of the input is dropped.
    #[cold]
    fn close_foreign(
        &mut self,
        conn: &Connection,
        protocol: foreign_protocol::ForeignProtocol,
        input: usize,
    ) -> (usize, Option<Halt>) {
        self.refuse_protocol(conn, protocol);
        self.state.server.observer.refused(conn.client.id);
        (input, Some(Halt::Closing))
    }

    /// Refuses input that is no command.
    #[cold]
    fn refuse(&mut self, conn: &Connection, why: &impl std::fmt::Display) {
        self.state.tally.errors += 1;
        if conn.checks & checks::MUTED == 0 {
            self.out.error(&format!("ERR Protocol error: {why}"));
        }
        self.state.server.observer.refused(conn.client.id);
        let (client, address) = (conn.client.id, &conn.client.peer);
        tracing::debug!(client, %address, %why, "closed: not the protocol");
    }

    #[inline(always)]
    fn observe(
        &self,
        conn: &Connection,
        step: CommandStep,
        args: Args<'_>,
        (mark, begun): (usize, bool),
    ) {
        let LoopState { server, time, .. } = &*self.state;
        if !begun && matches!(step, CommandStep::Walking | CommandStep::Begun) {
            server
                .observer
                .began(&server.clock, *time, conn.client.id, args);
        }
        if step == CommandStep::Begun {
            server.observer.part(conn.client.id, &*self.out, mark);
        } else if begun {
            server.observer.ended(conn.client.id, self.out, mark);
        } else if !matches!(
            step,
            CommandStep::Walking
                | CommandStep::Paused
                | CommandStep::Waiting
                | CommandStep::Blocked
                | CommandStep::WaitsForLog
        ) {
            let (clock, reply) = (&server.clock, (&*self.out, mark));
            server
                .observer
                .ran(clock, *time, conn.client.id, args, reply);
        }
    }

    /// Publishes what the batch has caused and sends its replies as far as the socket takes them.
    pub(super) fn send<S: ByteStream>(&mut self, link: &mut Link<S>) -> io::Result<()> {
        self.state.server.publish_events();
        if self.out.is_empty() {
            return Ok(());
        }
        if self.state.server.log.holds_replies() {
            self.hold(link)?;
        } else if !link.conn.output.is_empty() {
            link.conn.output.append(self.out.as_bytes());
            self.out.clear();
        } else {
            let (sent, full) = write_some(&mut link.stream, self.out.as_bytes())?;
            link.conn.blocked = full;
            link.note_sent(self.state, sent);
            let left = self.out.len() - sent;
            if left > ADOPT_MIN {
                link.conn.output.adopt(self.out.take(), sent);
            } else if left > 0 {
                link.conn.output.append(&self.out.as_bytes()[sent..]);
            }
            self.out.clear();
        }
        if self.out.capacity() > REPLIES_KEEP {
            self.state.server.reclaimer.drop_buffer(self.out.take());
        }
        Ok(())
    }
}

impl Turn<'_> {
    /// Sends replies when what they tell is on disk. While the log cannot be written, changes are
    /// refused, and other replies wait for nothing: they may tell of changes that nobody was told
    /// have been made, and that a crash takes back.
    #[cold]
    fn hold<S: ByteStream>(&mut self, link: &mut Link<S>) -> io::Result<()> {
        let server = &self.state.server;
        let records = server.keyspace.records();
        let output = &mut link.conn.output;
        // Messages that stand before them.
        output.hold(records);
        match output.is_empty() && self.out.len() > ADOPT_MIN {
            true => output.adopt(self.out.take(), 0),
            false => output.append(self.out.as_bytes()),
        }
        self.out.clear();
        let has_changed_nothing = records == self.records;
        match has_changed_nothing && server.log.trouble() != Trouble::None {
            true => output.hold(server.log.on_disk()),
            false => output.hold(records),
        }
        link.send_output(self.state)
    }
}

/// Returns the limits of a command whose client has given the password.
fn limits(settings: &Settings) -> Limits {
    Limits {
        bulk: usize::try_from(settings.bulk_max).unwrap_or(usize::MAX),
        ..Limits::DEFAULT
    }
}
