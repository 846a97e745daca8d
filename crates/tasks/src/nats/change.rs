//! Users' changes of a task: schedule, cancel, move.
//!
//! A schedule that fires while it is cancelled or replaced is on its way between two subjects. So
//! what cancels writes a record first, of a later generation, and removes what came before that.

use std::time::Duration;

use futures_util::future::try_join;

use super::Inner;
use super::generation::{generation, generation_of, is_task};
use super::order::Order;
use super::record::{Known, Says, says};
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
        let order = Order::of(task, due);
        let letter = |generation| match due <= now.plus(COARSE) {
            true => order.hand_over(&self.subjects, (&id, generation)),
            false => {
                let from = due.minus(self.lookahead).max(now);
                order.schedule(&self.subjects, (&id, generation), from)
            }
        };
        let sequence = match unique_for {
            Some(time) => self.put_unique(&id, letter, (time, now)).await?,
            None => self.put_anyway(&id, now, letter).await?,
        };
        self.forget_handed(&id, sequence).await?;
        Ok(due)
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

    /// Finds the task of this id that was handed over and has not ended.
    pub(super) async fn handed_over(&self, id: &str) -> Result<Option<Kept>, StoreError> {
        let record = self.last_record(id).await?;
        let subject = match Known::of(record.as_ref()).generation {
            0 => self.subjects.handed_any(id),
            latest => self.subjects.handed_of(id, latest),
        };
        let Some(handed) = self.wire.last(&subject).await? else {
            return Ok(None);
        };
        // It may wait for its acknowledgement only.
        let is_over = record
            .is_some_and(|record| record.sequence > handed.sequence && says(&record) == Says::Over);
        Ok((!is_over).then_some(handed))
    }

    pub(super) async fn cancel(&self, id: &str) -> Result<bool, StoreError> {
        let mut task = self.pending_task(id).await?;
        if task.is_none() {
            task = self.handed_over(id).await?;
        }
        // It may have fired between the two looks.
        let Some(task) = task else {
            return Ok(false);
        };
        let generation = generation(self.about_now().await?, generation_of(Some(&task)));
        let record = self.record_anyway((id, generation), Says::Over);
        let before = Some(self.kept(self.wire.put(record).await?)?);
        let (pending, handed) = (self.subjects.pending_any(id), self.subjects.handed_any(id));
        try_join(
            self.wire.purge(&pending, before),
            self.wire.purge(&handed, before),
        )
        .await?;
        Ok(true)
    }

    pub(super) async fn reschedule(&self, id: &str, due: Due) -> Result<bool, StoreError> {
        let now = self.about_now().await?;
        let due = due.at(now);
        for _ in 0..TRIES {
            let pending = self.pending(id).await?;
            if let Some(task) = pending.clone().filter(is_task) {
                let filed = self.file_again(id, task, (due, now), pending.as_ref());
                if filed.await? {
                    return Ok(true);
                }
                continue;
            }
            let Some(handed) = self.handed_over(id).await? else {
                return Ok(false);
            };
            let before = handed.sequence + 1;
            let filed = self.file_again(id, handed, (due, now), pending.as_ref());
            if filed.await? {
                self.wire
                    .purge(&self.subjects.handed_any(id), Some(before))
                    .await?;
                return Ok(true);
            }
        }
        Err(StoreError::engine("the task moves all the time"))
    }

    /// Files a task at another time, if what is pending is as it was. Claims of what was handed
    /// over end by the record.
    async fn file_again(
        &self,
        id: &str,
        kept: Kept,
        (due, now): (Timestamp, Timestamp),
        pending: Option<&Kept>,
    ) -> Result<bool, StoreError> {
        let generation = generation(now, generation_of(Some(&kept)));
        let order = Order::of_kept(id, kept);
        let order = order.ok_or_else(|| StoreError::engine("it is damaged, or no task of ours"))?;
        let from = due.minus(self.lookahead).max(now);
        let letter = order
            .anew(due)
            .schedule(&self.subjects, (id, generation), from);
        let put = self.put_anew((id, generation), letter, pending).await?;
        Ok(matches!(put, Put::Kept(_)))
    }
}
