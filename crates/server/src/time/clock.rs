//! Engine time: ticks of the monotonic clock, and their offset to the wall clock.
//!
//! Engine time counts milliseconds of the monotonic clock from [`ORIGIN_TICK`] on. At the start its
//! phase is chosen so that ticks begin with the wall clock's milliseconds: a deadline given in wall
//! milliseconds is then reached exactly at a tick, and rounding adds nothing. Wall time is one
//! stored offset. When somebody steps the wall clock, only the offset changes, and no relative time
//! to live does.

#[cfg(test)]
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use tidewheel_keyspace::Time;
use tidewheel_time::{boot_nanos, monotonic_nanos, wall_nanos};

use super::boot;

/// The tick at which engine time starts: far from zero, so that subtracting never underflows.
pub(crate) const ORIGIN_TICK: u64 = 1 << 40;

const NS_PER_MS: u64 = 1_000_000;

/// A sample of the wall clock is thrown away when reading it took longer than this (the thread was
/// preempted between two reads, and the difference would be taken for a step).
const SAMPLE_MAX_NS: u64 = 20_000;

/// So often a sample is taken again that took too long.
const SAMPLES: usize = 100;

/// Engine time and its relation to the wall clock.
#[derive(Debug)]
pub(crate) struct Clock {
    source: TimeSource,
    /// Monotonic nanoseconds at [`ORIGIN_TICK`], which may be before the machine was started.
    origin_ns: AtomicI64,
    /// Wall milliseconds minus engine ticks.
    wall_offset_ms: AtomicI64,
}

impl Clock {
    /// Starts engine time now, in phase with the wall clock.
    pub(crate) fn start() -> Self {
        Self::of(TimeSource::System)
    }

    fn of(source: TimeSource) -> Self {
        let (mono_ns, wall_ns) = loop {
            if let Some(sample) = source.sample() {
                break sample;
            }
        };
        // Going back to the start of the running wall millisecond aligns the phases.
        let phase = wall_ns.rem_euclid(i128::from(NS_PER_MS)) as u64;
        let origin_ns = AtomicI64::new(mono_ns as i64 - phase as i64);
        let wall_ms = wall_ns.div_euclid(i128::from(NS_PER_MS)) as i64;
        let wall_offset_ms = AtomicI64::new(wall_ms - ORIGIN_TICK as i64);
        Self {
            source,
            origin_ns,
            wall_offset_ms,
        }
    }

    /// Returns the time, for one batch of commands: one read of the monotonic clock.
    pub(crate) fn now(&self) -> Time {
        let since = self.since(self.source.monotonic_ns());
        Time {
            tick: ORIGIN_TICK + since / NS_PER_MS,
            micros: (since % NS_PER_MS / 1_000) as u32,
            wall_offset_ms: self.wall_offset_ms.load(Ordering::Relaxed),
        }
    }

    /// Nanoseconds from [`ORIGIN_TICK`] to a moment of the monotonic clock.
    #[inline]
    fn since(&self, mono_ns: u64) -> u64 {
        let origin = self.origin_ns.load(Ordering::Relaxed);
        u64::try_from(mono_ns as i64 - origin).unwrap_or(0)
    }

    /// Goes forward, so that engine time goes on where it had ended: the moment at which this clock
    /// has shown one tick becomes another one. It never goes back.
    pub(crate) fn go_on(&self, shown: u64, tick: u64) {
        let ahead = tick.saturating_sub(shown);
        let ahead = i64::try_from(ahead.saturating_mul(NS_PER_MS)).unwrap_or(0);
        self.origin_ns.fetch_sub(ahead, Ordering::Relaxed);
        let ms = ahead / NS_PER_MS as i64;
        self.wall_offset_ms.fetch_sub(ms, Ordering::Relaxed);
    }

    /// Compares the wall clock with the stored offset, and follows it when it was stepped or has
    /// drifted by a millisecond or more. Loops call it once in a turn.
    pub(crate) fn follow_wall(&self) {
        let Some((mono_ns, wall_ns)) = self.source.sample() else {
            return;
        };
        let since = self.since(mono_ns);
        let engine_ns = i128::from(ORIGIN_TICK) * i128::from(NS_PER_MS) + i128::from(since);
        let offset_ns = wall_ns - engine_ns;
        let stored = self.wall_offset_ms.load(Ordering::Relaxed);
        let stored_ns = i128::from(stored) * i128::from(NS_PER_MS);
        if (offset_ns - stored_ns).abs() < i128::from(NS_PER_MS) {
            return;
        }
        let rounded = (offset_ns + i128::from(NS_PER_MS / 2)).div_euclid(i128::from(NS_PER_MS));
        let rounded = rounded.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64;
        self.wall_offset_ms.store(rounded, Ordering::Relaxed);
        tracing::info!(
            change_ms = rounded.saturating_sub(stored),
            "the wall clock was moved"
        );
    }

    /// Returns monotonic nanoseconds, for measuring durations.
    pub(crate) fn monotonic_ns(&self) -> u64 {
        self.source.monotonic_ns()
    }

    /// Names this start of the machine.
    pub(crate) fn boot_id(&self) -> Option<String> {
        self.source.boot_id()
    }

    /// Blocks the thread.
    pub(crate) fn sleep(&self, duration: Duration) {
        match &self.source {
            TimeSource::System => std::thread::sleep(duration),
            #[cfg(test)]
            TimeSource::ManualTime(_) => self.advance(duration),
        }
    }

    /// Returns the monotonic clock's nanoseconds at which `tick` begins.
    pub(crate) fn tick_to_monotonic_ns(&self, tick: u64) -> u64 {
        tick.saturating_sub(ORIGIN_TICK)
            .saturating_mul(NS_PER_MS)
            .saturating_add_signed(self.origin_ns.load(Ordering::Relaxed))
    }

    /// Returns the microseconds from the start of the machine to the beginning of `tick`, those
    /// included in which it was suspended. `None` where the system does not say.
    pub(crate) fn tick_to_boot_us(&self, tick: u64) -> Option<u64> {
        let ns = self.source.boot_ns_at(self.tick_to_monotonic_ns(tick))?;
        Some(ns / 1_000)
    }
}

/// Microseconds of engine time, for differences.
pub(crate) fn micros(time: Time) -> u64 {
    time.tick
        .saturating_mul(1_000)
        .saturating_add(u64::from(time.micros))
}

/// The source of time. The program has one; tests have another.
#[derive(Debug)]
enum TimeSource {
    System,
    #[cfg(test)]
    ManualTime(Arc<ManualTime>),
}

impl TimeSource {
    #[inline]
    fn monotonic_ns(&self) -> u64 {
        match self {
            Self::System => monotonic_nanos(),
            #[cfg(test)]
            Self::ManualTime(manual) => manual.monotonic_ns(),
        }
    }

    /// Returns monotonic and wall nanoseconds of one moment.
    fn sample(&self) -> Option<(u64, i128)> {
        match self {
            Self::System => sample(),
            #[cfg(test)]
            Self::ManualTime(manual) => Some(manual.sample()),
        }
    }

    /// Returns the nanoseconds since the start of the machine at a moment of the monotonic clock.
    fn boot_ns_at(&self, mono_ns: u64) -> Option<u64> {
        match self {
            Self::System => mono_ns.checked_add(suspended_ns()?),
            #[cfg(test)]
            Self::ManualTime(manual) => Some(manual.boot_ns_at(mono_ns)),
        }
    }

    fn boot_id(&self) -> Option<String> {
        match self {
            Self::System => boot::id(),
            #[cfg(test)]
            Self::ManualTime(manual) => Some(manual.boot_id()),
        }
    }
}

/// Returns monotonic and wall nanoseconds of one moment, or nothing if reading them took too long.
fn sample() -> Option<(u64, i128)> {
    let before = monotonic_nanos();
    let wall = wall_nanos();
    let took = monotonic_nanos().saturating_sub(before);
    (took <= SAMPLE_MAX_NS).then_some((before + took / 2, wall))
}

/// Returns by how much the clock that also runs while the machine is suspended is ahead of the
/// monotonic one.
fn suspended_ns() -> Option<u64> {
    let mut best: Option<(u64, u64)> = None;
    for _ in 0..SAMPLES {
        let before = monotonic_nanos();
        let boot = boot_nanos()?;
        let took = monotonic_nanos().saturating_sub(before);
        if best.is_none_or(|(least, _)| took < least) {
            best = Some((took, boot.saturating_sub(before + took / 2)));
        }
        if took <= SAMPLE_MAX_NS {
            break;
        }
    }
    best.map(|(_, ahead)| ahead)
}

#[cfg(test)]
pub(crate) use manual::ManualTime;

#[cfg(test)]
mod manual {
    //! A clock that stands still until a test moves it.

    use std::sync::Arc;
    use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
    use std::time::Duration;

    use super::{Clock, TimeSource};

    /// Wall time when the clock starts, in milliseconds since 1970.
    const WALL_MS: i128 = 1_700_000_000_000;

    /// A machine has run for so long when the first server starts on it: a tick may begin before
    /// the server does.
    const BOOT_NS: u64 = 100_000_000_000;

    /// The clocks of a machine, which stand still. Several servers may run on it one after another.
    #[derive(Debug, Default)]
    pub(crate) struct ManualTime {
        /// Nanoseconds that have passed.
        passed: AtomicU64,
        /// And those that pass with each look.
        with_look: AtomicU64,
        /// How far the wall clock was stepped, in milliseconds.
        stepped_ms: AtomicI64,
        /// How often the machine has started again, and when it did so last.
        boots: AtomicU64,
        booted_ns: AtomicU64,
    }

    impl ManualTime {
        pub(super) fn monotonic_ns(&self) -> u64 {
            let by = self.with_look.load(Ordering::Relaxed);
            self.passed.fetch_add(by, Ordering::Relaxed)
        }

        pub(super) fn sample(&self) -> (u64, i128) {
            let ns = self.monotonic_ns();
            let wall_ms = WALL_MS + i128::from(self.stepped_ms.load(Ordering::Relaxed));
            (ns, wall_ms * 1_000_000 + i128::from(ns))
        }

        pub(super) fn boot_ns_at(&self, mono_ns: u64) -> u64 {
            mono_ns.wrapping_sub(self.booted_ns.load(Ordering::Relaxed))
        }

        pub(super) fn boot_id(&self) -> String {
            format!("boot-{}", self.boots.load(Ordering::Relaxed))
        }

        /// Lets time pass.
        pub(crate) fn advance(&self, by: Duration) {
            let ns = u64::try_from(by.as_nanos()).unwrap_or(u64::MAX);
            self.passed.fetch_add(ns, Ordering::Relaxed);
        }

        /// Steps the wall clock.
        pub(crate) fn step_wall(&self, ms: i64) {
            self.stepped_ms.fetch_add(ms, Ordering::Relaxed);
        }

        /// The clock since the start of the machine loses a second.
        pub(crate) fn forget_a_second(&self) {
            self.booted_ns.fetch_add(1_000_000_000, Ordering::Relaxed);
        }

        /// The machine has started again.
        pub(crate) fn boot(&self) {
            self.boots.fetch_add(1, Ordering::Relaxed);
            let now = self.passed.load(Ordering::Relaxed);
            self.booted_ns
                .store(now.wrapping_sub(BOOT_NS), Ordering::Relaxed);
        }
    }

    impl Clock {
        /// Returns a clock for tests, which moves only by [`advance`](Self::advance).
        pub(crate) fn manual() -> Self {
            Self::on(&Arc::default())
        }

        /// Starts engine time on a machine of tests.
        pub(crate) fn on(machine: &Arc<ManualTime>) -> Self {
            Self::of(TimeSource::ManualTime(Arc::clone(machine)))
        }

        /// Lets time pass on a manual clock.
        pub(crate) fn advance(&self, by: Duration) {
            self.manual_time().advance(by);
        }

        /// From now on, time passes with each look at the clock.
        pub(crate) fn pass_with_looks(&self, by: Duration) {
            let ns = u64::try_from(by.as_nanos()).unwrap_or(u64::MAX);
            self.manual_time().with_look.store(ns, Ordering::Relaxed);
        }

        fn manual_time(&self) -> &ManualTime {
            match &self.source {
                TimeSource::ManualTime(manual) => manual,
                TimeSource::System => panic!("the system's clock is not to be moved"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn engine_time_starts_at_its_origin_and_never_goes_back() {
        let clock = Clock::start();
        let first = clock.now();
        assert!(first.tick >= ORIGIN_TICK && first.tick < ORIGIN_TICK + 60_000);
        let mut last = micros(first);
        for _ in 0..10_000 {
            let now = micros(clock.now());
            assert!(now >= last);
            last = now;
        }
    }

    #[test]
    fn ticks_are_in_phase_with_wall_milliseconds() {
        let clock = Clock::start();
        let (mono_ns, wall_ns) = loop {
            if let Some(sample) = clock.source.sample() {
                break sample;
            }
        };
        let tick = ORIGIN_TICK + clock.since(mono_ns) / NS_PER_MS;
        let wall_of_tick_ns =
            (tick as i128 + i128::from(clock.wall_offset_ms.load(Ordering::Relaxed))) * 1_000_000;
        let into_tick = i128::from(clock.since(mono_ns) % NS_PER_MS);
        // Two samples, each good to SAMPLE_MAX_NS.
        assert!((wall_ns - wall_of_tick_ns - into_tick).abs() <= 2 * i128::from(SAMPLE_MAX_NS));
    }

    #[test]
    fn a_stepped_wall_clock_changes_the_offset_and_nothing_else() {
        let clock = Clock::start();
        let before = clock.now();
        // As if the wall clock had been stepped by an hour since the offset was sampled.
        clock.wall_offset_ms.fetch_sub(3_600_000, Ordering::Relaxed);
        let deadline = clock.tick_to_monotonic_ns(before.tick + 5);
        while clock.now().wall_offset_ms != before.wall_offset_ms {
            clock.follow_wall();
        }
        assert_eq!(clock.tick_to_monotonic_ns(before.tick + 5), deadline);
        assert!(clock.now().tick < before.tick + 60_000);
    }

    #[test]
    fn a_manual_clock_moves_only_when_it_is_moved() {
        let clock = Clock::manual();
        let first = clock.now();
        assert_eq!(
            (first.tick, clock.now().micros),
            (ORIGIN_TICK, first.micros)
        );
        clock.advance(Duration::from_micros(2_500));
        assert_eq!(micros(clock.now()) - micros(first), 2_500);
        assert_eq!(clock.now().wall_ms() - first.wall_ms(), 2);
    }

    #[test]
    fn it_goes_on_where_another_one_had_ended() {
        let clock = Clock::manual();
        let wall_ms = clock.now().wall_ms();
        let shown = clock.now().tick;
        clock.go_on(shown, shown + 5_000);
        clock.go_on(shown + 5_000, shown + 4_000);
        assert_eq!(clock.now().tick, ORIGIN_TICK + 5_000);
        assert_eq!(clock.now().wall_ms(), wall_ms);
        clock.advance(Duration::from_millis(7));
        assert_eq!(clock.now().tick, ORIGIN_TICK + 5_007);
        let ns = clock.tick_to_monotonic_ns(ORIGIN_TICK + 5_010);
        assert_eq!(ns, clock.monotonic_ns() + 3 * NS_PER_MS);
    }

    #[test]
    fn a_tick_begins_where_the_clock_says() {
        let clock = Clock::start();
        let origin_ns = clock.origin_ns.load(Ordering::Relaxed) as u64;
        assert_eq!(clock.tick_to_monotonic_ns(ORIGIN_TICK), origin_ns);
        assert_eq!(
            clock.tick_to_monotonic_ns(ORIGIN_TICK + 2),
            origin_ns + 2_000_000
        );
        assert_eq!(clock.tick_to_monotonic_ns(u64::MAX), u64::MAX);
    }
}
