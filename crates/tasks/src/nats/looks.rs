//! Looks at one id; progress and results, which are messages that go when their time is over.

use std::pin::pin;

use futures_util::{StreamExt, TryStreamExt, stream};

use super::Inner;
use super::generation::is_task;
use super::order::{Order, number};
use super::receipt::fenced;
use super::subjects::Subjects;
use super::text::{decoded, encoded};
use super::wire::{Kept, Letter};
use crate::shape::claim::{Claim, Verdict};
use crate::shape::error::StoreError;
use crate::shape::finished::Finished;
use crate::shape::look::{Look, State};
use crate::shape::timestamp::Timestamp;
use crate::shape::waits::Waits;

const ENDED: &str = "Tw-Ended";
const UNTIL: &str = "Tw-Until";
const QUEUE: &str = "Tw-Queue";

/// Looks at tasks that another waits for, side by side.
const ABREAST: usize = 8;

/// Progress is kept for so long.
const PROGRESS_FOR: &str = "86400s";

/// A result as a message. The stream counts in seconds.
pub(super) fn result_of(subjects: &Subjects, claim: &Claim, now: Timestamp) -> Option<Letter> {
    let finished = Finished::of(claim, now)?;
    let seconds = finished.until.since(now).as_secs() + 1;
    let letter = Letter::new(subjects.result(&claim.id))
        .header(ENDED, finished.at.0)
        .header(UNTIL, finished.until.0)
        .header(QUEUE, encoded(&finished.queue))
        .header("Nats-TTL", format_args!("{seconds}s"));
    Some(letter.payload(finished.result.into()))
}

/// A result that was kept, if its time is not over.
pub(super) fn finished(kept: Kept, now: Timestamp) -> Option<Finished> {
    let queue = kept.headers.get(QUEUE)?.as_str();
    let finished = Finished {
        queue: decoded(queue)?,
        result: kept.payload.to_vec(),
        at: Timestamp(number(&kept.headers, ENDED)?),
        until: Timestamp(number(&kept.headers, UNTIL)?),
    };
    (finished.until > now).then_some(finished)
}

/// A task's message as a look, which says if it is damaged.
pub(super) fn task(id: &str, state: State, kept: Kept) -> Look {
    let order = Order::read(id, &kept.headers, kept.payload);
    let mut look = Look::new(id, order.due, order.payload.to_vec());
    (look.state, look.attempt) = (state, order.attempt);
    (look.priority, look.terms) = (order.priority, order.terms);
    look.error = (!order.is_whole).then(|| DAMAGED.to_owned());
    look
}

/// The same for who asks about one: a task that waits for it does not go on.
fn whole_task(id: &str, state: State, kept: Kept) -> Result<Look, StoreError> {
    let look = task(id, state, kept);
    look.error.is_none().then_some(look).ok_or_else(damaged)
}

pub(super) fn damaged() -> StoreError {
    StoreError::engine(DAMAGED)
}

const DAMAGED: &str = "it is damaged, or no task of ours";

impl Inner {
    pub(super) async fn progress(
        &self,
        claim: &Claim,
        progress: Vec<u8>,
    ) -> Result<Verdict, StoreError> {
        let Some(own) = fenced(claim) else {
            return Ok(Verdict::Refused);
        };
        let record = self.last_record(&claim.id).await?;
        if record.is_some_and(|record| record.sequence > own.fence) {
            return Ok(Verdict::Refused);
        }
        // If it ends just now, its message is older than the next one, and not looked at.
        let letter =
            Letter::new(self.subjects.progress(&claim.id)).header("Nats-TTL", PROGRESS_FOR);
        self.kept(self.wire.put(letter.payload(progress.into())).await?)?;
        Ok(Verdict::Accepted)
    }

    pub(super) async fn look(&self, id: &str) -> Result<Option<Look>, StoreError> {
        let now = self.about_now().await?;
        let look = self.look_at_task(id).await?;
        let done = self.wire.last(&self.subjects.result(id)).await?;
        let done = done.and_then(|kept| finished(kept, now));
        let done = done.map(|finished| finished.look(id));
        let dead = self.wire.last(&self.subjects.dead(id)).await?;
        let dead = dead.map(|kept| self.letter_in(kept).look());
        Ok(Look::first_of(look, done, dead))
    }

    /// The first of those that a task waits for that is in its way. The first is looked at alone:
    /// most are in the way for long.
    pub(super) async fn look_ahead(&self, waits: &Waits) -> Result<Option<Look>, StoreError> {
        let look = async |id: &String| match waits.needs_all {
            true => self.look(id).await,
            false => self.look_at_task(id).await,
        };
        let mut first = waits.ids.iter();
        if let Some(id) = first.next()
            && let Some(look) = look(id).await?.filter(|look| look.is_in_the_way_of(waits))
        {
            return Ok(Some(look));
        }
        let looks = stream::iter(first).map(look).buffered(ABREAST);
        let mut in_the_way =
            pin!(looks.try_filter_map(async |look| {
                Ok(look.filter(|look| look.is_in_the_way_of(waits)))
            }));
        in_the_way.try_next().await
    }

    /// Looks at a task that has not ended.
    async fn look_at_task(&self, id: &str) -> Result<Option<Look>, StoreError> {
        let there = self.standing(id).await?;
        if let Some(pending) = there.pending.filter(is_task) {
            return whole_task(id, State::Pending, pending).map(Some);
        }
        let Some(handed) = there.handed else {
            return Ok(None);
        };
        let sequence = handed.sequence;
        let mut look = whole_task(id, State::Claimed, handed)?;
        let progress = self.wire.last(&self.subjects.progress(id)).await?;
        let progress = progress.filter(|kept| kept.sequence > sequence);
        look.progress = progress.map(|kept| kept.payload.to_vec());
        Ok(Some(look))
    }
}
