//! The rhythm of a task that runs again and again. Here, and nowhere else, the next run is
//! computed.

use std::time::Duration;

#[cfg(feature = "cron")]
use crate::shape::cron::Cron;
use crate::shape::timestamp::{LATEST, Timestamp};

/// When a task runs again. Runs that would have been in the past are left out.
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

    /// The first run after `now`, and after the run that was due at `due`. `None` if there is none.
    #[must_use]
    pub fn next(&self, due: Timestamp, now: Timestamp) -> Option<Timestamp> {
        match self {
            Self::Every(period) => Some(next_of_period(due, *period, now)),
            #[cfg(feature = "cron")]
            Self::Cron(cron) => cron.after(due.max(now)),
        }
    }
}

fn next_of_period(due: Timestamp, period: Duration, now: Timestamp) -> Timestamp {
    let us = u64::try_from(period.as_micros()).unwrap_or(u64::MAX).max(1);
    let missed = now.0.saturating_sub(due.0) / us;
    let passed = us.saturating_mul(missed.saturating_add(1));
    Timestamp(due.0.saturating_add(passed)).min(LATEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_run_keeps_the_rhythm_and_lies_ahead() {
        let every = Rhythm::Every(Duration::from_micros(100));
        let next = |due, now| every.next(Timestamp(due), Timestamp(now)).map(|at| at.0);
        assert_eq!([next(1000, 1005), next(1000, 1099)], [Some(1100); 2]);
        assert_eq!(
            [next(1000, 1100), next(1000, 1730)],
            [Some(1200), Some(1800)]
        );
        // A run that is held before its time.
        assert_eq!(next(1000, 900), Some(1100));
        assert_eq!(next(u64::MAX, 7), Some(LATEST.0));
    }

    #[cfg(feature = "cron")]
    #[test]
    fn a_cron_task_runs_at_times_of_its_expression_only_and_leaves_out_the_missed() {
        let minute = 60_000_000;
        let cron = Rhythm::Cron(Cron::new("* * * * *", "UTC").expect("an expression"));
        let first = |due| cron.first(Timestamp(due)).0;
        assert_eq!([first(1), first(minute - 1)], [minute; 2]);
        assert_eq!([first(minute), first(minute + 1)], [minute, 2 * minute]);
        let next = |due, now| cron.next(Timestamp(due), Timestamp(now)).map(|at| at.0);
        assert_eq!(next(minute, minute + 5), Some(2 * minute));
        assert_eq!(next(minute, 9 * minute), Some(10 * minute));
        assert_eq!(
            next(2 * minute, minute),
            Some(3 * minute),
            "held before its time"
        );
    }
}
