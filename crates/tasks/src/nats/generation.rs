//! Each schedule of an id has a generation: a number greater than those before it.
//!
//! A schedule that fires while it is replaced, moved or cancelled is written after what has taken
//! its place. The record of its id has a later generation by then, so that nobody runs it. A record
//! that is read of a node that lags behind has an earlier one: that proves nothing.

use super::Inner;
use super::order::DUE;
use super::subjects::generation_in;
use super::wire::{Kept, Letter, Put};
use crate::shape::error::StoreError;
use crate::shape::overtaken::{TRIES, pause_after};
use crate::shape::timestamp::Timestamp;

/// The generation of a new schedule: greater than one that is known, and by the clock greater than
/// those that are not.
pub(super) fn generation(now: Timestamp, known: u64) -> u64 {
    now.0.max(known + 1)
}

/// The generation in the subject of a task; 0 if there is none.
pub(super) fn generation_of(kept: Option<&Kept>) -> u64 {
    kept.map_or(0, |kept| generation_in(&kept.subject))
}

impl Inner {
    /// The message that is pending of an id: the task, or the blank in its place.
    pub(super) async fn pending(&self, id: &str) -> Result<Option<Kept>, StoreError> {
        self.wire.last(&self.subjects.pending_any(id)).await
    }

    /// Letters by which one takes the place of what is pending, if nothing else has done so yet. A
    /// schedule has a subject of its own, so a blank replaces the old one.
    pub(super) fn instead_of(&self, old: Option<&Kept>, id: &str, letter: Letter) -> Vec<Letter> {
        match old {
            None => vec![letter.expecting_of(self.subjects.pending_any(id), 0)],
            Some(old) => vec![self.blank_of(old, id), letter],
        }
    }

    /// The letter that takes the place of what is pending, and goes after a second.
    pub(super) fn blank_of(&self, old: &Kept, id: &str) -> Letter {
        let any = self.subjects.pending_any(id);
        let blank = Letter::new(old.subject.clone()).header("Nats-TTL", "1s");
        blank.expecting_of(any, old.sequence)
    }

    /// Keeps a task instead of what there is of its id, whatever that is. Returns its sequence.
    /// `letter` makes its message for a generation.
    pub(super) async fn put_anyway(
        &self,
        id: &str,
        now: Timestamp,
        letter: impl Fn(u64) -> Letter,
    ) -> Result<u64, StoreError> {
        // Mostly there is nothing.
        let mut old = None;
        for tried in 1..=TRIES {
            let generation = generation(now, generation_of(old.as_ref()));
            let put = self.put_anew((id, generation), letter(generation), old.as_ref());
            if let Put::Kept(sequence) = put.await? {
                return Ok(sequence);
            }
            let before = old;
            old = self.pending(id).await?;
            if before.map(|kept| kept.sequence) == old.as_ref().map(|kept| kept.sequence) {
                tokio::time::sleep(pause_after(tried)).await;
            }
        }
        Err(StoreError::engine("the id is scheduled all the time"))
    }
}

/// True of a task, also of one that is damaged, and not of a blank.
pub(super) fn is_task(kept: &Kept) -> bool {
    kept.headers.get(DUE).is_some() || !kept.payload.is_empty()
}
