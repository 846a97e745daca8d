//! The lifetime of one entry: what a caller states, and the deadline that follows from it.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::shard::tags::{GivenTags, TagGraph};

/// An entry's lifetime, and its tags.
///
/// ```
/// use std::time::Duration;
/// use tidewheel::Lifetime;
///
/// let session = Lifetime::ttl(Duration::from_secs(1800)).tag("user:42");
/// let price = Lifetime::ttl(Duration::from_secs(60)).fresh_for(Duration::from_secs(45));
/// # let _ = (session, price);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lifetime {
    pub(crate) ttl: TtlChoice,
    pub(crate) fresh_for: Option<Duration>,
    pub(crate) stale_for: Option<Duration>,
    pub(crate) tags: GivenTags,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum TtlChoice {
    #[default]
    Configured,
    Never,
    For(Duration),
    At(SystemTime),
    /// So long after a reading of `Cache::now`.
    Since(Duration, Duration),
    /// A tick of engine time, which an entry has as its end already.
    AtTick(u64),
}

impl Lifetime {
    /// The lifetime that the cache was configured with.
    #[must_use]
    pub fn configured() -> Self {
        Self::default()
    }

    /// Returns whether the caller stated nothing but the end.
    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        self.fresh_for.is_none() && self.stale_for.is_none() && self.tags.is_empty()
    }

    /// The entry ends when so much time has passed. Bounds and jitter of the cache apply.
    ///
    /// Zero is for an answer that may not be used again, such as one with `max-age=0`: the caller
    /// of a load gets it, and those who wait for that load; nobody after them. It is not stored,
    /// takes nobody's room, and what was there before goes. A listener gets it at once, as
    /// [`RemovalCause::Expired`](crate::RemovalCause::Expired). With
    /// [`stale_for`](Self::stale_for), or
    /// [`Builder::stale_on_error`](crate::Builder::stale_on_error), it is kept for the case that
    /// the next load fails. [`Builder::ttl_bounds`](crate::Builder::ttl_bounds) may make more of
    /// it.
    #[must_use]
    pub fn ttl(ttl: Duration) -> Self {
        Self {
            ttl: TtlChoice::For(ttl),
            ..Self::default()
        }
    }

    /// The entry ends at a point in wall time, which is converted once, now: a later step of the
    /// wall clock changes nothing. Bounds and jitter do not apply.
    #[must_use]
    pub fn until(at: SystemTime) -> Self {
        Self {
            ttl: TtlChoice::At(at),
            ..Self::default()
        }
    }

    /// The entry ends when so much time has passed since `begin`, a reading of
    /// [`Cache::now`](crate::Cache::now). For what was true when it was asked for, and is stored
    /// later: the time in between counts. A `begin` that lies ahead is now. Bounds and jitter do
    /// not apply.
    #[must_use]
    pub fn ttl_since(begin: Duration, ttl: Duration) -> Self {
        Self {
            ttl: TtlChoice::Since(begin, ttl),
            ..Self::default()
        }
    }

    /// No end.
    #[must_use]
    pub fn forever() -> Self {
        Self {
            ttl: TtlChoice::Never,
            ..Self::default()
        }
    }

    /// The soft deadline, so long after the entry is stored: from then on it is still served, but a
    /// loader or the refresher replaces it. Counts instead of
    /// [`Builder::refresh_after`](crate::Builder::refresh_after). It belongs to the value: neither
    /// reads nor [`Cache::expire`](crate::Cache::expire) or
    /// [`Cache::persist`](crate::Cache::persist) move it, and an entry without an end has it too.
    ///
    /// It is HTTP's `stale-while-revalidate` (RFC 5861), counted from the other end:
    ///
    /// ```
    /// use std::time::Duration;
    /// use tidewheel::Lifetime;
    ///
    /// // Cache-Control: max-age=600, stale-while-revalidate=30
    /// let page = Lifetime::ttl(Duration::from_secs(630)).fresh_for(Duration::from_secs(600));
    /// # let _ = page;
    /// ```
    #[doc(alias = "stale_while_revalidate", alias = "stale-while-revalidate")]
    #[must_use]
    pub fn fresh_for(mut self, fresh_for: Duration) -> Self {
        self.fresh_for = Some(fresh_for);
        self
    }

    /// Keeps the entry for so long after its end, in case its loader fails, instead of
    /// [`Builder::stale_on_error`](crate::Builder::stale_on_error): HTTP's `stale-if-error` (RFC
    /// 5861) of one answer. Zero: not at all. At most 17 years.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tidewheel::Lifetime;
    ///
    /// // Cache-Control: max-age=600, stale-if-error=86400
    /// let page = Lifetime::ttl(Duration::from_secs(600)).stale_for(Duration::from_secs(86_400));
    /// // Cache-Control: max-age=0, stale-if-error=60: asked for each time, and served if that fails.
    /// let price = Lifetime::ttl(Duration::ZERO).stale_for(Duration::from_secs(60));
    /// # let _ = (page, price);
    /// ```
    ///
    /// It belongs to the entry: [`Cache::expire`](crate::Cache::expire) and
    /// [`Cache::persist`](crate::Cache::persist) leave it as it is, and an update keeps it. A
    /// refresh keeps it unless the refresher returns a lifetime of its own.
    #[doc(alias = "stale_if_error", alias = "stale-if-error")]
    #[must_use]
    pub fn stale_for(mut self, stale_for: Duration) -> Self {
        self.stale_for = Some(stale_for);
        self
    }

    /// A tag by which the entry can be invalidated together with others. May be called several
    /// times; an entry with more than 32 tags is invalidated by any tag, whether it has it or not.
    #[must_use]
    pub fn tag(mut self, tag: impl Into<Arc<str>>) -> Self {
        self.tags.push(tag.into(), TagGraph::new);
        self
    }
}

/// The remaining time to live of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ttl {
    /// There is no such entry.
    Missing,
    /// The entry has no end.
    Forever,
    /// It ends after so long.
    Left(Duration),
}

/// The condition under which a new deadline is set; the names in brackets are Redis's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Condition {
    /// Always.
    #[default]
    Always,
    /// Only if the entry has no deadline (NX).
    IfNone,
    /// Only if it has one (XX).
    IfSome,
    /// Only if the new one is later (GT). No deadline counts as the latest.
    IfLater,
    /// Only if the new one is earlier (LT). No deadline counts as the latest.
    IfEarlier,
}

impl Condition {
    /// Returns whether a new deadline replaces the old one.
    pub(crate) fn allows(self, old: Option<u64>, new: u64) -> bool {
        match self {
            Self::Always => true,
            Self::IfNone => old.is_none(),
            Self::IfSome => old.is_some(),
            Self::IfLater => old.is_some_and(|old| new > old),
            Self::IfEarlier => old.is_none_or(|old| new < old),
        }
    }
}

/// Spreads deadlines, so that what was stored together does not expire together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Jitter {
    fraction: f64,
    lengthens: bool,
}

impl Jitter {
    /// A TTL becomes one in `[ttl * (1 - fraction), ttl]`: it stays a maximum. `fraction` is in
    /// `0..1`.
    #[must_use]
    pub const fn shorten(fraction: f64) -> Self {
        Self {
            fraction,
            lengthens: false,
        }
    }

    /// A TTL becomes one in `[ttl, ttl * (1 + fraction)]`: it becomes a minimum. `fraction` is in
    /// `0..1`.
    #[must_use]
    pub const fn lengthen(fraction: f64) -> Self {
        Self {
            fraction,
            lengthens: true,
        }
    }

    pub(crate) fn is_valid(self) -> bool {
        (0.0..1.0).contains(&self.fraction)
    }

    /// `seed` should be another one each time; no two of its bits need be independent.
    pub(crate) fn apply(self, ttl: Duration, seed: u64) -> Duration {
        let share = (spread(seed) >> 11) as f64 / (1u64 << 53) as f64 * self.fraction;
        let delta = Duration::try_from_secs_f64(ttl.as_secs_f64() * share).unwrap_or_default();
        if self.lengthens {
            ttl.saturating_add(delta)
        } else {
            ttl.saturating_sub(delta)
        }
    }
}

/// SplitMix64's finaliser: every bit of the seed changes half of the result.
fn spread(seed: u64) -> u64 {
    let x = (seed ^ seed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

impl From<f64> for Jitter {
    /// [`Jitter::shorten`].
    fn from(fraction: f64) -> Self {
        Self::shorten(fraction)
    }
}

/// Decides how long each entry lives, from its key and value. Called without any lock, except
/// `expire_after_read`.
///
/// It decides for entries that are stored with the configured lifetime. An end that is given
/// otherwise, by a [`Lifetime`], [`Cache::expire`](crate::Cache::expire) or
/// [`Cache::persist`](crate::Cache::persist), counts alone.
///
/// A closure `Fn(&K, &V) -> Option<Duration>` is one: it says the time to live of what is stored,
/// and reads change nothing. (In [`Builder::time_to_live_by`](crate::Builder::time_to_live_by) the
/// types of its arguments are inferred.) So are `Box<dyn Expiry<K, V>>` and an `Arc` of one.
pub trait Expiry<K, V>: Send + Sync {
    /// The time to live of a new entry; `None` for no end.
    fn expire_after_create(&self, key: &K, value: &V) -> Option<Duration>;

    /// The time to live after a value was replaced; `left` is what was left of the old one's. The
    /// default treats the entry as new.
    fn expire_after_update(&self, key: &K, value: &V, left: Option<Duration>) -> Option<Duration> {
        let _ = left;
        self.expire_after_create(key, value)
    }

    /// The time to live after a read; `left` is what is left. The default changes nothing. Not
    /// asked about an entry whose end was given. Runs under the shard's lock: it must be quick and
    /// must not call the cache. A writer that came between has it called again, for the value that
    /// is there then.
    fn expire_after_read(&self, key: &K, value: &V, left: Option<Duration>) -> Option<Duration> {
        let _ = (key, value);
        left
    }
}

impl<K, V, F> Expiry<K, V> for F
where
    F: Fn(&K, &V) -> Option<Duration> + Send + Sync,
{
    fn expire_after_create(&self, key: &K, value: &V) -> Option<Duration> {
        self(key, value)
    }
}

/// Hands every question on, those that have a default too.
macro_rules! hands_on {
    () => {
        fn expire_after_create(&self, key: &K, value: &V) -> Option<Duration> {
            (**self).expire_after_create(key, value)
        }

        fn expire_after_update(
            &self,
            key: &K,
            value: &V,
            left: Option<Duration>,
        ) -> Option<Duration> {
            (**self).expire_after_update(key, value, left)
        }

        fn expire_after_read(
            &self,
            key: &K,
            value: &V,
            left: Option<Duration>,
        ) -> Option<Duration> {
            (**self).expire_after_read(key, value, left)
        }
    };
}

impl<K, V> Expiry<K, V> for Box<dyn Expiry<K, V>> {
    hands_on!();
}

impl<K, V, T: Expiry<K, V> + ?Sized> Expiry<K, V> for Arc<T> {
    hands_on!();
}

#[cfg(test)]
mod tests {
    use super::*;

    /// If a key had the same jitter at each reload, deadlines would gather again.
    #[test]
    fn jitter_of_one_key_differs_from_reload_to_reload() {
        let ttl = Duration::from_secs(100);
        let jitter = Jitter::shorten(0.5);
        let second = |at: u64| jitter.apply(ttl, 0x1234_5678_9abc_def0 ^ at.rotate_left(32));
        // Reloads a tenth of a second apart: the results fill the whole range evenly.
        let mut tenths = [0; 10];
        for reload in 0..1000 {
            let after = second(reload * 100_000_000).as_secs_f64();
            tenths[((after - 50.0) / 5.0) as usize] += 1;
        }
        assert!(
            tenths.iter().all(|count| (60..140).contains(count)),
            "{tenths:?}"
        );
    }
}
