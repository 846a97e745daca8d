//! Clients that wait for a key to hold something: who waits, in which order, and how each is served once.
//!
//! 1. A blocking command that finds nothing leaves a [`Ticket`] in the queue of each of its keys, under the locks with
//!    which it looked.
//! 2. The funnel notes each key that changes while somebody waits for it.
//! 3. Whoever has changed such a key serves its queue before it unlocks: from the front, as long as the key holds
//!    something. The replies are posted when nothing is locked any more.
//! 4. A command that needs another shard too, which is not locked, is handed back to the client's own thread. It keeps
//!    its place at the front meanwhile, and those behind it wait.
//!
//! A ticket is waiting until somebody claims it: the one who serves it, or the one who ends it, because its time is over
//! or its client is gone. Claiming is one compare-and-swap, so only one of them wins.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering::SeqCst};

use tidewheel_resp::{Args, Protocol, Writer};

use crate::collection::{Collection, untimed};
use crate::command::Command;
use crate::context::{Context, Large};
use crate::error::CommandError;
use crate::gate::Seat;
use crate::keyspace::{Keyspace, Session};
use crate::shard::Hold;
use crate::time::{Now, Time};

/// Who waits, in the shell's own terms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waiter {
    /// Its thread.
    pub owner: usize,
    /// Its place there.
    pub slot: u32,
    /// Its id, which is never used twice.
    pub id: u64,
}

/// Tries to run a waiting command on the key at one of its arguments. False if there is nothing.
pub(crate) type ServeFn = fn(&mut Context<'_, '_>, usize) -> Result<bool, CommandError>;

/// What a blocking command waits for.
pub(crate) struct Wanted {
    /// The positions of its keys.
    pub(crate) keys: Range<usize>,
    /// The position of another key whose shard it needs.
    pub(crate) also: Option<usize>,
    /// How long it waits.
    pub(crate) ms: Option<u64>,
    pub(crate) serve: ServeFn,
    /// The tag of what it takes.
    pub(crate) tag: u8,
}

impl Wanted {
    pub(crate) fn of<C: Collection>(keys: Range<usize>, ms: Option<u64>, serve: ServeFn) -> Self {
        Self {
            keys,
            also: None,
            ms,
            serve,
            tag: C::TAG,
        }
    }
}

const WAITING: u8 = 0;
/// Its own thread will run it.
const HANDED_BACK: u8 = 1;
const CLAIMED: u8 = 2;
const ENDED: u8 = 3;

/// One command that waits.
#[derive(Debug)]
pub struct Ticket {
    /// Who waits.
    pub waiter: Waiter,
    /// How long it wants to wait, in milliseconds; `None` for ever.
    pub ms: Option<u64>,
    state: AtomicU8,
    /// Its place among all: those who came later have greater ones.
    number: u64,
    db: u32,
    no_touch: bool,
    /// The protocol of its reply.
    pub protocol: Protocol,
    args: Vec<Box<[u8]>>,
    keys: Range<usize>,
    also: Option<usize>,
    serve: ServeFn,
    tag: u8,
    row: Option<&'static Command>,
}

impl Ticket {
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
        self.turn(WAITING, ENDED) || self.turn(HANDED_BACK, ENDED)
    }

    fn turn(&self, from: u8, to: u8) -> bool {
        self.state
            .compare_exchange(from, to, SeqCst, SeqCst)
            .is_ok()
    }

    fn is(&self, state: u8) -> bool {
        self.state.load(SeqCst) == state
    }

    fn slices(&self) -> Vec<&[u8]> {
        self.args.iter().map(|arg| &**arg).collect()
    }

    fn session(&self) -> Session {
        Session {
            db: self.db,
            no_touch: self.no_touch,
            ..Session::default()
        }
    }

    fn key(&self, at: usize) -> &[u8] {
        &self.args[at]
    }

    /// The position of a key.
    fn position(&self, key: &[u8]) -> Option<usize> {
        self.keys.clone().find(|at| self.key(*at) == key)
    }
}

/// Bytes that a place in a queue takes, about.
const PLACE_BYTES: usize = 64;

/// What has become of a ticket.
#[derive(Debug)]
pub enum Served {
    /// Its command has run: the reply.
    Reply(Arc<Ticket>, Vec<u8>),
    /// Its own thread is to call [`Keyspace::retry`].
    Retry(Arc<Ticket>),
}

/// A key that has changed: its database, the tag of what is waited for, and its name.
pub(crate) type ReadyKey = (u32, u8, Box<[u8]>);

/// The keys that are waited for, and who waits.
type Queues = HashMap<Box<[u8]>, Queue>;

/// The queues of one shard.
#[derive(Debug, Default)]
pub(crate) struct Waiters {
    /// By database and by the tag of what is waited for.
    queues: HashMap<(u32, u8), Queues>,
    /// Keys that have changed, each of them once.
    ready: Vec<ReadyKey>,
}

#[derive(Debug, Default)]
struct Queue {
    tickets: BTreeMap<u64, Arc<Ticket>>,
    /// Whether the key is among those that have changed.
    is_ready: bool,
}

impl Waiters {
    pub(crate) fn add(&mut self, key: &[u8], ticket: &Arc<Ticket>) {
        let queues = self.queues.entry((ticket.db, ticket.tag)).or_default();
        let queue = match queues.get_mut(key) {
            Some(queue) => queue,
            None => queues.entry(key.into()).or_default(),
        };
        queue.tickets.insert(ticket.number, Arc::clone(ticket));
    }

    /// Takes a ticket out of a key's queue.
    pub(crate) fn remove(&mut self, key: &[u8], ticket: &Ticket) {
        let of = (ticket.db, ticket.tag);
        let Some(queues) = self.queues.get_mut(&of) else {
            return;
        };
        if let Some(queue) = queues.get_mut(key) {
            queue.tickets.remove(&ticket.number);
            if queue.tickets.is_empty() {
                queues.remove(key);
            }
        }
        if queues.is_empty() {
            self.queues.remove(&of);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.queues.is_empty()
    }

    /// A key has changed.
    pub(crate) fn note(&mut self, db: u32, key: &[u8]) {
        for ((of, tag), queues) in &mut self.queues {
            if *of == db
                && let Some(queue) = queues.get_mut(key)
                && !queue.is_ready
            {
                queue.is_ready = true;
                self.ready.push((db, *tag, key.into()));
            }
        }
    }

    /// All keys of two databases may have changed.
    pub(crate) fn note_all(&mut self, databases: [u32; 2]) {
        for ((db, tag), queues) in &mut self.queues {
            if databases.contains(db) {
                for (key, queue) in queues {
                    if !std::mem::replace(&mut queue.is_ready, true) {
                        self.ready.push((*db, *tag, key.clone()));
                    }
                }
            }
        }
    }

    pub(crate) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    pub(crate) fn take_ready(&mut self) -> Option<ReadyKey> {
        let (db, tag, key) = self.ready.pop()?;
        let queues = self.queues.get_mut(&(db, tag));
        if let Some(queue) = queues.and_then(|queues| queues.get_mut(&key)) {
            queue.is_ready = false;
        }
        Some((db, tag, key))
    }

    /// The first that still waits. Those before it that do not are taken out.
    fn first(&mut self, db: u32, tag: u8, key: &[u8]) -> Option<Arc<Ticket>> {
        loop {
            let queue = self.queues.get(&(db, tag))?.get(key)?;
            let (_, ticket) = queue.tickets.first_key_value()?;
            let ticket = Arc::clone(ticket);
            if ticket.is(WAITING) {
                return Some(ticket);
            }
            if ticket.is(HANDED_BACK) {
                return None;
            }
            self.remove(key, &ticket);
        }
    }
}

/// What is done while shards are locked, and what is left to do afterwards.
#[derive(Debug, Default)]
pub(crate) struct Serving {
    pub(crate) served: Vec<Served>,
    pub(crate) large: Option<Box<Large>>,
}

type Locks<'a> = Vec<(usize, Hold<'a>)>;

impl Keyspace {
    /// Makes a ticket for a command, and puts it into the queues of its keys, whose shards are locked.
    pub(crate) fn wait(
        &self,
        ctx: &mut Context<'_, '_>,
        waiter: Waiter,
        wanted: Wanted,
    ) -> Arc<Ticket> {
        let ticket = Arc::new(Ticket {
            waiter,
            ms: wanted.ms,
            state: AtomicU8::new(WAITING),
            number: self.next_ticket.fetch_add(1, SeqCst),
            db: ctx.session.db,
            no_touch: ctx.session.no_touch,
            protocol: ctx.out.protocol(),
            args: ctx.args.iter().map(Box::from).collect(),
            keys: wanted.keys,
            also: wanted.also,
            serve: wanted.serve,
            tag: wanted.tag,
            row: ctx.row,
        });
        for at in ticket.keys.clone() {
            let key = ctx.key(at);
            ctx.hold_of(key).await_key(key.bytes, &ticket);
        }
        self.waiting.fetch_add(1, SeqCst);
        ticket
    }

    /// How many commands wait.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.waiting.load(SeqCst)
    }

    /// A wait is over: its ticket leaves all queues. Call it once for each ticket that [`begin`](Self::begin) has
    /// returned, when it was served or [ended](Ticket::end).
    pub fn leave(&self, seat: &mut Seat, time: Time, ticket: &Ticket) {
        let _visit = seat.visit();
        self.waiting.fetch_sub(1, SeqCst);
        let now = Now::of(&self.timeline, time);
        for at in ticket.keys.clone() {
            let key = self.key(ticket.key(at));
            let mut hold = self.shards[key.shard].lock();
            hold.leave_key(key.bytes, ticket);
            // Those behind one that was handed back have waited for it.
            if ticket.also.is_some() {
                hold.note_awaited(ticket.db, key.bytes);
                self.serve_and_unlock(now, vec![(key.shard, hold)], None);
            }
        }
    }

    /// Runs a command that was [handed back](Served::Retry). False if there is nothing any more: then it waits on, in
    /// its old place.
    pub fn retry(
        &self,
        seat: &mut Seat,
        time: Time,
        ticket: &Arc<Ticket>,
        out: &mut Writer,
    ) -> bool {
        let _visit = seat.visit();
        let now = Now::of(&self.timeline, time);
        let keys = ticket.keys.clone().chain(ticket.also);
        let locks = self.lock_shards_of(keys.map(|at| ticket.key(at)));
        let mut serving = Serving::default();
        let at = ticket.keys.start;
        let (locks, has_some) = self.with_ticket(&now, ticket, locks, out, &mut serving, |ctx| {
            has_some(ctx, ticket, at)
        });
        let next = if has_some { CLAIMED } else { WAITING };
        if !ticket.turn(HANDED_BACK, next) || !has_some {
            // What has just been looked at may have been removed, because it was dead.
            self.serve_and_unlock(now, locks, serving.large.take());
            return false;
        }
        let (mut locks, ()) = self.with_ticket(&now, ticket, locks, out, &mut serving, |ctx| {
            run(ctx, ticket, at);
        });
        let place = self.key(ticket.key(at));
        if let Ok(at) = locks.binary_search_by_key(&place.shard, |(shard, _)| *shard) {
            locks[at].1.leave_key(place.bytes, ticket);
        }
        self.serve_and_unlock(now, locks, serving.large.take());
        true
    }

    /// Serves those who wait for keys that have changed in these shards, and unlocks them.
    #[cold]
    pub(crate) fn serve_and_unlock(&self, now: Now, locks: Locks<'_>, large: Option<Box<Large>>) {
        let mut serving = Serving {
            served: Vec::new(),
            large,
        };
        let locks = self.serve_ready(&now, locks, &mut serving);
        self.unlock_shards(locks);
        self.end_serving(now, serving);
    }

    /// Serves those who wait for keys that have changed anywhere. The caller has the whole keyspace.
    pub(crate) fn serve_everywhere(&self, now: Now) {
        if self.waiting() == 0 {
            return;
        }
        for shard in 0..self.shards.len() {
            let hold = self.shards[shard].lock();
            if hold.has_ready() {
                self.serve_and_unlock(now, vec![(shard, hold)], None);
            }
        }
    }

    /// Posts the replies and drops what was replaced. Nothing is locked.
    pub(crate) fn end_serving(&self, now: Now, serving: Serving) {
        for served in serving.served {
            self.hooks.served(served);
        }
        if serving.large.is_some() {
            let (mut session, mut out) = (Session::default(), Writer::default());
            let args = Args::from_slices(&[]);
            let mut context = Context::new(self, &mut session, now, args, &mut out, None);
            context.carry(serving.large);
            context.finish();
        }
    }

    /// Serves those who wait for keys that have changed in these shards.
    pub(crate) fn serve_ready<'a>(
        &'a self,
        now: &Now,
        mut locks: Locks<'a>,
        serving: &mut Serving,
    ) -> Locks<'a> {
        while let Some((db, tag, key)) = locks.iter_mut().find_map(|(_, hold)| hold.take_ready()) {
            while let Some(ticket) = first(self, &mut locks, db, tag, &key) {
                let (after, goes_on) = self.serve_one(now, &key, &ticket, locks, serving);
                locks = after;
                if !goes_on {
                    break;
                }
            }
        }
        locks
    }

    /// Serves the first of a queue. False if the others must wait.
    fn serve_one<'a>(
        &'a self,
        now: &Now,
        key: &[u8],
        ticket: &Arc<Ticket>,
        locks: Locks<'a>,
        serving: &mut Serving,
    ) -> (Locks<'a>, bool) {
        let Some(at) = ticket.position(key) else {
            return (locks, false);
        };
        let mut out = Writer::new(ticket.protocol);
        let (locks, has_some) = self.with_ticket(now, ticket, locks, &mut out, serving, |ctx| {
            has_some(ctx, ticket, at)
        });
        if !has_some {
            return (locks, false);
        }
        let is_locked = |at: usize| {
            let shard = self.key(ticket.key(at)).shard;
            locks.iter().any(|(locked, _)| *locked == shard)
        };
        if !ticket.also.is_none_or(is_locked) {
            let handed = ticket.turn(WAITING, HANDED_BACK);
            if handed {
                serving.served.push(Served::Retry(Arc::clone(ticket)));
            }
            return (locks, !handed);
        }
        if !ticket.turn(WAITING, CLAIMED) {
            return (locks, true);
        }
        let (locks, ()) = self.with_ticket(now, ticket, locks, &mut out, serving, |ctx| {
            run(ctx, ticket, at);
        });
        let reply = Served::Reply(Arc::clone(ticket), out.into_vec());
        serving.served.push(reply);
        (locks, true)
    }

    /// Calls `act` with a context of a waiting command, over locks that others have taken.
    fn with_ticket<'a, R>(
        &'a self,
        now: &Now,
        ticket: &Ticket,
        locks: Locks<'a>,
        out: &mut Writer,
        serving: &mut Serving,
        act: impl FnOnce(&mut Context<'_, '_>) -> R,
    ) -> (Locks<'a>, R) {
        let (slices, mut session) = (ticket.slices(), ticket.session());
        let args = Args::from_slices(&slices);
        let mut context = Context::new(self, &mut session, *now, args, out, ticket.row);
        context.carry(serving.large.take());
        context.keep(locks);
        let result = act(&mut context);
        let locks = context.hand_back();
        serving.large = context.carry_on();
        (locks, result)
    }
}

/// The first who waits for a key.
fn first(
    keyspace: &Keyspace,
    locks: &mut Locks<'_>,
    db: u32,
    tag: u8,
    key: &[u8],
) -> Option<Arc<Ticket>> {
    let shard = keyspace.key(key).shard;
    let at = locks.iter().position(|(locked, _)| *locked == shard)?;
    locks[at].1.waiters_mut()?.first(db, tag, key)
}

/// Whether a key holds what the ticket waits for.
fn has_some(ctx: &mut Context<'_, '_>, ticket: &Ticket, at: usize) -> bool {
    let key = ctx.key(at);
    let slot = ctx.find_at(key, ticket.db);
    slot.is_some_and(|slot| untimed(ctx.entries(key).tag(slot)) == ticket.tag)
}

/// Runs the command of a ticket that was claimed.
fn run(ctx: &mut Context<'_, '_>, ticket: &Ticket, at: usize) {
    let mark = ctx.out.mark();
    if let Err(error) = (ticket.serve)(ctx, at) {
        ctx.refuse(mark, &error);
    }
}
