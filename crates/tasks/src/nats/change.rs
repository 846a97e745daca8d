//! Users' changes of a task: schedule, cancel, move.
//!
//! A schedule that fires while it is cancelled is on its way between two subjects. So what cancels
//! writes a record first, which comes after whatever was on its way, and removes what was handed
//! over up to that record.

use std::time::Duration;

use futures_util::future::try_join;

use super::Inner;
use super::order::Order;
use super::record::{Says, says};
use super::wire::{Kept, Put};
use crate::shape::error::StoreError;
use crate::shape::task::{Due, Task};
use crate::shape::timestamp::Timestamp;

/// JetStream takes up to a quarter of a second for a schedule whose time has come. What is due
/// sooner is handed over by us.
pub(super) const COARSE: Duration = Duration::from_millis(300);

/// The number of times that a task is looked for which moves from one subject to another meanwhile.
const TRIES: u32 = 5;

impl Inner {
    pub(super) async fn schedule(&self, task: Task) -> Result<Timestamp, StoreError> {
        self.line(&task.terms.queue).await?;
        let now = self.about_now().await?;
        let (id, due) = (task.id.clone(), task.first_due(now));
        let unique_for = task.terms.unique_for;
        let keep = async |letter| match unique_for {
            Some(time) => self.put_unique(&id, letter, (time, now)).await,
            None => self.kept(self.put_anew(&id, letter).await?),
        };
        let order = Order::of(task, due);
        if due <= now.plus(COARSE) {
            let letter = order.hand_over(&self.subjects, &id);
            let sequence = keep(letter).await?;
            // What was handed over of another priority or queue has a subject of its own.
            try_join(
                self.forget_pending(&id, sequence),
                self.forget_handed(&id, sequence),
            )
            .await?;
        } else {
            let from = due.minus(self.lookahead).max(now);
            let letter = order.schedule(&self.subjects, &id, from);
            let sequence = keep(letter).await?;
            self.forget_handed(&id, sequence).await?;
        }
        Ok(due)
    }

    pub(super) fn kept(&self, put: Put) -> Result<u64, StoreError> {
        match put {
            Put::Kept(sequence) => Ok(sequence),
            Put::Conflict(_) => Err(StoreError::engine("a conflict where nothing was expected")),
        }
    }

    /// Removes what was pending before a sequence.
    async fn forget_pending(&self, id: &str, before: u64) -> Result<(), StoreError> {
        let pending = self.subjects.pending(id);
        if self.wire.last(&pending).await?.is_some() {
            self.wire.purge(&pending, Some(before)).await?;
        }
        Ok(())
    }

    /// Removes what was handed over before a sequence.
    pub(super) async fn forget_handed(&self, id: &str, before: u64) -> Result<(), StoreError> {
        let handed = self.subjects.handed_any(id);
        // There may be one of each priority and queue.
        let first = self.wire.next(&handed, 1).await?;
        if first.is_some_and(|kept| kept.sequence < before) {
            self.wire.purge(&handed, Some(before)).await?;
        }
        Ok(())
    }

    /// Finds the task of this id that was handed over and has not ended.
    pub(super) async fn handed_over(&self, id: &str) -> Result<Option<Kept>, StoreError> {
        let Some(handed) = self.wire.last(&self.subjects.handed_any(id)).await? else {
            return Ok(None);
        };
        // It may wait for its acknowledgement only.
        let record = self.last_record(id).await?;
        let is_over = record
            .is_some_and(|record| record.sequence > handed.sequence && says(&record) == Says::Over);
        Ok((!is_over).then_some(handed))
    }

    pub(super) async fn cancel(&self, id: &str) -> Result<bool, StoreError> {
        let pending = self.subjects.pending(id);
        let is_pending = self.wire.last(&pending).await?.is_some();
        if !is_pending && self.handed_over(id).await?.is_none() {
            // It may have fired between the two looks.
            return Ok(false);
        }
        self.wire.purge(&pending, None).await?;
        self.void(id).await?;
        Ok(true)
    }

    /// Ends whatever was handed over, or is on its way.
    async fn void(&self, id: &str) -> Result<(), StoreError> {
        let record = self.record_anyway(id, Says::Over);
        let sequence = self.kept(self.wire.put(record).await?)?;
        self.wire
            .purge(&self.subjects.handed_any(id), Some(sequence))
            .await?;
        Ok(())
    }

    pub(super) async fn reschedule(&self, id: &str, due: Due) -> Result<bool, StoreError> {
        let now = self.about_now().await?;
        let due = due.at(now);
        for _ in 0..TRIES {
            if let Some(pending) = self.wire.last(&self.subjects.pending(id)).await? {
                let expected = pending.sequence;
                if self.file_again(id, pending, (due, now), expected).await? {
                    return Ok(true);
                }
                continue;
            }
            let Some(handed) = self.handed_over(id).await? else {
                return Ok(false);
            };
            let before = handed.sequence + 1;
            if self.file_again(id, handed, (due, now), 0).await? {
                self.wire
                    .purge(&self.subjects.handed_any(id), Some(before))
                    .await?;
                return Ok(true);
            }
        }
        Err(StoreError::engine("the task moves all the time"))
    }

    /// Files a task at another time, if its subject is as it was. Claims of what was handed over
    /// end by the record.
    async fn file_again(
        &self,
        id: &str,
        kept: Kept,
        (due, now): (Timestamp, Timestamp),
        expected: u64,
    ) -> Result<bool, StoreError> {
        let order = Order::of_kept(id, kept);
        let order = order.ok_or_else(|| StoreError::engine("it is damaged, or no task of ours"))?;
        let from = due.minus(self.lookahead).max(now);
        let letter = order.anew(due).schedule(&self.subjects, id, from);
        let put = self.put_anew(id, letter.expecting(expected)).await?;
        Ok(matches!(put, Put::Kept(_)))
    }
}
