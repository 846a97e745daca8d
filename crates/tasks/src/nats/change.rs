//! Users' changes of a task: schedule, cancel, move.
//!
//! A schedule that fires while it is cancelled or replaced is on its way between two subjects. So
//! what cancels writes a record of a later generation, and removes what came before that.

use std::time::Duration;

use super::Inner;
use super::generation::{generation, generation_of};
use super::looks::damaged;
use super::order::Order;
use super::wire::{Letter, Put};
use crate::shape::error::StoreError;
use crate::shape::overtaken::{TRIES, pause_after};
use crate::shape::task::{Due, Task};
use crate::shape::timestamp::Timestamp;

/// JetStream takes up to a quarter of a second for a schedule whose time has come. What is due
/// sooner is handed over by us.
const COARSE: Duration = Duration::from_millis(300);

impl Inner {
    pub(super) async fn schedule(&self, task: Task) -> Result<Timestamp, StoreError> {
        self.line(&task.terms.queue).await?;
        let now = self.about_now().await?;
        let (id, due) = (task.id.clone(), task.first_due(now));
        let unique_for = task.terms.unique_for;
        let order = Order::of(task, due);
        let letter = |generation| self.letter(&order, (&id, generation), now);
        let sequence = match unique_for {
            Some(time) => self.put_unique(&id, letter, (time, now)).await?,
            None => self.put_anyway(&id, now, letter).await?,
        };
        self.forget_handed(&id, sequence).await?;
        Ok(due)
    }

    /// A new task's message: its schedule, or what is handed over at once.
    pub(super) fn letter(&self, order: &Order, of: (&str, u64), now: Timestamp) -> Letter {
        if order.due <= now.plus(COARSE) {
            return order.hand_over(&self.subjects, of);
        }
        let from = order.due.minus(self.lookahead).max(now);
        order.schedule(&self.subjects, of, from)
    }

    pub(super) fn kept(&self, put: Put) -> Result<u64, StoreError> {
        match put {
            Put::Kept(sequence) => Ok(sequence),
            Put::Conflict(_) => Err(StoreError::engine("a conflict where nothing was expected")),
        }
    }

    /// Removes what was handed over before a sequence.
    pub(super) async fn forget_handed(&self, id: &str, before: u64) -> Result<(), StoreError> {
        let handed = self.subjects.handed_any(id);
        // Each has a subject of its own.
        let first = self.wire.next(&handed, 1).await?;
        if first.is_some_and(|kept| kept.sequence < before) {
            self.wire.purge(&handed, Some(before)).await?;
        }
        Ok(())
    }

    pub(super) async fn cancel(&self, id: &str) -> Result<bool, StoreError> {
        for tried in 1..=TRIES {
            let there = self.standing(id).await?;
            let Some(task) = there.task() else {
                return Ok(false);
            };
            let generation = generation(self.about_now().await?, generation_of(Some(task)));
            if let Put::Kept(sequence) = self.put_end((id, generation), &there).await? {
                self.forget_handed(id, sequence).await?;
                return Ok(true);
            }
            tokio::time::sleep(pause_after(tried)).await;
        }
        Err(StoreError::engine("the task moves all the time"))
    }

    pub(super) async fn reschedule(&self, id: &str, due: Due) -> Result<bool, StoreError> {
        let now = self.about_now().await?;
        let due = due.at(now);
        for tried in 1..=TRIES {
            let there = self.standing(id).await?;
            let Some(task) = there.task() else {
                return Ok(false);
            };
            let generation = generation(now, generation_of(Some(task)));
            let order = Order::of_kept(id, task.clone());
            let order = order.ok_or_else(damaged)?;
            let from = due.minus(self.lookahead).max(now);
            let letter = order
                .anew(due)
                .schedule(&self.subjects, (id, generation), from);
            if let Put::Kept(sequence) = self.put_instead((id, generation), letter, &there).await? {
                self.forget_handed(id, sequence).await?;
                return Ok(true);
            }
            tokio::time::sleep(pause_after(tried)).await;
        }
        Err(StoreError::engine("the task moves all the time"))
    }
}
