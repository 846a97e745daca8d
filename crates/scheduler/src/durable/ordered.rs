//! The order of changes: what happens to one key reaches memory and the journal in the same order.

use std::hash::Hash;
use std::sync::OnceLock;

use super::journal::{Change, Journal, Record};
use crate::core::hash::hash_of;
use crate::ground::error::JournalError;
use crate::ground::panics::survive;
use crate::ground::reentry::Inside;
use crate::ground::sync::{AtomicU64, Mutex, MutexGuard, Ordering::SeqCst, lock};

/// Locks that keep the journal's order of changes to one key the same as the scheduler's.
const STRIPES: usize = 64;

/// Tokens and ids that one opening of a journal may give, in bits; the rest counts openings.
const COUNTER_BITS: u32 = 40;

/// A journal, and who may write to it.
pub(super) struct OrderedJournal<J> {
    journal: J,
    stripes: [Mutex<()>; STRIPES],
    hasher: foldhash::quality::FixedState,
    next_id: AtomicU64,
    next_token: AtomicU64,
    /// One more than what the journal returned for the latest change; 0 before the first.
    appended: AtomicU64,
    /// Why nothing that is written from now on can be relied on.
    failed: OnceLock<JournalError>,
}

/// One key held still: until this is dropped nobody else changes, in memory or in the journal, what is pending
/// for it. Ids are drawn and changes are written under it alone, so a key's later task has the greater id and
/// the later entry.
///
/// **Invariant: nobody waits under a stripe**, not for room in the queue nor for the disk: a worker needs it
/// to end the task that it ran.
pub(super) struct Stripe<'a, J> {
    core: &'a OrderedJournal<J>,
    _held: MutexGuard<'a, ()>,
    _inside: Inside,
}

/// What whoever breaks the rule about re-entry is told.
const FROM_WITHIN: &str = "a durable scheduler was called from within its own Hash, Eq or Journal";

impl<J> OrderedJournal<J> {
    /// A journal and the tasks that it holds.
    pub(super) fn open<K, V>(journal: J) -> Result<(Self, Vec<Record<K, V>>), JournalError>
    where
        J: Journal<K, V>,
    {
        let records = journal.load()?;
        let epoch = journal.epoch();
        if epoch >= 1 << (u64::BITS - COUNTER_BITS) {
            return Err(JournalError::new("its epoch is not below 2^24"));
        }
        let first = epoch << COUNTER_BITS;
        let core = Self {
            journal,
            stripes: [const { Mutex::new(()) }; STRIPES],
            hasher: foldhash::quality::FixedState::default(),
            next_id: AtomicU64::new(first),
            next_token: AtomicU64::new(first),
            appended: AtomicU64::new(0),
            failed: OnceLock::new(),
        };
        Ok((core, records))
    }

    /// Holds a key still.
    pub(super) fn hold<Q: Hash + ?Sized>(&self, key: &Q) -> Stripe<'_, J> {
        let at = hash_of(&self.hasher, key) as usize % STRIPES;
        let inside = Inside::enter(self, FROM_WITHIN);
        Stripe {
            core: self,
            _held: lock(&self.stripes[at]),
            _inside: inside,
        }
    }

    /// A fencing token, greater than all before.
    pub(super) fn next_token(&self) -> u64 {
        self.next_token.fetch_add(1, SeqCst)
    }

    /// Waits until a change is on disk.
    pub(super) fn wait<K, V>(&self, appended: u64) -> Result<(), JournalError>
    where
        J: Journal<K, V>,
    {
        self.attempt(|journal| journal.wait(appended))
    }

    /// Waits until every change so far is on disk.
    pub(super) fn flush<K, V>(&self) -> Result<(), JournalError>
    where
        J: Journal<K, V>,
    {
        match self.appended.load(SeqCst).checked_sub(1) {
            Some(appended) => self.wait(appended),
            None => self.attempt(|_| Ok(())),
        }
    }

    /// Asks the journal for something, unless it has failed before: what it does after a failure would stand on
    /// changes that it may lack.
    fn attempt<R>(
        &self,
        ask: impl FnOnce(&J) -> Result<R, JournalError>,
    ) -> Result<R, JournalError> {
        if let Some(error) = self.failed.get() {
            return Err(error.clone());
        }
        let answer = survive(|| ask(&self.journal));
        let answer = answer.unwrap_or_else(|| Err(JournalError::new("it panicked")));
        answer.inspect_err(|error| {
            // The first failure is the one that is told.
            let _ = self.failed.set(error.clone());
        })
    }
}

impl<J> Stripe<'_, J> {
    /// The id of a new task of this key.
    pub(super) fn next_id(&self) -> u64 {
        self.core.next_id.fetch_add(1, SeqCst)
    }

    /// Writes changes to this key; returns what to [`wait`](OrderedJournal::wait) for, without the stripe.
    pub(super) fn append<K, V>(&self, changes: &[Change<'_, K, V>]) -> Result<u64, JournalError>
    where
        J: Journal<K, V>,
    {
        let appended = self.core.attempt(|journal| journal.append(changes))?;
        let latest = appended.saturating_add(1);
        self.core.appended.fetch_max(latest, SeqCst);
        Ok(appended)
    }
}
