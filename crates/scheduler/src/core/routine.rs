//! Periodic tasks: their periods, and what is done about missed runs.

use std::fmt;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

/// The treatment of a periodic task's runs whose time has passed before they could be started.
///
/// A run may be started late because the process was stopped, a suspended machine woke up, or every
/// worker was busy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum CatchUp {
    /// Missed runs are left out. The next run comes at the next multiple of the period after the
    /// first deadline: the rhythm stays.
    #[default]
    Skip,
    /// The latest of them are made up, one after another, at most this many; older ones are left
    /// out. The late run that was due first comes before them, so that is one more. The rhythm
    /// stays.
    Burst(u32),
    /// Missed runs are left out. The next run comes a full period after the late one: here after
    /// its start, in `tidewheel-tasks` after its end. The distance stays, the rhythm drifts.
    Delay,
}

/// A flag that is raised when a periodic task is removed. Its fired runs share it, and are not
/// begun then.
#[derive(Debug, Clone, Default)]
pub(crate) struct Recall(Option<Arc<AtomicBool>>);

impl Recall {
    pub(crate) fn new() -> Self {
        Self(Some(Arc::default()))
    }

    fn recall(&self) {
        if let Some(recalled) = &self.0 {
            recalled.store(true, SeqCst);
        }
    }

    /// Always `false` for a task that does not repeat.
    pub(crate) fn is_recalled(&self) -> bool {
        let recalled = |recalled: &Arc<AtomicBool>| recalled.load(SeqCst);
        self.0.as_ref().is_some_and(recalled)
    }
}

/// The flag is no part of a task's identity.
impl PartialEq for Recall {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Recall {}

/// The next run of a periodic task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Next {
    pub(crate) deadline: u64,
    /// Runs that are left out.
    pub(crate) missed: u64,
}

/// The period of a periodic task, and the means to repeat it.
pub(crate) struct Routine<K, V> {
    pub(crate) period: NonZeroU64,
    pub(crate) catch_up: CatchUp,
    /// Copies the task for a run. A pointer, so that tasks that do not repeat need no `Clone`.
    pub(crate) copy: fn(&K, &V) -> (K, V),
    pub(crate) recall: Recall,
}

impl<K, V> fmt::Debug for Routine<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Routine")
            .field("period", &self.period)
            .field("catch_up", &self.catch_up)
            .finish_non_exhaustive()
    }
}

impl<K, V> Routine<K, V> {
    /// The run after the one that was due at `deadline` and is started at `now`, in ticks.
    pub(crate) fn next(&self, deadline: u64, now: u64) -> Next {
        let period = self.period.get();
        let behind = now.saturating_sub(deadline) / period;
        let made_up = match self.catch_up {
            CatchUp::Skip => 0,
            CatchUp::Burst(most) => u64::from(most),
            CatchUp::Delay => {
                return Next {
                    deadline: now.saturating_add(period),
                    missed: behind,
                };
            }
        };
        let missed = behind.saturating_sub(made_up);
        Next {
            deadline: deadline.saturating_add(period.saturating_mul(missed.saturating_add(1))),
            missed,
        }
    }
}

/// The routines of one set of tasks. An entry's label is the number of its routine in this table,
/// counted from 1; a task that does not repeat has the label 0.
#[derive(Debug)]
pub(crate) struct Routines<K, V> {
    cells: Vec<Cell<K, V>>,
    /// The first vacant cell.
    free: Option<usize>,
}

#[derive(Debug)]
enum Cell<K, V> {
    Taken(Routine<K, V>),
    /// The next vacant cell.
    Vacant(Option<usize>),
}

impl<K, V> Routines<K, V> {
    pub(crate) const fn new() -> Self {
        Self {
            cells: Vec::new(),
            free: None,
        }
    }

    pub(crate) fn add(&mut self, routine: Routine<K, V>) -> u64 {
        let at = self.free.unwrap_or(self.cells.len());
        match self.cells.get_mut(at) {
            Some(cell) => {
                self.free = match cell {
                    Cell::Vacant(next) => *next,
                    Cell::Taken(_) => None,
                };
                *cell = Cell::Taken(routine);
            }
            None => self.cells.push(Cell::Taken(routine)),
        }
        at as u64 + 1
    }

    pub(crate) fn of(&self, label: u64) -> Option<&Routine<K, V>> {
        let at = usize::try_from(label.checked_sub(1)?).ok()?;
        match self.cells.get(at)? {
            Cell::Taken(routine) => Some(routine),
            Cell::Vacant(_) => None,
        }
    }

    /// Runs of this routine that have fired are not to begin. Does nothing for the label 0.
    pub(crate) fn recall(&self, label: u64) {
        if let Some(routine) = self.of(label) {
            routine.recall.recall();
        }
    }

    /// Recalls all of them.
    pub(crate) fn recall_all(&self) {
        for cell in &self.cells {
            if let Cell::Taken(routine) = cell {
                routine.recall.recall();
            }
        }
    }

    /// Does nothing for the label 0.
    pub(crate) fn end(&mut self, label: u64) {
        if self.of(label).is_none() {
            return;
        }
        let at = (label - 1) as usize;
        self.cells[at] = Cell::Vacant(self.free);
        self.free = Some(at);
    }

    pub(crate) fn bytes(&self) -> usize {
        self.cells.capacity() * size_of::<Cell<K, V>>()
    }

    pub(crate) fn len(&self) -> usize {
        let taken = |cell: &&Cell<K, V>| matches!(cell, Cell::Taken(_));
        self.cells.iter().filter(taken).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn routine(period: u64, catch_up: CatchUp) -> Routine<u8, u8> {
        Routine {
            period: NonZeroU64::new(period).expect("not 0"),
            catch_up,
            copy: |key, value| (*key, *value),
            recall: Recall::default(),
        }
    }

    #[test]
    fn a_punctual_run_is_followed_a_period_later_by_every_policy() {
        for catch_up in [CatchUp::Skip, CatchUp::Burst(3), CatchUp::Delay] {
            let next = routine(10, catch_up).next(100, 100);
            assert_eq!(
                next,
                Next {
                    deadline: 110,
                    missed: 0
                }
            );
        }
    }

    #[test]
    fn late_runs_are_skipped_made_up_or_delayed() {
        let next = |catch_up| {
            let next = routine(10, catch_up).next(100, 145);
            (next.deadline, next.missed)
        };
        assert_eq!(next(CatchUp::Skip), (150, 4));
        assert_eq!(next(CatchUp::Burst(3)), (120, 1));
        assert_eq!(next(CatchUp::Burst(9)), (110, 0));
        assert_eq!(next(CatchUp::Delay), (155, 4));
    }

    #[test]
    fn labels_are_used_again() {
        let mut routines = Routines::new();
        let labels: Vec<u64> = (1..=3)
            .map(|n| routines.add(routine(n, CatchUp::Skip)))
            .collect();
        routines.end(labels[0]);
        routines.end(labels[2]);
        routines.end(labels[2]);
        assert_eq!(routines.len(), 1);
        let again: Vec<u64> = (4..=6)
            .map(|n| routines.add(routine(n, CatchUp::Skip)))
            .collect();
        assert_eq!(again, [labels[2], labels[0], 4]);
        for (label, period) in again.iter().zip(4..) {
            assert_eq!(routines.of(*label).map(|r| r.period.get()), Some(period));
        }
        assert!(routines.of(0).is_none() && routines.of(9).is_none());
    }
}
