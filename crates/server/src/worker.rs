//! Serving one connection: read what has arrived, run the commands that are whole, send the replies.
//!
//! Input is read into one buffer of the loop and parsed there; only a command that is not whole yet
//! moves to a buffer of its connection. Replies gather in one buffer of the loop and leave with one
//! write; only what the socket does not take moves to the connection. An idle connection therefore
//! holds no buffers at all.

use std::io::{self, Read, Write};
use std::sync::Arc;

use tidewheel_keyspace::Time;
use tidewheel_resp::{Limits, Parsed, Parser, Protocol, Writer};

use crate::command_counts::CommandCounts;
use crate::config::Settings;
use crate::connection::{Connection, Held, Link, OUTPUT_SOFT_MARK, gate};
use crate::dispatch::Step;
use crate::metrics::Tally;
use crate::output::write_some;
use crate::server::Server;

/// The loop's input buffer, and the most that one read takes from a connection.
const INPUT_CHUNK: usize = 64 << 10;

/// The most that one read adds to a command that has not arrived whole.
const HELD_CHUNK: usize = 1 << 20;

/// How many times what has arrived of a command may be reserved for the rest of it.
const RESERVE_FACTOR: usize = 256;

/// Input that one connection may have processed before the others get their turn.
const TURN_INPUT: usize = 256 << 10;

/// Replies that gather before they are sent in the middle of a batch.
const SEND_MARK: usize = 256 << 10;

/// A reply buffer that has grown beyond this is given back.
const REPLIES_KEEP: usize = 1 << 20;

/// A remainder longer than this is handed over with its buffer, not copied.
const ADOPT_MIN: usize = 64 << 10;

/// What an unauthenticated client may leave unfinished.
const UNAUTHENTICATED_INPUT: usize = 1 << 20;

/// What to do with a connection after it was served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Nothing until something arrives or leaves.
    Rest,
    /// Serve it again after the others.
    Again,
    /// Close it.
    Close,
}

/// Why commands stopped being run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Halt {
    /// The next command is not whole: so many bytes are certainly missing.
    Starved(usize),
    /// CLIENT PAUSE holds the next command back.
    Paused,
    /// The client does not read its replies.
    Jammed,
    /// No more commands of this connection.
    Closing,
}

/// What a loop needs to run commands.
#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) server: Arc<Server>,
    /// The loop's number.
    pub(crate) index: usize,
    pub(crate) settings: Arc<Settings>,
    pub(crate) time: Time,
    pub(crate) out: Writer,
    pub(crate) tally: Tally,
    pub(crate) counts: CommandCounts,
    limits: Limits,
    input: Vec<u8>,
    parser: Parser,
    /// Commands since the clock was read.
    pub(crate) since_time: u32,
    /// The length of the running command, for CLIENT LIST.
    command_bytes: usize,
}

impl Worker {
    pub(crate) fn new(server: Arc<Server>, index: usize) -> Self {
        let settings = server.config.current();
        let mut worker = Self {
            time: server.clock.now(),
            index,
            out: Writer::new(Protocol::Resp2),
            tally: Tally::default(),
            counts: CommandCounts::default(),
            limits: Limits::DEFAULT,
            input: vec![0; INPUT_CHUNK],
            parser: Parser::new(),
            since_time: 0,
            command_bytes: 0,
            settings: Arc::clone(&settings),
            server,
        };
        worker.adopt(settings);
        worker
    }

    /// Puts changed settings into force.
    pub(crate) fn adopt(&mut self, settings: Arc<Settings>) {
        self.limits = Limits {
            bulk: usize::try_from(settings.bulk_max).unwrap_or(usize::MAX),
            ..Limits::DEFAULT
        };
        self.settings = settings;
    }

    /// Reads the clock.
    pub(crate) fn refresh_time(&mut self) {
        self.time = self.server.clock.now();
        self.since_time = 0;
    }

    /// Makes the loop's counters visible to others.
    pub(crate) fn publish_counters(&mut self) {
        let handle = &self.server.loops[self.index];
        handle.counters.publish(&mut self.tally, self.time);
        self.counts.end_run(&handle.command_counts);
    }

    /// Tells the others about the connection whose command is running.
    pub(crate) fn publish_running(&self, conn: &Connection) {
        conn.publish_facts();
        conn.client.facts.lock().input_held += self.command_bytes;
    }

    /// Does for a connection what can be done now, within its turn's share.
    pub(crate) fn serve<S: Read + Write>(&mut self, conn: &mut Link<S>) -> Fate {
        self.refresh_time();
        self.out.set_protocol(conn.protocol);
        let ran = self.tally.commands;
        let fate = match self.work(conn) {
            Ok(fate) => fate,
            Err(why) => {
                tracing::debug!(client = conn.client.id, %why, "connection lost");
                Fate::Close
            }
        };
        if self.tally.commands != ran {
            conn.last_active = self.time.tick;
        }
        if fate != Fate::Close {
            conn.publish_facts();
            conn.account(&self.server.loops[self.index].client_memory);
        }
        fate
    }

    fn work<S: Read + Write>(&mut self, conn: &mut Link<S>) -> io::Result<Fate> {
        let mut left = TURN_INPUT;
        let mut again = false;
        while conn.has_work() {
            if left == 0 {
                again = true;
                break;
            }
            let took = match conn.held.take() {
                Some(held) if held.wanted == 0 => self.run_held(conn, held),
                Some(held) => self.read_more(conn, held)?,
                None => self.read_fresh(conn)?,
            };
            left = left.saturating_sub(took.max(1));
        }
        self.send(conn)?;
        if conn.closing && conn.output.is_empty() {
            return Ok(Fate::Close);
        }
        if conn.exceeds_output_limit(&self.settings, self.time.tick) {
            self.tally.output_limit_closes += 1;
            tracing::warn!(
                client = conn.client.id,
                "closed: it does not read its replies"
            );
            return Ok(Fate::Close);
        }
        again |= conn.can_send();
        Ok(if again { Fate::Again } else { Fate::Rest })
    }

    /// Reads into the loop's buffer and runs what is whole. Returns the bytes read.
    fn read_fresh<S: Read + Write>(&mut self, conn: &mut Link<S>) -> io::Result<usize> {
        let Some(n) = read_once(conn, &mut self.input)? else {
            return Ok(0);
        };
        self.tally.reads += 1;
        self.tally.input_bytes += n as u64;
        let input = std::mem::take(&mut self.input);
        let mut parser = std::mem::take(&mut self.parser);
        let (used, halt) = self.run(conn, &mut parser, &input[..n]);
        if used < n && halt != Halt::Closing {
            let wanted = match halt {
                Halt::Starved(wanted) => wanted,
                _ => 0,
            };
            let parser = if wanted > 0 {
                std::mem::take(&mut parser)
            } else {
                Parser::new()
            };
            let held = Held {
                bytes: input[used..n].to_vec(),
                at: 0,
                parser,
                wanted,
            };
            conn.held = Some(Box::new(held));
        }
        self.keep(parser);
        self.input = input;
        self.note(conn, halt);
        Ok(n)
    }

    /// Reads more of a command that has not arrived whole. Returns the bytes read.
    fn read_more<S: Read + Write>(
        &mut self,
        conn: &mut Link<S>,
        mut held: Box<Held>,
    ) -> io::Result<usize> {
        if held.at > 0 {
            held.bytes.drain(..held.at);
            held.at = 0;
        }
        let before = held.bytes.len();
        // Address space for the whole of a long command saves copying it again and again while it
        // grows, but nobody gets more than a multiple of what has arrived: an announced length alone
        // reserves nothing.
        if before >= INPUT_CHUNK {
            let ahead = held.wanted.min(before.saturating_mul(RESERVE_FACTOR));
            if held.bytes.try_reserve_exact(ahead).is_err() {
                tracing::debug!(client = conn.client.id, ahead, "no address space ahead");
            }
        }
        let room = held.wanted.clamp(INPUT_CHUNK, HELD_CHUNK);
        held.bytes.reserve(room);
        let result = (&mut conn.stream)
            .take(room as u64)
            .read_to_end(&mut held.bytes);
        let n = held.bytes.len() - before;
        self.tally.reads += 1;
        self.tally.input_bytes += n as u64;
        match result {
            Ok(n) if n < room => {
                conn.readable = false;
                conn.closing = true;
                return Ok(n);
            }
            Ok(_) => {}
            Err(why) if why.kind() == io::ErrorKind::WouldBlock => conn.readable = false,
            Err(why) => return Err(why),
        }
        let limit = match conn.gate & gate::UNAUTHENTICATED {
            0 => usize::try_from(self.settings.query_buffer_limit).unwrap_or(usize::MAX),
            _ => UNAUTHENTICATED_INPUT,
        };
        if held.bytes.len() > limit {
            self.tally.input_limit_closes += 1;
            tracing::warn!(client = conn.client.id, "closed: its command is too long");
            conn.closing = true;
            return Ok(n);
        }
        if n >= held.wanted {
            self.run_held(conn, held);
        } else {
            held.wanted -= n;
            conn.held = Some(held);
        }
        Ok(n)
    }

    /// Runs what is whole of the input that waits. Returns the bytes run.
    fn run_held<S: Read + Write>(&mut self, conn: &mut Link<S>, mut held: Box<Held>) -> usize {
        let mut parser = std::mem::take(&mut held.parser);
        let (used, halt) = self.run(conn, &mut parser, &held.bytes[held.at..]);
        held.parser = parser;
        held.at += used;
        if held.at < held.bytes.len() && halt != Halt::Closing {
            held.wanted = match halt {
                Halt::Starved(wanted) => wanted,
                _ => 0,
            };
            conn.held = Some(held);
        } else {
            let Held { bytes, parser, .. } = *held;
            self.server.reclaimer.drop_buffer(bytes);
            // Its argument list is likely to be bigger than the one of the loop's own parser.
            self.keep(parser);
        }
        self.note(conn, halt);
        used
    }

    /// Takes a parser for the next connection, unless an error left it in the middle of a command.
    fn keep(&mut self, parser: Parser) {
        if parser.is_idle() {
            self.parser = parser;
        }
    }

    fn note(&mut self, conn: &mut Connection, halt: Halt) {
        match halt {
            Halt::Closing => conn.closing = true,
            Halt::Paused => conn.paused = true,
            Halt::Starved(_) | Halt::Jammed => {}
        }
    }

    /// Runs the commands of `input` in order. Returns the bytes consumed and why it stopped.
    fn run<S: Read + Write>(
        &mut self,
        conn: &mut Link<S>,
        parser: &mut Parser,
        input: &[u8],
    ) -> (usize, Halt) {
        let mut at = 0;
        loop {
            let limits = match conn.gate & gate::UNAUTHENTICATED {
                0 => &self.limits,
                _ => &Limits::UNAUTHENTICATED,
            };
            let rest = &input[at..];
            let consumed = match parser.parse(rest, limits) {
                Ok(Parsed::Complete { consumed }) => consumed,
                Ok(Parsed::Incomplete { wanted }) => return (at, Halt::Starved(wanted)),
                Err(why) => {
                    self.tally.errors += 1;
                    self.out.error(&format!("ERR Protocol error: {why}"));
                    tracing::debug!(client = conn.client.id, %why, "closed: not the protocol");
                    return (input.len(), Halt::Closing);
                }
            };
            let args = parser.args(rest);
            self.command_bytes = consumed;
            if !args.is_empty() {
                match self.command(conn, args) {
                    Step::Done | Step::Pushed => {}
                    Step::Paused => return (at, Halt::Paused),
                    Step::Close => return (at + consumed, Halt::Closing),
                }
            }
            at += consumed;
            if self.out.len() >= SEND_MARK {
                match self.send(conn) {
                    Err(_) => return (at, Halt::Closing),
                    Ok(()) if conn.output.len() >= OUTPUT_SOFT_MARK => return (at, Halt::Jammed),
                    Ok(()) => {}
                }
            }
        }
    }

    /// Publishes what the batch has caused and sends its replies as far as the socket takes them.
    pub(crate) fn send<S: Read + Write>(&mut self, conn: &mut Link<S>) -> io::Result<()> {
        if self.server.keyspace.events_pending() {
            self.server.hub.flush(&self.server.keyspace);
        }
        if self.out.is_empty() {
            return Ok(());
        }
        if !conn.output.is_empty() {
            conn.output.append(self.out.as_bytes());
            self.out.clear();
        } else {
            let (sent, full) = write_some(&mut conn.stream, self.out.as_bytes())?;
            self.tally.writes += 1;
            self.tally.output_bytes += sent as u64;
            let left = self.out.len() - sent;
            conn.jammed = full;
            if left > ADOPT_MIN {
                conn.output.adopt(self.out.take(), sent);
            } else if left > 0 {
                conn.output.append(&self.out.as_bytes()[sent..]);
            }
            self.out.clear();
        }
        if self.out.capacity() > REPLIES_KEEP {
            self.server.reclaimer.drop_buffer(self.out.take());
        }
        Ok(())
    }

    /// Sends what waits in the connection's output.
    pub(crate) fn send_output<S: Read + Write>(&mut self, conn: &mut Link<S>) -> io::Result<()> {
        if conn.jammed || conn.output.is_empty() {
            return Ok(());
        }
        let (sent, full, buffer) = conn.conn.output.send(&mut conn.stream)?;
        self.tally.writes += 1;
        self.tally.output_bytes += sent as u64;
        conn.jammed = full;
        if let Some(buffer) = buffer {
            self.server.reclaimer.drop_buffer(buffer);
        }
        Ok(())
    }
}

/// Reads once. `None` when nothing has arrived; then, or at the end of the stream, the connection's
/// state says so.
fn read_once<S: Read>(conn: &mut Link<S>, buffer: &mut [u8]) -> io::Result<Option<usize>> {
    loop {
        match conn.stream.read(buffer) {
            Ok(0) => {
                conn.readable = false;
                conn.closing = true;
                return Ok(None);
            }
            Ok(n) => {
                // On Linux a short read has emptied the socket, and an edge will announce more. The end
                // of the stream has no edge of its own if it was announced with the data.
                if cfg!(target_os = "linux") && n < buffer.len() && !conn.ending {
                    conn.readable = false;
                }
                return Ok(Some(n));
            }
            Err(why) if why.kind() == io::ErrorKind::WouldBlock => {
                conn.readable = false;
                return Ok(None);
            }
            Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
            Err(why) => return Err(why),
        }
    }
}
