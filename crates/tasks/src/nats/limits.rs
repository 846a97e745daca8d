//! Slots of limited queues: a message for each queue has those that were given away.
//!
//! What a limited line has delivered gets its slots before it becomes claims, all by one message
//! that is kept only if nobody else has kept another one since. What gets none is delivered again
//! later. No more is pulled than there are slots.

use std::time::Duration;

use super::Inner;
use super::lines::Line;
use super::order::{DUE, number};
use super::pump::Delivered;
use super::text::{decoded, encoded};
use super::wire::{Letter, Put};
use crate::shape::claim::Claim;
use crate::shape::error::StoreError;
use crate::shape::rate::{Rate, Spent};
use crate::shape::timestamp::Timestamp;
use crate::store::Ask;

/// The number of tries to take slots, or to free them.
const TRIES: u32 = 20;

/// The shortest and the longest time until what got no slot is delivered again: it may get one that
/// was freed.
const SHORTEST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(2);

/// The header that has the slots' text.
const SPENT: &str = "Tw-Spent";

/// A message with its slot, if its line is limited.
pub(super) type WithSlot = (Delivered, Option<Timestamp>);

impl Inner {
    /// What was given away, and the sequence of the message that says so.
    async fn spent(&self, queue: &str, rate: Rate) -> Result<(Spent, u64), StoreError> {
        let kept = self.wire.last(&self.subjects.spent(queue)).await?;
        let text = kept.as_ref().and_then(|kept| kept.headers.get(SPENT));
        let text = text.and_then(|text| decoded(text.as_str()));
        let spent = Spent::read(&text.unwrap_or_default(), rate);
        Ok((spent, kept.map_or(0, |kept| kept.sequence)))
    }

    /// `false` if somebody else was quicker.
    async fn spend(&self, queue: &str, spent: &Spent, after: u64) -> Result<bool, StoreError> {
        let letter = Letter::new(self.subjects.spent(queue));
        let letter = letter
            .header(SPENT, encoded(&spent.text()))
            .expecting(after);
        Ok(matches!(self.wire.put(letter).await?, Put::Kept(_)))
    }

    /// How far ahead slots are given.
    fn until(&self, ask: &Ask, now: Timestamp) -> Timestamp {
        match ask.lookahead.is_zero() {
            true => now,
            false => now.plus(self.lookahead),
        }
    }

    /// Lets a line pull no more than there are slots.
    pub(super) async fn set_room(
        &self,
        line: &Line,
        ask: &Ask,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let room = match self.rules.limit(&line.queue) {
            None => usize::MAX,
            Some(rate) => {
                let (spent, _) = self.spent(&line.queue, rate).await?;
                spent.free(now, self.until(ask, now))
            }
        };
        line.buffers.iter().for_each(|buffer| buffer.set_most(room));
        Ok(())
    }

    /// Gives messages of a line their slots, and has those delivered later that get none, or of
    /// which the stream does not say.
    pub(super) async fn with_slots(
        &self,
        line: &Line,
        messages: Vec<Delivered>,
        ask: &Ask,
        now: Timestamp,
    ) -> Vec<WithSlot> {
        let Some(rate) = self
            .rules
            .limit(&line.queue)
            .filter(|_| !messages.is_empty())
        else {
            return messages
                .into_iter()
                .map(|message| (message, None))
                .collect();
        };
        let until = self.until(ask, now);
        let mut slots = vec![None; messages.len()];
        let mut again = now;
        for _ in 0..TRIES {
            let Ok((mut spent, after)) = self.spent(&line.queue, rate).await else {
                break;
            };
            let dues = messages.iter().map(due_of);
            let found: Vec<_> = dues.map(|due| spent.slot(due, now, until)).collect();
            again = spent.again(now, until.since(now));
            if found.iter().all(Option::is_none) {
                break;
            }
            match self.spend(&line.queue, &spent, after).await {
                Ok(false) => {}
                Ok(true) => {
                    slots = found;
                    break;
                }
                Err(_) => break,
            }
        }
        let mut with_slots = Vec::new();
        for (message, slot) in messages.into_iter().zip(slots) {
            match (slot, &message.message.reply) {
                (None, Some(reply)) => {
                    let wait = again.since(now).clamp(SHORTEST, LONGEST);
                    self.put_off(reply, wait).await;
                }
                (None, None) => {}
                (Some(_), _) => with_slots.push((message, slot)),
            }
        }
        with_slots
    }

    /// Frees the slot of a claim that went back, if it has one. If that fails, it counts as if it
    /// had run.
    pub(super) async fn free_slot(&self, claim: &Claim) {
        if claim.has_slot {
            let _ = self.free_slot_of(claim).await;
        }
    }

    async fn free_slot_of(&self, claim: &Claim) -> Result<(), StoreError> {
        let queue = &claim.terms.queue;
        let Some(rate) = self.rules.limit(queue) else {
            return Ok(());
        };
        for _ in 0..TRIES {
            let (mut spent, after) = self.spent(queue, rate).await?;
            spent.give_back(claim.due);
            if self.spend(queue, &spent, after).await? {
                break;
            }
        }
        Ok(())
    }
}

fn due_of(delivered: &Delivered) -> Timestamp {
    let headers = delivered.message.headers.as_ref();
    let due = headers.and_then(|headers| number(headers, DUE));
    Timestamp(due.unwrap_or(0))
}
