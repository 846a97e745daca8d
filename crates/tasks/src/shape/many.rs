//! Many tasks for one call.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use crate::shape::error::StoreError;
use crate::shape::task::Task;
use crate::shape::timestamp::Timestamp;
use crate::shape::waits::{circle_among, in_circle};

/// Tasks in one call.
pub(crate) const TASKS_MAX: usize = 10_000;

/// Many tasks: of those with the same id the last, or the first if they are to be unique.
#[derive(Debug)]
pub(crate) struct Many {
    /// Their ids as they were given; `None` of a second one of an id that is to be unique.
    ids: Vec<Option<String>>,
    tasks: Vec<Task>,
}

impl Many {
    pub(crate) fn of(tasks: Vec<Task>) -> Result<Self, StoreError> {
        check(&tasks)?;
        let mut many = Self {
            ids: Vec::with_capacity(tasks.len()),
            tasks: Vec::with_capacity(tasks.len()),
        };
        let mut places = HashMap::with_capacity(tasks.len());
        for task in tasks {
            let is_unique = task.terms.unique_for.is_some();
            let id = match places.entry(task.id.clone()) {
                Entry::Vacant(place) => {
                    let id = place.key().clone();
                    place.insert(many.tasks.len());
                    many.tasks.push(task);
                    Some(id)
                }
                Entry::Occupied(_) if is_unique => None,
                Entry::Occupied(place) => {
                    let id = std::mem::replace(&mut many.tasks[*place.get()], task).id;
                    Some(id)
                }
            };
            many.ids.push(id);
        }
        match circle_among(&many.tasks) {
            Some(ids) => Err(StoreError::refused(in_circle(&ids))),
            None => Ok(many),
        }
    }

    /// Schedules them one after another, and answers for each that was given.
    pub(crate) fn schedule(
        self,
        mut schedule: impl FnMut(Task) -> Result<Timestamp, StoreError>,
    ) -> Result<Vec<Option<Timestamp>>, StoreError> {
        let mut dues = HashMap::with_capacity(self.tasks.len());
        for task in self.tasks {
            let id = task.id.clone();
            if let Some(due) = unless_duplicate(schedule(task))? {
                dues.insert(id, due);
            }
        }
        Ok(Self::dues(&self.ids, &dues))
    }

    /// The due times of the ids that were kept, in the order in which they were given.
    pub(crate) fn dues(
        ids: &[Option<String>],
        dues: &HashMap<String, Timestamp>,
    ) -> Vec<Option<Timestamp>> {
        let due = |id: &Option<String>| dues.get(id.as_ref()?).copied();
        ids.iter().map(due).collect()
    }

    /// The ids as they were given, and the tasks.
    pub(crate) fn into_parts(self) -> (Vec<Option<String>>, Vec<Task>) {
        (self.ids, self.tasks)
    }

    /// The same, the tasks in the order of their ids: two calls lock them in the same order.
    #[cfg(any(feature = "nats", feature = "postgres"))]
    pub(crate) fn into_sorted(mut self) -> (Vec<Option<String>>, Vec<Task>) {
        self.tasks.sort_unstable_by(|a, b| a.id.cmp(&b.id));
        self.into_parts()
    }
}

/// Checks that stores take these tasks.
fn check(tasks: &[Task]) -> Result<(), StoreError> {
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
    tasks.iter().try_for_each(Task::check)
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
