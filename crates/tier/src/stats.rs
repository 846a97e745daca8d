//! Counters of events in the tier.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

macro_rules! counters {
    ($(#[doc = $doc:literal] $name:ident,)*) => {
        /// Counts of events in this process since its cache was built.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct TierStats {
            $(#[doc = $doc] pub $name: u64,)*
        }

        /// The counters.
        #[derive(Debug, Default)]
        pub(crate) struct Counters {
            $($name: AtomicU64,)*
        }

        impl Counters {
            pub(crate) fn read(&self) -> TierStats {
                TierStats { $($name: self.$name.load(Relaxed),)* }
            }

            $(pub(crate) fn $name(&self) {
                self.$name.fetch_add(1, Relaxed);
            })*
        }

        /// The counters as metrics: name, value, and what exporters say of it.
        #[cfg(feature = "metrics")]
        pub(crate) const METRICS: &[(&str, fn(&TierStats) -> u64, &str)] = &[
            $((
                concat!("tidewheel_tier_", stringify!($name), "_total"),
                |stats| stats.$name,
                $doc,
            ),)*
        ];
    };
}

counters! {
    /// Questions for values that the engine answered.
    looks,
    /// Looks of those that found a value.
    found,
    /// Loaders that ran.
    loads,
    /// Values that were stored in the engine after a load.
    fills,
    /// Values that were not: the lease was over, or a tag was invalidated during the load.
    fills_refused,
    /// Loads that waited for that of another process.
    waits,
    /// Loads that went without the engine.
    alone,
    /// Old values that were answered because a loader failed.
    stale_on_error,
    /// Entries of the first tier that could not be believed when they were read.
    unbelieved,
    /// Values that could not be read: of another program, or another codec.
    unreadable,
    /// Questions and orders that the engine did not answer, or refused.
    engine_errors,
    /// Keys for which an invalidation message was received.
    changes,
}
