//! Failed loads: the time of the next try, the old value that is served until then, and how long
//! the error is remembered.
//!
//! The old value of the key stays where it is, dead or alive. Its soft deadline is past, and
//! becomes the time of the next try. So nothing is allocated for a failing origin, however many
//! keys are asked for.

use std::any::{Any, TypeId};
use std::convert::Infallible;
use std::time::Duration;

use tidewheel_store::{Slot, Soft, TypedStore};
use tidewheel_time::Moment;

use super::Shard;
use super::config::Config;
use super::flight::Negative;
use super::rules::{Hashed, Rules};

/// The time for which a failing origin is not asked again if the builder sets none, in ticks.
pub(crate) const ERROR_BACKOFF: u64 = 1000;

/// The time after which a failed refresh is tried again if the entry has no end.
const RETRY_TICKS: u64 = 60_000;

/// Returns how long to remember an error; `None` if it has another type.
pub(crate) type ErrorTtl = Box<dyn Fn(&(dyn Any + Send + Sync)) -> Option<Duration> + Send + Sync>;

/// Returns whether a loader with this error type can fail at all.
pub(crate) fn may_fail<E: 'static>() -> bool {
    TypeId::of::<E>() != TypeId::of::<Infallible>()
}

impl<K: Eq, V> Shard<K, V> {
    /// A load has failed. An old value that needs a new one is served in its place for a while.
    pub(crate) fn try_later<S>(
        &mut self,
        rules: &Rules<K, V, S>,
        hash: Hashed,
        key: &K,
        now: Moment,
    ) {
        let Some(slot) = self.find(hash, key) else {
            return;
        };
        let is_live = self.is_live(rules, slot, now);
        let is_fresh = is_live && !self.is_due(slot, now);
        if !is_fresh && self.is_kept(rules, slot, now) {
            rules
                .config
                .put_off(&mut self.store, slot, is_live, now.tick());
        }
    }
}

impl<K, V> Config<K, V> {
    /// A load has failed. The next one is tried after half of the time that the entry has left, so
    /// that a failing origin is asked a few times before the end; but not before the back-off is
    /// over.
    fn put_off(&self, store: &mut TypedStore<K, V>, slot: Slot, is_live: bool, now: u64) {
        let attributes = store.attributes(slot);
        let left = match self.hard_end(&attributes) {
            _ if !is_live => 0,
            Some(end) => end.saturating_sub(now) / 2,
            None => RETRY_TICKS,
        };
        let wait = left.max(self.error_backoff);
        store.set_soft(slot, Soft::again_at(now.saturating_add(wait)));
    }

    /// Returns how long an error or absence is remembered. Runs user code: without any lock.
    /// `absent_for` is what the loader wants for an absence.
    pub(crate) fn remembered_for(
        &self,
        negative: &Negative,
        absent_for: Option<Duration>,
    ) -> Option<Duration> {
        let own = match negative {
            Negative::Absent => absent_for,
            Negative::Error(error) => self.error_ttls.iter().find_map(|ttl| ttl(&**error)),
        };
        own.or(self.negative_ttl).filter(|ttl| !ttl.is_zero())
    }
}
