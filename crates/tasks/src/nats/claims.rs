//! Claims: what was delivered, the record that fences a second delivery, and the lease.

use std::collections::HashMap;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use async_nats::Message;
use futures_util::{StreamExt, TryStreamExt, stream};
use tidewheel_time::{monotonic_nanos, nanos};

use super::Inner;
use super::order::Order;
use super::pump::Delivered;
use super::record::{Fenced, Says, Step, says};
use super::subjects::id_of;
use crate::shape::claim::{Claim, Fence, Verdict};
use crate::shape::error::StoreError;
use crate::shape::timestamp::Timestamp;
use crate::store::Ask;

/// Calls of one claim or batch that are on their way at the same time.
pub(super) const AT_ONCE: usize = 64;

/// So few records are asked for one by one.
const FEW: usize = 16;

/// Records that are asked for in one call: the server answers for 1,024 at most.
const ASKED: usize = 1000;

/// A claim, and the end of its lease by the monotonic clock, in nanoseconds.
type Leased = (Arc<Claim>, u64);

/// Claims on their way to the worker.
#[derive(Debug, Default)]
pub(super) struct Claimed {
    /// Of these it is not known whether they were cancelled after they were delivered.
    unchecked: Vec<Leased>,
    ready: Vec<Leased>,
}

/// What the subject of an acknowledgement says about its message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Delivery {
    /// The message's sequence in the stream.
    pub(super) sequence: u64,
    /// Which delivery this is, from 1.
    pub(super) count: u64,
    /// When the message was kept.
    pub(super) kept: Timestamp,
}

impl Delivery {
    /// `$JS.ACK.STREAM.CONSUMER.COUNT.SEQUENCE.…TIME.PENDING`, perhaps with a domain and an account before the stream, and
    /// a random token at the end.
    pub(super) fn of(reply: &str) -> Option<Self> {
        let tokens: Vec<&str> = reply.split('.').collect();
        let at = if tokens.len() >= 11 { 6 } else { 4 };
        let number = |at: usize| tokens.get(at)?.parse::<u64>().ok();
        Some(Self {
            count: number(at)?,
            sequence: number(at + 1)?,
            kept: Timestamp(number(at + 3)? / 1000),
        })
    }
}

/// How a claim is compared with records. Its first delivery knows of none.
pub(super) fn fenced(claim: &Claim) -> Fenced<'_> {
    let delivery = Delivery::of(&claim.receipt);
    let is_first = delivery.is_some_and(|delivery| delivery.sequence == claim.fence.0);
    Fenced {
        id: &claim.id,
        fence: claim.fence.0,
        known: if is_first { 0 } else { claim.fence.0 },
    }
}

impl Inner {
    /// Makes claims of what was delivered, and looks which of them may be handed out. They wait in `claimed` meanwhile: a call
    /// that is given up loses none.
    pub(super) async fn claim(&self, ask: &Ask) -> Result<(), StoreError> {
        self.asked.now();
        let now = self.about_now().await?;
        let mut delivered = Vec::new();
        for buffer in &self.buffers {
            delivered.extend(buffer.take(ask.most - delivered.len()));
        }
        let claims = delivered
            .into_iter()
            .map(|message| self.claim_one(message, ask, now));
        let claims = stream::iter(claims).buffered(AT_ONCE);
        let claims: Vec<_> = claims.filter_map(|claim| async { claim }).collect().await;
        self.claimed().unchecked.extend(claims);
        self.check(ask.most).await
    }

    /// Leaves out what was cancelled or moved after it was delivered.
    async fn check(&self, most: usize) -> Result<(), StoreError> {
        let claims: Vec<_> = self
            .claimed()
            .unchecked
            .iter()
            .take(most)
            .cloned()
            .collect();
        if claims.is_empty() {
            return Ok(());
        }
        let shared: Vec<_> = claims.iter().map(|(claim, _)| Arc::clone(claim)).collect();
        let verdicts = self.still_latest(&shared).await?;
        let mut claimed = self.claimed();
        let verdicts: HashMap<_, _> = shared
            .iter()
            .map(|claim| claim.fence)
            .zip(verdicts)
            .collect();
        // Another call may have checked some of them meanwhile: those are no longer here.
        let (checked, unchecked) = std::mem::take(&mut claimed.unchecked)
            .into_iter()
            .partition(|(claim, _)| verdicts.contains_key(&claim.fence));
        claimed.unchecked = unchecked;
        let checked: Vec<Leased> = checked;
        let is_latest = |leased: &Leased| verdicts[&leased.0.fence].is_accepted();
        claimed.ready.extend(checked.into_iter().filter(is_latest));
        Ok(())
    }

    /// Gives back what was fetched: the pumps see to what was not looked at.
    pub(super) async fn leave(&self) -> Result<(), StoreError> {
        self.asked.no_more();
        let Claimed { unchecked, ready } = std::mem::take(&mut *self.claimed());
        let claims: Vec<_> = unchecked
            .into_iter()
            .chain(ready)
            .map(|(claim, _)| claim)
            .collect();
        self.release(&claims).await.map(|_| ())
    }

    fn claimed(&self) -> MutexGuard<'_, Claimed> {
        self.claimed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands out what may be: each for what is left of its lease.
    pub(super) fn take_ready(&self, most: usize) -> Vec<Claim> {
        let mut claimed = self.claimed();
        let count = most.min(claimed.ready.len());
        let ready = claimed.ready.drain(..count);
        let now = monotonic_nanos();
        let ready = ready.filter_map(|(claim, until)| {
            let left = until.checked_sub(now)?;
            let mut claim = Arc::unwrap_or_clone(claim);
            claim.remaining = Duration::from_nanos(left);
            claim.sure = claim.remaining + self.lease / 4;
            Some(claim)
        });
        ready.collect()
    }

    /// A message as a claim. What cannot be claimed now is delivered again when its lease ends.
    async fn claim_one(&self, delivered: Delivered, ask: &Ask, now: Timestamp) -> Option<Leased> {
        let until = delivered.at.saturating_add(nanos(self.trusted()));
        let Message {
            subject,
            reply,
            headers,
            payload,
            ..
        } = delivered.message;
        let (reply, id) = (reply?, id_of(&subject)?);
        let delivery = Delivery::of(&reply)?;
        let order = Order::read(&headers?, payload)?;
        // How far ahead it was handed over is the stream's business, unless nothing is to be claimed ahead.
        if ask.lookahead.is_zero() && order.due > now {
            self.put_off(&reply, order.due.since(now)).await;
            return None;
        }
        let fence = if delivery.count == 1 && !self.may_be_old(delivery, now) {
            delivery.sequence
        } else {
            self.claim_again(&id, delivery, &reply).await?
        };
        let mut claim = Claim::new(id, order.due, Fence(fence), self.trusted());
        claim.payload = order.payload.to_vec();
        (claim.began, claim.attempt) = (order.began, order.attempt);
        (claim.priority, claim.every) = (order.priority, order.every);
        claim.receipt = reply.to_string();
        Some((Arc::new(claim), until))
    }

    /// For how long a worker believes in a claim: an extension that a leader had not passed on when it died is lost, and
    /// claims are extended when a quarter of this is over.
    fn trusted(&self) -> Duration {
        self.lease - self.lease / 4
    }

    /// Whether a first delivery may have lain here while this process was stopped: then it is no longer the latest.
    fn may_be_old(&self, delivery: Delivery, now: Timestamp) -> bool {
        now.since(delivery.kept) > self.lease / 2
    }

    /// Claims what may have been delivered before, by a record. `None` if it is over, or somebody else was quicker.
    async fn claim_again(&self, id: &str, delivery: Delivery, reply: &str) -> Option<u64> {
        let last = self.last_record(id).await.ok()?;
        let newer = last
            .as_ref()
            .filter(|kept| kept.sequence > delivery.sequence);
        if newer.is_some_and(|kept| says(kept) == Says::Over) {
            self.acknowledge(reply).await;
            return None;
        }
        let known = last.map_or(0, |kept| kept.sequence);
        let claim = Fenced {
            id,
            fence: known,
            known,
        };
        let step = self.put_record(claim, |after| vec![self.record(id, Says::Claimed, after)]);
        match step.await.ok()? {
            Step::Kept(sequence) => Some(sequence),
            Step::Refused | Step::Occupied => None,
        }
    }

    /// Has a message delivered again later.
    async fn put_off(&self, reply: &str, wait: Duration) {
        let body = format!("-NAK {{\"delay\": {}}}", wait.as_nanos());
        let _ = self
            .wire
            .client
            .publish(reply.to_owned(), body.into())
            .await;
    }

    /// Lets the stream drop a message. If that is lost, it is delivered again, and its record says that it is over.
    pub(super) async fn acknowledge(&self, reply: &str) {
        let _ = self
            .wire
            .client
            .publish(reply.to_owned(), "+ACK".into())
            .await;
    }

    /// Extends all claims, if the consumers' leaders answer; then looks which of them have newer records.
    pub(super) async fn extend(&self, claims: &[Arc<Claim>]) -> Result<Vec<Verdict>, StoreError> {
        // A leader takes what one connection sends in order. So its answer to the last speaks for all.
        let mut last = HashMap::new();
        for claim in claims {
            if let Some(claim) = last.insert(claim.priority, claim) {
                let sent = self
                    .wire
                    .client
                    .publish(claim.receipt.clone(), "+WPI".into());
                sent.await.map_err(StoreError::engine)?;
            }
        }
        for claim in last.values() {
            let answer = self
                .wire
                .client
                .request(claim.receipt.clone(), "+WPI".into())
                .await;
            answer.map_err(StoreError::engine)?;
        }
        self.still_latest(claims).await
    }

    /// Which claims have no newer record. Of a few, the stream's leader is asked; of many, any node, which may not know the
    /// latest yet.
    async fn still_latest(&self, claims: &[Arc<Claim>]) -> Result<Vec<Verdict>, StoreError> {
        if claims.len() <= FEW {
            let latest = claims.iter().map(Arc::clone);
            let latest = latest.map(|claim| async move {
                let last = self.last_record(&claim.id).await?;
                let newer = last.filter(|kept| kept.sequence > claim.fence.0);
                Ok(Verdict::from(newer.is_none()))
            });
            return stream::iter(latest).buffered(AT_ONCE).try_collect().await;
        }
        let mut verdicts = Vec::with_capacity(claims.len());
        for batch in claims.chunks(ASKED) {
            verdicts.extend(self.latest_somewhere(batch).await?);
        }
        Ok(verdicts)
    }

    async fn latest_somewhere(&self, claims: &[Arc<Claim>]) -> Result<Vec<Verdict>, StoreError> {
        let subjects: Vec<_> = claims
            .iter()
            .map(|claim| self.subjects.record(&claim.id))
            .collect();
        let records = self.wire.direct(&subjects).await?;
        let records: HashMap<_, _> = records.iter().filter_map(sequence_of).collect();
        let is_latest = |(claim, subject): (&Arc<Claim>, &String)| {
            let newer = records
                .get(subject.as_str())
                .filter(|last| **last > claim.fence.0);
            Verdict::from(newer.is_none())
        };
        Ok(claims.iter().zip(&subjects).map(is_latest).collect())
    }

    pub(super) async fn release(&self, claims: &[Arc<Claim>]) -> Result<Vec<Verdict>, StoreError> {
        for claim in claims {
            let sent = self
                .wire
                .client
                .publish(claim.receipt.clone(), "-NAK".into());
            sent.await.map_err(StoreError::engine)?;
        }
        self.wire.client.flush().await.map_err(StoreError::engine)?;
        Ok(vec![Verdict::Accepted; claims.len()])
    }
}

/// Subject and sequence of a record that a node has answered with.
fn sequence_of(message: &Message) -> Option<(&str, u64)> {
    let headers = message.headers.as_ref()?;
    let subject = headers.get("Nats-Subject")?.as_str();
    Some((
        subject,
        headers.get("Nats-Sequence")?.as_str().parse().ok()?,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_subjects_of_old_and_new_servers_are_read() {
        let delivery = Delivery {
            sequence: 30,
            count: 2,
            kept: Timestamp(1_795_366_924_521_087),
        };
        let old = "$JS.ACK.TW_q.p1.2.30.7.1795366924521087990.0";
        let new = "$JS.ACK.hub.ACC.TW_q.p1.2.30.7.1795366924521087990.0.abc";
        assert_eq!([Delivery::of(old), Delivery::of(new)], [Some(delivery); 2]);
        assert_eq!(Delivery::of("_INBOX.x"), None);
    }
}
