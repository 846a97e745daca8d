//! Serving one connection: read what has arrived, run the commands that are whole, send the replies.
//!
//! Input is read into one buffer of the loop and parsed there; only a command that is not whole yet
//! moves to a buffer of its connection. Replies gather in one buffer of the loop and leave with one
//! write; only what the socket does not take moves to the connection. An idle connection therefore
//! holds no buffers at all. The loop's buffers are lent for a turn: see [`Desk`].
//!
//! A turn ends when nothing is left to do, when it has read its share, or after [`TURN_US`]: what is
//! left waits in the connection, which is served again after the others and after expiry.

mod input;
mod limits;

use std::io::{self, Read, Write};
use std::ops::{Deref, DerefMut};
use std::panic::{AssertUnwindSafe, catch_unwind};

use tidewheel_keyspace::Walk;
use tidewheel_resp::{Limits, Parsed, Parser, Writer};

use crate::clock;
use crate::connection::{Connection, Link, OUTPUT_SOFT_MARK};
use crate::desk::{Desk, REPLIES_KEEP, Tray};
use crate::dispatch::Step;
use crate::output::write_some;
use crate::worker::Worker;

/// Input that one connection may have processed before the others get their turn.
const TURN_INPUT: usize = 256 << 10;

/// How long one connection's commands may run before the others get their turn. The command that is
/// running is finished.
const TURN_US: u64 = 1_000;

/// Replies that gather before they are sent in the middle of a batch.
const SEND_MARK: usize = 256 << 10;

/// A remainder longer than this is handed over with its buffer, not copied.
const ADOPT_MIN: usize = 64 << 10;

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
    /// The turn has lasted long enough.
    Spent,
    /// A command goes on before the next one is run.
    Walking,
    /// No more commands of this connection.
    Closing,
}

/// One connection's turn: what its commands run with.
#[derive(Debug)]
pub(crate) struct Turn<'a> {
    pub(crate) worker: &'a mut Worker,
    /// The replies of this turn.
    pub(crate) out: &'a mut Writer,
    /// Engine microseconds at which it should end.
    ends: u64,
    /// The length of the running command, for CLIENT LIST.
    command_bytes: usize,
    /// A reply was longer than its client may hold.
    over_limit: bool,
}

impl Deref for Turn<'_> {
    type Target = Worker;

    fn deref(&self) -> &Worker {
        self.worker
    }
}

impl DerefMut for Turn<'_> {
    fn deref_mut(&mut self) -> &mut Worker {
        self.worker
    }
}

/// Does for a connection what can be done now, within its turn's share.
///
/// A panic of a command, which only a mistake of ours can cause, costs the connection that sent the
/// command and nobody else: it is closed without an answer, for nobody knows how far it came.
pub(crate) fn serve<S: Read + Write>(
    worker: &mut Worker,
    desk: &mut Desk,
    link: &mut Link<S>,
) -> Fate {
    let served = catch_unwind(AssertUnwindSafe(|| {
        let mut lent = desk.lend(link.protocol);
        let (out, tray) = lent.parts();
        Turn::new(worker, out).work(link, tray)
    }));
    let fate = match served {
        Ok(Ok(fate)) => fate,
        Ok(Err(why)) => {
            tracing::debug!(client = link.client.id, %why, "connection lost");
            Fate::Close
        }
        Err(_) => {
            tracing::error!(client = link.client.id, "closed: its command panicked");
            Fate::Close
        }
    };
    if fate != Fate::Close {
        link.account(&worker.server.loops[worker.index].client_memory);
    }
    fate
}

impl<'a> Turn<'a> {
    fn new(worker: &'a mut Worker, out: &'a mut Writer) -> Self {
        worker.renew_time();
        Self {
            ends: clock::micros(worker.time) + TURN_US,
            worker,
            out,
            command_bytes: 0,
            over_limit: false,
        }
    }

    /// Tells the others about the connection whose command is running.
    pub(crate) fn publish_running(&self, conn: &Connection) {
        conn.publish_facts();
        conn.client.facts.lock().holds.input += self.command_bytes;
    }

    fn is_spent(&self) -> bool {
        clock::micros(self.worker.time) >= self.ends
    }

    fn work<S: Read + Write>(mut self, link: &mut Link<S>, tray: &mut Tray) -> io::Result<Fate> {
        let mut left = TURN_INPUT;
        let mut again = false;
        while link.has_work() {
            if left == 0 || self.is_spent() {
                again = true;
                break;
            }
            if let Some(walk) = link.walk.take() {
                self.walk_on(link, walk)?;
                continue;
            }
            let took = match link.held.take() {
                Some(held) if held.wanted == 0 => self.run_held(link, tray, held),
                Some(held) => self.read_more(link, tray, held)?,
                None => self.read_fresh(link, tray)?,
            };
            left = left.saturating_sub(took.max(1));
        }
        if self.over_limit {
            return Ok(Fate::Close);
        }
        self.send(link)?;
        self.worker.renew_time();
        // What the peer had sent before it closed its side is done; a command that is not whole will
        // never be.
        if link.ended && !link.has_runnable() {
            link.closing = true;
        }
        if link.closing && link.output.is_empty() {
            return Ok(Fate::Close);
        }
        if link.exceeds_output_limit(&self.settings, self.time.tick) {
            self.tally.output_limit_closes += 1;
            tracing::warn!(
                client = link.client.id,
                "closed: it does not read its replies"
            );
            return Ok(Fate::Close);
        }
        again |= link.can_send();
        Ok(if again { Fate::Again } else { Fate::Rest })
    }

    /// Goes one step on with a command that walks.
    fn walk_on<S: Read + Write>(&mut self, link: &mut Link<S>, walk: Box<Walk>) -> io::Result<()> {
        #[cfg(test)]
        let mark = self.out.len();
        self.limit_replies(&link.conn);
        self.go_on(&mut link.conn, walk);
        if self.out.is_over() {
            self.give_up(&mut link.conn);
            return Ok(());
        }
        #[cfg(test)]
        if link.walk.is_none() {
            self.server.witness.arrived(link.client.id, self.out, mark);
        }
        if self.out.len() >= SEND_MARK {
            self.send(link)?;
        }
        self.worker.renew_time();
        Ok(())
    }

    /// Runs the commands of `input` in order. Returns the bytes consumed and why it stopped.
    fn run<S: Read + Write>(
        &mut self,
        link: &mut Link<S>,
        parser: &mut Parser,
        input: &[u8],
    ) -> (usize, Halt) {
        // What was sent after a change was answered meets the change.
        self.worker.follow_settings();
        self.limit_replies(&link.conn);
        let mut at = 0;
        loop {
            if self.worker.renew_time() && self.is_spent() && at < input.len() {
                return (at, Halt::Spent);
            }
            let limits = match self.worker.is_stranger(&link.conn) {
                false => &self.worker.limits,
                true => &Limits::UNAUTHENTICATED,
            };
            let rest = &input[at..];
            let consumed = match parser.parse(rest, limits) {
                Ok(Parsed::Complete { consumed }) => consumed,
                Ok(Parsed::Incomplete { wanted }) => return (at, Halt::Starved(wanted)),
                Err(why) => {
                    self.tally.errors += 1;
                    self.out.error(&format!("ERR Protocol error: {why}"));
                    #[cfg(test)]
                    self.server.witness.refused(link.client.id);
                    tracing::debug!(client = link.client.id, %why, "closed: not the protocol");
                    return (input.len(), Halt::Closing);
                }
            };
            let args = parser.args(rest);
            self.command_bytes = consumed;
            if !args.is_empty() {
                let mark = self.out.len();
                let step = self.command(&mut link.conn, args);
                let answered = self.out.len().saturating_sub(mark);
                #[cfg(test)]
                self.testify(&link.conn, step, args, mark);
                self.worker.note_work(args.len(), consumed + answered);
                if self.out.is_over() {
                    self.give_up(&mut link.conn);
                    return (at + consumed, Halt::Closing);
                }
                match step {
                    Step::Done | Step::Pushed => {}
                    Step::Walking => return (at + consumed, Halt::Walking),
                    Step::Paused => return (at, Halt::Paused),
                    Step::Close => return (at + consumed, Halt::Closing),
                }
            }
            at += consumed;
            if self.out.len() >= SEND_MARK {
                match self.send(link) {
                    Err(_) => return (at, Halt::Closing),
                    Ok(()) if link.output.len() >= OUTPUT_SOFT_MARK => return (at, Halt::Jammed),
                    Ok(()) => {}
                }
            }
        }
    }

    #[cfg(test)]
    fn testify(&self, conn: &Connection, step: Step, args: tidewheel_resp::Args<'_>, mark: usize) {
        let Worker { server, time, .. } = &*self.worker;
        if step == Step::Walking {
            server
                .witness
                .set_out(&server.clock, *time, conn.client.id, args);
        } else if step != Step::Paused {
            let (clock, reply) = (&server.clock, (&*self.out, mark));
            server
                .witness
                .ran(clock, *time, conn.client.id, args, reply);
        }
    }

    /// Publishes what the batch has caused and sends its replies as far as the socket takes them.
    fn send<S: Read + Write>(&mut self, link: &mut Link<S>) -> io::Result<()> {
        if self.server.keyspace.events_pending() {
            self.server.hub.flush(&self.server.keyspace);
        }
        if self.out.is_empty() {
            return Ok(());
        }
        if !link.output.is_empty() {
            link.output.append(self.out.as_bytes());
            self.out.clear();
        } else {
            let (sent, full) = write_some(&mut link.stream, self.out.as_bytes())?;
            link.conn.jammed = full;
            self.worker.note_sent(link, sent);
            let left = self.out.len() - sent;
            if left > ADOPT_MIN {
                link.output.adopt(self.out.take(), sent);
            } else if left > 0 {
                link.output.append(&self.out.as_bytes()[sent..]);
            }
            self.out.clear();
        }
        if self.out.capacity() > REPLIES_KEEP {
            self.worker.server.reclaimer.drop_buffer(self.out.take());
        }
        Ok(())
    }
}

impl Halt {
    /// How many bytes the next command needs before it can run; 0 when it could run without more.
    fn wanted(self) -> usize {
        match self {
            Self::Starved(wanted) => wanted,
            _ => 0,
        }
    }
}

fn note(conn: &mut Connection, halt: Halt) {
    match halt {
        Halt::Closing => conn.closing = true,
        Halt::Paused => conn.paused = true,
        Halt::Starved(_) | Halt::Jammed | Halt::Spent | Halt::Walking => {}
    }
}
