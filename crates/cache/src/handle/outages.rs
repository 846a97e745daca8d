//! The builder's settings for failing origins: serving old values, the back-off, and remembering
//! errors and absences.

use std::any::Any;
use std::time::Duration;

use tidewheel_time::ticks;

use super::builder::Builder;
use crate::shard::config::GRACE_MAX;
use crate::shard::negative::new_memory;

impl<K, V, S> Builder<K, V, S> {
    /// Keeps an entry for `limit` after its end, in case its loader fails; then it is served in
    /// place of the error. Lookups do not see it, nor do loaders that cannot fail. At most 17
    /// years. The failing origin is asked again after [`error_backoff`](Self::error_backoff). One
    /// entry's own is [`Lifetime::stale_for`](crate::Lifetime::stale_for).
    #[doc(alias = "stale_if_error", alias = "stale-if-error")]
    pub fn stale_on_error(mut self, limit: Duration) -> Self {
        self.config.grace = ticks(limit).min(GRACE_MAX);
        self
    }

    /// Sets how long a failing origin is left alone: after an error no loader runs for the same key
    /// for so long, as long as there is an old value to serve instead. That is one past its soft
    /// deadline, or one past its end that is kept by [`stale_on_error`](Self::stale_on_error) or
    /// [`Lifetime::stale_for`](crate::Lifetime::stale_for). One second if not set; zero: every
    /// caller past the end asks.
    ///
    /// Before its end an entry is also left alone for half of the time that it has left, if that is
    /// longer. Where no old value is kept, errors are what is remembered:
    /// [`negative_ttl`](Self::negative_ttl). An error that is remembered for longer than this
    /// leaves the origin alone for longer, with an old value too.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tidewheel::{Cache, Driver, ManualClock};
    ///
    /// # fn main() -> Result<(), tidewheel::BuildError> {
    /// let clock = ManualClock::new();
    /// let cache = Cache::<&str, u32>::builder()
    ///     .max_capacity(1000)
    ///     .time_to_live(Duration::from_secs(60))
    ///     .stale_on_error(Duration::from_secs(86_400))
    ///     .error_backoff(Duration::from_secs(5))
    ///     .clock(clock.clone())
    ///     .driver(Driver::Manual)
    ///     .build()?;
    /// cache.insert("tea", 7);
    /// clock.advance(Duration::from_secs(60));
    /// for _ in 0..100 {
    ///     let price = cache.try_get_or_load("tea", || Err("the origin is down"));
    ///     assert_eq!(price, Ok(7));
    /// }
    /// assert_eq!(cache.stats().loads, 1);
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "retry_after", alias = "back_off")]
    pub fn error_backoff(mut self, wait: Duration) -> Self {
        self.config.error_backoff = ticks(wait);
        self
    }

    /// Sets how many errors and absences are remembered at most, one or more; 1,024 in each
    /// [shard](Self::shards) if not set. Each shard has an equal share, rounded up. When its share
    /// is full, the next one takes the place of another, for whose key a loader is called again.
    /// [`Stats::negatives`](crate::Stats::negatives) and
    /// [`Stats::negatives_evicted`](crate::Stats::negatives_evicted) tell how many there are and
    /// were. They do not count against [`max_capacity`](Self::max_capacity).
    pub fn negative_capacity(mut self, most: u64) -> Self {
        self.negative_capacity = Some(most);
        self
    }
}

impl<K: Send + Sync + 'static, V, S> Builder<K, V, S> {
    /// Sets how long a loader's error or absence is remembered and answered without calling a
    /// loader again. Zero: not at all. [`negative_capacity`](Self::negative_capacity) says how
    /// many.
    #[doc(alias = "negative_cache")]
    pub fn negative_ttl(mut self, ttl: Duration) -> Self {
        self.config.negative_ttl = Some(ttl);
        self.config.new_memory = Some(new_memory);
        self
    }

    /// Sets how long errors of one type are remembered, each as long as a closure says; zero: not
    /// at all. Counts instead of [`negative_ttl`](Self::negative_ttl). Once for each type; errors
    /// of other types have that one's.
    ///
    /// The closure runs without any lock, when a loader or the refresher has failed. If it panics,
    /// that is as if the loader had.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tidewheel::Cache;
    ///
    /// struct HttpError(u16);
    ///
    /// # fn main() -> Result<(), tidewheel::BuildError> {
    /// let cache = Cache::<String, String>::builder()
    ///     .max_capacity(1000)
    ///     .time_to_live(Duration::from_secs(60))
    ///     .error_ttl(|error: &HttpError| match error.0 {
    ///         404 | 410 => Duration::from_secs(30),
    ///         _ => Duration::ZERO,
    ///     })
    ///     .build()?;
    /// for _ in 0..3 {
    ///     let page = cache.try_get_or_load("/nowhere".to_string(), || Err(HttpError(404)));
    ///     assert_eq!(page.unwrap_err().0, 404);
    /// }
    /// assert_eq!(cache.stats().loads, 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn error_ttl<E>(mut self, ttl: impl Fn(&E) -> Duration + Send + Sync + 'static) -> Self
    where
        E: Send + Sync + 'static,
    {
        let ttl = move |error: &(dyn Any + Send + Sync)| error.downcast_ref().map(&ttl);
        self.config.error_ttls.push(Box::new(ttl));
        self.config.new_memory = Some(new_memory);
        self
    }
}
