//! Counters of events in the tier.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident: $metric:literal,)*) => {
        /// Counts of events in this process since its cache was built.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct TierStats {
            $($(#[$doc])* pub $name: u64,)*
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
                #[cfg(feature = "metrics")]
                metrics::counter!($metric).increment(1);
            })*
        }
    };
}

counters! {
    /// Questions for values that the engine answered.
    looks: "tidewheel_tier_looks_total",
    /// Looks of those that found a value.
    found: "tidewheel_tier_found_total",
    /// Loaders that ran.
    loads: "tidewheel_tier_loads_total",
    /// Values that were stored in the engine after a load.
    fills: "tidewheel_tier_fills_total",
    /// Values that were not: the lease was over, or a tag was invalidated during the load.
    fills_refused: "tidewheel_tier_fills_refused_total",
    /// Loads that waited for that of another process.
    waits: "tidewheel_tier_waits_total",
    /// Loads that went without the engine.
    alone: "tidewheel_tier_alone_total",
    /// Old values that were answered because a loader failed.
    stale_on_error: "tidewheel_tier_stale_on_error_total",
    /// Entries of the first tier that could not be believed when they were read.
    unbelieved: "tidewheel_tier_unbelieved_total",
    /// Values that could not be read: of another program, or another codec.
    unreadable: "tidewheel_tier_unreadable_total",
    /// Questions and orders that the engine did not answer, or refused.
    engine_errors: "tidewheel_tier_engine_errors_total",
    /// Keys for which an invalidation message was received.
    changes: "tidewheel_tier_changes_total",
}
