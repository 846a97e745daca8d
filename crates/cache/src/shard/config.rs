//! The cache's configuration, and the conversion of a lifetime into an entry's attributes.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use tidewheel_store::TypedStore;
use tidewheel_time::{Moment, ticks};

use crate::lifetime::{Expiry, Jitter, Lifetime, TtlChoice};
use crate::loaded::Presence;
use crate::shard::flight::Negative;
use crate::shard::loading::{ERROR_BACKOFF, ErrorTtl};
use crate::shard::negative::{NEGATIVES_PER_SHARD, NegativeMemory};

/// The longest grace period: half of what deadlines can be told in, 17 years of milliseconds.
pub(crate) const GRACE_MAX: u64 = 1 << 39;

/// Refreshes that wait at a time unless told otherwise.
const REFRESH_QUEUE: usize = 1024;

type Weigher<K, V> = Box<dyn Fn(&K, &V) -> u32 + Send + Sync>;

/// The settings that stay for the cache's life.
pub(crate) struct Config<K, V> {
    pub(crate) name: String,
    pub(crate) time_to_live: Option<Duration>,
    pub(crate) time_to_idle: Option<Duration>,
    pub(crate) expiry: Option<Box<dyn Expiry<K, V>>>,
    pub(crate) weigher: Option<Weigher<K, V>>,
    pub(crate) jitter: Option<Jitter>,
    /// The shortest and the longest TTL, after jitter.
    pub(crate) bounds: Option<(Duration, Duration)>,
    /// The fraction of a TTL after which an entry ceases to be fresh.
    pub(crate) refresh_after: Option<f64>,
    /// Ticks that an entry is kept after its end, for the case that its loader fails.
    pub(crate) grace: u64,
    /// Ticks that a failing origin is not asked again while there is an old value.
    pub(crate) error_backoff: u64,
    pub(crate) negative_ttl: Option<Duration>,
    pub(crate) error_ttls: Vec<ErrorTtl>,
    /// The number of errors and absences that each shard remembers.
    pub(crate) negatives_per_shard: u64,
    /// Creates the store in which they are remembered.
    pub(crate) new_memory: Option<fn() -> NegativeMemory<K>>,
    pub(crate) refresher: Option<Refresher<K, V>>,
    pub(crate) refresh_queue: usize,
    pub(crate) refresh_parallelism: Option<usize>,
    /// Creates the shards' stores. It knows whether the types are plain.
    pub(crate) new_store: fn() -> TypedStore<K, V>,
    /// True if memory should lie on huge pages.
    pub(crate) huge_pages: bool,
}

impl<K, V> fmt::Debug for Config<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("name", &self.name)
            .field("time_to_live", &self.time_to_live)
            .field("time_to_idle", &self.time_to_idle)
            .field("expiry", &self.expiry.is_some())
            .field("weigher", &self.weigher.is_some())
            .field("jitter", &self.jitter)
            .field("bounds", &self.bounds)
            .field("refresh_after", &self.refresh_after)
            .field("grace_ms", &self.grace)
            .field("error_backoff_ms", &self.error_backoff)
            .field("negative_ttl", &self.negative_ttl)
            .field("error_ttls", &self.error_ttls.len())
            .field("negatives_per_shard", &self.negatives_per_shard)
            .field("refresher", &self.refresher.is_some())
            .field("refresh_queue", &self.refresh_queue)
            .field("refresh_parallelism", &self.refresh_parallelism())
            .field("huge_pages", &self.huge_pages)
            .finish()
    }
}

impl<K, V> Config<K, V> {
    /// The settings of a user who says nothing.
    pub(crate) fn new(new_store: fn() -> TypedStore<K, V>) -> Self {
        Self {
            name: String::from("tidewheel"),
            time_to_live: None,
            time_to_idle: None,
            expiry: None,
            weigher: None,
            jitter: None,
            bounds: None,
            refresh_after: None,
            grace: 0,
            error_backoff: ERROR_BACKOFF,
            negative_ttl: None,
            error_ttls: Vec::new(),
            negatives_per_shard: NEGATIVES_PER_SHARD,
            new_memory: None,
            refresher: None,
            refresh_queue: REFRESH_QUEUE,
            refresh_parallelism: None,
            new_store,
            huge_pages: false,
        }
    }

    /// Returns whether the time to live alone decides an entry's attributes.
    pub(crate) fn stores_plainly(&self) -> bool {
        self.time_to_idle.is_none()
            && self.expiry.is_none()
            && self.weigher.is_none()
            && self.jitter.is_none()
            && self.bounds.is_none()
            && self.refresh_after.is_none()
            && self.refresher.is_none()
            && self.grace == 0
    }

    /// Returns the number of refreshes that may run at a time.
    pub(crate) fn refresh_parallelism(&self) -> usize {
        let usual = self.refresher.as_ref().map(Refresher::usual_parallelism);
        self.refresh_parallelism.or(usual).unwrap_or(1)
    }

    /// The weight of an entry. Runs the user's weigher: without any lock.
    pub(crate) fn weight(&self, key: &K, value: &V) -> u32 {
        self.weigher
            .as_ref()
            .map_or(1, |weigher| weigher(key, value))
    }

    /// The TTL that applies when the caller gives none: the shorter one of the configured and that
    /// of the user's `Expiry`, which runs here, without any lock. `old` is what is left of the
    /// value that is replaced.
    pub(crate) fn default_ttl(
        &self,
        key: &K,
        value: &V,
        old: Option<Option<Duration>>,
    ) -> Option<Duration> {
        let Some(expiry) = &self.expiry else {
            return self.time_to_live;
        };
        let own = match old {
            None => expiry.expire_after_create(key, value),
            Some(left) => expiry.expire_after_update(key, value, left),
        };
        earlier(own, self.time_to_live)
    }

    /// Returns whether [`default_ttl`](Self::default_ttl) needs the remaining lifetime of the value
    /// that is replaced.
    pub(crate) fn wants_old(&self, lifetime: &Lifetime) -> bool {
        self.expiry.is_some() && lifetime.ttl == TtlChoice::Configured
    }

    /// The end beyond which no `Expiry` moves an entry that is stored now: that of the configured
    /// time to live.
    #[inline]
    pub(crate) fn cap(&self, lifetime: &Lifetime, now: Moment, random: u64) -> Option<u64> {
        let ttl = self.time_to_live.filter(|_| self.expiry.is_some())?;
        (lifetime.ttl == TtlChoice::Configured).then(|| self.end_of(ttl, now, random))
    }

    /// Returns how long an entry is kept after its end. `kept` is what the store has noted; 0 means
    /// that the configured grace period applies.
    #[inline]
    pub(crate) fn grace(&self, kept: u64) -> u64 {
        kept.checked_sub(1).unwrap_or(self.grace)
    }

    /// Bounds and jitter.
    pub(crate) fn shaped(&self, ttl: Duration, random: u64) -> Duration {
        let ttl = self.jitter.map_or(ttl, |jitter| jitter.apply(ttl, random));
        self.bounds
            .map_or(ttl, |(shortest, longest)| ttl.clamp(shortest, longest))
    }

    /// The deadline of a TTL that begins now: the end of the entry, in ticks.
    pub(crate) fn end_of(&self, ttl: Duration, now: Moment, random: u64) -> u64 {
        now.end(self.shaped(ttl, random))
    }
}

/// Converts an entry's own grace period into the number that the store notes; 0 if it has none.
pub(crate) fn own_grace(stale_for: Option<Duration>) -> u64 {
    stale_for.map_or(0, |grace| ticks(grace).min(GRACE_MAX) + 1)
}

/// The earlier one of two ends, each of which may be none.
pub(crate) fn earlier<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

/// Refreshes that run at a time unless told otherwise: each has a thread.
const PARALLEL_THREADS: usize = 4;

/// Refreshes that run at a time unless told otherwise, where they are futures and need no threads.
const PARALLEL_FUTURES: usize = 64;

/// The answer of a refresher.
pub(crate) type Refreshed<V> = Result<Presence<V>, Negative>;

/// A refresh as a future.
pub(crate) type RefreshFuture<V> = Pin<Box<dyn Future<Output = Refreshed<V>> + Send>>;

type Blocking<K, V> = Box<dyn Fn(&K, Option<V>) -> Refreshed<V> + Send + Sync>;

type Async<K, V> = Box<dyn Fn(&K, Option<V>) -> RefreshFuture<V> + Send + Sync>;

/// The refresher's function, which loads a key again.
pub(crate) enum Load<K, V> {
    Blocking(Blocking<K, V>),
    Async(Async<K, V>),
}

/// The refresher that the builder was given.
pub(crate) struct Refresher<K, V> {
    pub(crate) clone_key: fn(&K) -> K,
    /// Clones the old value, for a refresher that wants it.
    pub(crate) clone_old: Option<fn(&V) -> V>,
    pub(crate) load: Load<K, V>,
}

impl<K, V> Refresher<K, V> {
    pub(crate) fn is_async(&self) -> bool {
        matches!(self.load, Load::Async(_))
    }

    /// Returns the number of refreshes that run at a time if the builder sets none.
    pub(crate) fn usual_parallelism(&self) -> usize {
        match self.load {
            Load::Blocking(_) => PARALLEL_THREADS,
            Load::Async(_) => PARALLEL_FUTURES,
        }
    }
}
