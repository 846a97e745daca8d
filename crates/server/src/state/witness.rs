//! Records each command with its time and its reply, for the simulation.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tidewheel_keyspace::{Ticket, Time};
use tidewheel_resp::{Args, Writer};

use crate::time::clock::Clock;

/// The virtual time that a command takes.
pub(crate) type Price = fn(Args<'_>) -> Duration;

/// Records the commands of one server in their order.
#[derive(Debug, Default)]
pub(crate) struct Witness {
    watching: AtomicBool,
    price: Mutex<Option<Price>>,
    /// The virtual time of one step of a command that runs in steps.
    step: Mutex<Duration>,
    /// The running command's answer, if CLIENT REPLY suppresses it.
    taken_back: Mutex<Option<TakenBack>>,
    /// The clock's time before the running command's duration was added.
    before: Mutex<Option<Time>>,
    turn: AtomicU64,
    seen: Mutex<Vec<Seen>>,
    /// Commands that walk, by client.
    walking: Mutex<BTreeMap<u64, Ran>>,
}

/// A recorded event.
#[derive(Debug, Clone)]
pub(crate) enum Seen {
    Ran(Ran),
    /// A client has sent something that is no command.
    Refused(u64),
    /// The server has let go of a client.
    Closed(u64),
}

/// A command that was run, or refused.
#[derive(Debug, Clone)]
pub(crate) struct Ran {
    pub(crate) client: u64,
    pub(crate) words: Vec<Vec<u8>>,
    /// The bytes that were written for the client.
    pub(crate) reply: Vec<u8>,
    /// The answer, also if CLIENT REPLY has suppressed it.
    pub(crate) answer: Vec<u8>,
    /// The reply was longer than its client may hold: it was not built.
    pub(crate) too_long: bool,
    /// The time that the command was given.
    pub(crate) time: Time,
    /// The time that the clock showed.
    pub(crate) clock: Time,
    /// The number of the loop's turn.
    pub(crate) turn: u64,
    /// It ran on a thread of its own.
    pub(crate) long: bool,
}

/// An answer that its client does not want.
#[derive(Debug)]
struct TakenBack {
    answer: Vec<u8>,
    too_long: bool,
}

impl Witness {
    /// Takes notes from here on.
    pub(crate) fn watch(&self) {
        self.watching.store(true, Ordering::Relaxed);
    }

    /// From here on commands take time.
    pub(crate) fn charge(&self, price: Price) {
        *self.price.lock() = Some(price);
    }

    /// A turn of a loop begins.
    pub(crate) fn begin_turn(&self) {
        self.turn.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the events since the last call.
    pub(crate) fn take(&self) -> Vec<Seen> {
        std::mem::take(&mut *self.seen.lock())
    }

    /// A command runs: its price is paid now. If it walks, each further step costs as much.
    pub(crate) fn pay(&self, clock: &Clock, args: Args<'_>, walks: bool) {
        let price = *self.price.lock();
        if let Some(price) = price {
            *self.before.lock() = Some(clock.now());
            let price = price(args);
            if walks {
                *self.step.lock() = price;
            }
            clock.advance(price);
        }
    }

    /// A command that walks takes another step.
    pub(crate) fn pay_a_step(&self, clock: &Clock) {
        if self.price.lock().is_some() {
            clock.advance(*self.step.lock());
        }
    }

    /// A command's answer, from `mark` on, is about to be taken back.
    pub(crate) fn take_back(&self, out: &Writer, mark: usize) {
        let answer = out.as_bytes().get(mark..).unwrap_or_default().to_vec();
        let too_long = out.is_over();
        *self.taken_back.lock() = Some(TakenBack { answer, too_long });
    }

    /// A command has run, or was refused; what it put out begins at `mark`.
    pub(crate) fn ran(
        &self,
        clock: &Clock,
        time: Time,
        client: u64,
        args: Args<'_>,
        (out, mark): (&Writer, usize),
    ) {
        let before = self.before.lock().take().unwrap_or_else(|| clock.now());
        if self.watching.load(Ordering::Relaxed) {
            let ran = self.note(before, time, client, args);
            self.answered(ran, out, mark);
        }
    }

    /// A command has run on a thread of its own.
    pub(crate) fn ran_long(&self, clock: &Clock, time: Time, ticket: &Ticket, out: &Writer) {
        if self.watching.load(Ordering::Relaxed) {
            let mut ran = self.note(clock.now(), time, ticket.waiter.id, ticket.args());
            ran.long = true;
            self.answered(ran, out, 0);
        }
    }

    /// A command has begun a walk: its reply comes later.
    pub(crate) fn set_out(&self, clock: &Clock, time: Time, client: u64, args: Args<'_>) {
        let before = self.before.lock().take().unwrap_or_else(|| clock.now());
        if self.watching.load(Ordering::Relaxed) {
            let ran = self.note(before, time, client, args);
            self.walking.lock().insert(client, ran);
        }
    }

    /// A part of a command has run; what it put out begins at `mark`.
    pub(crate) fn part(&self, client: u64, out: &Writer, mark: usize) {
        if let Some(ran) = self.walking.lock().get_mut(&client) {
            let part = out.as_bytes().get(mark..).unwrap_or_default();
            ran.reply.extend_from_slice(part);
        }
    }

    /// A walk, or the last part of a command, has come to its end.
    pub(crate) fn arrived(&self, client: u64, out: &Writer, mark: usize) {
        let ran = self.walking.lock().remove(&client);
        if let Some(ran) = ran {
            self.answered(ran, out, mark);
        }
    }

    fn answered(&self, mut ran: Ran, out: &Writer, mark: usize) {
        let rest = out.as_bytes().get(mark..).unwrap_or_default();
        ran.reply.extend_from_slice(rest);
        ran.too_long = out.is_over();
        ran.answer = match self.taken_back.lock().take() {
            Some(TakenBack { answer, too_long }) => {
                ran.too_long |= too_long;
                answer
            }
            None => ran.reply.clone(),
        };
        self.seen.lock().push(Seen::Ran(ran));
    }

    fn note(&self, clock: Time, time: Time, client: u64, args: Args<'_>) -> Ran {
        Ran {
            client,
            words: args.iter().map(<[u8]>::to_vec).collect(),
            reply: Vec::new(),
            answer: Vec::new(),
            too_long: false,
            time,
            clock,
            turn: self.turn.load(Ordering::Relaxed),
            long: false,
        }
    }

    /// A client's input is no command.
    pub(crate) fn refused(&self, client: u64) {
        if self.watching.load(Ordering::Relaxed) {
            self.seen.lock().push(Seen::Refused(client));
        }
    }

    /// A client was let go.
    pub(crate) fn closed(&self, client: u64) {
        if self.watching.load(Ordering::Relaxed) {
            self.seen.lock().push(Seen::Closed(client));
        }
    }
}
