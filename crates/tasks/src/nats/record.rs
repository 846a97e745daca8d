//! The record of an id's latest task or claim: a small message that the next one must know.

use async_nats::HeaderMap;

use super::Inner;
use super::generation::is_task;
use super::order::number;
use super::wire::{Kept, Letter, Put};
use crate::shape::error::StoreError;

/// A record is kept for so long. A zombie that wakes up later is no longer told from the living.
const KEPT_FOR: &str = "600s";

/// The contents of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Says {
    /// The task was delivered again, and is claimed under this record's sequence.
    Claimed,
    /// The claim was given back.
    Back,
    /// The task that was handed over has ended, was cancelled, moved, or replaced.
    Over,
}

const SAYS: &str = "Tw-Says";
pub(super) const GENERATION: &str = "Tw-Generation";

impl Inner {
    /// A record, kept only after the one of the given sequence; 0 for none.
    pub(super) fn record(&self, of: (&str, u64), says: Says, after: u64) -> Letter {
        self.record_anyway(of, says).expecting(after)
    }

    /// A record of an id and its latest generation, whatever was there.
    pub(super) fn record_anyway(&self, (id, generation): (&str, u64), says: Says) -> Letter {
        let letter = Letter::new(self.subjects.record(id))
            .header(GENERATION, generation)
            .header("Nats-TTL", KEPT_FOR);
        match says {
            Says::Claimed => letter.header(SAYS, "claimed"),
            Says::Back => letter.header(SAYS, "back"),
            // The one that comes with each task is read so without a word.
            Says::Over => letter,
        }
    }

    /// Keeps a schedule, or what is handed over, as another task: what was claimed before is over.
    /// `old` is what it replaces among the schedules.
    pub(super) async fn put_anew(
        &self,
        of: (&str, u64),
        letter: Letter,
        old: Option<&Kept>,
    ) -> Result<Put, StoreError> {
        let mut letters = vec![self.record_anyway(of, Says::Over)];
        letters.extend(self.instead_of(old, of.0, letter));
        self.wire.put_all(letters).await
    }

    /// The record as the stream's leader has it.
    pub(super) async fn last_record(&self, id: &str) -> Result<Option<Kept>, StoreError> {
        self.wire.last(&self.subjects.record(id)).await
    }

    /// Keeps letters of which the first is a record after whatever record is not newer than a
    /// claim. `letters` makes them for the sequence of the record that they come after, and for the
    /// blank among the schedules, if there is one; `known` is the first guess.
    pub(super) async fn put_record(
        &self,
        claim: Fenced<'_>,
        letters: impl Fn(u64, Option<&Kept>) -> Vec<Letter>,
    ) -> Result<Step, StoreError> {
        let (mut after, mut blank) = (claim.known, None);
        for _ in 0..TRIES {
            let mut batch = letters(after, blank.as_ref());
            let is_single = batch.len() == 1;
            let put = match batch.pop() {
                Some(letter) if is_single => self.wire.put(letter).await?,
                Some(letter) => {
                    batch.push(letter);
                    self.wire.put_all(batch).await?
                }
                None => return Ok(Step::Refused),
            };
            let said = match put {
                Put::Kept(sequence) => return Ok(Step::Kept(sequence)),
                // Of a batch it may be another letter's.
                Put::Conflict(said) => said.filter(|_| is_single),
            };
            let last = match said {
                Some(last) => last,
                None => self
                    .last_record(claim.id)
                    .await?
                    .map_or(0, |kept| kept.sequence),
            };
            match last {
                newer if newer > claim.fence => return Ok(Step::Refused),
                // Another task of the id is pending, or was a moment ago.
                same if same == after && !is_single => {
                    blank = self.pending(claim.id).await?;
                    if blank.as_ref().is_some_and(is_task) {
                        return Ok(Step::Refused);
                    }
                }
                older => after = older,
            }
        }
        Err(StoreError::engine("the record changes all the time"))
    }
}

/// The number of tries of a record. The second try knows the last record; more are for records that
/// come and go meanwhile.
const TRIES: u32 = 4;

/// A claim, as its record is compared with it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fenced<'a> {
    pub(super) id: &'a str,
    pub(super) generation: u64,
    pub(super) fence: u64,
    /// The sequence of the last record, as far as the claim knows; 0 for none.
    pub(super) known: u64,
}

/// The outcome of keeping a record and the letters with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// They are kept, the last under this sequence.
    Kept(u64),
    /// There is a newer record or task: somebody else has claimed it, or it is over.
    Refused,
}

/// A record as it is compared with a task: its sequence and its generation, 0 for none.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Known {
    pub(super) sequence: u64,
    pub(super) generation: u64,
}

impl Known {
    pub(super) fn of(record: Option<&Kept>) -> Self {
        record.map_or_else(Self::default, |kept| {
            Self::read(kept.sequence, &kept.headers)
        })
    }

    pub(super) fn read(sequence: u64, headers: &HeaderMap) -> Self {
        let generation = number(headers, GENERATION).unwrap_or(0);
        Self {
            sequence,
            generation,
        }
    }
}

/// The contents of a record that was kept.
pub(super) fn says(kept: &Kept) -> Says {
    match kept.headers.get(SAYS).map(|value| value.as_str()) {
        Some("claimed") => Says::Claimed,
        Some("back") => Says::Back,
        _ => Says::Over,
    }
}
