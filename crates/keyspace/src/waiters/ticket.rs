//! One command that waits, and how its wait ends: once.

use std::ops::Range;
use std::sync::atomic::{AtomicU8, Ordering::SeqCst};

use tidewheel_resp::{Protocol, Writer};

use super::{ServeFn, Waiter, Wanted};
use crate::command::Command;
use crate::context::Context;
use crate::keyspace::Session;

/// What has become of a ticket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum State {
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
    /// Who waits.
    pub waiter: Waiter,
    /// How long it wants to wait, in milliseconds; `None` for ever.
    pub ms: Option<u64>,
    state: AtomicU8,
    /// Its place among all: those who came later have greater ones.
    pub(super) number: u64,
    pub(super) db: u32,
    no_touch: bool,
    /// The protocol of its reply.
    pub protocol: Protocol,
    /// How long its reply may be.
    reply_limit: usize,
    args: Vec<Box<[u8]>>,
    pub(super) keys: Range<usize>,
    pub(super) also: Option<usize>,
    pub(super) serve: ServeFn,
    pub(super) tag: u8,
    pub(super) row: Option<&'static Command>,
}

impl Ticket {
    pub(super) fn new(ctx: &Context<'_, '_>, waiter: Waiter, wanted: Wanted, number: u64) -> Self {
        Self {
            waiter,
            ms: wanted.ms,
            state: AtomicU8::new(State::Waiting as u8),
            number,
            db: ctx.session.db,
            no_touch: ctx.session.no_touch,
            protocol: ctx.out.protocol(),
            reply_limit: ctx.out.limit().saturating_sub(ctx.out.len()),
            args: ctx.args.iter().map(Box::from).collect(),
            keys: wanted.keys,
            also: wanted.also,
            serve: wanted.serve,
            tag: wanted.tag,
            row: ctx.row,
        }
    }

    /// Bytes held.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let args = self
            .args
            .iter()
            .map(|arg| arg.len() + size_of::<Box<[u8]>>());
        let places = self.keys.len() * PLACE_BYTES;
        size_of::<Self>() + places + args.sum::<usize>()
    }

    /// Ends the wait. False if the command has been served already: then its reply is on the way.
    #[must_use]
    pub fn end(&self) -> bool {
        self.turn(State::Waiting, State::Ended) || self.turn(State::HandedBack, State::Ended)
    }

    /// An empty reply to it.
    #[must_use]
    pub fn writer(&self) -> Writer {
        let mut out = Writer::new(self.protocol);
        out.set_limit(self.reply_limit);
        out
    }

    pub(super) fn turn(&self, from: State, to: State) -> bool {
        self.state
            .compare_exchange(from as u8, to as u8, SeqCst, SeqCst)
            .is_ok()
    }

    pub(super) fn is(&self, state: State) -> bool {
        self.state.load(SeqCst) == state as u8
    }

    pub(super) fn slices(&self) -> Vec<&[u8]> {
        self.args.iter().map(|arg| &**arg).collect()
    }

    pub(super) fn session(&self) -> Session {
        Session {
            db: self.db,
            no_touch: self.no_touch,
            ..Session::default()
        }
    }

    pub(super) fn key(&self, at: usize) -> &[u8] {
        &self.args[at]
    }
}
