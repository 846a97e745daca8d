//! The journal has the times of a periodic job as wall time.

use std::hash::{BuildHasher, Hash};
use std::time::{Duration, SystemTime};

use tidewheel_time::ticks;

use super::handle::{DurableHandle, after};
use super::job::{Job, Phase};
use super::journal::Repeat;
use super::name::{Keyed, Name};
use crate::core::routine::CatchUp;

/// Runs that are made up after a restart, at most.
const MADE_UP_MAX: u64 = 1000;

/// The greatest difference of a job's tick and its wall time: if they are further apart, the wall
/// clock was set.
const SLACK: Duration = Duration::from_secs(1);

/// The runs of a periodic job whose time came while the process was down.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct CaughtUp {
    /// Runs that begin at once.
    pub(super) runs: u64,
    /// Runs that are left out.
    pub(super) missed: u64,
    /// The time of its next run.
    pub(super) next: SystemTime,
}

impl Repeat {
    /// The period as memory and journal have it: in whole milliseconds.
    pub(super) fn rounded(period: Duration, catch_up: CatchUp) -> Self {
        let period = Duration::from_millis(ticks(period).max(1));
        Self { period, catch_up }
    }

    /// Counts the runs of a job that was due at a time that has passed.
    pub(super) fn catch_up(&self, due: SystemTime, now: SystemTime) -> CaughtUp {
        let behind = now.duration_since(due).unwrap_or(Duration::ZERO);
        let period_ms = self.period.as_millis().max(1);
        let behind = u64::try_from(behind.as_millis() / period_ms).unwrap_or(u64::MAX);
        let made_up = match self.catch_up {
            CatchUp::Burst(most) => behind.min(u64::from(most)).min(MADE_UP_MAX),
            CatchUp::Skip | CatchUp::Delay => 0,
        };
        CaughtUp {
            runs: 1 + made_up,
            missed: behind - made_up,
            next: match self.catch_up {
                CatchUp::Delay => after(now, self.period),
                CatchUp::Skip | CatchUp::Burst(_) => {
                    after(due, self.times(behind.saturating_add(1)))
                }
            },
        }
    }

    /// The length of so many periods.
    fn times(&self, count: u64) -> Duration {
        let ms = u64::try_from(self.period.as_millis()).unwrap_or(u64::MAX);
        Duration::from_millis(ms.saturating_mul(count))
    }
}

impl<K, V, J, S> DurableHandle<K, V, J, S> {
    /// The due time of a tick's run. Ticks are rounded up: if each life took its phase from them,
    /// the rhythm would come later with each. So it is counted from the phase that the journal has,
    /// unless the wall clock was set meanwhile.
    fn due_of(&self, tick: u64, phase: Option<Phase>) -> SystemTime {
        let by_clock = self.wall_of(tick);
        let Some(due) = phase.map(|phase| phase.due_of(tick)) else {
            return by_clock;
        };
        let apart = by_clock.duration_since(due);
        if apart.unwrap_or_else(|before| before.duration()) > SLACK {
            return by_clock;
        }
        due
    }

    /// The wall time of a tick, which may have passed.
    pub(super) fn wall_of(&self, tick: u64) -> SystemTime {
        let inner = self.handle.inner();
        let (wall, now) = (inner.clock.wall(), inner.now());
        let passed = now.since(tick);
        wall.checked_sub(passed)
            .map_or(wall, |wall| after(wall, now.until(tick)))
    }
}

impl Phase {
    /// The wall time of a later run, without the rounding to ticks.
    fn due_of(self, tick: u64) -> SystemTime {
        after(
            self.due,
            Duration::from_millis(tick.saturating_sub(self.tick)),
        )
    }
}

impl<K: Hash + Eq, V, J, S: BuildHasher> DurableHandle<K, V, J, S> {
    /// The due time of a periodic job after its run of `deadline`.
    pub(super) fn next_due(
        &self,
        name: &Name<K>,
        template: &Job<V>,
        deadline: u64,
        missed: u64,
    ) -> SystemTime {
        match template.repeat() {
            Some(repeat) if repeat.catch_up != CatchUp::Delay => after(
                self.due_of(deadline, template.phase()),
                repeat.times(missed.saturating_add(1)),
            ),
            // As memory has it.
            _ => self.due(self.handle.get(&Keyed(&name.key)).unwrap_or(Duration::ZERO)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn at(ms: u32) -> SystemTime {
        SystemTime::UNIX_EPOCH + ms * MS
    }

    fn caught_up(catch_up: CatchUp) -> (u64, u64, SystemTime) {
        let repeat = Repeat::every(10 * MS, catch_up);
        let CaughtUp { runs, missed, next } = repeat.catch_up(at(100), at(145));
        (runs, missed, next)
    }

    #[test]
    fn missed_runs_are_skipped_made_up_or_delayed() {
        assert_eq!(caught_up(CatchUp::Skip), (1, 4, at(150)));
        assert_eq!(caught_up(CatchUp::Burst(3)), (4, 1, at(150)));
        assert_eq!(caught_up(CatchUp::Burst(9)), (5, 0, at(150)));
        assert_eq!(caught_up(CatchUp::Delay), (1, 4, at(155)));
    }

    #[test]
    fn years_of_missed_milliseconds_make_up_a_thousand() {
        let year = Duration::from_secs(365 * 86_400);
        let repeat = Repeat::every(MS, CatchUp::Burst(u32::MAX));
        let caught_up = repeat.catch_up(at(0), at(0) + year);
        assert_eq!(caught_up.runs, 1001);
        assert_eq!(caught_up.next, at(0) + year + MS);
    }
}
