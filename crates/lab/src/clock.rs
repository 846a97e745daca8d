//! The laboratory's clocks: the only file here that reads one.
#![expect(
    clippy::disallowed_methods,
    reason = "this is the file that the lint sends clock readers to"
)]

use std::sync::LazyLock;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};

static ORIGIN: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Nanoseconds on the monotonic clock since the first reading in this process.
pub(crate) fn mono_ns() -> u64 {
    let origin = *ORIGIN;
    u64::try_from(Instant::now().saturating_duration_since(origin).as_nanos()).unwrap_or(u64::MAX)
}

/// The time of the entered runtime's clock.
#[cfg(feature = "peers")]
pub(crate) fn in_runtime() -> tokio::time::Instant {
    tokio::time::Instant::now()
}

/// Processor time of the calling thread.
pub(crate) fn thread_cpu_ns() -> u64 {
    cpu_ns(ClockId::ThreadCPUTime)
}

/// Processor time of this process with all threads it ever had.
pub(crate) fn process_cpu_ns() -> u64 {
    cpu_ns(ClockId::ProcessCPUTime)
}

fn cpu_ns(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The shortest pause that counts: nobody takes the processor from a thread for less.
const SHORT_NS: u64 = 10_000;

/// A stretch of this thread, timed without what others took of the processor meanwhile.
///
/// Asking for processor time costs a third of a microsecond, which an idle second of a timer does
/// not take. So a short stretch is told by the wall clock, and a long one by whichever says less.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stretch {
    cpu_ns: u64,
    from_ns: u64,
}

impl Stretch {
    pub(crate) fn start() -> Self {
        Self {
            cpu_ns: thread_cpu_ns(),
            from_ns: mono_ns(),
        }
    }

    /// Nanoseconds since it was started.
    pub(crate) fn stop(self) -> u64 {
        let wall_ns = mono_ns() - self.from_ns;
        match wall_ns < SHORT_NS {
            true => wall_ns,
            false => wall_ns.min(thread_cpu_ns() - self.cpu_ns),
        }
    }
}

/// The deadline of something inserted now; `u64::MAX` without a time to live.
pub(crate) fn deadline_ns(ttl: Option<Duration>) -> u64 {
    ttl.map_or(u64::MAX, |ttl| {
        let ttl_ns = u64::try_from(ttl.as_nanos()).unwrap_or(u64::MAX);
        mono_ns().saturating_add(ttl_ns)
    })
}

/// Sleeps until the monotonic clock reads `at_ns`.
pub(crate) fn sleep_until(at_ns: u64) {
    let left = at_ns.saturating_sub(mono_ns());
    if left > 0 {
        thread::sleep(Duration::from_nanos(left));
    }
}

/// Microseconds of wall time since 1970; negative before.
pub(crate) fn wall_us() -> i64 {
    match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(since) => since.as_micros() as i64,
        Err(before) => -(before.duration().as_micros() as i64),
    }
}

/// One moment on both clocks, to place wall-clock deadlines among monotonic samples.
///
/// Good for the minutes of one experiment; over them the two clocks part by microseconds unless
/// somebody sets the wall clock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Moment {
    pub(crate) mono_ns: u64,
    pub(crate) wall_ms: u64,
}

impl Moment {
    /// The whole millisecond of the wall clock that begins within the last one of so many seconds
    /// from now.
    pub(crate) fn ahead(seconds: f64) -> Self {
        Self::after(seconds, mono_ns(), wall_us().max(0) as u64)
    }

    fn after(seconds: f64, mono_ns: u64, wall_us: u64) -> Self {
        let wall_ms = (wall_us + (seconds * 1e6) as u64) / 1_000;
        let ahead_us = (wall_ms * 1_000).saturating_sub(wall_us);
        Self {
            mono_ns: mono_ns + ahead_us * 1_000,
            wall_ms,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_a_whole_millisecond_on_both_clocks() {
        let moment = |mono_ns, wall_ms| Moment { mono_ns, wall_ms };
        assert_eq!(Moment::after(0.5, 70, 1_000), moment(500_000_070, 501));
        assert_eq!(Moment::after(0.5, 70, 1_999), moment(499_001_070, 501));
    }

    #[test]
    fn processor_time_is_what_was_worked_and_that_of_ended_threads_counts() {
        let (mine, all) = (Stretch::start(), process_cpu_ns());
        let work = || {
            let from = thread_cpu_ns();
            while thread_cpu_ns() < from + 3_000_000 {}
        };
        thread::spawn(work).join().expect("ends");
        thread::sleep(Duration::from_millis(20));
        assert!(mine.stop() < 15_000_000, "sleep is no work");
        assert!(process_cpu_ns() >= all + 3_000_000);
    }
}
