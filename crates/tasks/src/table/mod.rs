//! The table holds tasks of one process, in an engine's time: no clock, no lock, no disk.
//!
//! A task is in one place. It is *pending*, ordered by priority and time, or *claimed*, ordered by
//! the end of its lease. What is dead is among the letters. Every call that changes a task names it
//! in `touched`, so that a journal can write what is true of it now.

mod claims;
mod letters;
mod limits;
mod looks;
mod notes;
mod order;
pub(crate) mod row;
mod timed;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::shape::dead::DeadLetter;
use crate::shape::error::StoreError;
use crate::shape::finished::Finished;
use crate::shape::queue::QueueRules;
use crate::shape::rate::Spent;
use crate::shape::task::{Due, Task};
use crate::shape::timestamp::Timestamp;

use self::order::Order;
use self::row::{Lease, Row};
use self::timed::Timed;

/// All tasks of one store.
#[derive(Debug, Default)]
pub(crate) struct Table {
    /// A row is large, and a table that has just grown is half empty.
    rows: HashMap<Arc<str>, Box<Row>>,
    order: Order,
    dead: BTreeMap<Arc<str>, DeadLetter>,
    /// The queues' rules that are not the default.
    rules: BTreeMap<String, QueueRules>,
    /// The slots of limited queues that were given away.
    spent: BTreeMap<String, Spent>,
    unique: Timed<()>,
    finished: Timed<Finished>,
    /// The latest fence.
    fence: u64,
    /// The ids of what has changed since [`take_touched`](Self::take_touched).
    touched: Vec<Arc<str>>,
}

impl Table {
    /// An empty table whose first fence comes after the given number.
    #[cfg_attr(not(feature = "file"), allow(dead_code))]
    pub(crate) fn after(fence: u64) -> Self {
        Self {
            fence,
            ..Self::default()
        }
    }

    /// An error if it is to be unique, and is not.
    pub(crate) fn schedule(&mut self, task: Task, now: Timestamp) -> Result<Timestamp, StoreError> {
        self.forget(now);
        let id = self.shared(&task.id);
        if let Some(time) = task.terms.unique_for
            && !self.mark(&id, time, now)
        {
            return Err(StoreError::Duplicate);
        }
        let row = Row::of(task, now);
        let due = row.due;
        self.put(id, row);
        Ok(due)
    }

    pub(crate) fn cancel(&mut self, id: &str) -> bool {
        let removed = self.take(id);
        if let Some((id, _)) = &removed {
            self.touched.push(Arc::clone(id));
        }
        removed.is_some()
    }

    pub(crate) fn reschedule(&mut self, id: &str, due: Due, now: Timestamp) -> bool {
        let Some((id, row)) = self.take(id) else {
            return false;
        };
        let moved = row.anew(due.at(now));
        self.put(id, moved);
        true
    }

    /// Keeps a task unless there is one with the same rhythm.
    pub(crate) fn ensure(&mut self, task: Task, now: Timestamp) -> Result<bool, StoreError> {
        let there = self.rows.get(&*task.id);
        if there.is_some_and(|row| row.terms.is_as_often(&task.terms)) {
            return Ok(false);
        }
        self.schedule(task, now).map(|_| true)
    }

    /// Tasks that are pending or claimed.
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    #[cfg_attr(not(feature = "file"), allow(dead_code))]
    pub(crate) fn row(&self, id: &str) -> Option<&Row> {
        self.rows.get(id).map(|row| &**row)
    }

    #[cfg_attr(not(feature = "file"), allow(dead_code))]
    pub(crate) fn letter(&self, id: &str) -> Option<&DeadLetter> {
        self.dead.get(id)
    }

    /// The ids of what has changed, once each call.
    pub(crate) fn take_touched(&mut self) -> Vec<Arc<str>> {
        std::mem::take(&mut self.touched)
    }

    /// Puts a task in its place, instead of what was there under its id.
    pub(crate) fn put(&mut self, id: Arc<str>, row: Row) {
        if let Some(old) = self.rows.remove(&*id) {
            self.order.remove(&id, &old);
        }
        self.order.insert(&id, &row);
        self.touched.push(Arc::clone(&id));
        self.rows.insert(id, Box::new(row));
    }

    /// Takes a task out of its place.
    fn take(&mut self, id: &str) -> Option<(Arc<str>, Row)> {
        let (id, row) = self.rows.remove_entry(id)?;
        self.order.remove(&id, &row);
        Some((id, *row))
    }

    /// The id as the table has it already, or a new one.
    fn shared(&self, id: &str) -> Arc<str> {
        let known = self.rows.get_key_value(id);
        known.map_or_else(|| Arc::from(id), |(id, _)| Arc::clone(id))
    }

    /// True if a fence is the latest of a claimed task.
    fn holds(&self, id: &str, fence: u64) -> bool {
        let held = self.rows.get(id).and_then(|row| row.held);
        held.is_some_and(|held: Lease| held.fence == fence)
    }
}
