//! Counters that many threads write without waiting for each other.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use tidewheel_store::{SEATS, known_seat, seat};
#[cfg(feature = "metrics")]
use tidewheel_time::Histogram;

/// The threads with the lowest numbers count in stripes of their own; the others share the last
/// one.
const STRIPES: usize = 64;

/// The stripe of the threads that have none of their own.
const SHARED: usize = STRIPES - 1;

const _: () = assert!(
    SHARED <= SEATS,
    "a number that is no thread's own is above them"
);

/// One thread's counts, on cache lines of their own.
#[repr(align(128))]
struct Stripe {
    counts: [AtomicU64; Count::KINDS],
}

impl Stripe {
    const fn new() -> Self {
        Self {
            counts: [const { AtomicU64::new(0) }; Count::KINDS],
        }
    }
}

/// The counters of one cache.
pub(crate) struct Counters {
    stripes: Box<[Stripe; STRIPES]>,
    /// How long loaders took, in microseconds.
    #[cfg(feature = "metrics")]
    pub(crate) load_us: Histogram,
}

impl Counters {
    pub(crate) fn new() -> Self {
        Self {
            stripes: Box::new([const { Stripe::new() }; STRIPES]),
            #[cfg(feature = "metrics")]
            load_us: Histogram::default(),
        }
    }

    #[inline]
    pub(crate) fn add(&self, count: Count, by: u64) {
        let seat = known_seat();
        if seat >= SHARED {
            return self.add_apart(count, by);
        }
        self.add_alone(seat, count, by);
    }

    /// Counts for a thread with a stripe of its own.
    #[inline(always)]
    fn add_alone(&self, seat: usize, count: Count, by: u64) {
        // Nobody else writes here: no locked instruction.
        let cell = &self.stripes[seat].counts[count as usize];
        cell.store(cell.load(Relaxed).wrapping_add(by), Relaxed);
    }

    /// Counts for a thread that has no stripe of its own, or has not asked for one yet.
    #[cold]
    #[inline(never)]
    fn add_apart(&self, count: Count, by: u64) {
        match seat() {
            seat if seat < SHARED => self.add_alone(seat, count, by),
            _ => {
                self.stripes[SHARED].counts[count as usize].fetch_add(by, Relaxed);
            }
        }
    }

    pub(crate) fn sums(&self) -> [u64; Count::KINDS] {
        let mut sums = [0u64; Count::KINDS];
        for stripe in self.stripes.iter() {
            for (sum, count) in sums.iter_mut().zip(&stripe.counts) {
                *sum = sum.wrapping_add(count.load(Relaxed));
            }
        }
        sums
    }
}

/// Windows of [`Stats::lateness`].
pub(crate) const LATENESS_WINDOWS: usize = 24;

/// Defines the counters, and after `now:` the gauges. Each is a field of [`Stats`] and a metric,
/// and a counter a kind of event.
macro_rules! counters {
    (
        $($(#[$doc:meta])+ $field:ident: $count:ident, $metric:literal, $help:literal;)+
        now:
        $($(#[$gauge_doc:meta])+ $gauge:ident: $gauge_metric:literal, $gauge_help:literal;)+
    ) => {
        /// The events that are counted.
        #[derive(Clone, Copy)]
        #[repr(usize)]
        pub(crate) enum Count {
            $($count),+
        }

        impl Count {
            pub(crate) const KINDS: usize = [$(Self::$count),+].len();
        }

        /// The name of each counter's metric, and what exporters say of it.
        #[cfg(feature = "metrics")]
        pub(crate) const METRICS: [(&str, &str); Count::KINDS] = [$(($metric, $help)),+];

        /// The counters of a cache since it was built.
        ///
        /// [`Outcome`](crate::Outcome) says which counters each answer of a load moves.
        #[derive(Clone, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct Stats {
            $($(#[$doc])+ pub $field: u64,)+
            $($(#[$gauge_doc])+ pub $gauge: u64,)+
            /// Entries removed by their deadline, by how late: `[0]` within the tick, `[i]` later
            /// by `2^(i-1) ..< 2^i` ms.
            pub lateness: [u64; LATENESS_WINDOWS],
            /// The time that the earliest deadline that is over has been waiting for the driver;
            /// zero when none is.
            pub backlog: Duration,
        }

        impl Stats {
            /// What was counted; of what is there now, nothing.
            pub(crate) fn counted(counts: [u64; Count::KINDS]) -> Self {
                Self {
                    $($field: counts[Count::$count as usize],)+
                    $($gauge: 0,)+
                    lateness: [0; LATENESS_WINDOWS],
                    backlog: Duration::ZERO,
                }
            }

            #[cfg(feature = "metrics")]
            pub(crate) fn counts(&self) -> [u64; Count::KINDS] {
                [$(self.$field),+]
            }

            /// What is there now: the name of each gauge, what exporters say of it, its value.
            #[cfg(feature = "metrics")]
            pub(crate) fn gauges(&self) -> impl Iterator<Item = (&'static str, &'static str, u64)> {
                [$(($gauge_metric, $gauge_help, self.$gauge)),+].into_iter()
            }
        }

        /// Prints all fields, and the percentiles of the lateness.
        impl fmt::Debug for Stats {
            // Compiled with programs that print them.
            #[inline]
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct("Stats")
                    $(.field(stringify!($field), &self.$field))+
                    $(.field(stringify!($gauge), &self.$gauge))+
                    .field("lateness", &LatenessSummary(self))
                    .field("backlog", &self.backlog)
                    .finish()
            }
        }
    };
}

// Those that are counted most come first: they lie in one cache line.
counters! {
    /// Lookups that found a live entry.
    hits: Hit, "tidewheel_hits_total",
        "Lookups that found a live entry.";
    /// Lookups that did not.
    misses: Miss, "tidewheel_misses_total",
        "Lookups that did not find a live entry.";
    /// Answers with an old value: hits past their soft deadline, and those of
    /// [`stale_on_error`](Self::stale_on_error).
    stale_hits: Stale, "tidewheel_stale_hits_total",
        "Answers with a value past its soft deadline, or in place of an error.";
    /// Values stored: new and replaced ones. One with [a time to live of
    /// zero](crate::Lifetime::ttl) counts too, although it leaves at once.
    inserts: Insert, "tidewheel_inserts_total",
        "Entries stored, new and replaced.";
    /// Loaders that were run. A bulk load counts each of its keys.
    loads: Load, "tidewheel_loads_total",
        "Loaders that were run, each key of a bulk load.";
    /// Loaders that failed or panicked.
    load_errors: LoadError, "tidewheel_load_errors_total",
        "Loaders that failed or panicked.";
    /// Entries removed to make room. Those that were rejected had not come in.
    evictions: Eviction, "tidewheel_evictions_total",
        "Entries removed to make room.";
    /// Entries removed because their time was over.
    expirations: Expiration, "tidewheel_expirations_total",
        "Entries removed at their deadline.";
    /// Entries removed by the caller: one by one, by predicate or tag, all, or by
    /// [`close`](crate::Cache::close).
    removals: Removal, "tidewheel_removals_total",
        "Entries removed by the application.";
    /// Entries heavier than the whole capacity, which were not stored: the listener gets them. Not
    /// those that a caller is told of instead, as by
    /// [`compare_and_set`](crate::Cache::compare_and_set).
    rejected: Rejected, "tidewheel_rejected_total",
        "Entries heavier than the whole capacity, not stored.";
    /// Background refreshes that were begun: the refresher was called, unless the key's `Eq`
    /// panicked first.
    refreshes_begun: RefreshBegun, "tidewheel_refreshes_total",
        "Background refreshes begun.";
    /// Refreshes that returned a value or an absence. (Nothing came of it if the key was written
    /// meanwhile.)
    refreshes_done: RefreshDone, "tidewheel_refreshes_done_total",
        "Background refreshes that brought a value, or word that there is none.";
    /// Refreshes that failed, panicked, or were dropped with the task that drove them. A panic is
    /// the refresher's, or the key's `Eq`'s.
    refreshes_failed: RefreshFailed, "tidewheel_refreshes_failed_total",
        "Background refreshes that failed, panicked or were dropped.";
    /// Refreshes that were not queued because the queue was full: see
    /// [`Builder::refresh_queue`](crate::Builder::refresh_queue). One for each read that asked in
    /// vain.
    refreshes_skipped: RefreshSkipped, "tidewheel_refreshes_skipped_total",
        "Refreshes not started because the queue was full.";
    /// Events that the listener did not get, since its queue was full and `OnFull::Drop` was
    /// chosen.
    events_dropped: EventDropped, "tidewheel_events_dropped_total",
        "Events the listener did not get because its queue was full.";
    /// Panics of the listener. It goes on to be called.
    listener_panics: ListenerPanic, "tidewheel_listener_panics_total",
        "Panics of the listener.";
    /// Panics of keys' and values' `Drop` that the cache has met as it dropped them. Nothing is
    /// lost by them.
    drop_panics: DropPanic, "tidewheel_drop_panics_total",
        "Panics in drops of keys and values.";
    /// Errors and absences that were remembered and answered without a call of a loader
    /// ([`Builder::negative_ttl`](crate::Builder::negative_ttl)).
    negative_hits: NegativeHit, "tidewheel_negative_hits_total",
        "Errors and absences answered from memory.";
    /// Errors and absences that were forgotten before their time, to make room for others
    /// ([`Builder::negative_capacity`](crate::Builder::negative_capacity)).
    negatives_evicted: NegativeEvicted, "tidewheel_negatives_evicted_total",
        "Errors and absences forgotten to make room for others.";
    /// Old values that were served in place of a loader's error. These lookups are misses.
    stale_on_error: StaleOnError, "tidewheel_stale_on_error_total",
        "Old values served in place of a loader's error.";
    /// Misses that were answered by what another caller was loading: they have waited for it.
    joined: Joined, "tidewheel_joined_total",
        "Misses answered by what another caller was loading.";

    now:
    /// Refreshes that wait in the queue now.
    refreshes_queued: "tidewheel_refreshes_queued", "Refreshes that wait.";
    /// Refreshes that run now: at most
    /// [`Builder::refresh_parallelism`](crate::Builder::refresh_parallelism).
    refreshes_running: "tidewheel_refreshes_running", "Refreshes that run.";
    /// Errors and absences remembered now, those that are over and not yet removed
    /// included.
    negatives: "tidewheel_negatives", "Errors and absences that are remembered.";
    /// Entries present now, dead ones that are not yet removed included.
    entries: "tidewheel_entries", "Entries, those that are due but not removed included.";
    /// Their weight.
    weight: "tidewheel_weight", "The entries' weight.";
}

impl Stats {
    /// Hits in all lookups, 0 when there were none.
    #[must_use]
    pub fn hit_ratio(&self) -> f64 {
        let lookups = self.hits + self.misses;
        if lookups == 0 {
            0.0
        } else {
            self.hits as f64 / lookups as f64
        }
    }

    /// Entries of which [`lateness`](Self::lateness) tells how late they were removed.
    #[must_use]
    pub fn lateness_count(&self) -> u64 {
        self.lateness.iter().sum()
    }

    /// Returns the lateness that a share of the expired entries did not exceed:
    /// `lateness_percentile(99.0)` is that of 99 in 100. Rounded up to the end of its window: 0, 1,
    /// 3, 7, 15 … ms up to 2.3 hours. `None` when no entry has expired. Shares outside `0..=100`
    /// count as the nearest within.
    #[must_use]
    #[inline]
    pub fn lateness_percentile(&self, percent: f64) -> Option<Duration> {
        let count = self.lateness_count();
        let rank = (count as f64 * percent / 100.0)
            .ceil()
            .max(1.0)
            .min(count as f64);
        let mut seen = 0;
        let window = self.lateness.iter().position(|in_window| {
            seen += in_window;
            *in_window > 0 && seen as f64 >= rank
        })?;
        Some(Duration::from_millis((1 << window) - 1))
    }
}

/// The lateness of removed entries, as it is printed.
struct LatenessSummary<'a>(&'a Stats);

impl fmt::Debug for LatenessSummary<'_> {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut printed = f.debug_struct("Lateness");
        printed.field("count", &self.0.lateness_count());
        for (name, percent) in [("p50", 50.0), ("p99", 99.0), ("max", 100.0)] {
            if let Some(late) = self.0.lateness_percentile(percent) {
                printed.field(name, &late);
            }
        }
        printed.finish()
    }
}

/// One line, for logs.
impl fmt::Display for Stats {
    // Compiled with programs that print them.
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} entries of weight {}; {} lookups, {:.1} % hits, {} stale, {} negative, {} joined; \
             {} inserts, {} loads, {} failed; \
             {} expired, {} evicted, {} removed",
            self.entries,
            self.weight,
            self.hits + self.misses,
            self.hit_ratio() * 100.0,
            self.stale_hits,
            self.negative_hits,
            self.joined,
            self.inserts,
            self.loads,
            self.load_errors,
            self.expirations,
            self.evictions,
            self.removals,
        )?;
        let percentile = |percent| self.lateness_percentile(percent);
        if let (Some(p50), Some(p99), Some(max)) =
            (percentile(50.0), percentile(99.0), percentile(100.0))
        {
            let count = self.lateness_count();
            write!(
                f,
                "; lateness of {count}: p50 {p50:?}, p99 {p99:?}, max {max:?}"
            )?;
        }
        if !self.backlog.is_zero() {
            write!(f, "; behind by {:?}", self.backlog)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cache, Driver, ManualClock};

    /// It printed the 24 windows of the lateness.
    #[test]
    fn what_is_printed_of_the_lateness_are_percentiles() {
        let clock = ManualClock::new();
        let cache = Cache::<u32, u32>::builder()
            .unbounded()
            .time_to_live(Duration::from_millis(10))
            .clock(clock.clone())
            .driver(Driver::Manual)
            .build()
            .expect("valid");
        let printed = format!("{:?}", cache.stats());
        assert!(
            printed.contains("lateness: Lateness { count: 0 }"),
            "{printed}"
        );
        cache.insert(1, 1);
        clock.advance(Duration::from_millis(15));
        cache.run_due();
        let printed = format!("{:?}", cache.stats());
        let lateness = "lateness: Lateness { count: 1, p50: 7ms, p99: 7ms, max: 7ms }";
        assert!(printed.contains(lateness), "{printed}");
        assert!(printed.contains("Stats { hits: 0, misses: 0,"), "{printed}");
        assert!(printed.contains("entries: 0, weight: 0,"), "{printed}");
    }

    /// Each of the first 63 threads got a cell of its own. All later threads counted in one shared
    /// cell, although the first had ended.
    #[test]
    fn stripes_of_threads_that_ended_are_used_again() {
        let counters = std::sync::Arc::new(Counters::new());
        for _ in 0..3 * STRIPES {
            let counters = std::sync::Arc::clone(&counters);
            std::thread::spawn(move || counters.add(Count::Hit, 1))
                .join()
                .expect("counts");
        }
        assert_eq!(counters.sums()[Count::Hit as usize], 3 * STRIPES as u64);
        let shared = counters.stripes[SHARED].counts[Count::Hit as usize].load(Relaxed);
        assert_eq!(shared, 0, "there were free stripes");
    }
}
