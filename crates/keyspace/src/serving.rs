//! Serves waiting clients while shards are locked, and ends their waits.

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use tidewheel_resp::{Args, Writer};

use crate::claims::ShardAction;
use crate::commands::blocking::serve_key;
use crate::commands::handlers::serve;
use crate::context::{Context, LargeValues};
use crate::gate::{Exclusive, Seat};
use crate::keyspace::Keyspace;
use crate::session::Session;
use crate::shard::{Hold, meet_all};
use crate::time::{Now, Time};
use crate::value::collection::untimed;
use crate::waiters::{AwaitedKeys, Change, PORTION, ReadyKey, Served, Ticket, TicketState, Waiter};

/// The replies of served clients, and large values, which are sent and dropped after unlocking.
#[derive(Debug)]
struct Serving {
    served: Vec<Served>,
    large: Option<Box<LargeValues>>,
    /// The readers that may still be served.
    readers: usize,
}

impl Serving {
    fn of(readers: usize) -> Self {
        Self {
            served: Vec::new(),
            large: None,
            readers,
        }
    }
}

/// Shards that are locked, in their order.
type Locks<'a> = Vec<(usize, Hold<'a>)>;

impl Keyspace {
    /// Makes a ticket for a command, and puts it into the queues of its keys, whose shards are
    /// locked.
    pub(crate) fn wait(
        &self,
        ctx: &mut Context<'_, '_>,
        waiter: Waiter,
        wanted: AwaitedKeys,
    ) -> Arc<Ticket> {
        let number = self.next_ticket.fetch_add(1, SeqCst);
        let ticket = {
            let call = (ctx.row, ctx.args);
            Arc::new(Ticket::new(
                call,
                ctx.session,
                ctx.out,
                (waiter, number),
                wanted,
            ))
        };
        for at in ticket.keys.clone() {
            let key = ctx.key(at);
            ctx.hold_of(key).await_key(key, at, &ticket);
        }
        self.waiting.fetch_add(1, SeqCst);
        ticket
    }

    /// The number of waiting commands.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.waiting.load(SeqCst)
    }

    /// The number of keys that are waited for, and of those for which some wait that are answered
    /// when the key is gone (XREADGROUP).
    #[must_use]
    pub fn awaited_keys(&self) -> (usize, usize) {
        self.shared.awaited.numbers()
    }

    /// Takes a ticket whose wait is over out of all queues. Call it once for each ticket that
    /// [`begin`](Self::begin) has returned, when it was served or [ended](Ticket::end).
    pub fn leave(&self, seat: &mut Seat, time: Time, ticket: &Arc<Ticket>) {
        let _visit = seat.visit();
        self.waiting.fetch_sub(1, SeqCst);
        let now = Now::of(&self.timeline, time);
        for at in ticket.keys.clone() {
            let shard = self.key(ticket.key(at)).shard;
            let leaver = Arc::clone(ticket);
            let leave: ShardAction = Box::new(move |hold| {
                hold.leave_key(at, &leaver);
                // Those behind one that was handed back have waited for it.
                if leaver.also.is_some() {
                    hold.note_awaited(leaver.db, leaver.key(at), Change::KeepsGroups);
                }
            });
            if let Some(hold) = self.act_on(shard, leave) {
                self.serve_and_unlock(now, vec![(shard, hold)]);
            }
        }
    }

    /// Runs a command that was [handed back](Served::Retry), and returns the nanoseconds that it
    /// ran. `None` if there is nothing any more: then it waits on, in its old place.
    pub fn retry(
        &self,
        seat: &mut Seat,
        time: Time,
        ticket: &Arc<Ticket>,
        out: &mut Writer,
    ) -> Option<u64> {
        let _visit = seat.visit();
        let mut now = Now::of(&self.timeline, time);
        let keys = ticket.keys.clone().chain(ticket.also);
        let mut locks = match self.lock_shards_of(keys.map(|at| ticket.key(at))) {
            Ok(locks) => locks,
            Err(blocked) => {
                self.retry_later(&blocked, ticket);
                return None;
            }
        };
        meet_all(&mut locks, &mut now);
        let mut serving = Serving::of(PORTION);
        let at = ticket.keys.start;
        let name = ticket.key(at);
        let (mut locks, found) = self.find_some(&now, ticket, name, locks, &mut serving);
        let may = found.is_some() && !self.is_paused();
        let next = if may {
            TicketState::Claimed
        } else {
            TicketState::Waiting
        };
        let mut ran_ns = None;
        if ticket.turn(TicketState::HandedBack, next) && may {
            let (after, ns) = self.run_claimed(&now, ticket, at, locks, out, &mut serving);
            (locks, ran_ns) = (after, Some(ns));
        }
        let key = self.key(name);
        let hold = hold_of(&mut locks, key.shard);
        if ran_ns.is_some() {
            hold.leave_key(at, ticket);
        }
        // For itself after a pause, and for those behind it.
        hold.note_awaited(ticket.db, name, Change::KeepsGroups);
        self.serve_and_end(now, locks, serving);
        ran_ns
    }

    /// True if a pause alone holds back the serving of a ticket: one of its keys holds something.
    #[must_use]
    pub fn holds_back(&self, seat: &mut Seat, ticket: &Ticket) -> bool {
        if !self.is_paused() {
            return false;
        }
        let _visit = seat.visit();
        ticket.keys.clone().any(|at| {
            let key = self.key(ticket.key(at));
            // What a long command has may hold something: it is looked at again later.
            let hold = self.shards[key.shard].lock_briefly();
            hold.is_none_or(|hold| hold.is_ready(key.bytes, ticket))
        })
    }

    /// Serves the clients that a pause has held back. Call it right before the pause ends.
    pub fn serve_held_back(&self, _alone: &Exclusive<'_>, time: Time) {
        self.serve_all(Now::of(&self.timeline, time));
    }

    /// Serves the clients that wait for ready keys of these shards, and unlocks the shards.
    #[cold]
    pub(crate) fn serve_and_unlock(&self, now: Now, locks: Locks<'_>) {
        self.serve_and_end(now, locks, Serving::of(PORTION));
    }

    /// As [`serve_and_unlock`](Self::serve_and_unlock), all at once: the caller has other shards
    /// locked, and may wait for none.
    #[cold]
    pub(crate) fn serve_all_and_unlock(&self, now: Now, locks: Locks<'_>) {
        self.serve_and_end(now, locks, Serving::of(usize::MAX));
    }

    /// Serves the clients that wait for ready keys of any shard. The caller has the whole keyspace.
    pub(crate) fn serve_everywhere(&self, now: Now) {
        if !self.is_paused() {
            self.serve_all(now);
        }
    }

    fn serve_all(&self, mut now: Now) {
        if self.waiting() == 0 {
            return;
        }
        let shards = self.shards.iter().enumerate();
        let mut locks: Locks<'_> = shards.map(|(i, shard)| (i, shard.lock())).collect();
        meet_all(&mut locks, &mut now);
        // Nobody else is inside, so nobody waits for these locks.
        let mut serving = Serving::of(usize::MAX);
        let locks = self.serve_ready(&mut now, locks, &mut serving);
        self.unlock_served(now, locks, serving);
    }

    fn serve_and_end<'a>(&'a self, now: Now, locks: Locks<'a>, serving: Serving) {
        let mut left = self.serve_portion(now, locks, serving);
        while let Some(shard) = left.pop() {
            // Whoever has it for long serves when he unlocks it.
            if let Some(hold) = self.act_on(shard, Box::new(|_| {})) {
                let locks = vec![(shard, hold)];
                left.extend(self.serve_portion(now, locks, Serving::of(PORTION)));
            }
        }
    }

    /// Serves all who take something, and as many readers as one hold allows, and unlocks. Returns
    /// the shards where others can be served.
    fn serve_portion<'a>(
        &'a self,
        mut now: Now,
        mut locks: Locks<'a>,
        mut serving: Serving,
    ) -> Vec<usize> {
        let mut left = Vec::new();
        meet_all(&mut locks, &mut now);
        if !self.is_paused() {
            locks = self.serve_ready(&mut now, locks, &mut serving);
            if serving.readers == 0 {
                let ready = locks.iter().filter(|(_, hold)| hold.has_ready());
                left.extend(ready.map(|(shard, _)| *shard));
            }
        }
        self.unlock_served(now, locks, serving);
        left
    }

    /// Unlocks, and posts the replies. What is invalid is told behind them.
    fn unlock_served(&self, now: Now, mut locks: Locks<'_>, serving: Serving) {
        let mut invalid = Vec::new();
        for (_, hold) in &mut locks {
            if hold.after() != 0 {
                invalid.append(&mut hold.take_invalid());
            }
        }
        self.unlock_shards(locks, None);
        self.end_serving(now, serving);
        if !invalid.is_empty() {
            // More than one client may have changed them: each is told of all.
            self.tell_invalid(None, invalid);
        }
    }

    /// Posts the replies and drops what was replaced. Nothing is locked.
    fn end_serving(&self, now: Now, serving: Serving) {
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

    /// Serves the clients that wait for ready keys of these shards, until too many have read. It
    /// may lock others.
    fn serve_ready<'a>(
        &'a self,
        now: &mut Now,
        mut locks: Locks<'a>,
        serving: &mut Serving,
    ) -> Locks<'a> {
        let mut left = Vec::new();
        'keys: while let Some(ready) = next_ready(&mut locks) {
            let shard = self.shard_of(ready.hash);
            let mut goes_on = true;
            while goes_on && let Some(ticket) = hold_of(&mut locks, shard).next_of(&ready) {
                if serving.readers == 0 && !ticket.takes() {
                    left.push(ready);
                    continue 'keys;
                }
                (locks, goes_on) = self.serve_one(now, &ready, &ticket, locks, serving);
            }
            hold_of(&mut locks, shard).served(&ready);
        }
        for ready in left.into_iter().rev() {
            let shard = self.shard_of(ready.hash);
            hold_of(&mut locks, shard).put_back(ready);
        }
        locks
    }

    /// Serves the first of a queue. False if the others must wait.
    fn serve_one<'a>(
        &'a self,
        now: &mut Now,
        ready: &ReadyKey,
        ticket: &Arc<Ticket>,
        locks: Locks<'a>,
        serving: &mut Serving,
    ) -> (Locks<'a>, bool) {
        if !ticket.takes() {
            return self.serve_reader(now, ready, ticket, locks, serving);
        }
        let (mut locks, found) = self.find_some(now, ticket, &ready.name, locks, serving);
        let Some(at) = found else {
            return (locks, false);
        };
        if !self.lock_also(now, ticket, &mut locks) {
            let handed = ticket.turn(TicketState::Waiting, TicketState::HandedBack);
            if handed {
                serving.served.push(Served::Retry(Arc::clone(ticket)));
            }
            return (locks, !handed);
        }
        (self.claim_and_run(now, ticket, at, locks, serving), true)
    }

    /// Serves one who takes nothing, and can be served.
    fn serve_reader<'a>(
        &'a self,
        now: &Now,
        ready: &ReadyKey,
        ticket: &Arc<Ticket>,
        mut locks: Locks<'a>,
        serving: &mut Serving,
    ) -> (Locks<'a>, bool) {
        let key = self.hashed_key(ready.hash, &ready.name);
        if hold_of(&mut locks, key.shard).is_dead(key, ready.db, now) {
            let mut out = Writer::default();
            // Who can be served, if the key is gone, is another question.
            (locks, ()) = self.with_ticket(now, ticket, locks, &mut out, serving, |ctx| {
                ctx.remove_dead_key(key, ready.db);
            });
            return (locks, true);
        }
        serving.readers -= 1;
        let at = ticket.keys.start;
        (self.claim_and_run(now, ticket, at, locks, serving), true)
    }

    /// Runs the command of a ticket, unless its wait has just ended.
    fn claim_and_run<'a>(
        &'a self,
        now: &Now,
        ticket: &Arc<Ticket>,
        at: usize,
        locks: Locks<'a>,
        serving: &mut Serving,
    ) -> Locks<'a> {
        if !ticket.turn(TicketState::Waiting, TicketState::Claimed) {
            return locks;
        }
        let mut reply = ticket.writer();
        let (locks, ns) = self.run_claimed(now, ticket, at, locks, &mut reply, serving);
        let ticket = Arc::clone(ticket);
        serving.served.push(Served::Reply { ticket, reply, ns });
        locks
    }

    /// The position of the first key that holds what a ticket waits for. `None` if the key of that
    /// name does not. Keys whose shards are not locked hold nothing: somebody waits for them.
    fn find_some<'a>(
        &'a self,
        now: &Now,
        ticket: &Ticket,
        name: &[u8],
        locks: Locks<'a>,
        serving: &mut Serving,
    ) -> (Locks<'a>, Option<usize>) {
        let (mut out, keys) = (Writer::default(), ticket.keys.clone());
        self.with_ticket(now, ticket, locks, &mut out, serving, |ctx| {
            let named = keys.clone().find(|at| ticket.key(*at) == name);
            let at = named.filter(|at| has_some(ctx, ticket, *at))?;
            let first = (keys.start..at).find(|at| has_some(ctx, ticket, *at));
            Some(first.unwrap_or(at))
        })
    }

    /// Locks the other shard that a ticket needs, unless somebody has it.
    fn lock_also<'a>(&'a self, now: &mut Now, ticket: &Ticket, locks: &mut Locks<'a>) -> bool {
        let Some(also) = ticket.also else {
            return true;
        };
        let shard = self.key(ticket.key(also)).shard;
        let Err(at) = place_of(locks, shard) else {
            return true;
        };
        // Waiting for it could be a circle: locks are taken in their order.
        let hold = self.shards[shard].try_lock();
        let is_locked = hold.is_some();
        locks.splice(at..at, hold.map(|hold| (shard, hold)));
        meet_all(locks, now);
        is_locked
    }

    /// Runs the command of a ticket that was claimed, and measures it.
    fn run_claimed<'a>(
        &'a self,
        now: &Now,
        ticket: &Ticket,
        at: usize,
        locks: Locks<'a>,
        out: &mut Writer,
        serving: &mut Serving,
    ) -> (Locks<'a>, u64) {
        let began_ns = self.hooks.stopwatch_ns();
        let (locks, ()) = self.with_ticket(now, ticket, locks, out, serving, |ctx| {
            let mark = ctx.out.mark();
            if let Err(error) = serve_key(ctx, at, serve(ticket.row)) {
                ctx.refuse(mark, &error);
            }
        });
        let ns = self.hooks.stopwatch_ns().saturating_sub(began_ns);
        (locks, ns)
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
        let (args, mut session) = (ticket.args(), ticket.session());
        let mut context = Context::new(self, &mut session, *now, args, out, ticket.row);
        context.carry(serving.large.take());
        context.keep(locks);
        let result = act(&mut context);
        context.record();
        let locks = context.hand_back();
        serving.large = context.carry_on();
        (locks, result)
    }
}

/// The position of a shard among the locked ones, or the one that it would have.
fn place_of(locks: &Locks<'_>, shard: usize) -> Result<usize, usize> {
    locks.binary_search_by_key(&shard, |(locked, _)| *locked)
}

fn hold_of<'m, 'a>(locks: &'m mut Locks<'a>, shard: usize) -> &'m mut Hold<'a> {
    match place_of(locks, shard) {
        Ok(at) => &mut locks[at].1,
        Err(_) => unreachable!("the shard of a key that is served is locked"),
    }
}

/// The key that was noted first.
fn next_ready(locks: &mut Locks<'_>) -> Option<ReadyKey> {
    let notes = locks.iter_mut().enumerate();
    let first = notes.filter_map(|(at, (_, hold))| Some((hold.first_ready()?, at)));
    let (_, at) = first.min()?;
    locks[at].1.take_ready()
}

/// True if a key holds a value that the ticket waits for. False if its shard is not locked.
fn has_some(ctx: &mut Context<'_, '_>, ticket: &Ticket, at: usize) -> bool {
    let key = ctx.key(at);
    let slot = ctx
        .is_locked(key.shard)
        .then(|| ctx.find_at(key, ticket.db))
        .flatten();
    slot.is_some_and(|slot| untimed(ctx.entries(key).tag(slot)) == ticket.tag)
}
