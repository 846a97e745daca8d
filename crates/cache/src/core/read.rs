//! The first look at a key: without the shard's lock where that is possible, and else under the
//! reader's.

use equivalent::Equivalent;
use tidewheel_store::{FirstLook, Found, OptimisticRead};

use crate::cell::ShardCell;
use crate::core::inner::Inner;
use crate::shard::Shard;
use crate::shard::hash::Hashed;
use crate::time::Bound;

impl<K, V, S> Inner<K, V, S> {
    /// The value of a key, or that it has none; `None` if it takes the lock to tell. Counts as a
    /// use of the entry. What it returns is a copy, which is what a clone of a plain value is.
    ///
    /// If `clock` may take its time, the thread `lets_go` meanwhile: what others free then need not
    /// wait for it.
    #[inline(always)]
    pub(crate) fn read_optimistically<Q>(
        &self,
        hash: Hashed,
        key: &Q,
        lets_go: bool,
        clock: impl FnOnce(&ShardCell<K, V>) -> Bound,
    ) -> Option<Option<V>>
    where
        Q: Equivalent<K> + ?Sized,
    {
        let cell = self.cell(hash);
        let is_ahead = || {
            let until = clock(cell).plus(self.ahead);
            move |deadline| until.is_before(deadline)
        };
        match cell.lens.as_ref()?.read(hash.place(), lets_go, is_ahead) {
            OptimisticRead::Entry(stored, value) if key.equivalent(&stored) => Some(Some(value)),
            OptimisticRead::Nowhere => Some(None),
            OptimisticRead::Entry(..) | OptimisticRead::Unclear => None,
        }
    }

    /// The time, for a look at an entry. Where none has a deadline, the clock is not read.
    #[inline(always)]
    pub(crate) fn time_in(&self, cell: &ShardCell<K, V>) -> Bound {
        if cell.has_deadlines() {
            self.time.bound()
        } else {
            Bound::NONE
        }
    }

    /// Looks a key up for reading, dead or alive; with it, what time it is. The clock is read once
    /// the index has found the slot, and before the slot is looked at: while that is on its way to
    /// the processor, nothing else is to be done.
    #[inline(always)]
    pub(crate) fn look<'a, Q: Equivalent<K> + ?Sized>(
        clock: impl FnOnce() -> Bound,
        shard: &'a Shard<K, V>,
        hash: Hashed,
        key: &Q,
    ) -> FirstLook<'a, K, V, Bound> {
        let is = |stored: &K| key.equivalent(stored);
        shard.store.look_first(hash.place(), clock, is)
    }

    /// Returns whether an entry is certainly alive and a read changes nothing but its hit count.
    #[inline(always)]
    pub(crate) fn is_plainly_there(
        &self,
        entry: &Found<'_, K, V>,
        until: Option<u64>,
        now: Bound,
    ) -> bool {
        entry.lasts(|deadline| now.plus(self.ahead).is_before(deadline))
            && until.is_none_or(|until| until > now.tick())
            && !entry.has_attributes()
    }
}
