//! A task as a message: its schedule, or the message that the schedule becomes.

use std::time::Duration;

use async_nats::HeaderMap;
use bytes::Bytes;

use super::subjects::Subjects;
use super::text::{decoded, encoded, rfc3339};
use super::wire::{Kept, Letter};
use crate::shape::claim::Claim;
use crate::shape::error::StoreError;
use crate::shape::sum::sum;
use crate::shape::task::{Priority, Task};
use crate::shape::terms::Terms;
use crate::shape::timestamp::Timestamp;

/// The contents of a schedule, and of the message that is handed over.
#[derive(Debug, Clone)]
pub(super) struct Order {
    pub(super) due: Timestamp,
    pub(super) began: Timestamp,
    pub(super) terms: Terms,
    pub(super) attempt: u32,
    pub(super) priority: Priority,
    pub(super) payload: Bytes,
    /// True if it is as it was written.
    pub(super) is_whole: bool,
}

/// The header that says when a task is due.
pub(super) const DUE: &str = "Tw-Due";
const BEGAN: &str = "Tw-Began";
const EVERY: &str = "Tw-Every";
const ATTEMPT: &str = "Tw-Attempt";
const PRIORITY: &str = "Tw-Priority";
pub(super) const SUM: &str = "Tw-Sum";
const TERMS: &str = "Tw-Terms";

/// Bytes of terms in a header. The server takes 64 KiB of headers: those of a dead letter have its
/// error, too.
const TERMS_MAX: usize = 60_000;

/// The beginning of the year 2262. The server counts nanoseconds, and hands over at once what lies
/// beyond what it can count.
const LAST_HAND_OVER: Timestamp = Timestamp(9_214_646_400_000_000);

/// Checks that a task's headers have room for those that it waits for: some characters of an id
/// take seven bytes there.
pub(super) fn check_terms(task: &Task) -> Result<(), StoreError> {
    if task.terms.waits.is_some() && encoded(&task.terms.text()).len() > TERMS_MAX {
        return Err(StoreError::refused(
            "the ids that a task waits for have 60,000 bytes at most, as headers of NATS",
        ));
    }
    Ok(())
}

impl Order {
    pub(super) fn of(task: Task, due: Timestamp) -> Self {
        Self {
            due,
            began: due,
            terms: task.terms,
            attempt: 1,
            priority: task.priority,
            payload: task.payload.into(),
            is_whole: true,
        }
    }

    pub(super) fn of_claim(claim: &Claim) -> Self {
        Self {
            due: claim.due,
            began: claim.began,
            terms: claim.terms.clone(),
            attempt: claim.attempt,
            priority: claim.priority,
            payload: claim.payload.clone().into(),
            is_whole: true,
        }
    }

    /// Reads a message as it was kept or delivered. It is not whole if it says something else, or
    /// nothing.
    pub(super) fn read(id: &str, headers: &HeaderMap, payload: Bytes) -> Self {
        let due = number(headers, DUE).unwrap_or(0);
        let attempt = number(headers, ATTEMPT).and_then(|attempt| attempt.try_into().ok());
        let level = number(headers, PRIORITY).and_then(|level| level.try_into().ok());
        let mut order = Self {
            due: Timestamp(due),
            began: Timestamp(number(headers, BEGAN).unwrap_or(due)),
            terms: terms(headers),
            attempt: attempt.unwrap_or(1),
            priority: Priority::of_level(level.unwrap_or(1)),
            payload,
            is_whole: false,
        };
        order.is_whole = number(headers, SUM) == Some(order.sum(id));
        order
    }

    /// `None` if it is not as it was written.
    pub(super) fn of_kept(id: &str, kept: Kept) -> Option<Self> {
        let order = Self::read(id, &kept.headers, kept.payload);
        order.is_whole.then_some(order)
    }

    fn sum(&self, id: &str) -> u64 {
        let (attempt, level) = (self.attempt.into(), self.priority.level().into());
        let every = self.terms.every().map_or(0, millis);
        let numbers = [self.due.0, self.began.0, attempt, level, every];
        sum(id, &self.payload, &numbers, &self.terms.text())
    }

    /// The same task, with its first attempt ahead.
    pub(super) fn anew(self, due: Timestamp) -> Self {
        Self {
            due,
            began: due,
            attempt: 1,
            ..self
        }
    }

    /// Makes the schedule: it becomes a message that is handed over at `from`.
    pub(super) fn schedule(
        &self,
        subjects: &Subjects,
        (id, generation): (&str, u64),
        from: Timestamp,
    ) -> Letter {
        let from = from.min(LAST_HAND_OVER);
        let target = self.handed(subjects, (id, generation));
        let letter = Letter::new(subjects.pending(id, generation))
            .header("Nats-Schedule", format_args!("@at {}", rfc3339(from)))
            .header("Nats-Schedule-Target", target);
        self.write(id, letter)
    }

    /// Makes the message that is handed over at once.
    pub(super) fn hand_over(&self, subjects: &Subjects, of: (&str, u64)) -> Letter {
        self.write(of.0, Letter::new(self.handed(subjects, of)))
    }

    fn handed(&self, subjects: &Subjects, of: (&str, u64)) -> String {
        subjects.handed(of, self.priority, &self.terms.queue)
    }

    fn write(&self, id: &str, letter: Letter) -> Letter {
        let mut letter = letter
            .header(DUE, self.due.0)
            .header(ATTEMPT, self.attempt)
            .header(SUM, self.sum(id))
            .payload(self.payload.clone());
        // What a reader takes for granted is not written: there may be millions.
        if self.began != self.due {
            letter = letter.header(BEGAN, self.began.0);
        }
        if self.priority != Priority::default() {
            letter = letter.header(PRIORITY, self.priority.level());
        }
        with_terms(letter, &self.terms)
    }
}

/// A message with headers for a task's terms, if there is something to say.
pub(super) fn with_terms(letter: Letter, terms: &Terms) -> Letter {
    let text = terms.text();
    let letter = match text.is_empty() {
        true => letter,
        false => letter.header(TERMS, encoded(&text)),
    };
    match terms.every() {
        Some(period) => letter.header(EVERY, millis(period)),
        None => letter,
    }
}

/// The terms in a message's headers.
pub(super) fn terms(headers: &HeaderMap) -> Terms {
    let every = number(headers, EVERY).map(Duration::from_millis);
    let text = headers.get(TERMS).map(|text| {
        let text = text.as_str();
        decoded(text).unwrap_or_else(|| text.to_owned())
    });
    Terms::read(every, text.as_deref())
}

fn millis(period: Duration) -> u64 {
    u64::try_from(period.as_millis()).unwrap_or(u64::MAX)
}

/// A number in a header.
pub(super) fn number(headers: &HeaderMap, name: &'static str) -> Option<u64> {
    headers.get(name)?.as_str().parse().ok()
}
