//! The builder: it asks for the lifetime and the capacity, and takes all other settings.

use std::fmt;
use std::future::Future;
use std::hash::{BuildHasher, Hash};
use std::time::Duration;

use tidewheel_store::TypedStore;
use tidewheel_time::{Clock, DefaultHashBuilder};

use super::cache::Cache;
use super::driving::Join;
use crate::core::delivery::{Delivery, Listener, ListenerFuture};
use crate::core::hooks::{Hooks, ListenerHook, RefreshHook, UseHook};
use crate::core::inner::Inner;
use crate::drive::driver::{Driver, SharedDriver};
use crate::error::BuildError;
use crate::lifetime::{Expiry, Jitter};
use crate::removal::Removal;
use crate::shard::config::{Config, Refresher};
use crate::shard::effects::emptied;
use crate::shard::rules::{Account, EventRoom, Listens, OnFull, Rules};
use crate::shard::tags::Tags;
use crate::time::Time;

/// Entries that a shard should be able to hold before there is another one.
const ENTRIES_PER_SHARD: u64 = 4096;

/// Most shards that a cache may have.
const SHARDS_MAX: usize = 4096;

/// Shards for each processor.
const SHARDS_PER_CORE: usize = 8;

/// Bytes that slot and index take beside key and value.
const ENTRY_OVERHEAD: usize = 20;

/// Bytes of the smallest cache that gets huge pages.
const HUGE_FROM: u64 = 8 << 20;

/// Events that the listener's queue holds unless told otherwise.
const LISTENER_QUEUE: usize = 65_536;

/// Configures a [`Cache`]; made by [`Cache::builder`].
///
/// [`build`](Self::build) wants two questions answered: how long entries live (`time_to_live`,
/// `time_to_idle`, `expire_after`, or `no_default_ttl`) and how much the cache may hold
/// (`max_capacity`, or `unbounded`).
#[must_use = "a builder makes a cache when `build` is called"]
pub struct Builder<K, V, S = DefaultHashBuilder> {
    pub(super) config: Config<K, V>,
    ttl_answered: bool,
    capacity: Option<Option<u64>>,
    hasher: S,
    clock: Option<Box<dyn Clock>>,
    driver: Driver,
    shards: Option<usize>,
    listener: Option<Listener<K, V>>,
    listener_queue: usize,
    on_full: OnFull,
    pub(super) negative_capacity: Option<u64>,
    pub(super) hooks: Hooks<K, V, S>,
    join: Option<Join<K, V, S>>,
}

impl<K, V, S> fmt::Debug for Builder<K, V, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("config", &self.config)
            .field("capacity", &self.capacity)
            .field("driver", &self.driver)
            .field("shards", &self.shards)
            .finish_non_exhaustive()
    }
}

impl<K, V> Default for Builder<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K, V> Builder<K, V> {
    /// A builder whose two questions are open.
    pub fn new() -> Self {
        Self {
            config: Config::new(TypedStore::published),
            ttl_answered: false,
            capacity: None,
            hasher: DefaultHashBuilder::default(),
            clock: None,
            driver: Driver::default(),
            shards: None,
            listener: None,
            listener_queue: LISTENER_QUEUE,
            on_full: OnFull::default(),
            negative_capacity: None,
            hooks: Hooks::none(),
            join: None,
        }
    }
}

impl<K, V, S> Builder<K, V, S> {
    /// A name for threads and metrics, without a NUL character; `tidewheel` if not set.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.config.name = name.into();
        self
    }

    /// Sets how many entries the cache holds at most; with a [`weigher`](Self::weigher), how much
    /// weight. It must be at least 1. With several shards the cache may evict a little earlier,
    /// with up to one per cent still free: a shard borrows in portions, and one may lack what
    /// another has not used yet.
    #[doc(
        alias = "maximumSize",
        alias = "maximumWeight",
        alias = "maximum_size",
        alias = "initial_capacity",
        alias = "eviction_policy"
    )]
    pub fn max_capacity(mut self, capacity: u64) -> Self {
        self.capacity = Some(Some(capacity));
        self
    }

    /// The cache may grow without bound: entries leave only by their deadline or by hand.
    pub fn unbounded(mut self) -> Self {
        self.capacity = Some(None);
        self
    }

    /// Sets the function that weighs entries; without one, each entry weighs 1. Called without any
    /// lock.
    #[doc(alias = "Weighter")]
    pub fn weigher(mut self, weigher: impl Fn(&K, &V) -> u32 + Send + Sync + 'static) -> Self {
        self.config.weigher = Some(Box::new(weigher));
        self
    }

    /// Sets how long an entry lives after it was stored, unless a [`Lifetime`](crate::Lifetime)
    /// says otherwise; more than zero. With [`expire_after`](Self::expire_after) or
    /// [`time_to_idle`](Self::time_to_idle) as well, the earliest end counts.
    #[doc(alias = "expireAfterWrite", alias = "expire_after_write")]
    pub fn time_to_live(mut self, ttl: Duration) -> Self {
        self.config.time_to_live = Some(ttl);
        self.ttl_answered = true;
        self
    }

    /// Entries have no end unless they are stored with one.
    pub fn no_default_ttl(mut self) -> Self {
        self.ttl_answered = true;
        self
    }

    /// Spreads deadlines. A number is a fraction by which a TTL is shortened at most:
    /// [`Jitter::shorten`].
    pub fn jitter(mut self, jitter: impl Into<Jitter>) -> Self {
        self.config.jitter = Some(jitter.into());
        self
    }

    /// Bounds of every TTL, applied after jitter.
    pub fn ttl_bounds(mut self, shortest: Duration, longest: Duration) -> Self {
        self.config.bounds = Some((shortest, longest));
        self
    }

    /// The soft deadline as a fraction of the time to live, in `0..=1`: once so much of it has
    /// passed since the entry was stored, or was given it by [`Cache::expire`], the entry is still
    /// served, but the next loader, or the refresher, replaces it. Reads do not move it, and an
    /// idle time has no part in it: an entry that has no other end stays fresh.
    /// [`Lifetime::fresh_for`](crate::Lifetime::fresh_for) says it for one entry; with 1 here, all
    /// others are fresh to their end.
    #[doc(alias = "refreshAfterWrite", alias = "refresh_after_write")]
    pub fn refresh_after(mut self, fraction: f64) -> Self {
        self.config.refresh_after = Some(fraction);
        self
    }

    /// Sets how many refreshes may run at a time, at least 1. If not set, 4 with
    /// [`refresh_with`](Self::refresh_with), each of which takes a thread, and 64 with
    /// [`refresh_with_async`](Self::refresh_with_async). Of the threads one is there from the
    /// beginning; others start when refreshes wait, and end when they have had nothing to do for 10
    /// s. Does not concern [`Cache::run_refreshes`].
    pub fn refresh_parallelism(mut self, limit: usize) -> Self {
        self.config.refresh_parallelism = Some(limit);
        self
    }

    /// Sets how many refreshes may wait, at least 1; 1024 if not set. A read that finds the queue
    /// full gets the old value and is counted in
    /// [`Stats::refreshes_skipped`](crate::Stats::refreshes_skipped).
    pub fn refresh_queue(mut self, limit: usize) -> Self {
        self.config.refresh_queue = limit;
        self
    }

    /// Sets how many events the listener's queue holds (65,536 if not set), and what happens when
    /// it is full: [`OnFull::Wait`] if not set.
    pub fn listener_queue(mut self, limit: usize, on_full: OnFull) -> Self {
        self.listener_queue = limit;
        self.on_full = on_full;
        self
    }

    /// Sets the clock; the default is `SystemClock`. A move of a
    /// [`ManualClock`](crate::ManualClock) wakes the driver, thread or task; with
    /// [`Driver::Manual`] nothing happens but what a test calls.
    #[doc(alias = "ticker")]
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Some(Box::new(clock));
        self
    }

    /// Sets the number of shards: a power of two, at most 4096. If not set, 8 for each processor,
    /// but not more than one for every 4096 entries of capacity.
    pub fn shards(mut self, shards: usize) -> Self {
        self.shards = Some(shards);
        self
    }

    /// Puts entries and index on pages of 2 MiB, on Linux where
    /// `/sys/kernel/mm/transparent_hugepage/enabled` says `madvise` or `always`; not if not set.
    /// Elsewhere it does nothing, nor for caches of less than 8 MiB: those whose
    /// [`max_capacity`](Self::max_capacity), without a [`weigher`](Self::weigher), times the bytes
    /// of key, value and 20 is less.
    ///
    /// A cache of a million entries is read and written faster so, since the processor finds the
    /// addresses of its memory sooner. Keys and values are meant that are stored in place. What
    /// they point to lies where it did, and so do timers and what the eviction policy keeps.
    ///
    /// Its costs:
    ///
    /// - Resident memory grows in steps of 2 MiB, which all such caches of the process share: they
    ///   hold up to 4 MiB more than they need, since one step is begun, and one may be in reserve.
    ///   Gaps between blocks may add a few per cent. When less than a quarter of a step is in use,
    ///   the rest goes back to the system, and what is left there lies on small pages until half is
    ///   in use again.
    /// - The insertion that begins a step waits until the system has filled it with zeros: 30 to
    ///   100 µs, once for about 50,000 entries of `u64` to `u64`.
    pub fn huge_pages(mut self, wanted: bool) -> Self {
        self.config.huge_pages = wanted;
        self
    }

    /// Reads take no lock, for keys and values of your own small types: [`Cache::get`],
    /// [`Cache::get_many`] and loads that hit copy the entry while others may be changing it, and
    /// forget the copy if somebody did. Any number of threads may then read one key without waiting
    /// for each other.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tidewheel::Cache;
    ///
    /// #[derive(Clone, Copy, PartialEq, Debug, bytemuck::NoUninit)]
    /// #[repr(C)]
    /// struct Quote {
    ///     bid: f64,
    ///     ask: f64,
    ///     at_ms: u64,
    /// }
    ///
    /// # fn main() -> Result<(), tidewheel::BuildError> {
    /// let quotes = Cache::<[u8; 7], Quote>::builder()
    ///     .max_capacity(10_000)
    ///     .time_to_live(Duration::from_secs(1))
    ///     .read_by_copy()
    ///     .build()?;
    /// let quote = Quote { bid: 1.5, ask: 1.75, at_ms: 7 };
    /// quotes.insert(*b"EUR/USD", quote);
    /// assert_eq!(quotes.get(b"EUR/USD"), Some(quote));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// It is for types that are [`NoUninit`](bytemuck::NoUninit): numbers, `bool`, `char`,
    /// `NonZero` integers, arrays of numbers, and what its derive takes: structs of such fields,
    /// `repr(C)` or `repr(transparent)` and without padding, and enums without fields, of a `repr`
    /// such as `u8`. Numbers and arrays of usual lengths are read so without it: see
    /// [`Cache::get`].
    ///
    /// Its effects:
    ///
    /// - A copy counts as the clone: where such a read goes without the lock, a `Clone` of your own
    ///   is not called. `Eq` of keys is called on copies, and under no lock then.
    /// - An entry is written word by word, as large as its size and alignment allow. Sizes that 8
    ///   divides are the quickest; 31 bytes are written one by one.
    ///
    /// On Linux, where the kernel knows `membarrier` (4.14 and later). Elsewhere nothing changes,
    /// nor for reads by a closure ([`Cache::view`]), or while entries have weights, tags, a soft
    /// deadline or a time to idle: these take the lock.
    #[doc(alias = "lock_free", alias = "Copy")]
    #[cfg(feature = "bytemuck")]
    pub fn read_by_copy(mut self) -> Self
    where
        K: bytemuck::NoUninit + Send + Sync,
        V: bytemuck::NoUninit + Send + Sync,
    {
        self.config.new_store = TypedStore::published_by_copy;
        self
    }

    /// Returns whether the cache may become large enough for huge pages. Nobody knows of one with
    /// weights, or without bound.
    fn is_large(&self, capacity: Option<u64>) -> bool {
        let entry = (size_of::<(K, V)>() + ENTRY_OVERHEAD) as u64;
        let entries = capacity.filter(|_| self.config.weigher.is_none());
        entries.is_none_or(|entries| entries.saturating_mul(entry) >= HUGE_FROM)
    }

    /// The capacity; an error if a setting is missing, out of range, or not what the driver can do.
    fn check(&self) -> Result<Option<u64>, BuildError> {
        if !self.ttl_answered {
            return Err(BuildError::TtlUnanswered);
        }
        let capacity = self.capacity.ok_or(BuildError::CapacityUnanswered)?;
        if let Some((option, expected)) = self.out_of_range(capacity) {
            return Err(BuildError::OutOfRange { option, expected });
        }
        let refresher = self.config.refresher.as_ref();
        if refresher.is_some() && self.config.refresh_after.is_none() {
            return Err(BuildError::NeverStale);
        }
        let no_task = |option| Err(BuildError::NoTask { option });
        if !self.driver.is_task() && refresher.is_some_and(Refresher::is_async) {
            return no_task("refresh_with_async");
        }
        if !self.driver.is_task() && self.listener.as_ref().is_some_and(Listener::is_async) {
            return no_task("eviction_listener_async");
        }
        #[cfg(not(feature = "system"))]
        if self.driver.has_threads() {
            return Err(BuildError::NoThreads);
        }
        Ok(capacity)
    }

    /// A setting that is out of its range, with that range.
    fn out_of_range(&self, capacity: Option<u64>) -> Option<(&'static str, &'static str)> {
        let config = &self.config;
        let is_count = |shards: usize| shards.is_power_of_two() && shards <= SHARDS_MAX;
        let is_fraction = |fraction: f64| (0.0..=1.0).contains(&fraction);
        let lives = "more than zero: else no entry would live";
        Some(if config.name.contains('\0') {
            ("name", "text without a NUL character")
        } else if capacity == Some(0) {
            ("max_capacity", "at least 1")
        } else if self.shards.is_some_and(|shards| !is_count(shards)) {
            ("shards", "a power of two up to 4096")
        } else if config.time_to_live == Some(Duration::ZERO) {
            ("time_to_live", lives)
        } else if config.time_to_idle == Some(Duration::ZERO) {
            ("time_to_idle", lives)
        } else if config.jitter.is_some_and(|jitter| !jitter.is_valid()) {
            ("jitter", "a fraction from 0 to less than 1")
        } else if config
            .refresh_after
            .is_some_and(|share| !is_fraction(share))
        {
            ("refresh_after", "a fraction from 0 to 1")
        } else if config.bounds.is_some_and(|(least, most)| least > most) {
            ("ttl_bounds", "the shorter one first")
        } else if self.listener_queue == 0 {
            ("listener_queue", "at least 1")
        } else if self.negative_capacity == Some(0) {
            ("negative_capacity", "at least 1")
        } else if config.refresh_queue == 0 {
            ("refresh_queue", "at least 1")
        } else if config.refresh_parallelism == Some(0) {
            ("refresh_parallelism", "at least 1")
        } else {
            return None;
        })
    }

    fn shard_count(&self, capacity: Option<u64>) -> usize {
        if let Some(shards) = self.shards {
            return shards;
        }
        let by_cores = (cores() * SHARDS_PER_CORE)
            .next_power_of_two()
            .min(SHARDS_MAX);
        let by_capacity = capacity.map_or(u64::MAX, |capacity| capacity / ENTRIES_PER_SHARD);
        usize::try_from(by_capacity).map_or(by_cores, |most| {
            let most = most.max(1);
            by_cores.min(1 << most.ilog2())
        })
    }
}

/// Processors that this process may use.
fn cores() -> usize {
    #[cfg(feature = "system")]
    return std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    #[cfg(not(feature = "system"))]
    1
}

impl<K, V, S> Builder<K, V, S>
where
    K: Hash + Eq + Send + Sync + 'static,
    V: Send + Sync + 'static,
    S: BuildHasher + Send + Sync + 'static,
{
    /// Sets how long an entry lives after its last use; more than zero. Reads that count as a use
    /// are one, and so is each write of the value: insertions, [`Cache::update`], [`Cache::entry`],
    /// [`Cache::compare_and_set`]. With a time to live as well, whichever is over first counts. An
    /// entry that is given another end by [`Cache::expire`], or none by [`Cache::persist`], has no
    /// idle time from then on: that end alone counts, until the key is stored again.
    #[doc(alias = "expireAfterAccess", alias = "expire_after_access")]
    pub fn time_to_idle(mut self, idle: Duration) -> Self {
        self.config.time_to_idle = Some(idle);
        self.hooks.on_use = Some(UseHook::new());
        self.ttl_answered = true;
        self
    }

    /// Decides each entry's time to live from its key and value. With
    /// [`time_to_live`](Self::time_to_live) or [`time_to_idle`](Self::time_to_idle) as well, the
    /// earliest end counts: `None`, or a longer time, does not take an entry beyond them. No read
    /// does, either.
    ///
    /// It decides where the configured lifetime does. Of an entry that is stored with an end of its
    /// own, or with none ([`Lifetime`](crate::Lifetime)), or is given one by [`Cache::expire`] or
    /// [`Cache::persist`], it is not asked until the key is stored again.
    #[doc(alias = "expireAfter", alias = "expiry")]
    pub fn expire_after(mut self, expiry: impl Expiry<K, V> + 'static) -> Self {
        self.config.expiry = Some(Box::new(expiry));
        self.hooks.on_use = Some(UseHook::new());
        self.ttl_answered = true;
        self
    }

    /// As [`expire_after`](Self::expire_after), with a closure: it is asked whenever an entry is
    /// stored with the configured lifetime; `None` is for no end. For example a TTL that is kept in
    /// the value:
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// struct Token { expires_in: Duration }
    ///
    /// # fn main() -> Result<(), tidewheel::BuildError> {
    /// let cache = tidewheel::Cache::<u32, std::sync::Arc<Token>>::builder()
    ///     .max_capacity(1000)
    ///     .time_to_live_by(|_, token| Some(token.expires_in))
    ///     .build()?;
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "expireAfter", alias = "expire_after_create")]
    pub fn time_to_live_by(
        self,
        ttl: impl Fn(&K, &V) -> Option<Duration> + Send + Sync + 'static,
    ) -> Self {
        self.expire_after(ttl)
    }

    /// Sets the driver, which removes due entries, calls the listener and refreshes;
    /// [`Driver::Thread`] if not set. Takes a [`SharedDriver`](crate::SharedDriver), too.
    #[doc(alias = "scheduler", alias = "executor")]
    pub fn driver(mut self, driver: impl Into<Driver>) -> Self {
        self.driver = driver.into();
        self.join = Some(SharedDriver::join);
        self
    }

    /// Called with every entry that leaves the cache, in order for each key, by one thread at a
    /// time, outside every lock. It may call the cache.
    ///
    /// The driver decides which thread calls it:
    ///
    /// - with [`Driver::Thread`], the default, a thread of the cache's own, `<name>-events`;
    /// - with [`Driver::Task`] the one that polls the future of [`Cache::drive`];
    /// - with [`Driver::Manual`] the one that calls [`Cache::advance`];
    /// - with a [`SharedDriver`](crate::SharedDriver) its events thread, or the one that polls its
    ///   future.
    ///
    /// With any of them the threads that cause events help once the queue is full, unless the
    /// events are then dropped ([`listener_queue`](Self::listener_queue)): a listener that takes
    /// its time may hold up an insertion. The last events, those of [`Cache::close`] or of the last
    /// handle's drop, come on the same thread; where there is none, on the one that calls or drops.
    ///
    /// It may ask for a key that a thread is loading or computing: that thread does not wait for
    /// it. It should not block on a load that a task has begun: a thread that writes while the
    /// queue is full may be the one that the task runs on, and waits for the listener.
    #[doc(
        alias = "removalListener",
        alias = "evictionListener",
        alias = "removal_listener",
        alias = "Lifecycle"
    )]
    pub fn eviction_listener(
        mut self,
        listener: impl Fn(Removal<K, V>) + Send + Sync + 'static,
    ) -> Self {
        self.listener = Some(Listener::Blocking(Box::new(listener)));
        self.hooks.listener = Some(ListenerHook::new());
        self
    }

    /// As [`eviction_listener`](Self::eviction_listener), with a future: in order for each key, one
    /// at a time, and each is awaited before the next begins.
    ///
    /// The driver polls it: the future of [`Cache::drive`] or of
    /// [`SharedDriver::drive`](crate::SharedDriver::drive), so on your runtime; expiry and
    /// refreshes go on while it is awaited. [`Cache::close_async`] polls it too. It belongs to the
    /// cache: when the task that polls it is dropped, the next one goes on with it. So it should
    /// hold a [`WeakCache`](crate::WeakCache), if anything, of its own cache. (If the runtime ends
    /// on whose timer or socket it waits, that may panic in the next one's hands, as tokio's timers
    /// do: a panic of the listener, after which the next event follows.)
    ///
    /// No writer ever calls it or waits for it. When its queue is full
    /// ([`listener_queue`](Self::listener_queue)), the driver removes nothing more until there is
    /// room (what is due stays in memory, and invisible), and the events that callers cause are
    /// dropped and counted: see [`OnFull::Wait`].
    #[doc(alias = "async_eviction_listener")]
    pub fn eviction_listener_async<F>(
        mut self,
        listener: impl Fn(Removal<K, V>) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let listener = move |removal| -> ListenerFuture { Box::pin(listener(removal)) };
        self.listener = Some(Listener::Async(Box::new(listener)));
        self.hooks.listener = Some(ListenerHook::new());
        self
    }

    /// Sets the hasher; the default is [`DefaultHashBuilder`].
    #[doc(alias = "build_with_hasher")]
    pub fn hasher<T>(self, hasher: T) -> Builder<K, V, T>
    where
        T: BuildHasher + Send + Sync + 'static,
    {
        Builder {
            config: self.config,
            ttl_answered: self.ttl_answered,
            capacity: self.capacity,
            hasher,
            clock: self.clock,
            driver: self.driver,
            shards: self.shards,
            listener: self.listener,
            listener_queue: self.listener_queue,
            on_full: self.on_full,
            negative_capacity: self.negative_capacity,
            hooks: Hooks {
                on_use: self.hooks.on_use.map(|_| UseHook::new()),
                listener: self.hooks.listener.map(|_| ListenerHook::new()),
                refresh: self.hooks.refresh.map(|_| RefreshHook::new()),
                ..Hooks::none()
            },
            join: self.join.map(|_| SharedDriver::join as Join<K, V, T>),
        }
    }

    /// Builds the cache.
    ///
    /// # Errors
    ///
    /// When one of the two questions is open, a value is out of range, or a thread cannot be
    /// started.
    #[doc(alias = "CacheBuilder")]
    pub fn build(mut self) -> Result<Cache<K, V, S>, BuildError> {
        let capacity = self.check()?;
        let shards = self.shard_count(capacity);
        self.config.huge_pages &= self.is_large(capacity);
        if let Some(most) = self.negative_capacity {
            self.config.negatives_per_shard = most.div_ceil(shards as u64);
        }
        let time = match self.clock {
            Some(clock) => Time::given(clock),
            #[cfg(feature = "system")]
            None => Time::system(),
            #[cfg(not(feature = "system"))]
            None => return Err(BuildError::NoClock),
        };
        let listens = match &self.listener {
            None => Listens::Nobody,
            Some(Listener::Blocking(_)) => Listens::Threads,
            Some(Listener::Async(_)) => Listens::Task,
        };
        let rules = Rules {
            hasher: self.hasher,
            config: self.config,
            account: Account::new(capacity, shards),
            tags: Tags::new(),
            events: EventRoom::new(listens, self.listener_queue, self.on_full),
            new_emptied: emptied,
        };
        let delivery = Delivery::new(self.listener);
        let inner = Inner::new(shards, rules, time, self.hooks, delivery);
        Cache::start(inner, self.driver, self.join)
    }
}
