//! A ticket: one command that waits. Its wait ends once.

use std::ops::Range;
use std::sync::atomic::{AtomicU8, Ordering::SeqCst};

use tidewheel_resp::{Args, Copies, Protocol, Writer};

use super::{AwaitedKeys, Waiter, Want};
use crate::rows::Command;
use crate::rows::Flags;
use crate::session::Session;

/// The state of a ticket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum TicketState {
    Waiting,
    /// Its own thread will run it.
    HandedBack,
    Claimed,
    Ended,
}

/// Bytes that a place in a queue takes, about.
const PLACE_BYTES: usize = 64;

/// One command that waits.
#[derive(Debug)]
pub struct Ticket {
    /// The client that waits.
    pub waiter: Waiter,
    /// The longest wait in milliseconds; `None` for ever.
    pub ms: Option<u64>,
    state: AtomicU8,
    /// Its place among all: those who came later have greater ones.
    pub(crate) number: u64,
    pub(crate) db: u32,
    no_touch: bool,
    tracks: bool,
    /// The protocol of its reply.
    pub protocol: Protocol,
    /// The most bytes of its reply.
    reply_limit: usize,
    command: Copies<()>,
    pub(crate) keys: Range<usize>,
    pub(crate) also: Option<usize>,
    pub(crate) tag: u8,
    /// What it waits for in each of its keys; empty if it takes something.
    wants: Box<[Want]>,
    pub(crate) row: Option<&'static Command>,
}

impl Ticket {
    /// The database in which it waits.
    pub fn db(&self) -> u32 {
        self.db
    }

    /// One for a call, whose reply would be written to `out`.
    pub(crate) fn new(
        call: (Option<&'static Command>, Args<'_>),
        session: &Session,
        out: &Writer,
        (waiter, number): (Waiter, u64),
        wanted: AwaitedKeys,
    ) -> Self {
        let mut command = Copies::default();
        if wanted.instead.is_empty() {
            command.push((), call.1);
        } else {
            let mut words: Vec<&[u8]> = call.1.iter().collect();
            for (at, word) in &wanted.instead {
                words[*at] = word;
            }
            command.push((), Args::from_slices(&words));
        }
        Self {
            waiter,
            ms: wanted.ms,
            state: AtomicU8::new(TicketState::Waiting as u8),
            number,
            db: session.db,
            no_touch: session.no_touch,
            tracks: session.tracks,
            protocol: out.protocol(),
            reply_limit: out.limit().saturating_sub(out.len()),
            command,
            keys: wanted.keys,
            also: wanted.also,
            tag: wanted.tag,
            wants: wanted.wants.into(),
            row: call.0,
        }
    }

    /// One for a command that runs on a thread of its own. Nobody but that thread ends it.
    pub(crate) fn of_long(
        call: (Option<&'static Command>, Args<'_>),
        session: &Session,
        out: &Writer,
        place: (Waiter, u64),
    ) -> Self {
        let wanted = AwaitedKeys {
            keys: 0..0,
            also: None,
            ms: None,
            tag: 0,
            wants: Vec::new(),
            instead: Vec::new(),
        };
        let ticket = Self::new(call, session, out, place, wanted);
        ticket.state.store(TicketState::Claimed as u8, SeqCst);
        ticket
    }

    /// True if it is of a [long](crate::Hooks::run_long) command. That waits for no key.
    #[must_use]
    pub fn is_long(&self) -> bool {
        self.keys.is_empty()
    }

    /// Bytes held.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let places = self.keys.len() * PLACE_BYTES + size_of_val(&*self.wants);
        size_of::<Self>() + places + self.command.held_bytes()
    }

    /// True if it takes something of the key that serves it, so that the next finds less.
    pub(crate) fn takes(&self) -> bool {
        self.wants.is_empty()
    }

    /// What it waits for in the key at an argument's position, if it takes nothing.
    pub(crate) fn want(&self, at: usize) -> Option<&Want> {
        self.wants.get(at - self.keys.start)
    }

    /// Ends the wait. False if the command has been served already: then its reply is on the way.
    #[must_use]
    pub fn end(&self) -> bool {
        self.turn(TicketState::Waiting, TicketState::Ended)
            || self.turn(TicketState::HandedBack, TicketState::Ended)
    }

    /// True if the command may change data.
    pub(crate) fn writes(&self) -> bool {
        self.row.is_some_and(|row| row.flags.has(Flags::WRITE))
    }

    /// The command, with fixed ids in place of those that depend on its time.
    #[must_use]
    pub fn args(&self) -> Args<'_> {
        let command = self.command.iter().next();
        command.map_or_else(|| Args::from_slices(&[]), |((), args)| args)
    }

    /// The keys that the command has read for a client that tracks. They are in no table: the reply
    /// may reach the client after the message that they have changed. So it is told right after
    /// the reply that they are invalid.
    pub fn untracked_keys(&self) -> impl Iterator<Item = &[u8]> {
        let reads = |row: &&Command| self.tracks && row.flags.has(Flags::READONLY);
        let args = self.args();
        let keys = self.row.filter(reads).map(|row| row.keys.positions(args));
        keys.into_iter()
            .flatten()
            .filter_map(move |at| args.get(at))
    }

    /// An empty reply to it.
    #[must_use]
    pub fn writer(&self) -> Writer {
        let mut out = Writer::new(self.protocol);
        out.set_limit(self.reply_limit);
        out
    }

    pub(crate) fn turn(&self, from: TicketState, to: TicketState) -> bool {
        self.state
            .compare_exchange(from as u8, to as u8, SeqCst, SeqCst)
            .is_ok()
    }

    pub(crate) fn is(&self, state: TicketState) -> bool {
        self.state.load(SeqCst) == state as u8
    }

    pub(crate) fn session(&self) -> Session {
        Session {
            db: self.db,
            no_touch: self.no_touch,
            ..Session::default()
        }
    }

    pub(crate) fn key(&self, at: usize) -> &[u8] {
        self.args().get(at).unwrap_or_default()
    }
}
