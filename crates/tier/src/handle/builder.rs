//! `Tier` gives a cache its second tier.

use std::fmt;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use tidewheel::{BuildError, Builder, Clock};
use tidewheel_time::Readings;

use super::cache::TieredCache;
use super::held::Held;
use crate::codec::{Codec, TierKey};
use crate::core::invalidation_stream::{Bounds, InvalidationStream};
use crate::core::names::Names;
use crate::engine::Backend;
use crate::flow::{Inner, Settings};

/// The second tier of a cache: an engine, and how it is used.
pub struct Tier<V> {
    namespace: String,
    backend: Arc<dyn Backend>,
    codec: Box<dyn Codec<V>>,
    clock: Option<Box<dyn Clock>>,
    bounds: Bounds,
    settings: Settings,
}

impl<V> Tier<V> {
    /// The engine, the namespace in it that all processes share, and how values become bytes.
    #[must_use]
    pub fn new(namespace: &str, engine: impl Backend, codec: impl Codec<V>) -> Self {
        Self {
            namespace: namespace.to_owned(),
            backend: Arc::new(engine),
            codec: Box::new(codec),
            clock: None,
            bounds: Bounds {
                watched: Duration::from_secs(1),
                degraded: Duration::from_secs(5),
                lag: Duration::from_secs(10),
                timeout: Duration::from_secs(1),
            },
            settings: Settings::default(),
        }
    }

    /// Sets the life of values that are stored without a life of their own; a minute if not set.
    #[must_use]
    pub fn time_to_live(mut self, ttl: Duration) -> Self {
        self.settings.life.ttl = Some(ttl);
        self
    }

    /// The soft deadline of values that do not say one: see
    /// [`Life::fresh_for`](crate::Life::fresh_for).
    #[must_use]
    pub fn fresh_for(mut self, fresh_for: Duration) -> Self {
        self.settings.life.fresh_for = Some(fresh_for);
        self
    }

    /// Keeps values for so long after their end, for a loader that fails, unless they say it
    /// themselves; not at all if not set.
    #[must_use]
    pub fn stale_on_error(mut self, stale_for: Duration) -> Self {
        self.settings.life.stale_for = Some(stale_for);
        self
    }

    /// Remembers an absence for so long, in all processes; not at all if not set.
    #[must_use]
    pub fn negative_ttl(mut self, ttl: Duration) -> Self {
        self.settings.negative_ttl = ttl;
        self
    }

    /// Shortens each time to live by a random part of up to this fraction, so that what is stored
    /// together does not end together; a twentieth if not set.
    #[must_use]
    pub fn jitter(mut self, fraction: f64) -> Self {
        self.settings.jitter = fraction;
        self
    }

    /// A process may load a key for so long before another one tries; ten seconds if not set.
    #[must_use]
    pub fn lease(mut self, lease: Duration) -> Self {
        self.settings.lease = lease;
        self
    }

    /// Sets the greatest age of a hit, while a connection tells of changes; a second if not set. A
    /// quarter of it passes between two heartbeats.
    #[must_use]
    pub fn staleness(mut self, bound: Duration) -> Self {
        self.bounds.watched = bound;
        self
    }

    /// Believes entries for so much longer when that connection is lost, and lets entries that are
    /// stored meanwhile live for so long; five seconds if not set. Zero: while no connection tells
    /// of changes, nothing is believed.
    #[must_use]
    pub fn degraded_life(mut self, life: Duration) -> Self {
        self.bounds.degraded = life;
        self
    }

    /// Limits a question to the engine, with the connection that it may need; a second if not set.
    /// A question that takes longer counts as not answered: loaders run, and invalidations wait.
    /// Connections and single commands have seven tenths of it. Of several tiers that share a
    /// `Valkey`, the one that was built last says it.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.bounds.timeout = timeout;
        self
    }

    /// Sets for how long an engine may lose what it has taken, when another server takes over: a
    /// replica that lags, or one that is promoted while clients still write to the primary. Ten
    /// seconds if not set.
    ///
    /// The values that this process has written and invalidated within that time are invalidated
    /// again at the new server. For one [`staleness`](Self::staleness) nothing is read from there,
    /// so that all processes can do so: loaders run meanwhile, as if the engine were away. More
    /// than 10,000 within that time, or 4 MB of keys, become one invalidation of the whole
    /// namespace. Zero: what is lost stays lost, and reads go on at once.
    #[must_use]
    pub fn failover_lag(mut self, lag: Duration) -> Self {
        self.bounds.lag = lag;
        self
    }

    /// Compresses values above so many bytes.
    #[cfg(feature = "lz4")]
    #[must_use]
    pub fn compress_above(mut self, bytes: usize) -> Self {
        self.settings.compress_above = Some(bytes);
        self
    }

    /// The clock that the first tier has, if that was given one.
    #[must_use]
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Some(Box::new(clock));
        self
    }

    fn check(&self) -> Result<(), BuildError> {
        let out_of_range = |option, expected| Err(BuildError::OutOfRange { option, expected });
        if self.namespace.is_empty() || self.namespace.contains(['{', '}']) {
            return out_of_range("namespace", "a name without braces");
        }
        if !(0.0..1.0).contains(&self.settings.jitter) {
            return out_of_range("jitter", "a fraction from 0 to less than 1");
        }
        if self.settings.lease.is_zero() {
            return out_of_range("lease", "more than zero");
        }
        if self.bounds.watched < Duration::from_millis(20) {
            return out_of_range("staleness", "at least 20 ms");
        }
        if self.bounds.timeout < Duration::from_millis(10) {
            return out_of_range("timeout", "at least 10 ms");
        }
        Ok(())
    }
}

impl<V> fmt::Debug for Tier<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tier")
            .field("namespace", &self.namespace)
            .field("backend", &self.backend)
            .finish_non_exhaustive()
    }
}

/// Builds caches with a second tier; for [`Builder`].
pub trait Tiered<K, V> {
    /// Builds the cache, as the first tier of a [`TieredCache`].
    ///
    /// The first tier never keeps a value for longer than the engine does. Its own time to live,
    /// idle time and capacity apply as well; its loaders, its refreshers and its time for stale
    /// values are not used.
    ///
    /// # Errors
    ///
    /// As [`Builder::build`], and if an option of the tier is out of range. An engine that is away
    /// is none: the cache begins without it.
    fn tiered(self, tier: Tier<V>) -> Result<TieredCache<K, V>, BuildError>;
}

impl<K, V> Tiered<K, V> for Builder<K, Held<V>>
where
    K: TierKey + Hash + Eq + Clone + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    fn tiered(self, tier: Tier<V>) -> Result<TieredCache<K, V>, BuildError> {
        tier.check()?;
        // Each entry says itself how long it is kept for a loader that fails.
        let first = self.stale_on_error(Duration::ZERO).build()?;
        let clock = tier.clock.map_or_else(Readings::system, Readings::given);
        let stream = InvalidationStream::new(Names::new(&tier.namespace), clock, tier.bounds);
        let inner = Inner::new(
            first,
            Arc::new(stream),
            tier.backend,
            tier.codec,
            tier.settings,
        );
        Ok(TieredCache::start(inner))
    }
}
