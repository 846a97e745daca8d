//! The answer of a load, with its outcome.

use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;

/// An answer, and where it comes from; what a [`Fetch`](crate::Fetch) returns.
///
/// ```
/// use std::time::Duration;
/// use tidewheel::{Cache, Driver, ManualClock, Outcome};
/// # fn main() -> Result<(), tidewheel::BuildError> {
/// let clock = ManualClock::new();
/// let cache = Cache::<&str, u32>::builder()
///     .max_capacity(1000)
///     .time_to_live(Duration::from_secs(60))
///     .stale_on_error(Duration::from_secs(86_400))
///     .clock(clock.clone())
///     .driver(Driver::Manual)
///     .build()?;
/// cache.insert("tea", 7);
/// clock.advance(Duration::from_secs(60));
/// let price = cache.fetch("tea").try_load(|| Err("the origin is down"));
/// assert_eq!((price.value, price.outcome), (Ok(7), Outcome::StaleOnError));
/// assert_eq!(price.error.as_deref(), Some(&"the origin is down"));
/// # Ok(())
/// # }
/// ```
#[doc(alias = "is_fresh")]
#[derive(Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Fetched<T, E = Infallible> {
    /// The answer, as [`Cache::get_or_load`](crate::Cache::get_or_load) and its variants return it.
    pub value: T,
    /// The origin of the answer.
    pub outcome: Outcome,
    /// The loader's error, in place of which the old value is answered: with
    /// [`Outcome::StaleOnError`] alone. The caller of the loader gets it, and so does each caller
    /// that has waited for it. Who is given the old value later, without a call, has it if it is
    /// remembered ([`Builder::negative_ttl`](crate::Builder::negative_ttl)). It is `None` where
    /// `value` is the error itself.
    pub error: Option<Arc<E>>,
}

impl<T: Clone, E> Clone for Fetched<T, E> {
    fn clone(&self) -> Self {
        Self {
            value: self.value.clone(),
            outcome: self.outcome,
            error: self.error.clone(),
        }
    }
}

/// The origin of a load's answer. Prints as a word for a header such as `X-Cache`.
///
/// Each outcome adds one to these [`Stats`](crate::Stats):
///
/// | outcome | counters |
/// |---|---|
/// | [`Hit`](Self::Hit) | `hits` |
/// | [`Stale`](Self::Stale) | `hits`, `stale_hits` |
/// | [`StaleOnError`](Self::StaleOnError) | `misses`, `stale_hits`, `stale_on_error` |
/// | [`Loaded`](Self::Loaded) | `misses`, `loads` |
/// | [`Joined`](Self::Joined) | `misses`, `joined` |
/// | [`Negative`](Self::Negative) | `misses`, `negative_hits` |
///
/// A loader that runs is counted in `loads`, one that fails in `load_errors`, whatever the answer
/// is; an error or absence that is remembered in `negative_hits`, also where an old value is
/// answered in its place, or after a wait. Who waits has been counted as a miss before, and stays
/// one if the answer is then [`Stale`](Self::Stale).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Outcome {
    /// The value was there: `HIT`.
    Hit,
    /// The value was there, past its soft deadline. Another caller or the refresher loads it again,
    /// or did so in vain a moment ago: `STALE`.
    Stale,
    /// A loader failed, now or a moment ago, and the old value is served in place of its error
    /// ([`Fetched::error`]): `STALE-ON-ERROR`.
    StaleOnError,
    /// This call's loader has run. It may have failed, or found nothing: `MISS`.
    Loaded,
    /// Another caller was loading the key, or changing it
    /// ([`Entry::compute_async`](crate::Entry::compute_async)), and this call has waited for that:
    /// `JOINED`.
    Joined,
    /// An error or an absence that is remembered
    /// ([`Builder::negative_ttl`](crate::Builder::negative_ttl)): `NEGATIVE`.
    Negative,
}

impl Outcome {
    /// Returns the outcome for a caller that has waited for another one first.
    pub(super) fn after_a_wait(self) -> Self {
        match self {
            Self::Hit | Self::Negative => Self::Joined,
            other => other,
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Hit => "HIT",
            Self::Stale => "STALE",
            Self::StaleOnError => "STALE-ON-ERROR",
            Self::Loaded => "MISS",
            Self::Joined => "JOINED",
            Self::Negative => "NEGATIVE",
        })
    }
}

impl<T, E> Fetched<T, E> {
    #[inline]
    pub(crate) fn new(value: T, outcome: Outcome) -> Self {
        Self {
            value,
            outcome,
            error: None,
        }
    }

    /// An old value in place of an error, which is not always known.
    pub(crate) fn stale(value: T, error: Option<Arc<E>>) -> Self {
        Self {
            value,
            outcome: Outcome::StaleOnError,
            error,
        }
    }

    #[inline]
    pub(crate) fn map<U>(self, map: impl FnOnce(T) -> U) -> Fetched<U, E> {
        Fetched {
            value: map(self.value),
            outcome: self.outcome,
            error: self.error,
        }
    }
}
