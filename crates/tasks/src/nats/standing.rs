//! The task of an id where it stands, and changes of it that are kept only if it is still so.
//!
//! A task moves from the schedules to what was handed over, and, by a record, to its next schedule
//! or to its end. So whoever has looked at these one after another knows how they stood at one
//! moment if the record has not changed since. A change comes with a record of its own, which
//! expects that: of a change and the end of a run, one is kept.

use super::Inner;
use super::generation::is_task;
use super::record::{Known, Says, says};
use super::wire::{Kept, Letter, Put};
use crate::shape::error::StoreError;

/// The number of looks at an id that changes meanwhile.
const TRIES: u32 = 20;

/// The task of an id, wherever it stands, and the id's record.
#[derive(Debug, Clone)]
pub(super) struct Standing {
    /// The sequence of its record; 0 for none.
    record: u64,
    /// The message that is pending: its task, or a blank.
    pub(super) pending: Option<Kept>,
    /// Its task, if it was handed over and has not ended.
    pub(super) handed: Option<Kept>,
}

impl Standing {
    /// The id's task, if there is one.
    pub(super) fn task(&self) -> Option<&Kept> {
        let pending = self.pending.as_ref().filter(|kept| is_task(kept));
        pending.or(self.handed.as_ref())
    }
}

impl Inner {
    /// Finds out what there is of an id.
    pub(super) async fn standing(&self, id: &str) -> Result<Standing, StoreError> {
        let mut record = self.last_record(id).await?;
        for _ in 0..TRIES {
            // In the order in which a task moves under one record.
            let pending = self.pending(id).await?;
            let is_pending = pending.as_ref().is_some_and(is_task);
            let handed = match is_pending {
                true => None,
                false => self.handed_after(id, record.as_ref()).await?,
            };
            let standing = Standing {
                record: sequence_of(record.as_ref()),
                pending,
                handed,
            };
            if standing.task().is_some() {
                return Ok(standing);
            }
            record = self.last_record(id).await?;
            if sequence_of(record.as_ref()) == standing.record {
                return Ok(standing);
            }
        }
        Err(StoreError::engine("the task moves all the time"))
    }

    /// Finds the task of this id that was handed over and has not ended.
    pub(super) async fn handed_over(&self, id: &str) -> Result<Option<Kept>, StoreError> {
        let record = self.last_record(id).await?;
        self.handed_after(id, record.as_ref()).await
    }

    async fn handed_after(
        &self,
        id: &str,
        record: Option<&Kept>,
    ) -> Result<Option<Kept>, StoreError> {
        let subject = match Known::of(record).generation {
            0 => self.subjects.handed_any(id),
            latest => self.subjects.handed_of(id, latest),
        };
        let Some(handed) = self.wire.last(&subject).await? else {
            return Ok(None);
        };
        // It may wait for its acknowledgement only.
        let is_over = record
            .is_some_and(|record| record.sequence > handed.sequence && says(record) == Says::Over);
        Ok((!is_over).then_some(handed))
    }

    /// Ends a task, pending or handed over.
    pub(super) async fn put_end(&self, of: (&str, u64), old: &Standing) -> Result<Put, StoreError> {
        let record = self.record(of, Says::Over, old.record);
        match old.pending.as_ref().filter(|kept| is_task(kept)) {
            None => self.wire.put(record).await,
            Some(pending) => {
                let blank = self.blank_of(pending, of.0);
                self.wire.put_all(vec![record, blank]).await
            }
        }
    }

    /// Keeps a task instead of what there is.
    pub(super) async fn put_instead(
        &self,
        of: (&str, u64),
        letter: Letter,
        old: &Standing,
    ) -> Result<Put, StoreError> {
        let mut letters = vec![self.record(of, Says::Over, old.record)];
        letters.extend(self.instead_of(old.pending.as_ref(), of.0, letter));
        self.wire.put_all(letters).await
    }
}

fn sequence_of(record: Option<&Kept>) -> u64 {
    record.map_or(0, |kept| kept.sequence)
}
