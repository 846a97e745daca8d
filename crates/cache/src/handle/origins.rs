//! The builder's settings for origins: the refresher, and what is done while they fail.

use std::any::Any;
use std::future::Future;
use std::hash::{BuildHasher, Hash};
use std::time::Duration;

use tidewheel_time::ticks;

use crate::core::hooks::RefreshHook;
use crate::handle::builder::Builder;
use crate::load::loader_result::{RefresherResult, refreshed};
use crate::shard::config::{GRACE_MAX, Load, RefreshFuture, Refresher};
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

impl<K, V, S> Builder<K, V, S>
where
    K: Hash + Eq + Send + Sync + 'static,
    V: Send + Sync + 'static,
    S: BuildHasher + Send + Sync + 'static,
{
    /// Loads entries again in the background: a read that meets one past its soft deadline gets the
    /// old value, and the key is queued, once. So it goes with
    /// [`refresh_after`](Self::refresh_after). An entry that nobody reads is not refreshed: it dies
    /// at its end.
    ///
    /// With [`Driver::Thread`](crate::Driver::Thread), or a [`SharedDriver`](crate::SharedDriver)
    /// of threads, up to [`refresh_parallelism`](Self::refresh_parallelism) threads run `load`,
    /// without any lock, and [`Cache::close`](crate::Cache::close) waits for those in progress.
    /// With the others [`Cache::run_refreshes`](crate::Cache::run_refreshes) does. If it fails, or
    /// panics, the old value stays, and a read after half of its remaining time asks again, but not
    /// before [`error_backoff`](Self::error_backoff); of an entry without an end, after a minute.
    ///
    /// Where `load` says that there is no such thing any more, with `Ok(None)`, the old value goes
    /// ([`RemovalCause::Removed`](crate::RemovalCause::Removed)), and
    /// [`negative_ttl`](Self::negative_ttl) remembers it; [`RefresherResult`] has all that it may
    /// return.
    ///
    /// The lifetime that was stated for the old value holds for the new one, from now on, unless
    /// `load` returns a [`Loaded`](crate::Loaded) that says otherwise: its tags; its own time to
    /// live, by [`Cache::expire`](crate::Cache::expire) and
    /// [`Cache::persist`](crate::Cache::persist) too; its own freshness. An end that is a point in
    /// wall time stays where it is.
    #[doc(alias = "LoadingCache", alias = "CacheLoader", alias = "reload")]
    pub fn refresh_with<R>(self, load: impl Fn(&K) -> R + Send + Sync + 'static) -> Self
    where
        K: Clone,
        R: RefresherResult<V>,
    {
        let load = move |key: &K, _| refreshed(load(key));
        self.refresher(Load::Blocking(Box::new(load)), None)
    }

    /// As [`refresh_with`](Self::refresh_with), with a future.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tidewheel::{Cache, Driver, ManualClock};
    ///
    /// async fn fetch(id: u64) -> Result<String, std::io::Error> { Ok(id.to_string()) }
    /// # fn main() -> Result<(), tidewheel::BuildError> {
    /// let cache = Cache::<u64, String>::builder()
    ///     .max_capacity(1000)
    ///     .time_to_live(Duration::from_secs(60))
    ///     .refresh_after(0.8)
    ///     .refresh_with_async(|id| async move { fetch(id).await })
    ///     .driver(Driver::Task) // and spawn `cache.drive(sleep)`
    ///     .clock(ManualClock::new())
    ///     .build()?;
    /// # drop(cache);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// The driver polls it: the future of [`Cache::drive`](crate::Cache::drive) or of
    /// [`SharedDriver::drive`](crate::SharedDriver::drive), so on your runtime; up to
    /// [`refresh_parallelism`](Self::refresh_parallelism) at a time. A writer of the key supersedes
    /// it, like any load: its value is then not stored. When the cache is closed, or the future
    /// that drives it is dropped, those in flight are dropped, and callers who wait for one of them
    /// load by themselves.
    pub fn refresh_with_async<F, R>(self, load: impl Fn(K) -> F + Send + Sync + 'static) -> Self
    where
        K: Clone,
        F: Future<Output = R> + Send + 'static,
        R: RefresherResult<V>,
    {
        let load = move |key: &K, _| refresh_future(load(key.clone()));
        self.refresher(Load::Async(Box::new(load)), None)
    }

    /// As [`refresh_with`](Self::refresh_with), with a refresher that is given a copy of the old
    /// value, for a question such as HTTP's `If-None-Match`. If the value is still right, it
    /// returns [`Loaded::unchanged`](crate::Loaded::unchanged): then the entry lives on, and nobody
    /// hears of a change.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tidewheel::{Cache, Lifetime, Loaded};
    ///
    /// #[derive(Clone)]
    /// struct Page { etag: u64 }
    ///
    /// struct Answer { status: u16, etag: u64 }
    ///
    /// fn ask(_: &str, etag: u64) -> Result<Answer, std::io::Error> { Ok(Answer { status: 304, etag }) }
    ///
    /// # fn main() -> Result<(), tidewheel::BuildError> {
    /// # let clock = tidewheel::ManualClock::new();
    /// let cache = Cache::<String, Page>::builder()
    ///     .max_capacity(1000)
    ///     .time_to_live(Duration::from_secs(60))
    ///     .refresh_after(0.5)
    ///     .refresh_with_old(|path: &String, old: Page| {
    ///         let answer = ask(path, old.etag)?;
    ///         Ok::<_, std::io::Error>(match answer.status {
    ///             304 => Loaded::unchanged(old, Lifetime::configured()),
    ///             _ => Loaded::from(Page { etag: answer.etag }),
    ///         })
    ///     })
    /// #   .driver(tidewheel::Driver::Manual)
    /// #   .clock(clock.clone())
    ///     .build()?;
    /// # cache.insert("/".to_string(), Page { etag: 7 });
    /// # clock.advance(Duration::from_secs(40));
    /// # cache.get("/");
    /// # cache.run_refreshes(1);
    /// # clock.advance(Duration::from_secs(40));
    /// # assert_eq!(cache.get("/").map(|page| page.etag), Some(7));
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "if_none_match", alias = "if_modified_since", alias = "reload")]
    pub fn refresh_with_old<R>(self, load: impl Fn(&K, V) -> R + Send + Sync + 'static) -> Self
    where
        K: Clone,
        V: Clone,
        R: RefresherResult<V>,
    {
        let load = move |key: &K, old| refreshed(load(key, given(old)));
        self.refresher(Load::Blocking(Box::new(load)), Some(V::clone))
    }

    /// As [`refresh_with_old`](Self::refresh_with_old), with a future: see
    /// [`refresh_with_async`](Self::refresh_with_async).
    pub fn refresh_with_old_async<F, R>(
        self,
        load: impl Fn(K, V) -> F + Send + Sync + 'static,
    ) -> Self
    where
        K: Clone,
        V: Clone,
        F: Future<Output = R> + Send + 'static,
        R: RefresherResult<V>,
    {
        let load = move |key: &K, old| refresh_future(load(key.clone(), given(old)));
        self.refresher(Load::Async(Box::new(load)), Some(V::clone))
    }

    fn refresher(mut self, load: Load<K, V>, clone_old: Option<fn(&V) -> V>) -> Self
    where
        K: Clone,
    {
        self.config.refresher = Some(Refresher {
            clone_key: K::clone,
            clone_old,
            load,
        });
        self.hooks.refresh = Some(RefreshHook::new());
        self
    }
}

fn given<V>(old: Option<V>) -> V {
    old.expect("asked for by `clone_old`")
}

fn refresh_future<V, R: RefresherResult<V>>(
    answer: impl Future<Output = R> + Send + 'static,
) -> RefreshFuture<V> {
    Box::pin(async move { refreshed(answer.await) })
}
