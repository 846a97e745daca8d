//! The builder's settings for refreshers that get the old value and may say that it has not
//! changed.

use std::future::Future;
use std::hash::{BuildHasher, Hash};

use super::builder::Builder;
use crate::core::hooks::RefreshHook;
use crate::load::loader_result::{RefresherResult, refreshed};
use crate::shard::refresher::Refresher;

impl<K, V, S> Builder<K, V, S>
where
    K: Hash + Eq + Send + Sync + 'static,
    V: Send + Sync + 'static,
    S: BuildHasher + Send + Sync + 'static,
{
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
    #[must_use]
    pub fn refresh_with_old<R>(mut self, load: impl Fn(&K, V) -> R + Send + Sync + 'static) -> Self
    where
        K: Clone,
        V: Clone,
        R: RefresherResult<V>,
    {
        let load = move |key: &K, old| refreshed(load(key, old));
        self.config.refresher = Some(Refresher::blocking_with_old(load));
        self.hooks.refresh = Some(RefreshHook::new());
        self
    }

    /// As [`refresh_with_old`](Self::refresh_with_old), with a future: see
    /// [`refresh_with_async`](Self::refresh_with_async).
    #[must_use]
    pub fn refresh_with_old_async<F, R>(
        mut self,
        load: impl Fn(K, V) -> F + Send + Sync + 'static,
    ) -> Self
    where
        K: Clone,
        V: Clone,
        F: Future<Output = R> + Send + 'static,
        R: RefresherResult<V>,
    {
        let load = move |key, old| {
            let answer = load(key, old);
            async move { refreshed(answer.await) }
        };
        self.config.refresher = Some(Refresher::future_with_old(load));
        self.hooks.refresh = Some(RefreshHook::new());
        self
    }
}
