//! Finds long commands, and runs each on a thread of its own.
//!
//! 1. [`Keyspace::begin`](crate::Keyspace::begin) has locked the shards of a command's keys. If the
//!    row's [`Cost`](crate::rows::cost::Cost) says that the call takes more than about a
//!    millisecond, the command becomes a [`Ticket`], and a claim on its shards: see `claims.rs`.
//! 2. When the claim is granted, [`Hooks::run_long`](crate::Hooks::run_long) hands the ticket to a
//!    thread, which calls [`Keyspace::run_long`].
//! 3. That locks the shards, waiting for as long as it takes, runs the handler, unlocks them, and
//!    returns the reply, which the thread sends to the client's own loop.
//!
//! Commands of a transaction, and clients that cannot wait, run where they are.

use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use tidewheel_collections::Stream;
use tidewheel_resp::parse_i64;
use tidewheel_store::Value;

use crate::claims::ShardSet;
use crate::commands::geo::search::candidates;
use crate::commands::handlers::{Handler, handler};
use crate::commands::stream::pending::count_of_pending;
use crate::commands::stream::range::count_of_ids;
use crate::commands::stream::read::ReadCall;
use crate::commands::zset::range::count_in_range;
use crate::context::Context;
use crate::gate::Seat;
use crate::keyspace::Keyspace;
use crate::rows::cost::Visits;
use crate::rows::{Adds, Command};
use crate::time::{Now, Time};
use crate::value::{Object, collection};
use crate::waiters::{Served, Ticket};

/// No command takes longer for a byte of a collection or a string.
const BYTES_NS: u64 = 100;

/// Bytes of a string that cost as much as a member.
const BYTES_PER_MEMBER: usize = 64;

impl Context<'_, '_> {
    /// True if a call will take long. The shards of its keys are locked.
    #[inline]
    pub(crate) fn takes_long(&mut self, row: &Command) -> bool {
        let long_ns = self.keyspace.rules().long_ns.load(Relaxed);
        let arguments = self.arguments_ns(row);
        arguments > long_ns || row.cost.member_ns > 0 && self.visits_long(row, long_ns - arguments)
    }

    /// True if the members that a call visits take longer than `most_ns`.
    #[inline(never)]
    fn visits_long(&mut self, row: &Command, most_ns: u64) -> bool {
        // Most shards have nothing large, and there is nothing to look at.
        let pairs = matches!(row.cost.visits, Visits::Pairs);
        let large = pairs || self.object_bytes() as u64 > most_ns / BYTES_NS;
        large && self.visits_ns(row) > most_ns
    }

    #[inline]
    fn arguments_ns(&self, row: &Command) -> u64 {
        let units = match row.adds {
            // All members are in one of them.
            Adds::Payload => self.args.bytes() / BYTES_PER_MEMBER,
            _ => self.args.len(),
        };
        u64::from(row.cost.argument_ns) * units as u64
    }

    #[cold]
    fn visits_ns(&mut self, row: &Command) -> u64 {
        let args = self.args;
        let mut visited = 0_u64;
        let mut pairs = BYTES_PER_MEMBER as u64;
        for at in row.keys.positions(args) {
            let of_this = self.visited(row, at) as u64;
            visited = visited.saturating_add(of_this);
            pairs = pairs.saturating_mul(of_this);
        }
        if let Visits::Pairs = row.cost.visits {
            visited = pairs;
        }
        visited.saturating_mul(row.cost.member_ns.into())
    }

    /// The most members of one key's value that a call visits.
    fn visited(&mut self, row: &Command, at: usize) -> usize {
        let (args, db, key) = (self.args, self.session.db, self.key(at));
        let read = match row.cost.visits {
            Visits::Entries { in_group } => ReadCall::parse(self, in_group).ok(),
            _ => None,
        };
        let entries = self.entries_at(key, db);
        let Some(slot) = entries.find(key.hash, key.bytes) else {
            return 0;
        };
        let len = match entries.value(slot) {
            Value::Inline(bytes) => match row.cost.visits {
                Visits::Pairs => bytes.len() / BYTES_PER_MEMBER,
                _ => return 0,
            },
            Value::Object(Object::Bytes(bytes)) => bytes.len() / BYTES_PER_MEMBER,
            Value::Object(object) => object.members(),
        };
        let number = |at: usize| args.get(at).and_then(parse_i64);
        match row.cost.visits {
            Visits::All | Visits::Pairs => len,
            Visits::Count(at) => match number(at) {
                None => 1,
                Some(n @ ..0) => usize::try_from(n.unsigned_abs()).unwrap_or(usize::MAX),
                Some(n) => len.min(n as usize),
            },
            Visits::CountWord(usual) => {
                let word = (1..args.len()).find(|at| self.is(*at, "COUNT"));
                let count = word.and_then(|at| number(at + 1));
                len.min(count.map_or(usual, |n| usize::try_from(n).unwrap_or(0)))
            }
            Visits::Entries { .. } => {
                let stream = collection::read::<Stream>(entries, slot).ok();
                let both = stream.zip(read.as_ref());
                both.map_or(0, |(stream, call)| call.visited(args, at, stream))
            }
            Visits::Places(at) => match (number(at), number(at + 1)) {
                (Some(start), Some(end)) => {
                    crate::commands::arguments::range_of_places(start, end, len).len()
                }
                _ => 0,
            },
            Visits::Area(search) => candidates(entries, slot, search, args),
            Visits::Range(at, range) => count_in_range(entries, slot, range, args.from(at)),
            Visits::Ids { reverse } => count_of_ids(entries, slot, reverse, args),
            Visits::Pending(part) => count_of_pending(entries, slot, part, args),
        }
    }

    /// Has the command run on a thread of its own, if its client can wait. The shards that it needs
    /// are locked.
    #[cold]
    pub(crate) fn hand_over(&mut self, row: &'static Command) -> Option<Arc<Ticket>> {
        let waiter = self.session.waiter?;
        let reads_others = |at: usize| self.is(at, "BY") || self.is(at, "GET");
        let shards = match row.reaches && (2..self.args.len()).any(reads_others) {
            true => ShardSet::ALL,
            false => self.locked_shards(),
        };
        let number = self.keyspace.place_of_long(waiter);
        self.keyspace.waiting.fetch_add(1, SeqCst);
        let ticket = {
            let call = (self.row, self.args);
            Arc::new(Ticket::of_long(
                call,
                self.session,
                self.out,
                (waiter, number),
            ))
        };
        self.finish();
        self.keyspace.claim(shards, &ticket);
        Some(ticket)
    }
}

impl Keyspace {
    /// Runs a long command that [`Hooks::run_long`](crate::Hooks::run_long) was called with, to its
    /// end. The caller is no event loop: it may wait for locks. Call [`leave`](Self::leave) when
    /// the client has what comes back.
    pub fn run_long(&self, seat: &mut Seat, time: Time, ticket: Arc<Ticket>) -> Served {
        let began_ns = self.hooks.stopwatch_ns();
        // Whatever happens, others must not wait for ever.
        let claim = EndClaim {
            keyspace: self,
            ticket: Arc::clone(&ticket),
            time,
            began_ns,
        };
        let visit = seat.visit();
        let mut reply = ticket.writer();
        {
            let (args, mut session) = (ticket.args(), ticket.session());
            let now = Now::of(&self.timeline, time);
            let out = &mut reply;
            let mut context = Context::new(self, &mut session, now, args, out, ticket.row);
            context.is_long = true;
            context.seat = Some(&mut *visit.seat);
            context.run_long();
        }
        let ns = self.hooks.stopwatch_ns().saturating_sub(began_ns);
        drop(claim);
        Served::Reply { ticket, reply, ns }
    }
}

impl Context<'_, '_> {
    fn run_long(&mut self) {
        let Some(row) = self.row else {
            unreachable!("a long command has a row");
        };
        let Handler::Keys(handler) = handler(row) else {
            unreachable!("only such a command is long");
        };
        let locked = self.lock_keys(&row.keys, row.stored_argument, &row.into());
        debug_assert!(locked.is_ok(), "it waits for as long as it takes");
        let mark = self.out.mark();
        if let Err(error) = handler(self) {
            self.refuse(mark, &error);
        }
        self.finish();
    }
}

/// Ends the claim of a long command.
struct EndClaim<'a> {
    keyspace: &'a Keyspace,
    ticket: Arc<Ticket>,
    time: Time,
    began_ns: u64,
}

impl Drop for EndClaim<'_> {
    fn drop(&mut self) {
        let now_ns = self.keyspace.hooks.stopwatch_ns();
        let time = self.time.after(now_ns.saturating_sub(self.began_ns));
        let now = Now::of(&self.keyspace.timeline, time);
        self.keyspace.end_claim(&self.ticket, now);
    }
}
