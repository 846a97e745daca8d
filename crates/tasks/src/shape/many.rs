//! Many tasks for one call.

use std::collections::HashSet;
#[cfg(any(feature = "nats", feature = "postgres"))]
use std::collections::{BTreeMap, HashMap};

use crate::shape::error::StoreError;
use crate::shape::task::Task;
use crate::shape::timestamp::Timestamp;
use crate::shape::waits::{circle_among, in_circle};

/// Tasks in one call.
pub(crate) const TASKS_MAX: usize = 10_000;

/// Many tasks: of those with the same id the last, or the first if they are to be unique. In the
/// order of their ids, so that two calls lock them in the same order.
#[cfg(any(feature = "nats", feature = "postgres"))]
#[derive(Debug)]
pub(crate) struct Many {
    /// Their ids as they were given; `None` of a second one of an id that is to be unique.
    ids: Vec<Option<String>>,
    tasks: BTreeMap<String, Task>,
}

#[cfg(any(feature = "nats", feature = "postgres"))]
impl Many {
    pub(crate) fn of(tasks: Vec<Task>) -> Result<Self, StoreError> {
        check(&tasks)?;
        let mut many = Self {
            ids: Vec::with_capacity(tasks.len()),
            tasks: BTreeMap::new(),
        };
        for task in tasks {
            let is_second = task.terms.unique_for.is_some() && many.tasks.contains_key(&task.id);
            many.ids.push((!is_second).then(|| task.id.clone()));
            if !is_second {
                many.tasks.insert(task.id.clone(), task);
            }
        }
        Ok(many)
    }

    /// The due times of the ids that were kept, in the order in which they were given.
    pub(crate) fn dues(
        ids: &[Option<String>],
        dues: &HashMap<String, Timestamp>,
    ) -> Vec<Option<Timestamp>> {
        let due = |id: &Option<String>| dues.get(id.as_ref()?).copied();
        ids.iter().map(due).collect()
    }

    pub(crate) fn into_parts(self) -> (Vec<Option<String>>, BTreeMap<String, Task>) {
        (self.ids, self.tasks)
    }
}

/// Checks that stores take these tasks.
pub(crate) fn check(tasks: &[Task]) -> Result<(), StoreError> {
    if tasks.len() > TASKS_MAX {
        return Err(StoreError::refused("one call takes 10,000 tasks at most"));
    }
    let is_unique = |task: &&Task| task.terms.unique_for.is_some();
    let unique = tasks.iter().filter(is_unique).map(|task| &*task.id);
    let unique: HashSet<&str> = unique.collect();
    let mut others = tasks.iter().filter(|task| !is_unique(task));
    if !unique.is_empty() && others.any(|task| unique.contains(&*task.id)) {
        return Err(StoreError::refused(
            "of the tasks of one id in a call all are to be unique, or none is",
        ));
    }
    tasks.iter().try_for_each(Task::check)?;
    if tasks.iter().all(|task| task.terms.waits.is_none()) {
        return Ok(());
    }
    // Of several with one id it is the last that counts.
    let waits = tasks.iter().map(|task| (&*task.id, &task.terms.waits));
    match circle_among(&waits.collect()) {
        Some(ids) => Err(StoreError::refused(in_circle(&ids))),
        None => Ok(()),
    }
}

/// The due time of a task that was kept; `None` if it was to be unique, and was not.
pub(crate) fn unless_duplicate(
    kept: Result<Timestamp, StoreError>,
) -> Result<Option<Timestamp>, StoreError> {
    match kept {
        Err(StoreError::Duplicate) => Ok(None),
        kept => kept.map(Some),
    }
}
