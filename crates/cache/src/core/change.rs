//! A change of a shard: one hold of its lock, and what the change leaves to be done afterwards.

use std::hash::{BuildHasher, Hash};

use equivalent::Equivalent;
use tidewheel_time::Moment;

use crate::cell::ShardCell;
use crate::core::inner::Inner;
use crate::shard::Shard;
use crate::shard::effects::ShardRequest;
use crate::shard::garbage::Garbage;
use crate::shard::hash::Hashed;
use crate::sync::{Ordering::Relaxed, WriteGuard};

/// A shard that is held for writing; what it has made necessary is done at its end, though a change
/// has panicked.
pub(crate) struct Hold<'a, K, V, S> {
    inner: &'a Inner<K, V, S>,
    cell: &'a ShardCell<K, V>,
    shard: Option<WriteGuard<'a, Shard<K, V>>>,
}

/// What a caller does after it has released the lock.
pub(crate) struct AfterUnlock {
    /// What the entry that was stored last needs of other shards.
    wanted: ShardRequest,
    /// True if there are events to deliver.
    events: bool,
}

impl<K, V, S> Hold<'_, K, V, S> {
    #[inline(always)]
    pub(crate) fn change<R>(&mut self, change: impl FnOnce(&mut Shard<K, V>) -> R) -> R {
        change(self.shard.as_mut().expect("held to the end"))
    }

    /// As [`change`](Self::change), by a caller who is to do more afterwards.
    #[inline(always)]
    pub(crate) fn change_fully<R>(
        &mut self,
        change: impl FnOnce(&mut Shard<K, V>) -> R,
    ) -> (R, AfterUnlock) {
        self.change(|shard| {
            let result = change(shard);
            let effects = &mut shard.effects;
            let after = AfterUnlock {
                wanted: std::mem::take(&mut effects.wanted),
                events: !effects.outbox.is_empty(),
            };
            (result, after)
        })
    }

    #[inline(always)]
    pub(crate) fn cell(&self) -> &ShardCell<K, V> {
        self.cell
    }

    #[inline(always)]
    pub(crate) fn end(&mut self) {
        let Some(mut shard) = self.shard.take() else {
            return;
        };
        if shard.leaves_nothing() && !self.cell.became_untidy(&shard) {
            shard.store.end_change();
            return;
        }
        self.inner.release(self.cell, shard);
    }

    /// As [`end`](Self::end), for a hold in which nothing has left the store, and only a deadline
    /// is to be published.
    #[inline(always)]
    pub(crate) fn end_soon(&mut self) {
        if let Some(shard) = &mut self.shard {
            if shard.republish {
                return self.end_apart();
            }
            shard.store.end_change();
            self.shard = None;
        }
    }

    /// Ends the hold as usual, in a function of its own, so that the quick way is compiled into its
    /// place.
    #[cold]
    #[inline(never)]
    fn end_apart(&mut self) {
        self.end();
    }
}

impl<K, V, S> Drop for Hold<'_, K, V, S> {
    #[inline(always)]
    fn drop(&mut self) {
        if self.shard.is_some() {
            self.end_apart();
        }
    }
}

impl<K, V, S> Inner<K, V, S> {
    /// Locks a shard for writing. Its end does what the changes have made necessary.
    #[inline(always)]
    pub(crate) fn begin<'a>(&'a self, cell: &'a ShardCell<K, V>) -> Hold<'a, K, V, S> {
        let mut shard = cell.lock.write(self.id());
        shard.changes = shard.changes.wrapping_add(1);
        shard.store.begin_change();
        Hold {
            inner: self,
            cell,
            shard: Some(shard),
        }
    }

    /// Changes a shard under its lock, then publishes the next deadline, drops what was removed,
    /// and wakes who must know.
    ///
    /// For drivers, which must not be kept waiting by a listener, nor call one while they drive;
    /// and for changes by which nothing leaves and nothing is stored.
    pub(crate) fn hold<R>(
        &self,
        cell: &ShardCell<K, V>,
        change: impl FnOnce(&mut Shard<K, V>) -> R,
    ) -> R {
        let mut hold = self.begin(cell);
        let result = hold.change(change);
        hold.end();
        result
    }

    /// As [`begin`](Self::begin), and reads the clock under the lock.
    fn begin_now<'a>(&'a self, cell: &'a ShardCell<K, V>) -> (Hold<'a, K, V, S>, Moment) {
        // A user's clock may take its time.
        let given = self.time.given_now();
        let hold = self.begin(cell);
        (hold, given.unwrap_or_else(|| self.time.now()))
    }

    /// As [`hold`](Self::hold), at a time that was read under the lock: for who claims a key. Once
    /// it leads a flight it must not wait for a listener, which may wait for the flight.
    pub(crate) fn hold_now<R>(
        &self,
        cell: &ShardCell<K, V>,
        change: impl FnOnce(&mut Shard<K, V>, Moment) -> R,
    ) -> R {
        let (mut hold, now) = self.begin_now(cell);
        let result = hold.change(|shard| change(shard, now));
        hold.end();
        result
    }

    /// Ends a hold of a shard that has left something to be done.
    #[inline(never)]
    fn release(&self, cell: &ShardCell<K, V>, mut shard: WriteGuard<'_, Shard<K, V>>) {
        let mut earlier = None;
        if shard.republish {
            shard.republish = false;
            let next = shard.next_deadline();
            if next < shard.published {
                earlier = Some(next);
            }
            shard.published = next;
            cell.next_deadline.publish(next);
        }
        let untidy = cell.became_untidy(&shard);
        if untidy {
            cell.untidy.store(true, Relaxed);
        }
        let garbage = shard.effects.garbage.take();
        let freed = shard.store.take_freed();
        let events = shard.effects.outbox.take_news();
        shard.store.end_change();
        drop(shard);
        for store in garbage.iter().flat_map(Garbage::stores) {
            self.release_tags(&**store);
        }
        // Others are woken before user code is run, which may take its time.
        if let Some(next) = earlier {
            self.requests.lowered(next);
        }
        if untidy {
            self.requests.tidy_wanted();
        }
        if events {
            self.requests.events_wanted(&self.delivery.wanted);
        }
        if let Some(garbage) = garbage {
            garbage.discard(&self.counters);
        }
        // Seldom there: asked here, it is not asked field by field.
        if let Some(freed) = freed {
            drop(freed);
        }
    }
}

impl<K: Hash + Eq, V, S: BuildHasher> Inner<K, V, S> {
    /// Changes a shard as a caller: does what [`hold`](Self::hold) does, at a time that was read
    /// under the lock. Afterwards, unlocked:
    ///
    /// 1. If the entry that `change` has stored lacks weight, it takes that from other shards, or
    ///    evicts.
    /// 2. If the capacity has shrunk, it takes back what shards owe.
    /// 3. If the queue of events is full, it delivers some, unless this thread holds a shard of
    ///    another cache, which the listener may need.
    pub(crate) fn change<R>(
        &self,
        cell: &ShardCell<K, V>,
        change: impl FnOnce(&mut Shard<K, V>, Moment) -> R,
    ) -> R {
        let (mut hold, now) = self.begin_now(cell);
        let (result, after) = hold.change_fully(|shard| change(shard, now));
        hold.end();
        self.finish(cell, after);
        result
    }

    /// Does what is left to do after a caller's hold.
    #[inline(always)]
    pub(crate) fn finish(&self, cell: &ShardCell<K, V>, after: AfterUnlock) {
        if after.wanted != ShardRequest::Nothing || after.events {
            self.finish_apart(cell, after);
        }
    }

    #[cold]
    #[inline(never)]
    fn finish_apart(&self, cell: &ShardCell<K, V>, after: AfterUnlock) {
        let AfterUnlock { wanted, events } = after;
        match wanted {
            ShardRequest::Nothing => {}
            ShardRequest::Room(weight) => self.find_room(cell, weight),
            ShardRequest::RepayDebt => {
                self.collect_some();
            }
        }
        if (events || wanted != ShardRequest::Nothing) && self.must_help() {
            self.deliver(true);
        }
    }

    /// As [`change`](Self::change), of one key, which may turn out to be none: only where `find`
    /// finds what to change, it waits for a closure that computes the key's value, and supersedes a
    /// load.
    pub(crate) fn change_key<Q: Equivalent<K> + ?Sized, T, R>(
        &self,
        hash: Hashed,
        key: &Q,
        find: impl Fn(&Shard<K, V>, Moment) -> Option<T>,
        change: impl FnOnce(&mut Shard<K, V>, T, Moment) -> R,
    ) -> Option<R> {
        let cell = self.cell(hash);
        let mut change = Some(change);
        loop {
            let done = self.change(cell, |shard, now| {
                let Some(found) = find(shard, now) else {
                    return Ok(None);
                };
                if let Some(latch) = shard.writing(hash, |stored| key.equivalent(stored)) {
                    return Err(latch);
                }
                let change = change.take().expect("runs once");
                Ok(Some(change(shard, found, now)))
            });
            match done {
                Ok(result) => return result,
                Err(latch) => latch.wait_open(),
            }
        }
    }
}
