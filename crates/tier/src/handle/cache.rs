//! `TieredCache` is the users' handle; this file has its look-ups.

use std::fmt;
use std::hash::Hash;
use std::sync::Arc;

use tidewheel::{Cache, Equivalent};

use super::block::block_on;
use super::held::{Belief, Held};
use crate::codec::TierKey;
use crate::flow::Inner;
use crate::stats::TierStats;

/// A cache with a second tier that many processes share. See the [crate](crate) for a guide.
///
/// A clone is another handle to the same cache. Methods that end in `_async` are futures for any
/// runtime; the others block their thread while they wait for the engine, so tasks should not call
/// them.
pub struct TieredCache<K, V> {
    pub(crate) inner: Arc<Inner<K, V>>,
    /// The first tier of `inner`, at hand: a hit follows one pointer less.
    first: Cache<K, Held<V>>,
}

impl<K, V> TieredCache<K, V>
where
    K: TierKey + Hash + Eq + Clone + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    pub(super) fn start(inner: Inner<K, V>) -> Self {
        let first = inner.first.clone();
        let inner = Arc::new(inner);
        inner.start();
        Self { inner, first }
    }

    /// The value, if the first tier has it and it may be believed. Never waits for anybody.
    #[inline]
    pub fn get_local<Q>(&self, key: &Q) -> Option<V>
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        let mut value = None;
        self.hit(key, &mut value);
        value
    }

    /// The value, from the first tier or else from the engine. `None` if neither has it, or the
    /// engine is away.
    #[inline]
    pub fn get(&self, key: &K) -> Option<V> {
        let mut value = None;
        match self.hit(key, &mut value) {
            Belief::None => self.look_up(key),
            _ => value,
        }
    }

    // Apart, so that a hit pays for nothing of it.
    #[cold]
    #[inline(never)]
    fn look_up(&self, key: &K) -> Option<V> {
        block_on(self.inner.look_up(key))
    }

    /// Looks a key up for a task, as [`get`](Self::get) does for a thread.
    pub async fn get_async(&self, key: &K) -> Option<V> {
        let mut value = None;
        match self.hit(key, &mut value) {
            Belief::None => self.inner.look_up(key).await,
            _ => value,
        }
    }

    /// Looks a key up in the first tier, and says whether the entry may be believed. The value is
    /// put into `value`, or none if it is known that there is none: so it is copied once.
    #[inline]
    pub(super) fn hit<Q>(&self, key: &Q, value: &mut Option<V>) -> Belief
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        let look = |held: &Held<V>| {
            let belief = held.belief(|| self.inner.stream.clock());
            if belief != Belief::None {
                value.clone_from(&held.value);
            }
            belief
        };
        self.first
            .view_until_tick(key, |held| held.watch.tick(), look)
            .unwrap_or(Belief::None)
    }

    /// The first tier. What is written to it by hand is in no other process, and may be replaced at
    /// any time.
    #[must_use]
    pub fn first_tier(&self) -> &Cache<K, Held<V>> {
        &self.first
    }

    /// Counts of events in this process.
    #[must_use]
    pub fn tier_stats(&self) -> TierStats {
        self.inner.counters.read()
    }

    /// True if connections tell of all changes at the moment, so that entries are believed.
    #[must_use]
    pub fn is_watched(&self) -> bool {
        self.inner.stream.is_watched()
    }

    /// Invalidations that the engine has not taken yet. They are tried again before anything is
    /// read from it.
    #[must_use]
    pub fn invalidations_waiting(&self) -> usize {
        self.inner.pending.len()
    }

    /// True if the engine is left alone for a moment, after failures. It stays so until somebody
    /// has asked it again.
    #[must_use]
    pub fn is_engine_left_alone(&self) -> bool {
        self.inner.breaker.is_open()
    }
}

impl<K, V> Clone for TieredCache<K, V> {
    fn clone(&self) -> Self {
        Self {
            inner: Arc::clone(&self.inner),
            first: self.first.clone(),
        }
    }
}

impl<K, V> fmt::Debug for TieredCache<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TieredCache")
            .field("engine", &self.inner.backend)
            .field("stats", &self.inner.counters.read())
            .finish_non_exhaustive()
    }
}
