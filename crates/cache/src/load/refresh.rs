//! The background refresher: entries past their soft deadline are loaded anew before they end.
//!
//! Only reads ask for it. An entry that nobody reads must be allowed to die, or a cache would keep alive, at
//! its origin's expense, whatever was in it once.
//!
//! A read that meets such an entry files a vacant flight of its key and queues that, once: the flight is the
//! mark. A writer of the key supersedes it like any load. A caller of `get_or_load` who comes when the entry
//! is over takes it instead of waiting for its turn in the queue.

use std::collections::VecDeque;
use std::hash::{BuildHasher, Hash};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use tidewheel_store::Slot;

use super::{Lead, Phase};
use crate::core::flight::{Flight, Negative};
use crate::core::fresh::Heritage;
use crate::core::inner::{Hashed, Inner};
use crate::core::shard::Shard;
use crate::handle::cache::Cache;
use crate::lifetime::Loaded;
use crate::quiet::forget_quietly;
use crate::stats::Count;
use crate::sync::{
    AtomicBool, AtomicUsize, Condvar, Mutex, Ordering::Relaxed, Ordering::SeqCst, lock,
};

/// Refreshes that wait at a time unless told otherwise.
pub(crate) const REFRESH_QUEUE: usize = 1024;

type Load<K, V> = Box<dyn Fn(&K) -> Result<Loaded<V>, Negative> + Send + Sync>;

/// What the builder was told.
pub(crate) struct Refresher<K, V> {
    clone_key: fn(&K) -> K,
    load: Load<K, V>,
}

impl<K: Clone, V> Refresher<K, V> {
    pub(crate) fn new<T, E>(load: impl Fn(&K) -> Result<T, E> + Send + Sync + 'static) -> Self
    where
        T: Into<Loaded<V>>,
        E: Send + Sync + 'static,
    {
        Self {
            clone_key: K::clone,
            load: Box::new(move |key| {
                load(key)
                    .map(Into::into)
                    .map_err(|error| Negative::error(&Arc::new(error)))
            }),
        }
    }
}

/// The queue of refreshes.
#[derive(Debug)]
pub(crate) struct Refreshes<V> {
    queue: Mutex<VecDeque<Job<V>>>,
    arrived: Condvar,
    /// Places that are taken: those in the queue, and those about to be.
    taken: AtomicUsize,
    limit: usize,
    stop: AtomicBool,
}

#[derive(Debug)]
struct Job<V> {
    hash: Hashed,
    flight: Arc<Flight<V>>,
}

impl<V> Refreshes<V> {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            queue: Mutex::new(VecDeque::new()),
            arrived: Condvar::new(),
            taken: AtomicUsize::new(0),
            limit,
            stop: AtomicBool::new(false),
        }
    }

    fn is_full(&self) -> bool {
        self.taken.load(Relaxed) >= self.limit
    }

    fn reserve(&self) -> bool {
        let taken = self.taken.fetch_update(SeqCst, SeqCst, |taken| {
            (taken < self.limit).then_some(taken + 1)
        });
        taken.is_ok()
    }

    fn push(&self, job: Job<V>) {
        let mut queue = lock(&self.queue);
        if self.stop.load(SeqCst) {
            drop(queue);
            self.taken.fetch_sub(1, SeqCst);
            return;
        }
        queue.push_back(job);
        drop(queue);
        self.arrived.notify_one();
    }

    fn pop(&self) -> Option<Job<V>> {
        let job = lock(&self.queue).pop_front()?;
        self.taken.fetch_sub(1, SeqCst);
        Some(job)
    }

    /// Waits for a job; `None` once the cache is closed.
    #[cfg(feature = "system")]
    fn wait(&self) -> Option<Job<V>> {
        let mut queue = lock(&self.queue);
        loop {
            if self.stop.load(SeqCst) {
                return None;
            }
            if let Some(job) = queue.pop_front() {
                self.taken.fetch_sub(1, SeqCst);
                return Some(job);
            }
            queue = self
                .arrived
                .wait(queue)
                .unwrap_or_else(std::sync::PoisonError::into_inner);
        }
    }

    /// Ends the worker after what it is doing, and forgets the queue.
    pub(crate) fn stop(&self) {
        let mut queue = lock(&self.queue);
        self.stop.store(true, SeqCst);
        let forgotten = std::mem::take(&mut *queue);
        drop(queue);
        self.taken.fetch_sub(forgotten.len(), SeqCst);
        self.arrived.notify_all();
    }
}

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
                && !self.is_being_loaded(shard, hash, &key);
            wanted.then(|| shard.flights.start(hash.0, Arc::clone(&key), Phase::Vacant))
        });
        self.counters.discard(key);
        match flight {
            Some(flight) => self.refreshes.push(Job { hash, flight }),
            None => {
                self.refreshes.taken.fetch_sub(1, SeqCst);
            }
        }
    }

    fn refresh(&self, job: Job<V>) {
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
                    lead.store(value, &lifetime, Some(&heritage));
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

impl<K, V, S> Cache<K, V, S>
where
    K: Hash + Eq + Send + Sync + 'static,
    V: Send + Sync + 'static,
    S: BuildHasher + Send + Sync + 'static,
{
    /// Runs up to `max` of the refreshes that reads have queued, on this thread; returns how many it took.
    /// For drivers other than [`Driver::Thread`](crate::Driver::Thread), which has a thread for it: an async
    /// application calls this where blocking is allowed.
    pub fn run_refreshes(&self, max: usize) -> usize {
        let mut taken = 0;
        while taken < max
            && let Some(job) = self.inner.refreshes.pop()
        {
            self.inner.refresh(job);
            taken += 1;
        }
        taken
    }
}
