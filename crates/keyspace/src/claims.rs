//! Claims on shards. They give the order in which long commands, and the clients that need their
//! shards, go on.
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
//! A transaction has its shards locked, too, on its own event loop. Whoever finds that makes the
//! claim for it, before all others; the transaction's end is the claim's.
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

use crate::order::{Rank, Ranked};
use crate::rows::cost::Cost;
use crate::shard::Hold;
use crate::waiters::{Ticket, Waiter};

/// The most shards.
pub(crate) const SHARDS_MAX: usize = 1024;

const WORDS: usize = SHARDS_MAX / 64;

/// Some of the shards, a bit each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ShardSet {
    words: [u64; WORDS],
    /// The words that are not zero, a bit each: most sets have one shard.
    used: u16,
}

const _: () = assert!(WORDS == 16, "a bit of `used` for each word");

impl ShardSet {
    pub(crate) const NONE: Self = Self {
        words: [0; WORDS],
        used: 0,
    };
    pub(crate) const ALL: Self = Self {
        words: [u64::MAX; WORDS],
        used: u16::MAX,
    };

    pub(crate) fn of(shards: impl Iterator<Item = usize>) -> Self {
        let mut set = Self::NONE;
        shards.for_each(|shard| set.insert(shard));
        set
    }

    /// The shards, in their order.
    pub(crate) fn iter(self) -> impl Iterator<Item = usize> {
        let (mut used, mut word, mut at) = (self.used, 0_u64, 0);
        std::iter::from_fn(move || {
            while word == 0 {
                at = used.trailing_zeros() as usize;
                used &= used.checked_sub(1)?;
                word = self.words[at];
            }
            let bit = word.trailing_zeros() as usize;
            word &= word - 1;
            Some(at * 64 + bit)
        })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.used == 0
    }

    pub(crate) fn len(self) -> usize {
        self.words
            .iter()
            .map(|word| word.count_ones() as usize)
            .sum()
    }

    pub(crate) fn has(&self, shard: usize) -> bool {
        self.words[shard / 64] & 1 << (shard % 64) != 0
    }

    pub(crate) fn insert(&mut self, shard: usize) {
        self.words[shard / 64] |= 1 << (shard % 64);
        self.used |= 1 << (shard / 64);
    }

    fn meets(&self, other: &Self) -> bool {
        let mut words = self.words.iter().zip(&other.words);
        self.used & other.used != 0 && words.any(|(a, b)| a & b != 0)
    }

    fn add(&mut self, other: &Self) {
        let words = self.words.iter_mut().zip(&other.words);
        words.for_each(|(a, b)| *a |= b);
        self.used |= other.used;
    }
}

/// A command could not run: shards that it needs are locked for long.
#[derive(Debug)]
#[must_use = "the client is parked, or tries again"]
pub struct Blocked(pub(crate) Box<BlockedOn>);

#[derive(Debug)]
pub(crate) struct BlockedOn {
    pub(crate) shards: ShardSet,
    /// True if the command may turn out to be long itself, when its keys can be looked at.
    pub(crate) may_be_long: bool,
}

impl Blocked {
    #[cold]
    pub(crate) fn on(shards: ShardSet) -> Self {
        Self(Box::new(BlockedOn {
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

/// A parked client's place among the claims; hand it back to
/// [`Keyspace::unpark`](crate::Keyspace::unpark).
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Parked(pub(crate) u64);

/// Work for a shard that is done as soon as no long command has it.
pub(crate) enum Deferred {
    Action(ShardAction),
    /// The ticket's own loop tries again.
    Retry(Arc<Ticket>),
}

/// Something to do with a shard that is locked.
pub(crate) type ShardAction = Box<dyn FnOnce(&mut Hold<'_>) + Send>;

/// All claims, in the order in which they came.
#[derive(Debug)]
pub(crate) struct Claims(pub(crate) Ranked<ClaimState>);

#[derive(Default)]
pub(crate) struct ClaimState {
    /// Claims by their numbers, which are their order.
    pub(crate) claims: BTreeMap<u64, Claim>,
    /// Granted claims of long commands: at most one for each shard.
    running: Vec<(u64, ShardSet)>,
    /// Claims that were not granted yet.
    waiting: usize,
    /// The number of users that have, or are about to have, the keyspace for themselves.
    pub(crate) exclusive: usize,
    pub(crate) deferred: Vec<(usize, Deferred)>,
}

pub(crate) struct Claim {
    pub(crate) shards: ShardSet,
    /// The only one of the shards, if it is one.
    only: Option<usize>,
    pub(crate) claimant: Claimant,
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

/// The owner of a claim.
pub(crate) enum Claimant {
    Long(Arc<Ticket>),
    /// A transaction has the shard, and somebody waits for that. The claim's number is the shard's.
    Transaction,
    Parked {
        waiter: Waiter,
        /// Set until it is known whether its command is long. Later claims wait for that.
        may_be_long: bool,
    },
}

impl std::fmt::Debug for ClaimState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State")
            .field("claims", &self.claims.len())
            .field("deferred", &self.deferred.len())
            .finish_non_exhaustive()
    }
}

/// Claims that were granted, to be told when nothing is locked.
#[derive(Default)]
pub(crate) struct GrantedClaims {
    /// Shards that are to be marked.
    pub(crate) busy: ShardSet,
    pub(crate) long: Vec<Arc<Ticket>>,
    pub(crate) parked: Vec<Waiter>,
}

impl Default for ShardSet {
    fn default() -> Self {
        Self::NONE
    }
}

impl Default for Claims {
    fn default() -> Self {
        Self(Ranked::new(Rank::Claims, ClaimState::default()))
    }
}

impl ClaimState {
    pub(crate) fn add(&mut self, number: u64, shards: ShardSet, claimant: Claimant) {
        let mut all = shards.iter();
        let claim = Claim {
            shards,
            only: all.next().filter(|_| all.next().is_none()),
            claimant,
            granted: false,
        };
        self.waiting += 1;
        self.claims.insert(number, claim);
    }

    /// A transaction has that shard.
    pub(crate) fn add_transaction(&mut self, shard: usize) {
        let (number, shards) = (shard as u64, ShardSet::of([shard].into_iter()));
        let claim = Claim {
            shards,
            only: Some(shard),
            claimant: Claimant::Transaction,
            granted: true,
        };
        self.claims.insert(number, claim);
        self.running.push((number, shards));
    }

    pub(crate) fn remove(&mut self, number: u64) -> Option<Claim> {
        let claim = self.claims.remove(&number)?;
        self.waiting -= usize::from(!claim.granted);
        self.running.retain(|(running, _)| *running != number);
        Some(claim)
    }

    /// Lets the clients try again that are parked for one of these shards.
    pub(crate) fn wake_parked(&mut self, shards: &ShardSet) -> Vec<Waiter> {
        let mut woken = Vec::new();
        for claim in self.claims.values_mut() {
            if let Claimant::Parked { waiter, .. } = claim.claimant
                && !claim.granted
                && claim.meets(shards)
            {
                claim.granted = true;
                woken.push(waiter);
            }
        }
        self.waiting -= woken.len();
        woken
    }

    /// The number of the claim with which a client was parked that goes on now.
    pub(crate) fn parked(&self, client: Waiter) -> Option<u64> {
        let is = |claimant: &Claimant| matches!(claimant, Claimant::Parked { waiter, .. } if *waiter == client);
        let mut claims = self.claims.iter();
        claims
            .find(|(_, claim)| is(&claim.claimant))
            .map(|(number, _)| *number)
    }

    /// True if a long command runs, or is about to, on one of these shards.
    pub(crate) fn is_taken(&self, shards: &ShardSet) -> bool {
        self.running.iter().any(|(_, taken)| taken.meets(shards))
    }

    /// Grants all claims that need not wait any longer. Looks at each claim, if one waits.
    pub(crate) fn grant(&mut self, is_paused: bool) -> GrantedClaims {
        let mut granted = GrantedClaims::default();
        if self.waiting == 0 {
            return granted;
        }
        let (mut long, mut all) = (ShardSet::NONE, ShardSet::NONE);
        let mut running = ShardSet::NONE;
        (self.running.iter()).for_each(|(_, shards)| running.add(shards));
        for (&number, claim) in &mut self.claims {
            let bars = match &claim.claimant {
                Claimant::Transaction => true,
                Claimant::Long(ticket) => {
                    // Nobody waits for a writer that a pause holds back.
                    if !claim.granted && is_paused && ticket.writes() {
                        continue;
                    }
                    if !claim.granted && self.exclusive == 0 && !claim.meets(&all) {
                        claim.granted = true;
                        self.running.push((number, claim.shards));
                        granted.busy.add(&claim.shards);
                        granted.long.push(Arc::clone(ticket));
                    }
                    true
                }
                Claimant::Parked {
                    waiter,
                    may_be_long,
                } => {
                    // Of several shards a later command may have one.
                    if !claim.granted && !claim.meets(&long) && !claim.meets(&running) {
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
