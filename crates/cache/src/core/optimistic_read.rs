//! A look at a value without the shard's lock.

use equivalent::Equivalent;
use tidewheel_store::OptimisticRead;

use crate::core::hash::Hashed;
use crate::core::inner::Inner;
use crate::core::shard::ShardCell;
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
}
