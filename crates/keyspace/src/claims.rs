//! The order in which long commands, and the clients that need their shards, go on.
//!
//! A *long command* runs on a thread of its own and has its keys' shards locked meanwhile. A loop
//! that finds such a shard locked does not wait: it parks the client whose command needs the shard.
//!
//! An example: A runs ZUNIONSTORE over two large keys, B reads one of them, C unites them again.
//!
//! 1. A's command becomes a *claim* on its shards. No earlier claim is on them, so it is granted:
//!    the shards are marked busy, and the command goes to a thread.
//! 2. B's GET finds its shard locked and busy. B is parked: its claim waits behind A's.
//! 3. C's command is a claim behind both.
//! 4. A's command ends. B's claim is granted: its loop runs the GET again. When that is done, B's
//!    claim ends, and C's is granted.
//!
//! A claim of a long command waits for every earlier claim on one of its shards. A parked client
//! waits for earlier long commands only, and for commands that may be long: their keys could not be
//! looked at yet. If such a command is long, it takes its client's place. So claims are granted in
//! the order in which they came, and nobody starves.
//!
//! A mark says only that it is not worth waiting for a shard's lock. The lock alone protects the
//! data.
//!
//! During a pause that holds back all that changes data, no claim of a command that writes is
//! granted. The end of the pause is an exclusive use, after which all claims are looked at again.
//!
//! Exclusive use of the keyspace would have to wait for long commands while all loops stand aside.
//! So it is refused while one runs; its client is parked with a claim on all shards. While it is
//! granted, no long command is.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use crate::keyspace::{Keyspace, SHARDS_MAX};
use crate::order::{Rank, Ranked};
use crate::rows::cost::Cost;
use crate::shard::Hold;
use crate::time::Now;
use crate::waiters::{Served, Ticket, Waiter};

/// Some of the shards, a bit each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ShardSet([u64; SHARDS_MAX / 64]);

impl ShardSet {
    pub(crate) const NONE: Self = Self([0; SHARDS_MAX / 64]);
    pub(crate) const ALL: Self = Self([u64::MAX; SHARDS_MAX / 64]);

    pub(crate) fn of(shards: impl Iterator<Item = usize>) -> Self {
        let mut set = Self::NONE;
        shards.for_each(|shard| set.insert(shard));
        set
    }

    /// The shards, in their order.
    pub(crate) fn iter(self) -> impl Iterator<Item = usize> {
        (0..).zip(self.0).flat_map(|(at, mut word)| {
            std::iter::from_fn(move || {
                let bit = word.trailing_zeros() as usize;
                word &= word.checked_sub(1)?;
                Some(at * 64 + bit)
            })
        })
    }

    pub(crate) fn len(self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    fn has(&self, shard: usize) -> bool {
        self.0[shard / 64] & 1 << (shard % 64) != 0
    }

    fn insert(&mut self, shard: usize) {
        self.0[shard / 64] |= 1 << (shard % 64);
    }

    fn meets(&self, other: &Self) -> bool {
        self.0.iter().zip(&other.0).any(|(a, b)| a & b != 0)
    }

    fn add(&mut self, other: &Self) {
        self.0.iter_mut().zip(&other.0).for_each(|(a, b)| *a |= b);
    }
}

/// A command could not run: shards that it needs are locked for long.
#[derive(Debug)]
#[must_use = "the client is parked, or tries again"]
pub struct Blocked(Box<Need>);

#[derive(Debug)]
struct Need {
    shards: ShardSet,
    /// Whether the command may turn out to be long itself, when it can look at its keys.
    may_be_long: bool,
}

impl Blocked {
    #[cold]
    pub(crate) fn on(shards: ShardSet) -> Self {
        Self(Box::new(Need {
            shards,
            may_be_long: false,
        }))
    }

    /// The command has this cost.
    pub(crate) fn of(mut self, cost: &Cost) -> Self {
        self.0.may_be_long = cost.depends_on_members();
        self
    }
}

/// A parked client's place among the claims; hand it back to [`Keyspace::unpark`].
#[derive(Debug, PartialEq, Eq)]
pub struct Parked(u64);

/// What is done with a shard as soon as it is not locked for long any more.
pub(crate) enum Later {
    Act(Act),
    /// The ticket's own loop tries again.
    Retry(Arc<Ticket>),
}

/// Something to do with a shard that is locked.
pub(crate) type Act = Box<dyn FnOnce(&mut Hold<'_>) + Send>;

/// All claims, in the order in which they came.
#[derive(Debug)]
pub(crate) struct Claims(Ranked<State>);

#[derive(Default)]
struct State {
    /// By their numbers, which are their order.
    claims: BTreeMap<u64, Claim>,
    /// Those of long commands that were granted: at most one for each shard.
    running: Vec<(u64, ShardSet)>,
    /// Claims that were not granted yet.
    waiting: usize,
    /// How many users have, or are about to have, the keyspace for themselves.
    exclusive: usize,
    later: Vec<(usize, Later)>,
}

struct Claim {
    shards: ShardSet,
    /// The only one of the shards, if it is one.
    only: Option<usize>,
    who: Who,
    granted: bool,
}

impl Claim {
    fn meets(&self, set: &ShardSet) -> bool {
        match self.only {
            Some(shard) => set.has(shard),
            None => set.meets(&self.shards),
        }
    }

    fn add_to(&self, set: &mut ShardSet) {
        match self.only {
            Some(shard) => set.insert(shard),
            None => set.add(&self.shards),
        }
    }
}

/// Whose claim it is.
enum Who {
    Long(Arc<Ticket>),
    Parked {
        waiter: Waiter,
        /// Those who came later wait until it is known whether its command is long.
        may_be_long: bool,
    },
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State")
            .field("claims", &self.claims.len())
            .field("later", &self.later.len())
            .finish_non_exhaustive()
    }
}

/// Claims that were granted, to be told when nothing is locked.
#[derive(Default)]
struct Granted {
    long: Vec<Arc<Ticket>>,
    parked: Vec<Waiter>,
}

impl Default for Claims {
    fn default() -> Self {
        Self(Ranked::new(Rank::Claims, State::default()))
    }
}

impl State {
    fn add(&mut self, number: u64, shards: ShardSet, who: Who) {
        let mut all = shards.iter();
        let claim = Claim {
            shards,
            only: all.next().filter(|_| all.next().is_none()),
            who,
            granted: false,
        };
        self.waiting += 1;
        self.claims.insert(number, claim);
    }

    fn remove(&mut self, number: u64) -> Option<Claim> {
        let claim = self.claims.remove(&number)?;
        self.waiting -= usize::from(!claim.granted);
        self.running.retain(|(running, _)| *running != number);
        Some(claim)
    }

    /// The number of the claim with which a client was parked that goes on now.
    fn parked(&self, client: Waiter) -> Option<u64> {
        let is = |who: &Who| matches!(who, Who::Parked { waiter, .. } if *waiter == client);
        let mut claims = self.claims.iter();
        claims
            .find(|(_, claim)| is(&claim.who))
            .map(|(number, _)| *number)
    }

    /// Whether a long command runs, or is about to, on one of these shards.
    fn is_taken(&self, shards: &ShardSet) -> bool {
        self.running.iter().any(|(_, taken)| taken.meets(shards))
    }

    /// Grants what need not wait any more. Costs a look at each claim, if one waits.
    fn grant(&mut self, keyspace: &Keyspace) -> Granted {
        let mut granted = Granted::default();
        if self.waiting == 0 {
            return granted;
        }
        let (mut long, mut all) = (ShardSet::NONE, ShardSet::NONE);
        for (&number, claim) in &mut self.claims {
            let bars = match &claim.who {
                Who::Long(ticket) => {
                    // Nobody waits for a writer that a pause holds back.
                    if !claim.granted && keyspace.is_paused() && ticket.writes() {
                        continue;
                    }
                    if !claim.granted && self.exclusive == 0 && !claim.meets(&all) {
                        claim.granted = true;
                        self.running.push((number, claim.shards));
                        for shard in keyspace.known(claim.shards) {
                            keyspace.shards[shard].set_busy(true);
                        }
                        granted.long.push(Arc::clone(ticket));
                    }
                    true
                }
                Who::Parked {
                    waiter,
                    may_be_long,
                } => {
                    if !claim.granted && !claim.meets(&long) {
                        claim.granted = true;
                        granted.parked.push(*waiter);
                    }
                    *may_be_long
                }
            };
            claim.add_to(&mut all);
            if bars {
                claim.add_to(&mut long);
            }
        }
        self.waiting -= granted.long.len() + granted.parked.len();
        granted
    }
}

/// Permission to use the keyspace alone: no long command begins until it is dropped.
#[derive(Debug)]
#[must_use]
pub struct NoLongCommands<'a>(&'a Keyspace);

impl Drop for NoLongCommands<'_> {
    fn drop(&mut self) {
        let mut state = self.0.claims.0.lock();
        state.exclusive -= 1;
        let granted = state.grant(self.0);
        drop(state);
        self.0.tell_granted(granted);
    }
}

impl Keyspace {
    /// Keeps long commands from beginning, for a thread that will use the keyspace alone. Nothing
    /// may be locked.
    ///
    /// # Errors
    ///
    /// If one runs: alone would mean to wait for it, and everybody with it.
    pub fn without_long_commands(&self) -> Result<NoLongCommands<'_>, Blocked> {
        let mut state = self.claims.0.lock();
        if state.is_taken(&ShardSet::ALL) {
            return Err(Blocked::on(ShardSet::ALL));
        }
        state.exclusive += 1;
        Ok(NoLongCommands(self))
    }

    /// Parks a client until nobody has the shards for long that its command needs. Then
    /// [`Hooks::go_on`](crate::Hooks::go_on) is called once. `None` if it may try again at once:
    /// but others should have their turn before.
    #[must_use]
    pub fn park(&self, waiter: Waiter, blocked: &Blocked) -> Option<Parked> {
        let mut state = self.claims.0.lock();
        let need = &blocked.0;
        if !state.is_taken(&need.shards) {
            return None;
        }
        let number = self.next_ticket.fetch_add(1, Relaxed);
        let who = Who::Parked {
            waiter,
            may_be_long: need.may_be_long,
        };
        state.add(number, need.shards, who);
        Some(Parked(number))
    }

    /// A client that was parked has run its command, or is gone.
    pub fn unpark(&self, parked: Parked) {
        let mut state = self.claims.0.lock();
        // Its command may be long: then the claim is that command's.
        let is_parked = |claim: &Claim| matches!(claim.who, Who::Parked { .. });
        if state.claims.get(&parked.0).is_some_and(is_parked) {
            state.remove(parked.0);
        }
        let granted = state.grant(self);
        drop(state);
        self.tell_granted(granted);
    }

    /// The place of a command that turns out to be long: that of its client, if it was parked
    /// before.
    pub(crate) fn place_of_long(&self, waiter: Waiter) -> u64 {
        let parked = self.claims.0.lock().parked(waiter);
        parked.unwrap_or_else(|| self.next_ticket.fetch_add(1, Relaxed))
    }

    /// Has a long command run on a thread of its own. Nothing is locked.
    pub(crate) fn claim(&self, shards: ShardSet, ticket: &Arc<Ticket>) {
        let mut state = self.claims.0.lock();
        state.remove(ticket.number);
        state.add(ticket.number, shards, Who::Long(Arc::clone(ticket)));
        let granted = state.grant(self);
        drop(state);
        self.tell_granted(granted);
    }

    /// A long command has ended: what had to wait for it is done, and other claims are granted.
    /// Nothing is locked.
    pub(crate) fn end_claim(&self, ticket: &Ticket, now: Now) {
        let mut state = self.claims.0.lock();
        let Some(claim) = state.remove(ticket.number) else {
            return;
        };
        for shard in self.known(claim.shards) {
            self.shards[shard].set_busy(false);
        }
        let later = std::mem::take(&mut state.later);
        let (due, kept) = later
            .into_iter()
            .partition(|(shard, _)| claim.shards.has(*shard));
        state.later = kept;
        let granted = state.grant(self);
        drop(state);
        for (shard, later) in due {
            match later {
                Later::Act(act) => {
                    if let Some(hold) = self.act_on(shard, act) {
                        self.serve_and_unlock(now, vec![(shard, hold)]);
                    }
                }
                Later::Retry(ticket) => self.hooks.served(Served::Retry(ticket)),
            }
        }
        self.tell_granted(granted);
    }

    /// Those of the shards that there are.
    fn known(&self, shards: ShardSet) -> impl Iterator<Item = usize> {
        let all = self.shards();
        shards.iter().take_while(move |shard| *shard < all)
    }

    fn tell_granted(&self, granted: Granted) {
        for ticket in granted.long {
            self.hooks.run_long(ticket);
        }
        for waiter in granted.parked {
            self.hooks.go_on(waiter);
        }
    }

    /// Acts on a shard, and returns it: or acts when nobody has it for long any more.
    pub(crate) fn act_on(&self, shard: usize, act: Act) -> Option<Hold<'_>> {
        loop {
            if let Some(mut hold) = self.shards[shard].lock_briefly() {
                act(&mut hold);
                return Some(hold);
            }
            let mut state = self.claims.0.lock();
            if self.shards[shard].is_busy() {
                state.later.push((shard, Later::Act(act)));
                return None;
            }
            drop(state);
            // A transaction has it: its thread may need this processor.
            std::thread::yield_now();
        }
    }

    /// Has a ticket's own loop try again when nobody has these shards for long any more.
    pub(crate) fn retry_later(&self, blocked: &Blocked, ticket: &Arc<Ticket>) {
        let mut state = self.claims.0.lock();
        let mut shards = self.known(blocked.0.shards);
        if let Some(shard) = shards.find(|shard| self.shards[*shard].is_busy()) {
            let later = Later::Retry(Arc::clone(ticket));
            return state.later.push((shard, later));
        }
        drop(state);
        self.hooks.served(Served::Retry(Arc::clone(ticket)));
    }
}
