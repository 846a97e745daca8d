//! Reads an entry: without the shard's lock where that is possible, and else under the reader's.

use std::hash::{BuildHasher, Hash};

use equivalent::Equivalent;
use tidewheel_store::{FirstLook, Found, Lens, OptimisticRead, Slot};

use crate::core::inner::{Inner, ShardCell};
use crate::shard::Shard;
use crate::shard::rules::Hashed;
use crate::shard::sight::Sight;
use crate::stats::Count;
use crate::sync::ReadGuard;
use crate::time::Bound;

/// The reason of a look at a key.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// A value is wanted, fresh or stale.
    Get,
    /// The first look before a load. A stale value answers only if somebody else loads it again, or
    /// did so in vain a moment ago.
    Load,
    /// A further look before the same load, which does not count as a look-up.
    LoadStill,
}

impl<K, V, S> Inner<K, V, S> {
    /// The value of a key, or that it has none; `None` if it takes the lock to tell. Counts as a
    /// use of the entry. What it returns is a copy, which is what a clone of a plain value is.
    ///
    /// If `clock` may take its time, the thread `lets_go` meanwhile: what others free then need not
    /// wait for it.
    #[inline(always)]
    fn read_optimistically<Q: Equivalent<K> + ?Sized>(
        &self,
        hash: Hashed,
        key: &Q,
        lets_go: bool,
        clock: impl FnOnce(&ShardCell<K, V, S>) -> Bound,
    ) -> Option<Option<V>> {
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

    /// Returns whether an entry is certainly alive and a read changes nothing but its hit count.
    #[inline(always)]
    fn is_plainly_there(&self, entry: &Found<'_, K, V>, until: Option<u64>, now: Bound) -> bool {
        entry.lasts(|deadline| now.plus(self.ahead).is_before(deadline))
            && until.is_none_or(|until| until > now.tick())
            && !entry.has_attributes()
    }
}

impl<K: Hash + Eq, V, S: BuildHasher> Inner<K, V, S> {
    /// What `make` makes of a key's value, and of whether that is stale. Without the lock, if that
    /// is possible.
    #[inline(always)]
    pub(crate) fn read_value<Q: Equivalent<K> + ?Sized, R>(
        &self,
        hash: Hashed,
        key: &Q,
        clock: impl Fn(&ShardCell<K, V, S>) -> Bound + Copy,
        purpose: Purpose,
        make: impl Fn(V, bool) -> R,
    ) -> Option<R>
    where
        V: Clone,
    {
        if !Lens::suits(move || self.cell(hash).lens.as_ref()) {
            let cloned = |_: &_, entry: &Found<'_, K, V>, stale| make(entry.value().clone(), stale);
            return self.read_entry(hash, key, clock, |_| None, purpose, cloned);
        }
        let Some(value) = self.read_optimistically(hash, key, self.time.is_given(), clock) else {
            return self.read_copy_locked(hash, key, clock, purpose, make);
        };
        self.count_lookup(purpose, value.is_some());
        Some(make(value?, false))
    }

    /// Reads a value under the lock where nearly all are read without.
    #[cold]
    #[inline(never)]
    fn read_copy_locked<Q: Equivalent<K> + ?Sized, R>(
        &self,
        hash: Hashed,
        key: &Q,
        clock: impl Fn(&ShardCell<K, V, S>) -> Bound,
        purpose: Purpose,
        make: impl Fn(V, bool) -> R,
    ) -> Option<R>
    where
        V: Clone,
    {
        let cloned = |_: &_, entry: &Found<'_, K, V>, stale| make(entry.value().clone(), stale);
        self.read_entry(hash, key, clock, |_| None, purpose, cloned)
    }

    #[inline(always)]
    fn count_lookup(&self, purpose: Purpose, found: bool) {
        if purpose != Purpose::LoadStill {
            let count = if found { Count::Hit } else { Count::Miss };
            self.counters.add(count, 1);
        }
    }

    /// Reads an entry that is live and has not reached a further end, as a use of it, at a time
    /// that `clock` tells. `read` is told whether the entry is past its soft deadline.
    // Into its callers: saving registers for a call would cost a hit a twentieth of its time.
    #[inline(always)]
    pub(crate) fn read_entry<Q: Equivalent<K> + ?Sized, R>(
        &self,
        hash: Hashed,
        key: &Q,
        clock: impl Fn(&ShardCell<K, V, S>) -> Bound,
        until: impl Fn(&Found<'_, K, V>) -> Option<u64>,
        purpose: Purpose,
        read: impl FnOnce(&Shard<K, V, S>, &Found<'_, K, V>, bool) -> R,
    ) -> Option<R> {
        let cell = self.cell(hash);
        let shard = self.read(cell);
        let is = |stored: &K| key.equivalent(stored);
        // One straight way for nearly all reads; what goes another way begins anew. The clock is
        // read once the index has found the slot, and before the slot is looked at: while that is
        // on its way to the processor, nothing else is to be done.
        let slot = match shard.store.look_first(hash.place(), || clock(cell), is) {
            FirstLook::Found(entry, now) if self.is_plainly_there(&entry, until(&entry), now) => {
                entry.hit();
                let result = read(&shard, &entry, false);
                drop(shard);
                self.count_lookup(purpose, true);
                return Some(result);
            }
            FirstLook::Found(entry, _) => Some(entry.slot()),
            FirstLook::Nowhere => {
                drop(shard);
                self.count_lookup(purpose, false);
                return None;
            }
            FirstLook::Elsewhere => None,
        };
        self.read_closely(hash, key, slot, until, purpose, shard, read)
    }

    /// Reads an entry that is not where nearly all are, or that may be over, or that a read does
    /// more to than count a hit.
    #[allow(
        clippy::too_many_arguments,
        reason = "what its caller has at hand when it finds that it must look closely"
    )]
    #[cold]
    #[inline(never)]
    fn read_closely<Q: Equivalent<K> + ?Sized, R>(
        &self,
        hash: Hashed,
        key: &Q,
        slot: Option<Slot>,
        until: impl Fn(&Found<'_, K, V>) -> Option<u64>,
        purpose: Purpose,
        shard: ReadGuard<'_, Shard<K, V, S>>,
        read: impl FnOnce(&Shard<K, V, S>, &Found<'_, K, V>, bool) -> R,
    ) -> Option<R> {
        // If `read` panics, the key in it is dropped without the lock.
        let refresh;
        let shard = shard;
        let Some(slot) = slot.or_else(|| shard.find(hash, key)) else {
            drop(shard);
            self.count_lookup(purpose, false);
            return None;
        };
        let entry = shard.store.found(slot);
        let now = self.now();
        let sight = shard.sight(slot, until(&entry), now);
        let Sight::Live { is_stale } = sight else {
            drop(shard);
            // What a load stores removes it: who loads must not wait for a listener.
            if sight == Sight::Invalidated && purpose == Purpose::Get {
                if let Some(hook) = self.hooks.sweep.get() {
                    (hook.key)(self, hash, &|stored| key.equivalent(stored));
                }
            }
            self.count_lookup(purpose, false);
            return None;
        };
        let loads = self.rules.config.refresher.is_none() && purpose != Purpose::Get;
        if is_stale && loads && shard.needs_load(hash, key, slot, now) {
            drop(shard);
            self.count_lookup(purpose, false);
            return None;
        }
        entry.hit();
        let (on_use, on_stale) = (self.hooks.on_use.as_ref(), self.hooks.refresh.as_ref());
        let renewal = on_use.and_then(|hook| (hook.slide)(&shard, slot, now));
        refresh = on_stale
            .filter(|_| is_stale)
            .and_then(|hook| (hook.wanted)(self, &shard, hash, slot, now));
        let result = read(&shard, &entry, is_stale);
        drop(shard);
        if let Some((hook, renewal)) = on_use.zip(renewal) {
            (hook.renew)(self, hash, &|stored| key.equivalent(stored), renewal);
        }
        if is_stale {
            self.counters.add(Count::Stale, 1);
        }
        if let Some((hook, key)) = on_stale.zip(refresh) {
            (hook.queue)(self, hash, key);
        }
        self.count_lookup(purpose, true);
        Some(result)
    }
}
