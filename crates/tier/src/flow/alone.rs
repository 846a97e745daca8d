//! A load goes on without the engine, and old values stand in for errors.

use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use tidewheel::{Lifetime, Loaded};

use super::Inner;
use super::open::{kept_after, unstored};
use crate::codec::TierKey;
use crate::core::watch::Watch;
use crate::handle::held::{Held, Kept, More};
use crate::handle::life::{Given, Life};

/// An old value is answered for so long before a loader that has failed is asked again.
const ERROR_PAUSE: Duration = Duration::from_secs(1);

/// The state before a loader ran whose value may stay in this process alone.
pub(super) struct Before {
    /// If a connection begins to watch meanwhile, it has missed changes of what the loader has
    /// read.
    watch: Arc<Watch>,
    cleared: u64,
    changes: u64,
}

impl<K, V> Inner<K, V>
where
    K: TierKey + Hash + Eq + Clone + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    /// The engine is away: the loader runs, and what it brings stays in this process, for a short
    /// time.
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
        let before = self.before();
        match load.await {
            Ok(given) => Ok(self.kept_here(given, before)),
            Err(error) => self.old(old).ok_or(error),
        }
    }

    pub(super) fn before(&self) -> Before {
        Before {
            watch: self.stream.degraded_watch(),
            cleared: self.stream.cleared(),
            changes: self.stream.tags.changes(),
        }
    }

    /// A value that the engine has not taken.
    pub(super) fn kept_here(&self, given: Option<Given<V>>, before: Before) -> Loaded<Held<V>> {
        let (value, life) = match given {
            Some(given) => (Some(given.value), given.life),
            None => (None, Life::ttl(self.settings.negative_ttl)),
        };
        let tags = life.tags.iter().map(|tag| self.stream.tag_unasked(tag));
        let tags: Box<[_]> = tags.collect();
        if !tags.is_empty() && self.stream.tags.changes() != before.changes {
            // One of them, perhaps.
            return self.value_only(value);
        }
        let ttl = life.ttl.or(self.settings.life.ttl).unwrap_or_default();
        let stale_for = life.stale_for.or(self.settings.life.stale_for);
        let ttl = ttl.min(self.stream.degraded_life());
        let kept = stale_for.unwrap_or_default();
        let end = self.first.now().saturating_add(ttl).saturating_add(kept);
        let may_be_kept = (!kept.is_zero()).then_some(Kept {
            until: end,
            cleared: before.cleared,
        });
        let held = Held {
            value,
            watch: before.watch,
            more: More::unversioned(tags, may_be_kept),
        };
        Loaded::new(held, kept_after(Lifetime::ttl(ttl), kept))
    }

    /// An old value in place of an error, for a moment.
    pub(super) fn old(&self, old: Option<Held<V>>) -> Option<Loaded<Held<V>>> {
        let now = self.first.now();
        let mut held = old?;
        // Before it is looked at: what is heard from now on ends it.
        let watch = self.stream.degraded_watch();
        let kept = held.kept(now, self.stream.cleared())?;
        self.counters.stale_on_error();
        let left = kept.until.saturating_sub(now);
        held.watch = watch;
        let tags = held.more.take().map(|more| more.tags.clone());
        held.more = More::unversioned(tags.unwrap_or_default(), Some(kept));
        let ttl = left.min(ERROR_PAUSE).min(self.stream.degraded_life());
        if ttl.is_zero() {
            return Some(unstored(held));
        }
        let life = Lifetime::ttl(ttl).stale_for(left.saturating_sub(ttl));
        Some(Loaded::new(held, life))
    }
}
