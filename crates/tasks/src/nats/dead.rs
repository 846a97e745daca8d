//! The stream has one message for each dead letter.

use super::Inner;
use super::generation::{generation, generation_of};
use super::order::{Order, SUM, number, terms, with_terms};
use super::subjects::Subjects;
use super::text::{decoded, encoded};
use super::wire::{Kept, Letter, Put};
use crate::shape::claim::Claim;
use crate::shape::dead::DeadLetter;
use crate::shape::error::StoreError;
use crate::shape::overtaken::{TRIES, pause_after};
use crate::shape::sum::{letter_error, letter_refused, letter_sum, sum};
use crate::shape::task::{Due, Task};
use crate::shape::timestamp::Timestamp;
use crate::store::Failure;

const ERROR: &str = "Tw-Error";
const DIED: &str = "Tw-Died";
const ATTEMPTS: &str = "Tw-Attempts";

/// A claim whose last attempt failed, as a message.
pub(super) fn letter_of(
    subjects: &Subjects,
    claim: &Claim,
    failure: &Failure,
    now: Timestamp,
) -> Letter {
    let terms = claim.terms.of_letter();
    let checksum = letter_sum(claim, &terms.text());
    let letter = Letter::new(subjects.dead(&claim.id))
        .header(ERROR, encoded(&failure.error))
        .header(DIED, now.0)
        .header(ATTEMPTS, failure.attempts(claim.attempt))
        .header(SUM, checksum)
        .payload(claim.payload.clone().into());
    with_terms(letter, &terms)
}

fn is_whole(id: &str, kept: &Kept) -> bool {
    let terms = terms(&kept.headers).text();
    number(&kept.headers, SUM) == Some(sum(id, &kept.payload, &[], &terms))
}

impl Inner {
    /// Reads a letter. One whose headers are not ours is damaged, and is there all the same.
    pub(super) fn letter_in(&self, kept: Kept) -> DeadLetter {
        let (id, _) = self.subjects.named(&kept.subject);
        let error = kept.headers.get(ERROR);
        let error = error.and_then(|error| decoded(error.as_str()));
        let attempts = number(&kept.headers, ATTEMPTS).and_then(|count| count.try_into().ok());
        let died = number(&kept.headers, DIED);
        let has_all = error.is_some() && attempts.is_some() && died.is_some();
        let error = letter_error(error.unwrap_or_default(), has_all && is_whole(&id, &kept));
        let mut letter = DeadLetter::new(id, attempts.unwrap_or(0), error);
        (letter.payload, letter.terms) = (kept.payload.to_vec(), terms(&kept.headers));
        letter.died = Timestamp(died.unwrap_or(0));
        letter
    }

    /// Makes one call for each letter.
    pub(super) async fn dead_letters(&self, most: usize) -> Result<Vec<DeadLetter>, StoreError> {
        let (mut letters, mut from) = (Vec::new(), 1);
        while letters.len() < most {
            let Some(kept) = self.wire.next(&self.subjects.dead_all(), from).await? else {
                break;
            };
            from = kept.sequence + 1;
            letters.push(self.letter_in(kept));
        }
        Ok(letters)
    }

    /// The letter goes last: if this is cut off, it is there beside its task.
    pub(super) async fn requeue(&self, id: &str, due: Due) -> Result<bool, StoreError> {
        let (dead, now) = (self.subjects.dead(id), self.about_now().await?);
        let due = due.at(now);
        for tried in 1..=TRIES {
            let Some(letter) = self.wire.last(&dead).await? else {
                return Ok(false);
            };
            let there = self.standing(id).await?;
            if there.task().is_some() {
                return Ok(false);
            }
            if !is_whole(id, &letter) {
                return Err(letter_refused());
            }
            let generation = generation(now, generation_of(there.pending.as_ref()));
            let mut task = Task::new(id, letter.payload.to_vec());
            task.terms = terms(&letter.headers);
            let from = due.minus(self.lookahead).max(now);
            let of = (id, generation);
            let schedule = Order::of(task, due).schedule(&self.subjects, of, from);
            if let Put::Kept(_) = self.put_instead(of, schedule, &there).await? {
                self.wire.purge(&dead, Some(letter.sequence + 1)).await?;
                return Ok(true);
            }
            tokio::time::sleep(pause_after(tried)).await;
        }
        Err(StoreError::engine("the task moves all the time"))
    }

    pub(super) async fn remove_dead(&self, id: &str) -> Result<bool, StoreError> {
        Ok(self.wire.purge(&self.subjects.dead(id), None).await? > 0)
    }
}
