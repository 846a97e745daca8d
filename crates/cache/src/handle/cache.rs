//! The handle that users hold, and the operations on one key.

use std::fmt;
use std::hash::{BuildHasher, Hash};
use std::sync::{Arc, Weak};
use std::time::Duration;

use equivalent::Equivalent;
use tidewheel_store::{Found, Slot};
use tidewheel_time::{DefaultHashBuilder, Moment};

use super::builder::Builder;
use super::driving::{Join, Owner};
use crate::core::inner::{Inner, ShardCell};
use crate::core::read::Purpose;
use crate::drive::driver::Driver;
use crate::error::BuildError;
use crate::lifetime::Lifetime;
use crate::removal::RemovalCause;
use crate::shard::Shard;
use crate::shard::rules::Hashed;
use crate::stats::Stats;

/// A concurrent cache whose entries live exactly as long as you asked. See the [crate](crate) for a
/// guide.
///
/// A clone is another handle to the same cache. The last one to go ends it, without waiting for
/// anybody: see [`close`](Self::close).
pub struct Cache<K, V, S = DefaultHashBuilder> {
    pub(crate) inner: Arc<Inner<K, V, S>>,
    pub(super) owner: Arc<Owner<K, V, S>>,
}

/// A handle that does not keep its cache open; made by [`Cache::downgrade`].
///
/// A listener that holds a [`Cache`] of its own cache would keep it open for ever; with one of
/// these it does not.
pub struct WeakCache<K, V, S = DefaultHashBuilder>(Weak<Owner<K, V, S>>);

impl<K, V, S> WeakCache<K, V, S> {
    /// The cache, unless its last handle is gone.
    #[must_use]
    pub fn upgrade(&self) -> Option<Cache<K, V, S>> {
        let owner = self.0.upgrade()?;
        Some(Cache {
            inner: Arc::clone(&owner.inner),
            owner,
        })
    }
}

impl<K, V, S> Clone for WeakCache<K, V, S> {
    fn clone(&self) -> Self {
        Self(Weak::clone(&self.0))
    }
}

impl<K, V, S> fmt::Debug for WeakCache<K, V, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WeakCache")
    }
}

/// # Building
impl<K, V> Cache<K, V> {
    /// Starts to configure a cache. Written as `Cache::<String, u64>::builder()`, it tells the
    /// builder's closures the types of their arguments. The type of the variable that the cache
    /// goes to comes too late for that.
    pub fn builder() -> Builder<K, V> {
        Builder::new()
    }
}

impl<K, V, S> Cache<K, V, S>
where
    K: Hash + Eq + Send + Sync + 'static,
    V: Send + Sync + 'static,
    S: BuildHasher + Send + Sync + 'static,
{
    pub(super) fn start(
        inner: Arc<Inner<K, V, S>>,
        driver: Driver,
        join: Option<Join<K, V, S>>,
    ) -> Result<Self, BuildError> {
        let owner = Arc::new(Owner::start(&inner, driver, join)?);
        Ok(Self { inner, owner })
    }
}

/// # Reading
impl<K: Hash + Eq, V, S: BuildHasher> Cache<K, V, S> {
    /// The value of a key. Counts as a use of the entry.
    ///
    /// On Linux it takes no lock where key and value are numbers, `bool`, `char`, or arrays of
    /// numbers of a usual length: `[u8; N]` with `N` of 2, 4, 6, 8, 12, 16, 20, 24, 28, 32, 40, 48,
    /// 56, 64, 96 or 128, `[u64; N]`, `[i64; N]` and `[f64; N]` with 2 to 8 or 16, and some of
    /// `u16`, `u32`, `i32` and `f32`. Any number of threads may then read one key without waiting
    /// for each other. All other types are cloned under the shard's reader lock, but for those that
    /// `Builder::read_by_copy` was called for (feature `bytemuck`).
    #[doc(alias = "getIfPresent", alias = "get_if_present")]
    #[inline]
    pub fn get<Q>(&self, key: &Q) -> Option<V>
    where
        Q: Hash + Equivalent<K> + ?Sized,
        V: Clone,
    {
        let hash = self.inner.hash(key);
        let clock = |cell: &_| self.inner.time_in(cell);
        self.inner
            .read_value(hash, key, clock, Purpose::Get, |value, _| value)
    }

    /// Returns what a closure makes of a key's value, without cloning the value. Counts as a use of
    /// the entry.
    ///
    /// The closure runs under the shard's reader lock: it should be quick.
    ///
    /// # Panics
    ///
    /// If the closure calls this cache.
    #[doc(alias = "get_ref", alias = "with")]
    #[inline]
    pub fn view<Q, R>(&self, key: &Q, read: impl FnOnce(&V) -> R) -> Option<R>
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        self.read_with(key, |_, entry| read(entry.value()))
    }

    /// As [`view`](Self::view), of an entry that also ends at a tick which its value tells: for
    /// `tidewheel-tier`, which moves the ends of many entries with one store. The clock is read
    /// once for both.
    #[doc(hidden)]
    #[inline]
    pub fn view_until_tick<Q, R>(
        &self,
        key: &Q,
        until: impl Fn(&V) -> u64,
        read: impl FnOnce(&V) -> R,
    ) -> Option<R>
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        let inner = &*self.inner;
        let until = |entry: &Found<'_, K, V>| Some(until(entry.value()));
        // Though none of the shard's entries may have a deadline.
        let clock = |_: &ShardCell<K, V, S>| inner.bound();
        let read = |_: &_, entry: &Found<'_, K, V>, _| read(entry.value());
        inner.read_entry(inner.hash(key), key, clock, until, Purpose::Get, read)
    }

    /// The tick that has begun, for [`view_until_tick`](Self::view_until_tick).
    #[doc(hidden)]
    #[must_use]
    pub fn tick(&self) -> u64 {
        self.inner.now().tick()
    }

    /// Reads a live entry, as a use of it.
    // Into its callers: saving registers for a call would cost a hit a twentieth of its time.
    #[inline(always)]
    pub(crate) fn read_with<Q: Hash + Equivalent<K> + ?Sized, R>(
        &self,
        key: &Q,
        read: impl FnOnce(&Shard<K, V, S>, &Found<'_, K, V>) -> R,
    ) -> Option<R> {
        let inner = &*self.inner;
        let clock = |cell: &ShardCell<K, V, S>| inner.time_in(cell);
        let read = |shard: &_, entry: &Found<'_, K, V>, _| read(shard, entry);
        inner.read_entry(inner.hash(key), key, clock, |_| None, Purpose::Get, read)
    }

    /// The value of a key, without any effect on when it expires, whether it is evicted, or
    /// statistics.
    #[doc(alias = "getIfPresentQuietly")]
    pub fn peek<Q>(&self, key: &Q) -> Option<V>
    where
        Q: Hash + Equivalent<K> + ?Sized,
        V: Clone,
    {
        self.look(key, |shard, slot| shard.store.value(slot).clone())
    }

    /// Returns whether a key is there. Has no effect on it.
    #[doc(alias = "containsKey")]
    pub fn contains_key<Q>(&self, key: &Q) -> bool
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        self.look(key, |_, _| ()).is_some()
    }

    /// Looks at a live entry under the reader lock.
    pub(crate) fn look<Q: Hash + Equivalent<K> + ?Sized, R>(
        &self,
        key: &Q,
        look: impl FnOnce(&Shard<K, V, S>, Slot) -> R,
    ) -> Option<R> {
        let inner = &*self.inner;
        let hash = inner.hash(key);
        let (shard, now) = inner.read_now(inner.cell(hash));
        let slot = shard.find_live(hash, key, now)?;
        Some(look(&shard, slot))
    }
}

/// # Storing
impl<K: Hash + Eq, V, S: BuildHasher> Cache<K, V, S> {
    /// Stores a value with the configured lifetime, in place of the old one if there is one.
    #[doc(alias = "put")]
    pub fn insert(&self, key: K, value: V) {
        self.insert_with(key, value, Lifetime::configured());
    }

    /// Stores a value that lives for `ttl`; bounds and jitter of the cache apply.
    #[inline(never)]
    pub fn insert_with_ttl(&self, key: K, value: V, ttl: Duration) {
        let inner = &*self.inner;
        let hash = inner.hash(&key);
        if inner.stores_plainly {
            return inner.insert_plainly(hash, key, value, Some(ttl));
        }
        self.insert_prepared(hash, key, value, &Lifetime::ttl(ttl));
    }

    /// Stores a value with a lifetime of its own.
    ///
    /// An entry heavier than the whole capacity is not stored: the listener gets it as
    /// [`RemovalCause::Evicted`], and [`Stats::rejected`] counts it.
    // Into the shorter ones: what they say of the lifetime is then known where it is used.
    #[inline(always)]
    pub fn insert_with(&self, key: K, value: V, lifetime: Lifetime) {
        let inner = &*self.inner;
        let hash = inner.hash(&key);
        match inner.plain_ttl(&lifetime) {
            Some(ttl) => inner.insert_plainly(hash, key, value, ttl),
            None => self.insert_prepared(hash, key, value, &lifetime),
        }
    }

    /// Stores an entry of which user code or the configuration decides more than its time to live.
    #[inline(never)]
    fn insert_prepared(&self, hash: Hashed, key: K, value: V, lifetime: &Lifetime) {
        let prepared = self.inner.prepare(hash, &key, &value, lifetime);
        self.inner.insert(hash, key, value, &prepared);
    }
}

/// # Removing
impl<K: Hash + Eq, V, S: BuildHasher> Cache<K, V, S> {
    /// Removes a key and returns its value, if it was alive. The value is moved; only when there is
    /// a listener, which gets it too, it is cloned, under the shard's lock.
    pub fn remove<Q>(&self, key: &Q) -> Option<V>
    where
        Q: Hash + Equivalent<K> + ?Sized,
        V: Clone,
    {
        if self.inner.rules.events.has_listener() {
            return self.remove_with(key, V::clone);
        }
        let inner = &*self.inner;
        let hash = inner.hash(key);
        let rules = &inner.rules;
        let taken = self.change_certainly(key, hash, |shard, slot, now| {
            let (removed, dead_by) = shard.take_slot(hash.place(), slot, now);
            let cause = dead_by.unwrap_or(RemovalCause::Removed);
            shard.effects.count(rules, &removed, cause, now.tick());
            (removed, dead_by.is_none())
        });
        let (removed, is_live) = taken?;
        // Here, outside the lock.
        inner.counters.discard(removed.key);
        if is_live {
            return Some(removed.value);
        }
        inner.counters.discard(removed.value);
        None
    }

    /// Removes a key, and tells whether it was alive.
    pub fn invalidate<Q>(&self, key: &Q) -> bool
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        self.remove_with(key, |_| ()).is_some()
    }

    fn remove_with<Q: Hash + Equivalent<K> + ?Sized, R>(
        &self,
        key: &Q,
        look: impl FnOnce(&V) -> R,
    ) -> Option<R> {
        let inner = &*self.inner;
        let hash = inner.hash(key);
        let looked = self.change_certainly(key, hash, |shard, slot, now| {
            // First: a clone that panics removes nothing.
            let is_live = shard.is_live(slot, now);
            let result = is_live.then(|| look(shard.store.value(slot)));
            shard.remove_slot(hash.place(), slot, RemovalCause::Removed, now);
            result
        });
        looked.flatten()
    }

    /// Changes a key's entry, dead or alive, if there is one. A load of the key is superseded also
    /// if there is none.
    fn change_certainly<Q: Hash + Equivalent<K> + ?Sized, R>(
        &self,
        key: &Q,
        hash: Hashed,
        change: impl FnOnce(&mut Shard<K, V, S>, Slot, Moment) -> R,
    ) -> Option<R> {
        let concerned = |_: &Shard<K, V, S>, _| Some(());
        let changed = self
            .inner
            .change_key(hash, key, concerned, |shard, (), now| {
                let slot = shard.find(hash, key)?;
                Some(change(shard, slot, now))
            });
        changed.flatten()
    }

    /// Removes everything. O(1) for each shard; entries are dropped, or handed to the listener,
    /// outside the locks. What readers did not see any more is removed before, in short holds of
    /// the lock: what is over leaves as [`RemovalCause::Expired`], what was invalidated by its tag
    /// as [`RemovalCause::Invalidated`]. That costs what is due, and a look at each entry with a
    /// tag where there are any. What is over and kept for [`Builder::stale_on_error`] leaves with
    /// the rest, as [`RemovalCause::Cleared`].
    #[doc(alias = "invalidateAll", alias = "clear")]
    pub fn invalidate_all(&self) {
        self.inner.clear();
    }
}

/// # How much there is, and what has happened
impl<K, V, S> Cache<K, V, S> {
    /// Entries now, dead ones that are not yet removed included. Not a point in time: shard after
    /// shard.
    #[doc(alias = "entry_count", alias = "estimatedSize")]
    #[must_use]
    pub fn len(&self) -> usize {
        self.inner
            .shards
            .iter()
            .map(|cell| self.inner.read(cell).store.len())
            .sum()
    }

    /// Returns whether the cache is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The entries' weight.
    #[doc(alias = "weighted_size", alias = "weightedSize")]
    #[must_use]
    pub fn weight(&self) -> u64 {
        self.inner
            .shards
            .iter()
            .map(|cell| self.inner.read(cell).store.weight())
            .sum()
    }

    /// Returns the counters since the cache was built.
    #[doc(alias = "recordStats")]
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.inner.stats()
    }
}

/// # Metrics
#[cfg(feature = "metrics")]
impl<K: Hash + Eq, V, S: BuildHasher> Cache<K, V, S> {
    /// Hands what has happened since the last time to the recorder of the `metrics` facade. The
    /// driver's thread does it about once a second while it is awake; it is not woken for it, so
    /// call this when the metrics are about to be read, and with the other drivers.
    ///
    /// Each is labelled with `cache`, the [cache's name](crate::Builder::name), and described. They
    /// are the fields of [`Stats`](crate::Stats), which says what each counts, and how long loaders
    /// took. The
    /// [README](https://github.com/tidewheel/tidewheel/blob/main/crates/cache/README.md#metrics)
    /// lists them. A removal stands in the histogram as the end of its window of
    /// [`Stats::lateness`](crate::Stats::lateness).
    pub fn publish_metrics(&self) {
        self.inner.publish_metrics();
    }
}

/// # Handles, and the end
impl<K, V, S> Cache<K, V, S> {
    /// A handle that does not keep the cache open: for listeners and loaders that the cache itself
    /// holds.
    #[must_use]
    pub fn downgrade(&self) -> WeakCache<K, V, S> {
        WeakCache(Arc::downgrade(&self.owner))
    }

    /// Ends the cache: stops its threads, removes every entry, delivers every event, and waits
    /// until all that is done. What is stored afterwards is dropped, through any handle.
    /// Idempotent. What readers did not see any more leaves for its own cause, as with
    /// [`invalidate_all`](Self::invalidate_all).
    ///
    /// It blocks its thread: while a refresh runs on a thread of the cache's, and while the
    /// listener is called. Where that must not be, [`close_async`](Self::close_async) does the
    /// same. A future of [`drive`](Self::drive) is told to end, and not waited for; an async
    /// listener is for that future, or `close_async`, to call.
    ///
    /// A listener, loader or closure may call it, and so may a `Drop` that a driver's thread runs.
    /// Then it waits neither for the threads, which end soon after, nor for another thread that is
    /// calling the listener: the last events may be delivered after it has returned.
    ///
    /// # Without it
    ///
    /// When the last handle goes, the cache ends too, and nobody waits for that. Its threads, or
    /// the future that drives it, remove the entries and deliver the events on their own. If there
    /// are none (or the future is dropped first), that is done by whoever goes last, as far as it
    /// is possible without waiting: an async listener is then not told any more. So a program that
    /// wants its last events, for example at its own end, calls `close` or `close_async`.
    #[doc(alias = "shutdown")]
    pub fn close(&self) {
        self.owner.close();
    }
}

/// # Waiting for the end
impl<K, V, S> Cache<K, V, S>
where
    K: Hash + Eq + Send + Sync + 'static,
    V: Send + Sync + 'static,
    S: BuildHasher + Send + Sync + 'static,
{
    /// As [`close`](Self::close), without blocking the thread: waits for the cache's threads,
    /// empties it, and delivers every event; also when the task that drives it was never spawned,
    /// or is gone, or is busy.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tidewheel::{Cache, Driver, ManualClock};
    /// # async fn shut_down() -> Result<(), tidewheel::BuildError> {
    /// let cache = Cache::<u64, String>::builder()
    ///     .max_capacity(1000)
    ///     .time_to_live(Duration::from_secs(60))
    ///     .driver(Driver::Task)
    ///     .clock(ManualClock::new())
    ///     .eviction_listener_async(|removal| async move {
    ///         println!("{} has left", removal.key); // or send it somewhere
    ///     })
    ///     .build()?;
    /// cache.insert(1, "tea".to_string());
    /// cache.close_async().await; // "1 has left"
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Dropping the returned future is safe at any point: the cache is closed from its first poll
    /// on, and the next call, or whoever drives the cache, goes on with the events where it was.
    /// Idempotent. It does not wait for the future of [`drive`](Self::drive), which ends at its
    /// next poll, and takes its refreshes with it.
    ///
    /// A listener, loader or closure may await it. Then it waits for nobody, like `close`.
    pub async fn close_async(&self) {
        self.inner.close_async().await;
    }
}

impl<K: Hash + Eq, V, S: BuildHasher> Cache<K, V, S> {
    /// Panics if the structure is broken. O(n); for tests.
    #[doc(hidden)]
    pub fn validate(&self) {
        let mut labels = Vec::new();
        for cell in &self.inner.shards {
            let shard = self.inner.read(cell);
            shard.validate(&mut labels);
            assert!(
                shard.next_deadline() >= cell.next_deadline.get(),
                "the published deadline is too late"
            );
        }
        self.inner.rules.tags.validate(labels.into_iter());
        if let Some(capacity) = self.inner.rules.account.capacity() {
            let read = |cell| self.inner.read(cell).lent;
            let lent: u64 = self.inner.shards.iter().map(read).sum();
            let free = self.inner.rules.account.free();
            let debt = self.inner.rules.account.debt();
            assert_eq!(lent + free, capacity + debt, "what is lent and what is not");
        }
    }
}

impl<K, V, S> Clone for Cache<K, V, S> {
    fn clone(&self) -> Self {
        Self {
            inner: Arc::clone(&self.inner),
            owner: Arc::clone(&self.owner),
        }
    }
}

impl<K, V, S> fmt::Debug for Cache<K, V, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cache")
            .field("config", &self.inner.rules.config)
            .field("capacity", &self.inner.rules.account.capacity())
            .field("shards", &self.inner.shards.len())
            .finish_non_exhaustive()
    }
}
