//! The background refresher: entries past their soft deadline are loaded again before they end.
//!
//! Only reads cause refreshes. If every entry were refreshed, a cache would load entries that nobody needs any more,
//! again and again.
//!
//! 1. A read finds an entry past its soft deadline. It files a vacant flight (a load without a leader) for the key,
//!    and puts the key into the refresher's queue. Later reads find the flight, and queue nothing.
//! 2. The refresher takes the key from the queue, leads the flight, and stores the new value.
//!
//! A writer of the key supersedes the flight like any load. If the entry ends before step 2, the next caller of
//! `get_or_load` leads the flight itself, and does not wait for the queue.

use std::hash::{BuildHasher, Hash};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use tidewheel_store::Slot;

use super::lead::Lead;
use crate::core::flight::Phase;
use crate::core::fresh::Heritage;
use crate::core::hash::Hashed;
use crate::core::inner::Inner;
use crate::core::refreshes::Job;
use crate::core::shard::Shard;
use crate::lifetime::Loaded;
use crate::quiet::forget_quietly;
use crate::stats::Count;

impl<K: Hash + Eq, V, S: BuildHasher> Inner<K, V, S> {
    /// The key of a stale entry whose refresh is to be queued.
    pub(crate) fn refresh_wanted(
        &self,
        shard: &Shard<K, V>,
        hash: Hashed,
        slot: Slot,
    ) -> Option<K> {
        let refresher = self.config.refresher.as_ref()?;
        let key = shard.store.key(slot);
        if self.is_being_loaded(shard, hash, key) {
            return None;
        }
        if self.refreshes.is_full() {
            self.counters.add(Count::RefreshSkipped, 1);
            return None;
        }
        Some((refresher.clone_key)(key))
    }

    /// Queues the refresh of a stale entry, unless that has been done meanwhile.
    #[cold]
    pub(crate) fn queue_refresh(&self, hash: Hashed, key: K) {
        if !self.refreshes.reserve() {
            self.counters.add(Count::RefreshSkipped, 1);
            return;
        }
        let key = Arc::new(key);
        let flight = self.hold(self.cell(hash), |shard| {
            let slot = Self::find(shard, hash, &*key)?;
            let wanted = !shard.closed
                && self.is_live(&shard.store, slot)
                && self.is_stale(&shard.store, slot)
                && !self.is_being_loaded(shard, hash, &*key);
            wanted.then(|| shard.flights.start(hash.0, Arc::clone(&key), Phase::Vacant))
        });
        self.counters.discard(key);
        match flight {
            Some(flight) => self.refreshes.push(Job { hash, flight }),
            None => {
                self.refreshes.unreserve();
            }
        }
    }

    /// Does what a job asks for.
    pub(crate) fn refresh(&self, job: Job<V>) {
        self.lead(|| self.refresh_led(job));
    }

    fn refresh_led(&self, job: Job<V>) {
        let Some(refresher) = &self.config.refresher else {
            return;
        };
        let Job { hash, flight } = job;
        let begun = self.hold(self.cell(hash), |shard| {
            let key = Arc::clone(shard.flights.key_of(hash.0, &flight)?);
            let slot = Self::find(shard, hash, &*key);
            let slot = slot.filter(|slot| self.is_live(&shard.store, *slot));
            if let Some(slot) = slot.filter(|_| flight.take()) {
                return Some((key, Heritage::of(self, &shard.store, slot)));
            }
            // The table may let its own go before this one does.
            shard.garbage.keys.push(key);
            None
        });
        let Some((key, heritage)) = begun else {
            // It died in the queue, was superseded, or somebody else loads it.
            self.vacate(hash, &flight, Phase::Vacant);
            return;
        };
        let mut lead = Lead::new(self, hash, Some(key), flight);
        let refreshed = catch_unwind(AssertUnwindSafe(|| {
            let said = match &lead.key {
                Some(key) => (refresher.load)(key),
                None => return,
            };
            match said {
                Ok(Loaded {
                    value,
                    mut lifetime,
                }) => {
                    heritage.complete(&mut lifetime);
                    lead.put(value, &lifetime, Some(&heritage));
                    // Those who wait find the value in the store.
                    lead.end(None);
                }
                Err(negative) => lead.fail(negative),
            }
        }));
        if let Err(panic) = refreshed {
            // The hook has reported it.
            self.counters.add(Count::LoadError, 1);
            lead.put_off();
            forget_quietly(panic);
        }
    }

    /// The worker of [`Driver::Thread`](crate::Driver::Thread).
    #[cfg(feature = "system")]
    pub(crate) fn run_refresher(&self) {
        while let Some(job) = self.refreshes.wait() {
            self.refresh(job);
        }
    }
}
