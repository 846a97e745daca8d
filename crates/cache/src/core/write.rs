//! A write: one hold of a shard's lock, and the work that the change leaves to do after unlocking.

use std::hash::{BuildHasher, Hash};

use equivalent::Equivalent;

use crate::core::hash::Hashed;
use crate::core::inner::Inner;
use crate::core::shard::{Shard, ShardCell, ShardRequest};

/// The work that a change leaves to do after unlocking.
pub(crate) struct AfterUnlock {
    /// What the entry that was stored last needs of other shards.
    wanted: ShardRequest,
    /// True if there are events to deliver.
    events: bool,
}

impl AfterUnlock {
    #[inline(always)]
    pub(crate) fn take<K, V>(shard: &mut Shard<K, V>) -> Self {
        Self {
            wanted: std::mem::take(&mut shard.wanted),
            events: !shard.outbox.is_empty(),
        }
    }
}

impl<K: Hash + Eq, V, S: BuildHasher> Inner<K, V, S> {
    /// Does what [`hold`](Self::hold) does. Afterwards, unlocked:
    ///
    /// 1. If the entry that `change` has stored lacks weight, it takes that from other shards, or
    ///    evicts.
    /// 2. If the capacity has shrunk, it takes back what shards owe.
    /// 3. If the queue of events is full, it delivers some, unless this thread holds a shard of
    ///    another cache, which the listener may need.
    ///
    /// Not for the driver, which must not be kept waiting by a listener, nor call one while
    /// it drives.
    pub(crate) fn write<R>(
        &self,
        cell: &ShardCell<K, V>,
        change: impl FnOnce(&mut Shard<K, V>) -> R,
    ) -> R {
        let (result, after) = self.hold(cell, |shard| (change(shard), AfterUnlock::take(shard)));
        self.run_after_unlock(cell, after);
        result
    }

    /// As [`write`](Self::write), and quicker: it is compiled into its place.
    #[inline(always)]
    pub(crate) fn write_briefly<R>(
        &self,
        cell: &ShardCell<K, V>,
        change: impl FnOnce(&mut Shard<K, V>) -> R,
    ) -> R {
        let (result, after) =
            self.hold_briefly(cell, |shard| (change(shard), AfterUnlock::take(shard)));
        self.finish_after_unlock(cell, after);
        result
    }

    /// Does what is left to do after the lock was released.
    #[inline(always)]
    pub(crate) fn finish_after_unlock(&self, cell: &ShardCell<K, V>, after: AfterUnlock) {
        if after.wanted != ShardRequest::Nothing || after.events {
            self.run_after_unlock(cell, after);
        }
    }

    #[cold]
    #[inline(never)]
    fn run_after_unlock(&self, cell: &ShardCell<K, V>, after: AfterUnlock) {
        let AfterUnlock { wanted, events } = after;
        match wanted {
            ShardRequest::Nothing => {}
            ShardRequest::Room(weight) => self.find_room(cell, weight),
            ShardRequest::RepayDebt => {
                self.collect_some();
            }
        }
        if (events || wanted != ShardRequest::Nothing) && self.delivery.must_help() {
            self.deliver(true);
        }
    }

    /// As [`write`](Self::write), for a change of one key: waits for a closure that is computing
    /// its value, and supersedes a load of it.
    pub(crate) fn write_key<Q: Equivalent<K> + ?Sized, R>(
        &self,
        hash: Hashed,
        key: &Q,
        change: impl FnOnce(&mut Shard<K, V>) -> R,
    ) -> R {
        let cell = self.cell(hash);
        let mut change = Some(change);
        loop {
            let done = self.write_briefly(cell, |shard| {
                if let Some(latch) = shard.writing(hash, |stored| key.equivalent(stored)) {
                    return Err(latch);
                }
                let change = change.take().expect("runs once");
                Ok(change(shard))
            });
            match done {
                Ok(result) => return result,
                Err(latch) => latch.wait_open(),
            }
        }
    }

    /// As [`write_key`](Self::write_key), for a change that may turn out to be none: only where
    /// `find` finds what to change, it waits for a closure and supersedes a load.
    pub(crate) fn change_key<Q: Equivalent<K> + ?Sized, T, R>(
        &self,
        hash: Hashed,
        key: &Q,
        find: impl Fn(&Shard<K, V>) -> Option<T>,
        change: impl FnOnce(&mut Shard<K, V>, T) -> R,
    ) -> Option<R> {
        let cell = self.cell(hash);
        let mut change = Some(change);
        loop {
            let done = self.write_briefly(cell, |shard| {
                let Some(found) = find(shard) else {
                    return Ok(None);
                };
                if let Some(latch) = shard.writing(hash, |stored| key.equivalent(stored)) {
                    return Err(latch);
                }
                let change = change.take().expect("runs once");
                Ok(Some(change(shard, found)))
            });
            match done {
                Ok(result) => return result,
                Err(latch) => latch.wait_open(),
            }
        }
    }
}
