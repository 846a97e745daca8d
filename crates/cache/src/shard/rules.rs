//! What all shards of a cache have in common: the settings, the capacity, and how much room there
//! is for events.

use std::hash::{BuildHasher, Hash};

use tidewheel_time::mix;

use crate::removal::RemovalCause;
use crate::shard::config::Config;
use crate::shard::effects::NewEmptied;
use crate::shard::tags::Tags;
use crate::sync::{AtomicU64, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};

/// The rules by which shards act: the settings, and the little that they share.
pub(crate) struct Rules<K, V, S> {
    pub(crate) hasher: S,
    pub(crate) config: Config<K, V>,
    pub(crate) account: Account,
    pub(crate) tags: Tags,
    pub(crate) events: EventRoom,
    pub(crate) new_emptied: NewEmptied<K, V>,
}

impl<K, V, S> Rules<K, V, S> {
    /// The cause of an entry that leaves for this one: if a tag of it was invalidated, it was not
    /// there for readers any more, and left for that.
    #[inline]
    pub(crate) fn cause_of(&self, label: u64, cause: RemovalCause) -> RemovalCause {
        if self.tags.is_current(label) {
            cause
        } else {
            RemovalCause::Invalidated
        }
    }
}

impl<K: Hash, V, S: BuildHasher> Rules<K, V, S> {
    #[inline]
    pub(crate) fn hash<Q: Hash + ?Sized>(&self, key: &Q) -> Hashed {
        Hashed(mix(self.hasher.hash_one(key)))
    }

    /// The place of a stored key.
    #[inline]
    pub(crate) fn place_of(&self, key: &K) -> u32 {
        self.hash(key).place()
    }
}

/// A hash, and what follows from it.
#[derive(Clone, Copy)]
pub(crate) struct Hashed(pub(crate) u64);

impl Hashed {
    /// Returns the entry's place within its shard.
    #[inline]
    pub(crate) fn place(self) -> u32 {
        self.0 as u32
    }
}

/// The number of portions in a shard's even share.
const PORTIONS: u64 = 16;

/// One capacity for all shards: weight is lent to them in portions.
///
/// A shard may hold as much weight as it was lent. It borrows when it grows and gives back what it
/// has not used for long; when nothing is left to lend, it evicts. So no shard has a share of its
/// own by which an entry could be refused: an entry heavier than what its shard was lent takes from
/// the others.
///
/// The capacity may change. When it shrinks, the difference is a *debt*: shards give weight back
/// until the debt is settled, and nothing is lent before that. So lent and free weight together are
/// always the capacity plus the debt.
pub(crate) struct Account {
    is_bounded: bool,
    shards: u64,
    capacity: AtomicU64,
    free: AtomicU64,
    debt: AtomicU64,
    portion: AtomicU64,
}

impl Account {
    /// `None` for no bound.
    pub(crate) fn new(capacity: Option<u64>, shards: usize) -> Self {
        let shards = shards as u64;
        Self {
            is_bounded: capacity.is_some(),
            shards,
            capacity: AtomicU64::new(capacity.unwrap_or(u64::MAX)),
            free: AtomicU64::new(capacity.unwrap_or(u64::MAX)),
            debt: AtomicU64::new(0),
            portion: AtomicU64::new(portion(capacity.unwrap_or(0), shards)),
        }
    }

    #[inline]
    pub(crate) fn capacity(&self) -> Option<u64> {
        self.is_bounded.then(|| self.capacity.load(Relaxed))
    }

    /// Changes the capacity of a bounded cache. If it has shrunk, there is a [debt](Self::debt)
    /// from now on.
    pub(crate) fn set_capacity(&self, capacity: u64) {
        let old = self.capacity.swap(capacity, Relaxed);
        self.portion.store(portion(capacity, self.shards), Relaxed);
        if capacity >= old {
            self.give_back(capacity - old);
            return;
        }
        self.debt.fetch_add(old - capacity, SeqCst);
        self.settle();
    }

    /// Settles the debt with free weight. Nothing is lent as long as there is a debt.
    fn settle(&self) {
        while self.debt() > 0 {
            let unlent = take(&self.free, self.debt());
            let settled = take(&self.debt, unlent);
            if unlent == settled {
                return;
            }
            // Another thread has settled it meanwhile.
            self.free.fetch_add(unlent - settled, SeqCst);
        }
    }

    /// Returns the weight that shards must still give back after the capacity shrank.
    pub(crate) fn debt(&self) -> u64 {
        self.debt.load(SeqCst)
    }

    /// Returns the weight that is lent to no shard.
    pub(crate) fn free(&self) -> u64 {
        self.free.load(Relaxed)
    }

    /// Returns the weight that each shard is lent at first.
    pub(crate) fn first_loan(&self) -> u64 {
        if self.is_bounded { 0 } else { u64::MAX }
    }

    /// Returns whether a shard may borrow now.
    #[inline]
    pub(crate) fn may_lend(&self) -> bool {
        self.free.load(Relaxed) > 0 && self.debt() == 0
    }

    /// Borrows `need`, or a portion if that is more; returns what could be had, which may be less.
    pub(crate) fn borrow(&self, need: u64) -> u64 {
        if !self.may_lend() {
            return 0;
        }
        let want = need.max(self.portion.load(Relaxed));
        take(&self.free, want)
    }

    /// Returns the part of a loan that a shard should give back when it uses `used` of it: all that
    /// it does not use, as long as there is a debt.
    pub(crate) fn surplus(&self, lent: u64, used: u64) -> u64 {
        if !self.is_bounded {
            return 0;
        }
        let debt = self.debt();
        if debt > 0 {
            return debt.min(lent.saturating_sub(used));
        }
        let portion = self.portion.load(Relaxed);
        let keep = used + portion;
        if lent > keep + portion {
            lent - keep
        } else {
            0
        }
    }

    /// Takes back what a shard does not need.
    pub(crate) fn give_back(&self, weight: u64) {
        self.free.fetch_add(weight, SeqCst);
        // After that. A thread that shrinks the capacity adds the debt and then looks at what is
        // free: one of the two settles it.
        self.settle();
    }
}

fn portion(capacity: u64, shards: u64) -> u64 {
    (capacity / (shards * PORTIONS)).max(1)
}

/// Takes as much as there is, up to `want`.
fn take(from: &AtomicU64, want: u64) -> u64 {
    let mut got = 0;
    let _ = from.fetch_update(SeqCst, SeqCst, |left| {
        got = left.min(want);
        Some(left - got)
    });
    got
}

/// Events that a full queue of an async listener takes beyond its limit: what one hold of the
/// driver may remove.
const OVER_LIMIT: usize = 64;

/// The behaviour of a full listener queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum OnFull {
    /// No event is lost. A call that causes an event delivers the whole queue to the listener
    /// before it returns, or waits until another thread has done so. The driver removes nothing
    /// more until there is room; entries that are due stay invisible.
    ///
    /// A thread that others may be waiting for never waits here. A listener, a loader and a closure
    /// (of [`Cache::get_or_load`](crate::Cache::get_or_load),
    /// [`Cache::update`](crate::Cache::update) and similar calls) may write although the queue is
    /// full. The queue is delivered when they end. A closure of [`Cache::view`](crate::Cache::view)
    /// of another cache leaves the delivery to the next writer. So the queue exceeds its limit by
    /// at most two things: the events of the listener, loaders and closures that run now, and the
    /// events of one operation of each other thread.
    ///
    /// Nobody but a task can call an async listener, and no writer waits for a task. With such a
    /// listener only the driver waits. What callers cause while the queue is full (with 64 events
    /// more than its limit) is dropped and counted in
    /// [`Stats::events_dropped`](crate::Stats::events_dropped), except what leaves because the
    /// cache is closed.
    #[default]
    Wait,
    /// The event is dropped and counted. When a shard is emptied at once, its events are treated as
    /// one: all are queued, or all are dropped.
    Drop,
}

/// Who calls the listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Listens {
    /// There is none.
    Nobody,
    /// Any thread.
    Threads,
    /// A task: the listener is async.
    Task,
}

/// How much is in the listener's queue, over all shards.
pub(crate) struct EventRoom {
    listens: Listens,
    limit: usize,
    on_full: OnFull,
    pending: AtomicUsize,
}

impl EventRoom {
    pub(crate) fn new(listens: Listens, limit: usize, on_full: OnFull) -> Self {
        Self {
            listens,
            limit,
            on_full,
            pending: AtomicUsize::new(0),
        }
    }

    #[inline]
    pub(crate) fn has_listener(&self) -> bool {
        self.listens != Listens::Nobody
    }

    /// Returns whether only a task can call the listener.
    pub(crate) fn is_async(&self) -> bool {
        self.listens == Listens::Task
    }

    /// Events that the listener was not told of.
    pub(crate) fn pending(&self) -> usize {
        self.pending.load(Relaxed)
    }

    pub(crate) fn add(&self, events: usize) {
        self.pending.fetch_add(events, Relaxed);
    }

    /// The listener was told of one event.
    pub(crate) fn told(&self) {
        self.pending.fetch_sub(1, Relaxed);
    }

    /// Returns whether the queue is full and the policy loses no event.
    pub(crate) fn must_wait(&self) -> bool {
        self.has_listener() && self.on_full == OnFull::Wait && self.pending() >= self.limit
    }

    /// Returns whether the queue is full and the policy drops new events.
    pub(crate) fn is_full_and_lossy(&self, cause: RemovalCause) -> bool {
        match self.on_full {
            OnFull::Drop => self.pending() >= self.limit,
            // The driver has waited, and nobody else can call an async listener.
            OnFull::Wait => {
                cause != RemovalCause::Closed
                    && self.pending() >= self.limit.saturating_add(OVER_LIMIT)
                    && self.is_async()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lent_never_exceeds_the_capacity() {
        let account = Account::new(Some(1000), 4);
        let lent: Vec<u64> = (0..200).map(|_| account.borrow(7)).collect();
        assert_eq!(lent.iter().sum::<u64>(), 1000);
        assert_eq!(account.borrow(1), 0);
        account.give_back(10);
        assert_eq!(account.borrow(100), 10);
    }

    /// Weight that was given back just as the capacity shrank was lent again, and the cache stayed
    /// too large.
    #[test]
    fn nothing_is_free_while_there_is_a_debt_even_if_weight_is_given_back_meanwhile() {
        for _ in 0..200 {
            let account = Account::new(Some(1000), 4);
            let lent = account.borrow(1000);
            std::thread::scope(|scope| {
                for _ in 0..2 {
                    scope.spawn(|| (0..25).for_each(|_| account.give_back(20)));
                }
                scope.spawn(|| [900, 500, 700, 100].map(|size| account.set_capacity(size)));
            });
            assert_eq!((lent, account.free(), account.debt()), (1000, 100, 0));
        }
    }

    #[test]
    fn what_is_given_back_pays_first_for_a_capacity_that_has_shrunk() {
        let account = Account::new(Some(1000), 4);
        let lent = account.borrow(900);
        account.set_capacity(300);
        assert_eq!((lent, account.free(), account.debt()), (900, 0, 600));
        account.give_back(650);
        assert_eq!((account.free(), account.debt()), (50, 0));
        account.set_capacity(100);
        assert_eq!((account.free(), account.debt()), (0, 150));
        account.set_capacity(1100);
        assert_eq!((account.free(), account.debt()), (850, 0));
    }
}
