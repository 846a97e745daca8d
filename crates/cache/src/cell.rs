//! A shard behind its lock, and what others read of it without the lock.

use tidewheel_store::{Lens, TypedStore};
use tidewheel_time::Soonest;

use crate::shard::Shard;
use crate::sync::{AtomicBool, Ordering::Relaxed, ShardLock};

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
            lock: ShardLock::new(Shard::new(lent, store)),
            next_deadline: Soonest::new(),
            untidy: AtomicBool::new(false),
        }
    }

    /// Returns whether an entry of the shard may have a deadline.
    #[inline(always)]
    pub(crate) fn has_deadlines(&self) -> bool {
        self.next_deadline.get() != u64::MAX
    }

    /// Returns whether tidying has become worth while and the driver was not told.
    #[inline(always)]
    pub(crate) fn became_untidy(&self, shard: &Shard<K, V>) -> bool {
        shard.is_untidy() && !self.untidy.load(Relaxed)
    }
}
