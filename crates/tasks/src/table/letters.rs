//! Dead letters of a table.

use std::sync::Arc;

use super::Table;
use super::row::Row;
use crate::shape::dead::DeadLetter;
use crate::shape::task::{Due, Task};
use crate::shape::timestamp::Timestamp;

impl Table {
    pub(crate) fn letters(&self, most: usize) -> Vec<DeadLetter> {
        self.dead.values().take(most).cloned().collect()
    }

    /// Makes a letter a task again. A task that is there under its id goes on, and the letter
    /// stays.
    pub(crate) fn requeue(&mut self, id: &str, due: Due, now: Timestamp) -> bool {
        if self.rows.contains_key(id) {
            return false;
        }
        let Some((id, letter)) = self.dead.remove_entry(id) else {
            return false;
        };
        let mut task = Task::new(&*id, letter.payload);
        task.terms = letter.terms;
        self.put(id, Row::of(task, now).anew(due.at(now)));
        true
    }

    pub(crate) fn remove_dead(&mut self, id: &str) -> bool {
        let removed = self.dead.remove_entry(id);
        let removed = removed.map(|(id, _)| self.touched.push(id));
        removed.is_some()
    }

    /// Puts a letter back that a journal has kept.
    #[cfg_attr(not(feature = "file"), allow(dead_code))]
    pub(crate) fn restore_letter(&mut self, letter: DeadLetter) {
        self.dead.insert(Arc::from(&*letter.id), letter);
    }
}
