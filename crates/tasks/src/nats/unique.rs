//! An id that is unique for a while has a message, which goes when its time is over.
//!
//! It comes with the task, in one batch, and only if there is none.

use std::time::Duration;

use super::Inner;
use super::generation::{generation, generation_of};
use super::order::number;
use super::record::Says;
use super::wire::{Kept, Letter, Put};
use crate::shape::error::StoreError;
use crate::shape::overtaken::{TRIES, pause_after};
use crate::shape::timestamp::Timestamp;

/// The header that says until when.
const UNTIL: &str = "Tw-Until";

impl Inner {
    /// Keeps a task whose id is to be unique for so long. Returns its sequence.
    pub(super) async fn put_unique(
        &self,
        id: &str,
        letter: impl Fn(u64) -> Letter,
        (time, now): (Duration, Timestamp),
    ) -> Result<u64, StoreError> {
        let (mut after, mut old) = (0, None);
        for tried in 1..=TRIES {
            let mark = self.mark(id, (time, now), after);
            let generation = generation(now, generation_of(old.as_ref()));
            let record = self.record_anyway((id, generation), Says::Over);
            let mut batch = vec![mark, record];
            batch.extend(self.instead_of(old.as_ref(), id, letter(generation)));
            if let Put::Kept(sequence) = self.wire.put_all(batch).await? {
                return Ok(sequence);
            }
            let mark = self.wire.last(&self.subjects.unique(id)).await?;
            let until = mark.as_ref().and_then(unique_until);
            if until.is_some_and(|until| until > now) {
                return Err(StoreError::Duplicate);
            }
            after = mark.map_or(0, |mark| mark.sequence);
            old = self.pending(id).await?;
            tokio::time::sleep(pause_after(tried)).await;
        }
        Err(StoreError::engine("the id is scheduled all the time"))
    }

    /// The message that keeps an id unique for so long, kept only after the one of the given
    /// sequence; 0 for none.
    pub(super) fn mark(&self, id: &str, (time, now): (Duration, Timestamp), after: u64) -> Letter {
        // The stream counts in seconds.
        let seconds = time.as_secs() + 1;
        Letter::new(self.subjects.unique(id))
            .header(UNTIL, now.plus(time).0)
            .header("Nats-TTL", format_args!("{seconds}s"))
            .expecting(after)
    }
}

/// The time until which such a message keeps its id unique.
pub(super) fn unique_until(mark: &Kept) -> Option<Timestamp> {
    number(&mark.headers, UNTIL).map(Timestamp)
}
