//! Many tasks for one call.

#[cfg(any(feature = "nats", feature = "postgres"))]
use std::collections::{BTreeMap, HashMap};

use crate::shape::error::StoreError;
use crate::shape::task::Task;
#[cfg(any(feature = "nats", feature = "postgres"))]
use crate::shape::timestamp::Timestamp;

/// Tasks in one call.
pub(crate) const TASKS_MAX: usize = 10_000;

/// Many tasks: of those with the same id the last. In the order of their ids, so that two calls
/// lock them in the same order.
#[cfg(any(feature = "nats", feature = "postgres"))]
#[derive(Debug)]
pub(crate) struct Many {
    ids: Vec<String>,
    tasks: BTreeMap<String, Task>,
}

#[cfg(any(feature = "nats", feature = "postgres"))]
impl Many {
    pub(crate) fn of(tasks: Vec<Task>) -> Result<Self, StoreError> {
        check(&tasks)?;
        let ids = tasks.iter().map(|task| task.id.clone()).collect();
        let tasks = tasks.into_iter().map(|task| (task.id.clone(), task));
        let tasks = tasks.collect();
        Ok(Self { ids, tasks })
    }

    /// The due times of the ids, in the order in which they were given.
    pub(crate) fn dues(ids: &[String], dues: &HashMap<String, Timestamp>) -> Vec<Timestamp> {
        let due = |id| dues.get(id).copied().unwrap_or_default();
        ids.iter().map(due).collect()
    }

    pub(crate) fn into_parts(self) -> (Vec<String>, BTreeMap<String, Task>) {
        (self.ids, self.tasks)
    }
}

/// Checks that stores take these tasks.
pub(crate) fn check(tasks: &[Task]) -> Result<(), StoreError> {
    if tasks.len() > TASKS_MAX {
        return Err(StoreError::refused("one call takes 10,000 tasks at most"));
    }
    if tasks.iter().any(|task| task.terms.unique_for.is_some()) {
        return Err(StoreError::refused(
            "what is to be unique is scheduled alone",
        ));
    }
    tasks.iter().try_for_each(Task::check)
}
