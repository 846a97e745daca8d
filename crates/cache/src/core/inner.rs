//! The shared state of a cache: its shards, and the ways to read and write one.

use std::hash::{BuildHasher, Hash};
use std::sync::Arc;
use std::time::Duration;

use equivalent::Equivalent;
use tidewheel_store::Slot;
use tidewheel_time::{TICK_NANOS, mix};

use crate::core::capacity::Account;
use crate::core::config::Config;
use crate::core::delivery::Delivery;
use crate::core::emptied::Entries;
use crate::core::hash::Hashed;
use crate::core::hooks::Hooks;
use crate::core::refreshes::Refreshes;
use crate::core::removal::Garbage;
use crate::core::requests::Requests;
use crate::core::shard::{Shard, ShardCell};
use crate::core::tags::Tags;
use crate::core::workers::Workers;
use crate::stats::Counters;
use crate::sync::{AtomicBool, Ordering::Relaxed, ReadGuard, WriteGuard};
use crate::time::Time;

/// More than any deadline is ahead, in nanoseconds: they have 60 bits.
const AHEAD_MAX: u64 = 1 << 62;

pub(crate) struct Inner<K, V, S> {
    pub(crate) shards: Box<[ShardCell<K, V>]>,
    /// Bits of a hash below those that choose the shard, less one.
    shift: u32,
    hasher: S,
    pub(crate) time: Time,
    pub(crate) config: Config<K, V>,
    pub(crate) hooks: Hooks<K, V, S>,
    pub(crate) account: Account,
    pub(crate) counters: Counters,
    pub(crate) delivery: Delivery<K, V>,
    pub(crate) requests: Requests,
    pub(crate) tags: Tags,
    #[cfg(feature = "metrics")]
    pub(crate) published: crate::core::published::Published,
    pub(crate) refreshes: Refreshes<V>,
    pub(crate) workers: Workers,
    pub(crate) closed: AtomicBool,
    /// The number of nanoseconds by which an entry's deadline must be ahead for a read that looks
    /// at nothing else. Where each use changes the deadline, there are no such reads: then it is
    /// more than any deadline is ahead.
    pub(crate) ahead: u64,
    /// True if no setting but the time to live changes an entry that is stored.
    pub(crate) stores_plainly: bool,
}

/// A shard that is held for writing; what it has made necessary is done at its end.
pub(crate) struct Hold<'a, K, V, S> {
    inner: &'a Inner<K, V, S>,
    cell: &'a ShardCell<K, V>,
    shard: Option<WriteGuard<'a, Shard<K, V>>>,
}

impl<K, V, S> Hold<'_, K, V, S> {
    #[inline(always)]
    pub(crate) fn change<R>(&mut self, change: impl FnOnce(&mut Shard<K, V>) -> R) -> R {
        change(self.shard.as_mut().expect("held to the end"))
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
        if shard.leaves_nothing(self.cell) {
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
                return self.abandon();
            }
            shard.store.end_change();
            self.shard = None;
        }
    }

    /// Ends the hold as usual, in a function of its own, so that the quick way is compiled into its
    /// place.
    #[cold]
    #[inline(never)]
    fn abandon(&mut self) {
        self.end_apart();
    }

    /// Ends the hold, compiled once for all holds that need not be quick.
    #[inline(never)]
    fn end_apart(&mut self) {
        self.end();
    }
}

impl<K, V, S> Drop for Hold<'_, K, V, S> {
    #[inline(always)]
    fn drop(&mut self) {
        if self.shard.is_some() {
            self.abandon();
        }
    }
}

impl<K, V, S> Inner<K, V, S> {
    #[allow(clippy::too_many_arguments, reason = "called once, by the builder")]
    pub(crate) fn new(
        shards: usize,
        hasher: S,
        time: Time,
        config: Config<K, V>,
        hooks: Hooks<K, V, S>,
        account: Account,
        delivery: Delivery<K, V>,
        requests: Requests,
    ) -> Arc<Self> {
        let lent = account.first_loan();
        let stores_plainly = config.stores_plainly();
        let (new_store, huge_pages) = (config.new_store, config.huge_pages);
        let ahead = match hooks.on_use {
            Some(_) => AHEAD_MAX,
            None => config.grace.saturating_mul(TICK_NANOS).min(AHEAD_MAX),
        };
        Arc::new(Self {
            shards: (0..shards)
                .map(|_| ShardCell::new(lent, new_store, huge_pages))
                .collect(),
            shift: 63 - shards.ilog2(),
            hasher,
            time,
            refreshes: Refreshes::new(config.refresh_queue, config.refresh_parallelism()),
            config,
            hooks,
            account,
            counters: Counters::new(),
            delivery,
            requests,
            tags: Tags::new(),
            #[cfg(feature = "metrics")]
            published: crate::core::published::Published::default(),
            workers: Workers::new(),
            closed: AtomicBool::new(false),
            ahead,
            stores_plainly,
        })
    }

    /// Tells this cache from others while it is in use.
    #[inline]
    pub(crate) fn id(&self) -> usize {
        std::ptr::from_ref(self) as usize
    }

    /// The number of a key's shard.
    #[inline]
    pub(crate) fn number(&self, hash: Hashed) -> usize {
        // In two steps: with one shard the shift is by all 64 bits.
        (hash.0 >> 1 >> self.shift) as usize
    }

    #[inline]
    pub(crate) fn cell(&self, hash: Hashed) -> &ShardCell<K, V> {
        &self.shards[self.number(hash)]
    }

    /// Locks a shard for reading.
    #[inline]
    pub(crate) fn read<'a>(&self, cell: &'a ShardCell<K, V>) -> ReadGuard<'a, Shard<K, V>> {
        cell.lock.read(self.id())
    }

    /// Runs `change` on a shard under its lock, then does what the change has made necessary:
    /// publishes the next deadline, drops what was removed, wakes who must know. Though `change`
    /// panics.
    pub(crate) fn hold<R>(
        &self,
        cell: &ShardCell<K, V>,
        change: impl FnOnce(&mut Shard<K, V>) -> R,
    ) -> R {
        let mut hold = self.begin(cell);
        let result = hold.change(change);
        hold.end_apart();
        result
    }

    /// As [`hold`](Self::hold), and quicker: its end is compiled into its place.
    pub(crate) fn hold_briefly<R>(
        &self,
        cell: &ShardCell<K, V>,
        change: impl FnOnce(&mut Shard<K, V>) -> R,
    ) -> R {
        let mut hold = self.begin(cell);
        let result = hold.change(change);
        hold.end();
        result
    }

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
        let untidy = shard.is_untidy(cell);
        if untidy {
            cell.untidy.store(true, Relaxed);
        }
        let garbage = shard.garbage.take();
        let freed = shard.store.take_freed();
        let events = shard.outbox.take_news();
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

    /// The tags of a whole shard's entries are used so much less.
    pub(crate) fn release_tags(&self, entries: &dyn Entries<K, V>) {
        entries.each_label(&mut |label| self.tags.release(label));
    }

    /// Returns the time until a tick.
    pub(crate) fn until(&self, tick: u64) -> Duration {
        self.time.now().until(tick)
    }

    /// Returns the tick at which the earliest shard needs the driver.
    pub(crate) fn next_deadline(&self) -> Option<u64> {
        self.shards
            .iter()
            .map(|cell| cell.next_deadline.get())
            .min()
            .filter(|next| *next != u64::MAX)
    }
}

impl<K: Hash + Eq, V, S: BuildHasher> Inner<K, V, S> {
    #[inline]
    pub(crate) fn hash<Q: Hash + ?Sized>(&self, key: &Q) -> Hashed {
        Hashed(mix(self.hasher.hash_one(key)))
    }

    /// The place of a stored key.
    #[inline]
    pub(crate) fn place_of(&self, key: &K) -> u32 {
        self.hash(key).place()
    }

    /// Finds a key, dead or alive.
    #[inline]
    pub(crate) fn find<Q: Equivalent<K> + ?Sized>(
        shard: &Shard<K, V>,
        hash: Hashed,
        key: &Q,
    ) -> Option<Slot> {
        shard
            .store
            .find(hash.place(), move |stored| key.equivalent(stored))
    }
}
