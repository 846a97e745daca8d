//! The shared state of a cache: its shards, the rules by which they act, its time, and who works
//! for it.

use std::hash::{BuildHasher, Hash};
use std::sync::Arc;

use tidewheel_time::TICK_NANOS;

use crate::cell::ShardCell;
use crate::core::hooks::Hooks;
use crate::core::refreshes::Refreshes;
use crate::core::requests::Requests;
use crate::core::workers::Workers;
use crate::events::delivery::Delivery;
use crate::shard::Shard;
use crate::shard::emptied::Entries;
use crate::shard::hash::Hashed;
use crate::shard::rules::Rules;
use crate::stats::Counters;
use crate::sync::{AtomicBool, ReadGuard};
use crate::time::Time;

/// More than any deadline is ahead, in nanoseconds: they have 60 bits.
const AHEAD_MAX: u64 = 1 << 62;

pub(crate) struct Inner<K, V, S> {
    pub(crate) shards: Box<[ShardCell<K, V>]>,
    /// Bits of a hash below those that choose the shard, less one.
    shift: u32,
    pub(crate) rules: Rules<K, V, S>,
    pub(crate) time: Time,
    pub(crate) hooks: Hooks<K, V, S>,
    /// What threads count that hold no shard.
    pub(crate) counters: Counters,
    pub(crate) delivery: Delivery<K, V>,
    pub(crate) requests: Requests,
    #[cfg(feature = "metrics")]
    pub(crate) published: crate::core::metrics::Published,
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

impl<K, V, S> Inner<K, V, S> {
    pub(crate) fn new(
        shards: usize,
        rules: Rules<K, V, S>,
        time: Time,
        hooks: Hooks<K, V, S>,
        delivery: Delivery<K, V>,
    ) -> Arc<Self> {
        let lent = rules.account.first_loan();
        let config = &rules.config;
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
            time,
            refreshes: Refreshes::new(config.refresh_queue, config.refresh_parallelism()),
            rules,
            hooks,
            counters: Counters::new(),
            delivery,
            requests: Requests::new(),
            #[cfg(feature = "metrics")]
            published: crate::core::metrics::Published::default(),
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

    /// The tags of a whole shard's entries are used so much less.
    pub(crate) fn release_tags(&self, entries: &dyn Entries<K, V>) {
        entries.each_label(&mut |label| self.rules.tags.release(label));
    }
}

impl<K: Hash, V, S: BuildHasher> Inner<K, V, S> {
    #[inline]
    pub(crate) fn hash<Q: Hash + ?Sized>(&self, key: &Q) -> Hashed {
        self.rules.hash(key)
    }
}
