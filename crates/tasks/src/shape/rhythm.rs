//! The rhythm of a task that runs again and again. Here, and nowhere else, the next run is
//! computed.

use std::time::Duration;

use tidewheel_scheduler::CatchUp;

#[cfg(feature = "cron")]
use crate::shape::cron::Cron;
use crate::shape::timestamp::{LATEST, Timestamp};

/// When a task runs again.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Rhythm {
    /// Each such period, counted from its first run.
    Every(Duration),
    /// At the times of a cron expression.
    #[cfg(feature = "cron")]
    Cron(Cron),
}

impl Rhythm {
    /// The time of the first run of a task that is to run at `due` or later.
    #[must_use]
    pub fn first(&self, due: Timestamp) -> Timestamp {
        match self {
            Self::Every(_) => due,
            #[cfg(feature = "cron")]
            Self::Cron(cron) => cron
                .after(Timestamp(due.0.saturating_sub(1)))
                .unwrap_or(LATEST),
        }
    }

    /// The run after the one that was due at `due`, if it is `now`. `None` if there is none.
    /// `catch_up` says which of the runs of a period that have been missed are made up; those of a
    /// cron expression are left out.
    #[must_use]
    pub fn next(&self, due: Timestamp, now: Timestamp, catch_up: CatchUp) -> Option<Timestamp> {
        match self {
            Self::Every(period) => Some(next_of_period(due, *period, now, catch_up)),
            #[cfg(feature = "cron")]
            Self::Cron(cron) => cron.after(due.max(now)),
        }
    }
}

fn next_of_period(
    due: Timestamp,
    period: Duration,
    now: Timestamp,
    catch_up: CatchUp,
) -> Timestamp {
    let us = u64::try_from(period.as_micros()).unwrap_or(u64::MAX).max(1);
    let missed = now.0.saturating_sub(due.0) / us;
    let made_up = match catch_up {
        CatchUp::Burst(most) => missed.min(most.into()),
        CatchUp::Delay if missed > 0 => return now.plus(period),
        _ => 0,
    };
    let passed = us.saturating_mul(missed.saturating_add(1) - made_up);
    Timestamp(due.0.saturating_add(passed)).min(LATEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(rhythm: &Rhythm, catch_up: CatchUp, due: u64, now: u64) -> Option<u64> {
        let next = rhythm.next(Timestamp(due), Timestamp(now), catch_up);
        next.map(|at| at.0)
    }

    #[test]
    fn the_next_run_keeps_the_rhythm_and_lies_ahead() {
        let every = Rhythm::Every(Duration::from_micros(100));
        let next = |due, now| next(&every, CatchUp::Skip, due, now);
        assert_eq!([next(1000, 1005), next(1000, 1099)], [Some(1100); 2]);
        assert_eq!(
            [next(1000, 1100), next(1000, 1730)],
            [Some(1200), Some(1800)]
        );
        // A run that is held before its time.
        assert_eq!(next(1000, 900), Some(1100));
        assert_eq!(next(u64::MAX, 7), Some(LATEST.0));
    }

    #[test]
    fn missed_runs_are_made_up_as_the_task_says() {
        let every = Rhythm::Every(Duration::from_micros(100));
        let burst = |most, due, now| next(&every, CatchUp::Burst(most), due, now);
        assert_eq!(
            [burst(2, 1000, 1005), burst(2, 1000, 1099)],
            [Some(1100); 2]
        );
        // Of the runs of 1100, 1200 and 1300 the latest two; then what comes.
        assert_eq!(burst(2, 1000, 1310), Some(1200));
        assert_eq!(
            [burst(2, 1200, 1310), burst(2, 1300, 1310)],
            [Some(1300), Some(1400)]
        );
        assert_eq!(
            [burst(0, 1000, 1310), burst(9, 1000, 1310)],
            [Some(1400), Some(1100)]
        );
        let delay = |due, now| next(&every, CatchUp::Delay, due, now);
        assert_eq!(
            [delay(1000, 1099), delay(1000, 1310)],
            [Some(1100), Some(1410)]
        );
    }

    #[cfg(feature = "cron")]
    #[test]
    fn a_cron_task_runs_at_times_of_its_expression_only_and_leaves_out_the_missed() {
        let minute = 60_000_000;
        let cron = Rhythm::Cron(Cron::new("* * * * *", "UTC").expect("an expression"));
        let first = |due| cron.first(Timestamp(due)).0;
        assert_eq!([first(1), first(minute - 1)], [minute; 2]);
        assert_eq!([first(minute), first(minute + 1)], [minute, 2 * minute]);
        let next = |due, now| next(&cron, CatchUp::Burst(9), due, now);
        assert_eq!(next(minute, minute + 5), Some(2 * minute));
        assert_eq!(next(minute, 9 * minute), Some(10 * minute));
        assert_eq!(
            next(2 * minute, minute),
            Some(3 * minute),
            "held before its time"
        );
    }
}
