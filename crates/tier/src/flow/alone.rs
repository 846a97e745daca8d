//! A load without the engine, and old values in place of errors.

use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use tidewheel::{Lifetime, Loaded};

use super::Inner;
use super::open::{kept_after, unstored};
use crate::codec::TierKey;
use crate::core::watch::Watch;
use crate::handle::held::{Held, More};
use crate::handle::life::{Given, Life};

/// For how long an old value is answered before a loader that has failed is asked again.
const ERROR_PAUSE: Duration = Duration::from_secs(1);

impl<K, V> Inner<K, V>
where
    K: TierKey + Hash + Eq + Clone + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    /// The engine is away: the loader runs, and what it brings stays in this process, for a short time.
    pub(super) async fn alone<E, F>(
        &self,
        old: Option<Held<V>>,
        load: F,
    ) -> Result<Loaded<Held<V>>, E>
    where
        F: Future<Output = Result<Option<Given<V>>, E>>,
    {
        self.counters.alone();
        self.counters.loads();
        // Before the loader reads anything: if a connection begins to watch meanwhile, it has missed changes of that.
        let watch = self.plane.degraded_watch();
        match load.await {
            Ok(given) => Ok(self.kept_here(given, watch)),
            Err(error) => self.old(old).ok_or(error),
        }
    }

    /// A value that the engine has not taken, under the watch of the time before its load.
    pub(super) fn kept_here(&self, given: Option<Given<V>>, watch: Arc<Watch>) -> Loaded<Held<V>> {
        let (value, life) = match given {
            Some(given) => (Some(given.value), given.life),
            None => (None, Life::ttl(self.settings.negative_ttl)),
        };
        let ttl = life.ttl.or(self.settings.life.ttl).unwrap_or_default();
        let stale_for = life.stale_for.or(self.settings.life.stale_for);
        let ttl = ttl.min(self.plane.degraded_life());
        let kept = stale_for.unwrap_or_default();
        let end = self.first.now().saturating_add(ttl).saturating_add(kept);
        let kept_until = (!kept.is_zero()).then_some(end);
        let held = Held {
            value,
            watch,
            more: More::of(Vec::new(), None, kept_until),
        };
        let life = life
            .tags
            .into_iter()
            .fold(Lifetime::ttl(ttl), Lifetime::tag);
        Loaded::new(held, kept_after(life, kept))
    }

    /// An old value in place of an error, for a moment.
    pub(super) fn old(&self, old: Option<Held<V>>) -> Option<Loaded<Held<V>>> {
        let now = self.first.now();
        let mut held = old?;
        let until = held.kept_until(now)?;
        self.counters.stale_on_error();
        let left = until.saturating_sub(now);
        held.watch = self.plane.degraded_watch();
        held.more = More::of(Vec::new(), None, Some(until));
        let ttl = left.min(ERROR_PAUSE).min(self.plane.degraded_life());
        if ttl.is_zero() {
            return Some(unstored(held));
        }
        let life = Lifetime::ttl(ttl).stale_for(left.saturating_sub(ttl));
        Some(Loaded::new(held, life))
    }
}
