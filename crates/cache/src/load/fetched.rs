//! What a load has come to, for those who tell others: an answer, and where it comes from.

use std::fmt;

/// An answer, and where it comes from; what a [`Fetch`](crate::Fetch) returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Fetched<T> {
    /// What [`Cache::get_or_load`](crate::Cache::get_or_load) and its kin return.
    pub value: T,
    /// Where it comes from.
    pub outcome: Outcome,
}

/// Where the answer of a load comes from. Prints as a word for a header such as `X-Cache`.
///
/// Which of the [`Stats`](crate::Stats) each moves, by one:
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
/// A loader that runs is counted in `loads`, one that fails in `load_errors`, whatever the answer is; an error or absence
/// that is remembered in `negative_hits`, also where an old value is answered in its place, or after a wait. Who waits
/// has been counted as a miss before, and stays one if the answer is then [`Stale`](Self::Stale).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Outcome {
    /// The value was there: `HIT`.
    Hit,
    /// The value was there, past its soft deadline. Another caller or the refresher loads it again, or did so in vain
    /// a moment ago: `STALE`.
    Stale,
    /// A loader failed, now or a moment ago, and the old value is served in place of its error: `STALE-ON-ERROR`.
    StaleOnError,
    /// This call's loader has run. It may have failed, or found nothing: `MISS`.
    Loaded,
    /// Another caller was loading the key, or changing it ([`Entry::compute_async`](crate::Entry::compute_async)), and
    /// this call has waited for that: `JOINED`.
    Joined,
    /// An error or an absence that is remembered ([`Builder::negative_ttl`](crate::Builder::negative_ttl)):
    /// `NEGATIVE`.
    Negative,
}

impl Outcome {
    /// What it is for a caller that has waited for another one first.
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

impl<T> Fetched<T> {
    #[inline]
    pub(crate) fn new(value: T, outcome: Outcome) -> Self {
        Self { value, outcome }
    }

    #[inline]
    pub(crate) fn map<U>(self, map: impl FnOnce(T) -> U) -> Fetched<U> {
        Fetched::new(map(self.value), self.outcome)
    }
}
