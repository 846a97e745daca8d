//! Processor time of short stretches: wall time, less what the thread waited for a processor.
//!
//! The kernel's own count of processor time moves in ticks of milliseconds, while its count of waiting
//! is exact whenever the thread runs again. A stretch in which the thread was put aside would else be
//! the figure.
//!
//! The count is read at both ends of every stretch: one that was kept from an earlier stretch would take
//! waiting off a later one. A reading takes microseconds itself, and the thread may be put aside in it.
//! Then nobody can tell on which side of the stretch's end that was, so as much as the reading took is not
//! taken off: a figure may be too large by that, and never too small.

use std::fs;

use crate::clock;

/// What is told without looking whether the thread was put aside: nobody takes the processor for less.
const SHORT_NS: u64 = 10_000;

/// Where a stopwatch reads what has passed.
pub(crate) trait Counters {
    /// Nanoseconds on a clock that does not go back.
    fn mono_ns(&self) -> u64;

    /// How long this thread has waited for a processor while it could have run.
    fn waited_ns(&self) -> u64;
}

/// The laboratory's clock and the kernel's count for the thread that asks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ThisThread;

/// A stretch that has begun.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stopwatch<C = ThisThread> {
    counters: C,
    /// Waiting until before the stretch, and how much of what is counted later may belong there as well.
    waited_ns: u64,
    unsure_ns: u64,
    from_ns: u64,
}

impl Stopwatch {
    /// Begins a stretch of this thread.
    pub(crate) fn start() -> Self {
        Self::start_by(ThisThread)
    }
}

impl<C: Counters> Stopwatch<C> {
    fn start_by(counters: C) -> Self {
        let looked_ns = counters.mono_ns();
        let waited_ns = counters.waited_ns();
        let from_ns = counters.mono_ns();
        Self {
            counters,
            waited_ns,
            unsure_ns: unsure_ns(looked_ns, from_ns),
            from_ns,
        }
    }

    /// Nanoseconds since it was started.
    pub(crate) fn stop(self) -> u64 {
        let to_ns = self.counters.mono_ns();
        let wall_ns = to_ns - self.from_ns;
        if wall_ns < SHORT_NS {
            return wall_ns;
        }
        let waited_ns = self.counters.waited_ns().saturating_sub(self.waited_ns);
        let unsure_ns = self.unsure_ns + unsure_ns(to_ns, self.counters.mono_ns());
        wall_ns.saturating_sub(waited_ns.saturating_sub(unsure_ns))
    }
}

/// What may have been waited while the count was read.
fn unsure_ns(from_ns: u64, to_ns: u64) -> u64 {
    let took_ns = to_ns - from_ns;
    if took_ns < SHORT_NS { 0 } else { took_ns }
}

impl Counters for ThisThread {
    fn mono_ns(&self) -> u64 {
        clock::mono_ns()
    }

    /// 0 where nobody tells.
    fn waited_ns(&self) -> u64 {
        fs::read_to_string("/proc/thread-self/schedstat")
            .ok()
            .and_then(|text| waited_of(&text))
            .unwrap_or(0)
    }
}

/// Time on a processor, time spent waiting for one, turns.
fn waited_of(schedstat: &str) -> Option<u64> {
    schedstat.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    const LOOK_NS: u64 = 1_500;

    /// A thread in virtual time; a look at how long it waited takes a moment.
    #[derive(Debug, Default)]
    struct Thread {
        now_ns: Cell<u64>,
        waited_ns: Cell<u64>,
        /// How long it is put aside in every look, before the count is read and after.
        aside_ns: (u64, u64),
    }

    impl Thread {
        fn works(&self, ns: u64) {
            self.now_ns.set(self.now_ns.get() + ns);
        }

        fn waits(&self, ns: u64) {
            self.works(ns);
            self.waited_ns.set(self.waited_ns.get() + ns);
        }
    }

    impl Counters for &Thread {
        fn mono_ns(&self) -> u64 {
            self.now_ns.get()
        }

        fn waited_ns(&self) -> u64 {
            self.waits(self.aside_ns.0);
            self.works(LOOK_NS);
            let waited_ns = self.waited_ns.get();
            self.waits(self.aside_ns.1);
            waited_ns
        }
    }

    #[test]
    fn waiting_is_taken_off_the_stretch_that_waited_and_no_later_one() {
        let thread = Thread::default();
        let lap_ns = |work_ns, wait_ns| {
            let watch = Stopwatch::start_by(&thread);
            thread.works(work_ns);
            thread.waits(wait_ns);
            watch.stop()
        };
        assert_eq!(lap_ns(60_000, 30_000), 60_000);
        // Between two stretches, and before one that is too short for a look.
        thread.waits(40_000);
        assert_eq!(lap_ns(2_000, 0), 2_000);
        thread.waits(40_000);
        assert_eq!(lap_ns(90_000, 0), 90_000);
        assert_eq!(lap_ns(90_000, 5_000), 90_000);
    }

    #[test]
    fn waiting_in_a_look_never_makes_a_stretch_too_short() {
        for aside_ns in [(50_000, 0), (0, 50_000), (50_000, 50_000)] {
            let lap_ns = |work_ns, wait_ns| {
                let thread = Thread {
                    aside_ns,
                    ..Thread::default()
                };
                let watch = Stopwatch::start_by(&thread);
                thread.works(work_ns);
                thread.waits(wait_ns);
                watch.stop()
            };
            assert_eq!(lap_ns(90_000, 0), 90_000, "{aside_ns:?}");
            let with_wait_ns = lap_ns(90_000, 30_000);
            assert!(
                (90_000..=120_000).contains(&with_wait_ns),
                "{with_wait_ns} ns, {aside_ns:?}"
            );
        }
    }

    #[test]
    fn the_kernel_tells_of_waiting_second() {
        assert_eq!(waited_of("121878512 90108293 30\n"), Some(90_108_293));
        assert_eq!(waited_of(""), None);
    }
}
