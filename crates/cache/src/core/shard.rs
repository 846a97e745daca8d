//! One shard: a store and what belongs under its lock.

use std::sync::Arc;

use tidewheel_store::{Lens, Slot, TypedStore};
use tidewheel_time::Soonest;

use crate::core::flight::Flight;
use crate::core::flights::Flights;
use crate::core::hash::Hashed;
use crate::core::negative::Negatives;
use crate::core::removal::{Garbage, Outbox};
use crate::sync::{AtomicBool, Ordering::Relaxed, ShardLock};

/// Insertions after which the published deadline is looked up again though none of them was
/// earlier: the wheel asks for earlier wake-ups when many records lie in one slot.
const REPUBLISH_EVERY: u32 = 64;

/// Removals that make a shard worth tidying.
const UNTIDY: u32 = 512;

/// A change's request to other shards, handled after its lock is released.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ShardRequest {
    #[default]
    Nothing,
    /// Weight that the entry stored last lacks.
    Room(u64),
    /// The debt since the capacity shrank.
    RepayDebt,
}

/// A shard with what others read without its lock.
///
/// The lock's word is in a cache line of its own. Threads that read the same shard take that line
/// from each other, and all else that they look at stays with each of them.
#[repr(C, align(128))]
pub(crate) struct ShardCell<K, V> {
    /// Reads the store without the lock, where that is possible.
    pub(crate) lens: Option<Lens<K, V>>,
    /// A lower bound of the shard's next deadline, in ticks; `u64::MAX` for none.
    pub(crate) next_deadline: Soonest,
    /// True if enough was removed to make tidying worth while.
    pub(crate) untidy: AtomicBool,
    pub(crate) lock: ShardLock<Shard<K, V>>,
}

#[repr(C, align(64))]
pub(crate) struct Shard<K, V> {
    pub(crate) store: TypedStore<K, V>,
    /// Weight that the account has lent.
    pub(crate) lent: u64,
    /// The request of the entry that was stored last.
    pub(crate) wanted: ShardRequest,
    pub(crate) flights: Flights<K, V>,
    pub(crate) negatives: Negatives<K>,
    pub(crate) outbox: Outbox<K, V>,
    pub(crate) garbage: Garbage<K, V>,
    /// The value that was published as `next_deadline`.
    pub(crate) published: u64,
    pub(crate) republish: bool,
    unpublished: u32,
    /// Removals since the last tidying.
    pub(crate) removals: u32,
    pub(crate) closed: bool,
    /// Times that the lock was held for writing: nothing has changed while it stays the same.
    pub(crate) changes: u64,
}

impl<K, V> ShardCell<K, V> {
    pub(crate) fn new(lent: u64, new_store: fn() -> TypedStore<K, V>, huge_pages: bool) -> Self {
        // Under shuttle all go the way of the lock: it knows nothing of the other one.
        let mut store = if cfg!(all(shuttle, feature = "shuttle")) {
            TypedStore::new()
        } else {
            new_store()
        };
        if huge_pages {
            store.use_huge_pages();
        }
        store.defer_frees();
        Self {
            lens: store.lens(),
            lock: ShardLock::new(Shard {
                store,
                lent,
                wanted: ShardRequest::Nothing,
                flights: Flights::new(),
                negatives: Negatives::new(),
                outbox: Outbox::new(),
                garbage: Garbage::new(),
                published: u64::MAX,
                republish: false,
                unpublished: 0,
                removals: 0,
                closed: false,
                changes: 0,
            }),
            next_deadline: Soonest::new(),
            untidy: AtomicBool::new(false),
        }
    }
}

impl<K, V> ShardCell<K, V> {
    /// Returns whether an entry of the shard may have a deadline.
    #[inline(always)]
    pub(crate) fn has_deadlines(&self) -> bool {
        self.next_deadline.get() != u64::MAX
    }
}

impl<K, V> Shard<K, V> {
    /// Notes that an entry got a deadline.
    #[inline]
    pub(crate) fn scheduled(&mut self, deadline: Option<u64>) {
        let Some(deadline) = deadline else { return };
        self.unpublished += 1;
        if deadline < self.published || self.unpublished >= REPUBLISH_EVERY {
            self.republish = true;
            self.unpublished = 0;
        }
    }

    /// A lower bound of the next deadline of an entry, or of an error or absence that is
    /// remembered.
    #[inline]
    pub(crate) fn next_deadline(&self) -> u64 {
        let next = self.store.next_deadline().unwrap_or(u64::MAX);
        next.min(self.negatives.next_deadline())
    }

    /// Returns whether tidying has become worth while and the driver was not told.
    #[inline(always)]
    pub(crate) fn is_untidy(&self, cell: &ShardCell<K, V>) -> bool {
        self.removals >= UNTIDY && !cell.untidy.load(Relaxed)
    }

    /// Returns whether a hold ends with nothing to publish, to drop or to tell.
    #[inline(always)]
    pub(crate) fn leaves_nothing(&self, cell: &ShardCell<K, V>) -> bool {
        let has_work = self.republish || self.outbox.has_news() || self.store.has_freed();
        !has_work && self.garbage.is_empty() && !self.is_untidy(cell)
    }

    /// Returns whether no key is being loaded or computed, and no error or absence is remembered.
    #[inline]
    pub(crate) fn is_quiet(&self) -> bool {
        self.flights.is_empty() && self.negatives.is_empty()
    }

    /// Tells that a writer is about to change a key: a latch that it must wait for first, if there
    /// is one. A load in progress is superseded, an error or absence forgotten.
    #[inline]
    pub(crate) fn writing(
        &mut self,
        hash: Hashed,
        is: impl Fn(&K) -> bool,
    ) -> Option<Arc<Flight<V>>> {
        if self.is_quiet() {
            return None;
        }
        self.overtake(hash, is)
    }

    /// The slow path of [`writing`](Self::writing), apart from it so that a change with nothing in
    /// progress takes a few instructions.
    #[cold]
    #[inline(never)]
    fn overtake(&mut self, hash: Hashed, is: impl Fn(&K) -> bool) -> Option<Arc<Flight<V>>> {
        let latch = self.flights.writing(hash.0, &is, &mut self.garbage.keys);
        if latch.is_none() {
            self.forget_negative(hash, is);
        }
        latch
    }

    /// Forgets an error or absence that is remembered of a key.
    pub(crate) fn forget_negative(&mut self, hash: Hashed, is: impl Fn(&K) -> bool) {
        let forgotten = self.negatives.forget(hash.place(), is);
        self.garbage.forgotten(forgotten);
    }

    /// Gives an entry another deadline.
    pub(crate) fn set_deadline(&mut self, slot: Slot, deadline: Option<u64>, now: u64) {
        self.store.set_deadline(slot, deadline, now);
        self.scheduled(deadline);
    }
}
