//! The builder's refreshers: blocking or async, and such as get the old value and may say that it
//! has not changed.

use std::future::Future;
use std::hash::{BuildHasher, Hash};

use super::builder::Builder;
use crate::core::hooks::RefreshHook;
use crate::load::loader_result::{RefresherResult, refreshed};
use crate::shard::refresher::{Load, RefreshFuture, Refresher};

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
