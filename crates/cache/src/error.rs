//! Errors in a configuration.

use std::fmt;

/// Why a cache was not built.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum BuildError {
    /// The builder was not told how long entries live: set `time_to_live`, `time_to_idle`,
    /// `expire_after` or `no_default_ttl`.
    TtlUnanswered,
    /// The builder was not told how much the cache may hold: set `max_capacity` or `unbounded`.
    CapacityUnanswered,
    /// A value is outside its range.
    OutOfRange {
        /// The builder's method.
        option: &'static str,
        /// The values that it takes.
        expected: &'static str,
    },
    /// The driver needs threads, which the feature `system` brings: choose `Driver::Manual` or
    /// `Driver::Task`.
    NoThreads,
    /// A future of yours is to be polled, and no task would poll it: choose `Driver::Task` or
    /// `SharedDriver::task`, or the builder's method without `_async`.
    NoTask {
        /// The builder's method.
        option: &'static str,
    },
    /// Nothing would ever be refreshed: set `refresh_after`, to 1 if each entry says by
    /// `Lifetime::fresh_for` until when it is fresh.
    NeverStale,
    /// There is no clock without the feature `system`: set `clock`.
    NoClock,
    /// The operating system refused a thread.
    Thread(String),
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TtlUnanswered => f.write_str(
                "say how long entries live: time_to_live, time_to_idle, expire_after or no_default_ttl",
            ),
            Self::CapacityUnanswered => {
                f.write_str("say how much the cache may hold: max_capacity or unbounded")
            }
            Self::OutOfRange { option, expected } => write!(f, "{option} takes {expected}"),
            Self::NoThreads => f.write_str(
                "the driver thread needs the feature `system`: choose Driver::Manual or Driver::Task",
            ),
            Self::NoTask { option } => write!(
                f,
                "{option} needs a task that polls it: choose Driver::Task or SharedDriver::task"
            ),
            Self::NeverStale => f.write_str(
                "refresh_with needs refresh_after, which says when: a fraction of the time to live, or 1 if each entry \
                 says it by Lifetime::fresh_for",
            ),
            Self::NoClock => f.write_str("without the feature `system` a clock must be given"),
            Self::Thread(why) => write!(f, "start the driver thread: {why}"),
        }
    }
}

impl std::error::Error for BuildError {}
