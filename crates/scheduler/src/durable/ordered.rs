//! The changes of one key reach the journal in the order in which they reach memory.

use std::hash::Hash;
use std::sync::OnceLock;

use super::journal::{Change, Journal, Record};
use crate::core::hash::hash_of;
use crate::ground::error::JournalError;
use crate::ground::panics::survive;
use crate::ground::reentry::ReentryGuard;
use crate::ground::sync::{AtomicU64, Mutex, MutexGuard, Ordering::SeqCst, lock};

/// Locks that keep the journal's order of changes to one key the same as the scheduler's.
const STRIPES: usize = 64;

/// Tokens and ids that one opening of a journal may give, in bits; the rest counts openings.
const COUNTER_BITS: u32 = 40;

/// A journal, and the locks that keep its order.
pub(super) struct OrderedJournal<J> {
    journal: J,
    stripes: [Mutex<()>; STRIPES],
    hasher: foldhash::quality::FixedState,
    next_id: AtomicU64,
    next_token: AtomicU64,
    /// One more than the number that the journal returned for the latest change; 0 before the
    /// first.
    appended: AtomicU64,
    /// The journal's first failure. What is written after it cannot be relied on.
    failed: OnceLock<JournalError>,
}

/// The lock of one key. Until it is dropped, no other thread changes the key's task, neither in
/// memory nor in the journal. Ids are drawn and changes are written only under this lock. So of two
/// tasks of a key, the later has the greater id, and is written later.
///
/// **Invariant: a thread that holds a stripe never waits**, neither for room in the queue nor for
/// the disk: a worker needs the stripe to end the task that it ran.
pub(super) struct Stripe<'a, J> {
    journal: &'a OrderedJournal<J>,
    _held: MutexGuard<'a, ()>,
    _inside: ReentryGuard,
}

/// The message of the panic when the rule about re-entry is broken.
const FROM_WITHIN: &str = "a durable scheduler was called from within its own Hash, Eq or Journal";

impl<J> OrderedJournal<J> {
    /// A journal and the tasks that it holds.
    pub(super) fn open<K, V>(journal: J) -> Result<(Self, Vec<Record<K, V>>), JournalError>
    where
        J: Journal<K, V>,
    {
        let records = journal.load()?;
        let epoch = journal.epoch();
        if epoch == 0 || epoch >= 1 << (u64::BITS - COUNTER_BITS) {
            return Err(JournalError::new("its epoch does not lie in 1 ..< 2^24"));
        }
        let first = epoch << COUNTER_BITS;
        let ordered = Self {
            journal,
            stripes: [const { Mutex::new(()) }; STRIPES],
            hasher: foldhash::quality::FixedState::default(),
            next_id: AtomicU64::new(first),
            next_token: AtomicU64::new(first),
            appended: AtomicU64::new(0),
            failed: OnceLock::new(),
        };
        Ok((ordered, records))
    }

    /// Locks a key.
    pub(super) fn hold<Q: Hash + ?Sized>(&self, key: &Q) -> Stripe<'_, J> {
        let at = hash_of(&self.hasher, key) as usize % STRIPES;
        let inside = ReentryGuard::enter(self, FROM_WITHIN);
        Stripe {
            journal: self,
            _held: lock(&self.stripes[at]),
            _inside: inside,
        }
    }

    /// An id that no job has had. That of a new job under a key is drawn with its stripe held.
    pub(super) fn next_id(&self) -> u64 {
        self.next_id.fetch_add(1, SeqCst)
    }

    /// Checks that a key and a value can be written. The journal does not fail by this.
    pub(super) fn accepts<K, V>(&self, key: &K, value: &V) -> Result<(), JournalError>
    where
        J: Journal<K, V>,
    {
        let answer = survive(|| self.journal.accepts(key, value));
        answer.unwrap_or_else(|| Err(JournalError::new("the key or value panicked")))
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

    /// Tidies up after a change that nobody waits for, without a stripe.
    pub(super) fn tidy<K, V>(&self)
    where
        J: Journal<K, V>,
    {
        survive(|| self.journal.tidy());
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

    /// Asks the journal for something, unless it has failed before. After a failure it may lack
    /// changes that later ones build on.
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
            // Later failures are not kept.
            let _ = self.failed.set(error.clone());
        })
    }
}

impl<J> Stripe<'_, J> {
    /// The id of a new task of this key.
    pub(super) fn next_id(&self) -> u64 {
        self.journal.next_id()
    }

    /// Writes changes to this key; returns what to [`wait`](OrderedJournal::wait) for, without the
    /// stripe.
    pub(super) fn append<K, V>(&self, changes: &[Change<'_, K, V>]) -> Result<u64, JournalError>
    where
        J: Journal<K, V>,
    {
        let appended = self.journal.attempt(|journal| journal.append(changes))?;
        let latest = appended.saturating_add(1);
        self.journal.appended.fetch_max(latest, SeqCst);
        Ok(appended)
    }
}
