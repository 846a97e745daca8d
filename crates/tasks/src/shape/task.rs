//! A task is a user's order to run something at a time.

use std::time::{Duration, SystemTime};

use tidewheel_scheduler::CatchUp;
use tidewheel_time::ticks;

use crate::shape::error::StoreError;
use crate::shape::queue::check_queue;
use crate::shape::rhythm::Rhythm;
use crate::shape::terms::Terms;
use crate::shape::timestamp::{LATEST, Timestamp};
use crate::shape::waits::Waits;

/// Bytes that an id may have.
const ID_MAX: usize = 200;

/// Bytes that a payload may have: what NATS takes in one message by default, with room for headers.
const PAYLOAD_MAX: usize = 900_000;

/// The longest time for which an id is unique, or a result is kept.
const TIME_MAX: Duration = Duration::from_secs(366 * 86_400);

/// The due time of a task, by the engine's clock: at the end of the year 9999 at the latest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    /// After this time, from when the engine has got to know of it.
    After(Duration),
    /// At this point in time.
    At(Timestamp),
}

impl Due {
    /// The point in time, if it is `now`.
    #[must_use]
    pub fn at(self, now: Timestamp) -> Timestamp {
        match self {
            Self::After(wait) => now.plus(wait),
            Self::At(at) => at.min(LATEST),
        }
    }
}

impl From<Duration> for Due {
    fn from(wait: Duration) -> Self {
        Self::After(wait)
    }
}

impl From<Timestamp> for Due {
    fn from(at: Timestamp) -> Self {
        Self::At(at)
    }
}

impl From<SystemTime> for Due {
    fn from(at: SystemTime) -> Self {
        Self::At(at.into())
    }
}

/// The order among tasks that could be claimed. Tasks that are claimed run at their time, whatever
/// their priority is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Priority {
    /// Before all others.
    High,
    /// The usual.
    #[default]
    Normal,
    /// After all others: when there is room that nothing else needs.
    Low,
}

impl Priority {
    /// All priorities, the first that is claimed first.
    pub const ALL: [Self; 3] = [Self::High, Self::Normal, Self::Low];

    /// 0, 1 or 2, as stores write it.
    #[must_use]
    pub fn level(self) -> u8 {
        self as u8
    }

    /// The priority of a level that a store has written.
    #[must_use]
    pub fn of_level(level: u8) -> Self {
        match level {
            0 => Self::High,
            2 => Self::Low,
            _ => Self::Normal,
        }
    }
}

/// A task: what is run when.
///
/// ```
/// use std::time::{Duration, SystemTime};
/// use tidewheel_tasks::{Priority, Task};
///
/// let report = Task::new("report", "")
///     .after(Duration::from_secs(60))
///     .every(Duration::from_secs(3600))
///     .priority(Priority::Low);
/// assert_eq!(report.id, "report");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Task {
    /// Its name. A store has at most one task of a name: another one replaces it.
    pub id: String,
    /// The due time.
    pub due: Due,
    /// The payload for the handler.
    pub payload: Vec<u8>,
    /// The rank among those that could be claimed.
    pub priority: Priority,
    /// What else it says: its rhythm, if it is periodic.
    pub terms: Terms,
}

impl Task {
    /// A task that is due at once.
    pub fn new(id: impl Into<String>, payload: impl Into<Vec<u8>>) -> Self {
        Self {
            id: id.into(),
            due: Due::After(Duration::ZERO),
            payload: payload.into(),
            priority: Priority::Normal,
            terms: Terms::default(),
        }
    }

    /// Due after so long.
    #[must_use]
    pub fn after(mut self, wait: Duration) -> Self {
        self.due = Due::After(wait);
        self
    }

    /// Due at a point in time, by the engine's clock.
    #[must_use]
    pub fn at(mut self, at: impl Into<Timestamp>) -> Self {
        self.due = Due::At(at.into());
        self
    }

    /// Runs again and again, each `period`, rounded up to milliseconds. Runs that would have been
    /// in the past are left out, unless [`catch_up`](Self::catch_up) says something else.
    #[must_use]
    pub fn every(mut self, period: Duration) -> Self {
        self.terms.rhythm = Some(Rhythm::Every(Duration::from_millis(ticks(period))));
        self
    }

    /// Sets what is done about runs of a [period](Self::every) that were missed, because no worker
    /// was there or the run before took too long (default [`CatchUp::Skip`]). Those that are made
    /// up come one after another: one run of an id at a time.
    ///
    /// With [`CatchUp::Delay`] the next run comes a period after the end of one that was late by a
    /// period.
    #[must_use]
    pub fn catch_up(mut self, catch_up: CatchUp) -> Self {
        self.terms.catch_up = catch_up;
        self
    }

    /// Runs again and again, at the times of a cron expression by the clocks of a time zone:
    /// [`Cron`](crate::Cron) says what it may be. The first run is at the first such time that is
    /// not before the due time. Runs that would have been in the past are left out.
    ///
    /// ```
    /// use tidewheel_tasks::Task;
    ///
    /// let report = Task::new("report", "").cron("0 9 * * MON-FRI", "Europe/Berlin")?;
    /// assert!(Task::new("report", "").cron("0 9 * * MON-FRY", "Europe/Berlin").is_err());
    /// assert!(Task::new("report", "").cron("0 9 * * MON-FRI", "Europe/Berlim").is_err());
    /// # Ok::<(), tidewheel_tasks::StoreError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`StoreError::Refused`], if the expression is wrong or has no time ever, or there is no such
    /// zone.
    #[cfg(feature = "cron")]
    pub fn cron(mut self, expression: &str, zone: &str) -> Result<Self, StoreError> {
        let cron = crate::shape::cron::Cron::new(expression, zone)?;
        self.terms.rhythm = Some(Rhythm::Cron(cron));
        Ok(self)
    }

    /// The time of its first run, if it is `now`.
    #[must_use]
    pub fn first_due(&self, now: Timestamp) -> Timestamp {
        let due = self.due.at(now);
        match &self.terms.rhythm {
            Some(rhythm) => rhythm.first(due),
            None => due,
        }
    }

    /// Sets its rank among those that could be claimed.
    #[must_use]
    pub fn priority(mut self, priority: Priority) -> Self {
        self.priority = priority;
        self
    }

    /// Puts it into a queue (default: the one whose name is empty). A worker claims from the queues
    /// that it was told of, or from all. A name has 64 bytes at most, and no control characters.
    ///
    /// An id is that of one task in all queues of a store.
    #[must_use]
    pub fn queue(mut self, queue: impl Into<String>) -> Self {
        self.terms.queue = queue.into();
        self
    }

    /// Makes its id unique for so long (rounded up to milliseconds; 366 days at most), counted by
    /// the engine's clock from when it is scheduled. Until then another task of this id that is to
    /// be unique too is refused as a [`Duplicate`](StoreError::Duplicate), in whatever process, and
    /// also after this one has ended or was cancelled.
    ///
    /// A task that is not to be unique replaces the one of its id, as always.
    #[must_use]
    pub fn unique_for(mut self, time: Duration) -> Self {
        self.terms.unique_for = Some(Duration::from_millis(ticks(time)));
        self
    }

    /// Keeps the result of its runs that succeed: for so long (rounded up to milliseconds; 366 days
    /// at most), or until the next one. [`Run::keep`](crate::Run::keep) says what the result is,
    /// and [`look`](crate::TaskStore::look) reads it.
    #[must_use]
    pub fn keep_result(mut self, time: Duration) -> Self {
        self.terms.keep_result = Some(Duration::from_millis(ticks(time)));
        self
    }

    /// Lets it wait, when it is due, until other tasks have ended: 100 at most. One has ended when
    /// it is not pending and not claimed any more, so also if it was cancelled, is a dead letter,
    /// or never was there. See [`batch`](crate::TaskStore::batch).
    ///
    /// Its worker holds it, and looks for the others again and again: after an eighth of the time
    /// that it has waited, a quarter of a second at least and a second at most, or 4 ms for each
    /// task that the worker holds so, if that is more. By that it begins late. A worker puts off,
    /// by up to 30 seconds, one of a limited queue, and one for which it has no room: half of what
    /// it [holds](crate::WorkerBuilder::held). What is periodic cannot wait.
    ///
    /// Tasks of one call that wait for one another in a circle are refused. A circle of several
    /// calls is not seen then. When that of its tasks whose id is the first has waited for two
    /// seconds, four, eight and so on, it becomes a dead letter whose error names the circle, and
    /// the others go on. A circle of more than a hundred is not seen: it waits until one of them is
    /// cancelled.
    #[must_use]
    pub fn waits_for(mut self, ids: impl IntoIterator<Item: Into<String>>) -> Self {
        self.terms.waits = Some(Waits::new(ids, false));
        self
    }

    /// Waits as [`waits_for`](Self::waits_for) does, and becomes a dead letter without a run if one
    /// of the others is a dead letter then. A letter of an earlier task of that id counts, too:
    /// remove it before you schedule such a task anew, or let that one [keep its
    /// result](Self::keep_result), since of the two what ended last counts.
    #[must_use]
    pub fn needs(mut self, ids: impl IntoIterator<Item: Into<String>>) -> Self {
        self.terms.waits = Some(Waits::new(ids, true));
        self
    }

    /// Checks that stores take it: 1 to 200 bytes of id, 900,000 of payload, a period of a
    /// millisecond or more, 64 bytes of queue, a year of being unique
    /// and of keeping results.
    ///
    /// # Errors
    ///
    /// [`StoreError::Refused`] with what is wrong.
    pub fn check(&self) -> Result<(), StoreError> {
        check_id(&self.id)?;
        check_queue(&self.terms.queue)?;
        if self.payload.len() > PAYLOAD_MAX {
            return Err(StoreError::refused("a payload has 900,000 bytes at most"));
        }
        if self
            .terms
            .every()
            .is_some_and(|period| period.as_millis() == 0)
        {
            return Err(StoreError::refused("a period is a millisecond at least"));
        }
        if let Some(waits) = &self.terms.waits {
            waits.check()?;
            if waits.ids.contains(&self.id) {
                return Err(StoreError::refused("a task does not wait for itself"));
            }
            if self.terms.rhythm.is_some() {
                return Err(StoreError::refused("a periodic task waits for none"));
            }
        }
        let times = [self.terms.unique_for, self.terms.keep_result];
        if times.into_iter().flatten().any(|time| time > TIME_MAX) {
            return Err(StoreError::refused(
                "an id is unique, and a result is kept, for 366 days at most",
            ));
        }
        Ok(())
    }
}

/// Checks that stores take an id.
pub(crate) fn check_id(id: &str) -> Result<(), StoreError> {
    if id.is_empty() || id.len() > ID_MAX || id.contains('\0') {
        return Err(StoreError::refused(
            "an id has 1 to 200 bytes, none of them 0",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stores_refuse_what_engines_could_not_keep() {
        assert!(Task::new("a", "").check().is_ok());
        for id in ["", "a\0b", &"x".repeat(201)] {
            assert!(Task::new(id, "").check().is_err(), "{id:?}");
        }
        assert!(Task::new("a", vec![0; PAYLOAD_MAX + 1]).check().is_err());
        for queue in ["a\nb", &"x".repeat(65)] {
            assert!(
                Task::new("a", "").queue(queue).check().is_err(),
                "{queue:?}"
            );
        }
        let unique = |time| Task::new("a", "").unique_for(time).check();
        assert!(unique(TIME_MAX).is_ok() && unique(Duration::MAX).is_err());
        assert!(Task::new("a", "").every(Duration::ZERO).check().is_err());
        let rounded = Task::new("a", "").every(Duration::from_micros(1001));
        assert_eq!(rounded.terms.every(), Some(Duration::from_millis(2)));
    }
}
