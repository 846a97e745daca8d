//! One shard: a lock over its databases, and numbers that are read without the lock.

mod mutate;
mod shared;
mod upkeep;
mod watched;

use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64};

use tidewheel_store::{KeyHasher, Slot, Value};

pub(crate) use self::mutate::{MemberExpiry, MemberExpiryOutcome, PendingEvent, Stored};
pub(crate) use self::shared::SharedState;
use self::watched::Watched;
use crate::candidates::{Candidates, UNKNOWN};
use crate::expired::ExpiredStreams;
use crate::order::{Rank, Ranked, RankedGuard};
use crate::random::Random;
use crate::snapshot::Part;
use crate::time::Now;
use crate::tracking::{Invalid, Tracked};
use crate::value::{self, Entries};
use crate::waiters::Waiters;

/// No deadline.
pub(crate) const NEVER: u64 = u64::MAX;

/// After unlocking, others are told of an earlier deadline: `published` became earlier since the
/// lock was taken.
pub(crate) const WAKE: u8 = 1;
/// After unlocking, readers are told of keys that are invalid.
pub(crate) const TELL: u8 = 1 << 1;
/// Before unlocking, what has changed is recorded.
pub(crate) const CHANGED: u8 = 1 << 2;

const NO_TRANSACTION: u8 = 0;
const TRANSACTION: u8 = 1;
const AWAITED_TRANSACTION: u8 = 2;

/// Two cache lines, so that neighbours never share one (adjacent lines are fetched in pairs).
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Shard {
    state: Ranked<ShardState>,
    /// Lower bound of the earliest deadline, in engine ticks. Written under the lock.
    next_deadline: AtomicU64,
    /// True while a long command has it, or is about to.
    busy: AtomicBool,
    /// One of three states: no transaction, a transaction has the shard, or one has it and somebody
    /// awaits its end.
    transaction: AtomicU8,
    /// A script has had it for so long that others are refused.
    scripted: AtomicBool,
    /// True if the last thread that [waited briefly](Self::wait_briefly) for the lock did not get
    /// it.
    suspected: AtomicBool,
    /// The urgency of the shard's first candidate, when it was last looked at.
    urgency: AtomicU64,
    shared: Arc<SharedState>,
}

/// The data that a shard's lock protects. Only the funnel ([`mutate`]) changes its entries.
#[derive(Debug)]
pub(crate) struct ShardState {
    databases: Box<[Database]>,
    /// For each database a lower bound of its earliest deadline, in engine ticks. They are kept
    /// apart from the databases, so that a pass over a shard reads two cache lines and not all
    /// databases.
    due: Box<[u64]>,
    /// Records are replayed: each runs at its own time.
    replays: bool,
    /// The last value of `next_deadline`.
    published: u64,
    /// The latest engine tick at which somebody has acted here: nobody acts at an earlier one.
    acted: u64,
    /// What is to be done at the end of the hold: bits.
    after: u8,
    /// The observers that are told of changes: a bit each, tested in [`mutate`] only.
    observers: u16,
    /// Changes of keys since the start.
    pub(crate) changes: u64,
    /// The keys that clients watch; `None` while there are none.
    watched: Option<Box<Watched>>,
    /// The streams of what expires; `None` while there are none.
    expired_streams: Option<Arc<ExpiredStreams>>,
    /// The keys that clients may have cached; `None` while there are none.
    tracked: Option<Box<Tracked>>,
    /// Keys whose readers are to be told that they are invalid.
    invalid: Vec<Invalid>,
    /// The clients that wait for keys; `None` while there are none.
    waiters: Option<Box<Waiters>>,
    /// Change in bytes that was not yet reported to the total.
    unflushed_bytes: i64,
    /// Lock holds so far, for sampling.
    pub(crate) holds: u32,
    /// The position at which the search for evictable keys with deadlines goes on, if they are
    /// rare.
    eviction_turn: u32,
    /// The keys that should be evicted next.
    candidates: Candidates,
    pub(crate) random: Random,
    /// Members that were removed while nobody was to be told.
    pending: Vec<PendingEvent>,
    /// Memory for packed collections while they change.
    scratch: Vec<u8>,
    pub(crate) counters: Counters,
    #[cfg(test)]
    test_observer: mutate::TestObserver,
}

/// One database's part in a shard.
#[derive(Debug)]
pub(crate) struct Database {
    entries: Entries,
    /// Bytes of objects that live outside the entries' blocks.
    object_bytes: usize,
    /// Bytes that were reported to the shard.
    counted_bytes: usize,
    /// Entries that have a deadline only because members have.
    members_only: usize,
    /// Entries whose members have deadlines.
    with_timed_members: usize,
    /// The number of filings in the wheel when the bound was last looked at.
    noted: u32,
    /// Its part in the snapshot that is being taken.
    snapshot: Option<Box<Part>>,
}

/// The counters of a shard since the last reset.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counters {
    pub(crate) hits: u64,
    pub(crate) misses: u64,
    pub(crate) expired: u64,
    pub(crate) expired_members: u64,
    pub(crate) evicted: u64,
    pub(crate) budget_hits: u64,
}

/// A shard that is locked.
#[derive(Debug)]
pub(crate) struct Hold<'a> {
    state: RankedGuard<'a, ShardState>,
    shard: &'a Shard,
}

impl Shard {
    pub(crate) fn new(
        number: usize,
        databases: usize,
        hasher: &KeyHasher,
        shared: Arc<SharedState>,
    ) -> Self {
        let rank = Rank::Shard(number);
        // Not the secret itself: clients see what is drawn at random, and could compute the seed
        // from it.
        let seed = hasher.hash(&(number as u64).to_le_bytes());
        Self {
            state: Ranked::new(
                rank,
                ShardState {
                    databases: (0..databases).map(|_| Database::new(hasher)).collect(),
                    due: vec![NEVER; databases].into(),
                    replays: false,
                    published: NEVER,
                    acted: 0,
                    after: 0,
                    observers: 0,
                    changes: 0,
                    watched: None,
                    expired_streams: None,
                    tracked: None,
                    invalid: Vec::new(),
                    waiters: None,
                    unflushed_bytes: 0,
                    holds: 0,
                    eviction_turn: 0,
                    candidates: Candidates::default(),
                    random: Random::new(seed),
                    pending: Vec::new(),
                    scratch: Vec::new(),
                    counters: Counters::default(),
                    #[cfg(test)]
                    test_observer: mutate::TestObserver::default(),
                },
            ),
            next_deadline: AtomicU64::new(NEVER),
            busy: AtomicBool::new(false),
            transaction: AtomicU8::new(NO_TRANSACTION),
            scripted: AtomicBool::new(false),
            suspected: AtomicBool::new(false),
            urgency: AtomicU64::new(UNKNOWN),
            shared,
        }
    }

    /// Locks the shard.
    #[inline]
    pub(crate) fn lock(&self) -> Hold<'_> {
        Hold {
            state: self.state.lock(),
            shard: self,
        }
    }

    /// As [`lock`](Self::lock), where another holds it often, and only for a moment.
    #[inline]
    pub(crate) fn lock_soon(&self) -> Hold<'_> {
        Hold {
            state: self.state.lock_soon(),
            shard: self,
        }
    }

    /// Locks the shard if nobody else has it. What the thread has locked stands before it in the
    /// order.
    #[inline(always)]
    pub(crate) fn try_lock_in_order(&self) -> Option<Hold<'_>> {
        let state = self.state.try_lock_in_order()?;
        Some(Hold { state, shard: self })
    }

    /// Locks the shard, unless another has it for long: event loops wait for nothing longer.
    #[inline]
    pub(crate) fn lock_briefly(&self) -> Option<Hold<'_>> {
        self.try_lock_in_order().or_else(|| self.wait_briefly())
    }

    /// Waits for half a millisecond at most. After a failure the next ones wait for a microsecond
    /// only: else a hundred clients that need a transaction's shard would hold their loop up a
    /// hundred times as long.
    #[cold]
    fn wait_briefly(&self) -> Option<Hold<'_>> {
        let hopeless = || self.is_busy() || self.suspected.load(Relaxed);
        let state = self.state.lock_briefly(hopeless);
        self.suspected.store(state.is_none(), Relaxed);
        Some(Hold {
            state: state?,
            shard: self,
        })
    }

    /// Locks the shard, if nobody has it for longer than a microsecond.
    pub(crate) fn lock_at_once(&self) -> Option<Hold<'_>> {
        let state = self.state.lock_briefly(|| true)?;
        Some(Hold { state, shard: self })
    }

    /// True while a long command has the shard, or is about to.
    pub(crate) fn is_busy(&self) -> bool {
        self.busy.load(Acquire)
    }

    /// Says whether a long command has the shard. The claims are locked.
    pub(crate) fn set_busy(&self, busy: bool) {
        self.busy.store(busy, Release);
    }

    /// A transaction has the shard now, which is locked.
    pub(crate) fn begin_transaction(&self) {
        self.transaction.store(TRANSACTION, Relaxed);
    }

    /// The transaction is about to unlock. Returns whether somebody is to be told of that.
    pub(crate) fn end_transaction(&self) -> bool {
        self.transaction.swap(NO_TRANSACTION, Relaxed) == AWAITED_TRANSACTION
    }

    /// Says whether a script has had the shard for so long that others are refused.
    pub(crate) fn set_scripted(&self, scripted: bool) {
        self.scripted.store(scripted, Release);
    }

    pub(crate) fn is_scripted(&self) -> bool {
        self.scripted.load(Acquire)
    }

    /// If a transaction has the shard, its end is told. The claims are locked.
    pub(crate) fn await_transaction(&self) -> bool {
        let awaits = (TRANSACTION, AWAITED_TRANSACTION);
        let exchanged = self
            .transaction
            .compare_exchange(awaits.0, awaits.1, Relaxed, Relaxed);
        exchanged.is_ok()
    }

    /// The urgency of the shard's first candidate, as far as is known. Lock-free.
    pub(crate) fn urgency(&self) -> u64 {
        self.urgency.load(Relaxed)
    }

    /// Nothing is known of the shard's candidates any more.
    pub(crate) fn forget_urgency(&self) {
        self.urgency.store(UNKNOWN, Relaxed);
    }

    /// Locks the shard, if nobody else has. The thread may have locked any others.
    #[inline]
    pub(crate) fn try_lock(&self) -> Option<Hold<'_>> {
        let state = self.state.try_lock()?;
        Some(Hold { state, shard: self })
    }

    /// Lower bound of the earliest deadline, in engine ticks.
    #[inline]
    pub(crate) fn next_deadline(&self) -> u64 {
        self.next_deadline.load(Relaxed)
    }
}

impl Deref for Hold<'_> {
    type Target = ShardState;

    #[inline(always)]
    fn deref(&self) -> &ShardState {
        &self.state
    }
}

impl DerefMut for Hold<'_> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut ShardState {
        &mut self.state
    }
}

impl Hold<'_> {
    /// Brings the shard's time and that of somebody who is about to act together: neither goes
    /// back.
    #[inline(always)]
    pub(crate) fn meet(&mut self, now: &mut Now) {
        if self.state.acted > now.tick {
            self.delay(now);
        } else {
            self.state.acted = now.tick;
        }
    }

    #[cold]
    fn delay(&self, now: &mut Now) {
        if !self.state.replays {
            now.raise(self.state.acted);
        }
    }

    /// True, once, if something has changed that was not recorded.
    #[inline]
    pub(crate) fn take_changed(&mut self) -> bool {
        let changed = self.state.after & CHANGED != 0;
        self.state.after &= !CHANGED;
        changed
    }
}

#[cfg(debug_assertions)]
impl Drop for Hold<'_> {
    /// What has changed was recorded, unless the command has panicked.
    fn drop(&mut self) {
        let changed = self.state.after & CHANGED != 0;
        assert!(!changed || std::thread::panicking(), "it was not recorded");
    }
}

/// As [`Hold::meet`], of one who acts in all these shards at one time.
pub(crate) fn meet_all(locks: &mut [(usize, Hold<'_>)], now: &mut Now) {
    for (_, hold) in &mut *locks {
        hold.meet(now);
    }
    // The first ones have met an earlier time than the last.
    for (_, hold) in locks {
        hold.state.acted = now.tick;
    }
}

impl ShardState {
    /// One database's entries.
    #[inline(always)]
    pub(crate) fn entries(&self, db: u32) -> &Entries {
        &self.databases[db as usize].entries
    }

    /// Bytes of a database's objects, outside the entries' blocks.
    pub(crate) fn object_bytes(&self, db: u32) -> usize {
        self.databases[db as usize].object_bytes
    }

    /// Panics unless what is counted of objects and of members' deadlines is so. Visits every
    /// entry.
    pub(crate) fn assert_counted(&self) {
        for (db, database) in self.databases.iter().enumerate() {
            let (entries, mut held, mut timed) = (&database.entries, 0, 0);
            let mut cursor = Some(0);
            while let Some(from) = cursor {
                cursor = entries.scan(from, 64, |slot| {
                    timed += usize::from(value::is_timed(entries.tag(slot)));
                    if let Value::Object(object) = entries.value(slot) {
                        held += object.bytes();
                    }
                });
            }
            assert_eq!(database.object_bytes, held, "object bytes of database {db}");
            assert_eq!(database.with_timed_members, timed, "timed keys of {db}");
        }
    }

    /// Keys of one database that have a deadline of their own.
    pub(crate) fn with_deadline(&self, db: u32) -> usize {
        self.databases[db as usize].with_deadline()
    }

    /// Keys of a database whose members have deadlines.
    pub(crate) fn with_timed_members(&self, db: u32) -> usize {
        self.databases[db as usize].with_timed_members
    }

    /// Databases in the shard.
    #[inline]
    pub(crate) fn databases(&self) -> u32 {
        self.databases.len() as u32
    }

    /// The bound that others see.
    pub(crate) fn published(&self) -> u64 {
        self.published
    }

    /// What is to be done at the end of the hold: [`WAKE`], [`TELL`] and [`CHANGED`].
    #[inline(always)]
    pub(crate) fn after(&self) -> u8 {
        self.after
    }

    /// True, once, if others must be told of an earlier deadline.
    #[inline]
    pub(crate) fn take_wake(&mut self) -> bool {
        let wakes = self.after & WAKE != 0;
        self.after &= !WAKE;
        wakes
    }
}

impl Database {
    fn new(hasher: &KeyHasher) -> Self {
        let entries = Entries::new(hasher.clone());
        Self {
            entries,
            object_bytes: 0,
            counted_bytes: 0,
            members_only: 0,
            with_timed_members: 0,
            noted: 0,
            snapshot: None,
        }
    }

    /// Keys that have a deadline of their own.
    fn with_deadline(&self) -> usize {
        self.entries.timed() - self.members_only
    }

    /// An entry with this tag was written: counts it if members have deadlines, or if it has a
    /// deadline only because they have.
    #[inline]
    fn note_members_only(&mut self, slot: Slot, tag: u8) {
        if value::is_timed(tag) {
            self.with_timed_members += 1;
            self.members_only += usize::from(self.is_members_only(slot));
        }
    }

    /// An entry will be written anew, or removed: it counts no more. Mostly there is none to look
    /// for.
    #[inline]
    fn forget_members_only(&mut self, slot: Slot) {
        if self.with_timed_members > 0 {
            self.forget_timed(slot);
        }
    }

    #[inline(never)]
    fn forget_timed(&mut self, slot: Slot) {
        if value::is_timed(self.entries.tag(slot)) {
            self.with_timed_members -= 1;
            self.members_only -= usize::from(self.is_members_only(slot));
        }
    }

    /// True if an entry has a deadline only because members have.
    #[inline(never)]
    fn is_members_only(&self, slot: Slot) -> bool {
        value::is_timed(self.entries.tag(slot))
            && value::own_deadline(&self.entries, slot).is_none()
    }

    /// Bytes held by entries and objects.
    fn bytes(&self) -> usize {
        self.entries.bytes() + self.object_bytes
    }
}
