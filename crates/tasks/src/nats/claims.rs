//! Claims are made of delivered messages. A record fences a second delivery. The consumer's wait
//! for an acknowledgement is the lease.

use std::collections::HashMap;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use async_nats::Message;
use futures_util::future::{join_all, try_join};
use futures_util::{StreamExt, TryStreamExt, stream};
use tidewheel_time::{monotonic_nanos, nanos};

use super::Inner;
use super::limits::WithSlot;
use super::lines::Line;
use super::order::Order;
use super::receipt::{Delivery, consumer_of, fenced, receipt, reply_of};
use super::record::{Fenced, Known, Says, Step, says};
use super::wire::Kept;
use crate::shape::claim::{Claim, Fence, Verdict};
use crate::shape::error::StoreError;
use crate::shape::timestamp::Timestamp;
use crate::store::Ask;

/// Calls of one claim or batch that are on their way at the same time.
pub(super) const AT_ONCE: usize = 64;

/// Records are asked for one by one if they are no more than this.
const FEW: usize = 16;

/// The time until what could not be claimed is delivered again.
const AGAIN: Duration = Duration::from_millis(100);

/// The end of all pulls is waited for so long: messages that come later go back a moment later.
const LEAVING: Duration = Duration::from_millis(500);

/// Records that are asked for in one call: the server answers for 1,024 at most.
const ASKED: usize = 1000;

/// A claim on its way to the worker.
#[derive(Debug, Clone)]
struct Leased {
    claim: Arc<Claim>,
    /// The end of its lease by the monotonic clock, in nanoseconds.
    until: u64,
    /// The generation of its task.
    generation: u64,
    /// The record that it comes after, 0 for none.
    record: u64,
    line: Arc<Line>,
}

/// Claims on their way to the worker.
#[derive(Debug, Default)]
pub(super) struct Claimed {
    /// The claims of which it is not known whether they were cancelled after they were delivered.
    unchecked: Vec<Leased>,
    ready: Vec<Leased>,
}

impl Inner {
    /// Makes claims of what was delivered, and looks which of them may be handed out. They wait in
    /// `claimed` meanwhile: a call that is given up loses none.
    pub(super) async fn claim(&self, ask: &Ask) -> Result<(), StoreError> {
        let lines = self.open_lines(self.lines_of(ask).await?).await?;
        // All are asked: each tells once.
        let consumers = lines.iter().flat_map(|line| &line.consumers);
        let lost = consumers.filter(|consumer| consumer.take_lost());
        if lost.count() > 0 {
            return Err(StoreError::engine("a consumer was deleted, and made anew"));
        }
        let now = self.about_now().await?;
        for line in &lines {
            self.set_room(line, ask, now).await?;
            self.pull(line);
        }
        let mut delivered = Vec::new();
        for level in 0..3 {
            for line in &lines {
                let messages = line.buffers[level].take(ask.most - delivered.len());
                let messages = self.with_slots(line, messages, ask, now).await;
                delivered.extend(
                    messages
                        .into_iter()
                        .map(|message| (Arc::clone(line), message)),
                );
            }
        }
        let claims = delivered
            .into_iter()
            .map(|(line, message)| self.claim_one(line, message, ask, now));
        let claims = stream::iter(claims).buffered(AT_ONCE);
        let claims: Vec<_> = claims.filter_map(|claim| async { claim }).collect().await;
        self.claimed().unchecked.extend(claims);
        self.check(ask).await
    }

    /// Leaves out what was cancelled or moved after it was delivered.
    async fn check(&self, ask: &Ask) -> Result<(), StoreError> {
        let claims: Vec<_> = self
            .claimed()
            .unchecked
            .iter()
            .filter(|leased| self.is_asked(ask, leased))
            .take(ask.most)
            .cloned()
            .collect();
        if claims.is_empty() {
            return Ok(());
        }
        let shared: Vec<_> = claims
            .iter()
            .map(|leased| Arc::clone(&leased.claim))
            .collect();
        let records = self.records(&shared).await?;
        let records: HashMap<_, _> = shared
            .iter()
            .map(|claim| claim.fence.0)
            .zip(records)
            .collect();
        for old in self.sort(&records) {
            self.acknowledge(&old).await;
        }
        Ok(())
    }

    /// Sorts what was checked by its records. Returns where those are acknowledged that were
    /// replaced before they were handed over.
    fn sort(&self, records: &HashMap<u64, Known>) -> Vec<String> {
        let mut claimed = self.claimed();
        let mut replaced = Vec::new();
        // Another call may have checked some of them meanwhile: those are no longer here.
        for mut leased in std::mem::take(&mut claimed.unchecked) {
            let fence = leased.claim.fence.0;
            match records.get(&fence) {
                None => claimed.unchecked.push(leased),
                Some(record) if record.generation > leased.generation => {
                    replaced.push(leased.claim.receipt.clone());
                }
                Some(record) if record.sequence <= fence => {
                    leased.record = record.sequence;
                    claimed.ready.push(leased);
                }
                Some(_) => {}
            }
        }
        replaced
    }

    /// Gives back what was fetched: the pumps see to what was not looked at.
    pub(super) async fn leave(&self) -> Result<(), StoreError> {
        let lines = self.lines.all();
        lines.iter().for_each(|line| line.asked.no_more());
        // What goes back then is delivered to others.
        join_all(lines.iter().map(|line| line.asked.is_over(LEAVING))).await;
        let Claimed { unchecked, ready } = std::mem::take(&mut *self.claimed());
        let claims: Vec<_> = unchecked
            .into_iter()
            .chain(ready)
            .map(|leased| leased.claim)
            .collect();
        self.give_back(&claims).await
    }

    /// True if a question is about a claim's queue, and that is not paused.
    fn is_asked(&self, ask: &Ask, leased: &Leased) -> bool {
        let queue = &leased.line.queue;
        ask.admits(queue) && !self.rules.is_paused(queue)
    }

    fn claimed(&self) -> MutexGuard<'_, Claimed> {
        self.claimed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands out what may be: each for what is left of its lease.
    pub(super) fn take_ready(&self, ask: &Ask) -> Vec<Claim> {
        let mut claimed = self.claimed();
        let is_asked = |leased: &mut Leased| self.is_asked(ask, leased);
        let ready = claimed.ready.extract_if(.., is_asked).take(ask.most);
        let now = monotonic_nanos();
        let ready = ready.filter_map(|leased| {
            let left = leased.until.checked_sub(now)?;
            let mut claim = Arc::unwrap_or_clone(leased.claim);
            claim.receipt = receipt(&claim, leased.record, leased.generation);
            claim.remaining = Duration::from_nanos(left);
            claim.sure = claim.remaining + self.lease / 4;
            Some(claim)
        });
        ready.collect()
    }

    /// A message as a claim. What cannot be claimed now is delivered again.
    async fn claim_one(
        &self,
        line: Arc<Line>,
        (delivered, slot): WithSlot,
        ask: &Ask,
        now: Timestamp,
    ) -> Option<Leased> {
        let until = delivered.at.saturating_add(nanos(self.trusted()));
        let Message {
            subject,
            reply,
            headers,
            payload,
            ..
        } = delivered.message;
        let (reply, (id, generation)) = (reply?, self.subjects.named(&subject));
        let delivery = Delivery::of(&reply)?;
        let order = Order::read(&id, &headers.unwrap_or_default(), payload);
        // How far ahead it was handed over is the stream's business, unless nothing is to be
        // claimed ahead.
        if ask.lookahead.is_zero() && order.due > now && order.is_whole {
            self.put_off(&reply, order.due.since(now)).await;
            return None;
        }
        let consumer = &line.consumers[usize::from(order.priority.level())];
        let is_first = delivery.count == 1 && !consumer.may_be_younger(delivery.kept);
        let (fence, lost, doubtful) = if is_first && !self.may_be_old(delivery, now) {
            (delivery.sequence, 0, false)
        } else {
            match self.claim_again((&id, generation), delivery, &reply).await {
                Ok(again) => again?,
                Err(_) => {
                    // Otherwise it would come back when its lease ends.
                    self.put_off(&reply, AGAIN).await;
                    return None;
                }
            }
        };
        let mut claim = Claim::new(id, order.due, Fence(fence), self.trusted());
        claim.payload = order.payload.to_vec();
        (claim.began, claim.attempt) = (order.began, order.attempt.saturating_add(lost));
        (claim.lost, claim.doubtful) = (lost, doubtful);
        (claim.priority, claim.terms) = (order.priority, order.terms);
        claim.is_damaged = !order.is_whole;
        if let Some(slot) = slot {
            (claim.due, claim.has_slot) = (slot, true);
        }
        claim.interruptions = delivered.interruptions;
        claim.receipt = reply.to_string();
        Some(Leased {
            claim: Arc::new(claim),
            until,
            generation,
            record: 0,
            line,
        })
    }

    /// A worker believes in a claim for so long. An extension that a leader had not passed on when
    /// it died is lost, and claims are extended when a quarter of this is over.
    fn trusted(&self) -> Duration {
        self.lease - self.lease / 4
    }

    /// True if a first delivery may have lain here while this process was stopped: then it need not
    /// be the latest any more.
    fn may_be_old(&self, delivery: Delivery, now: Timestamp) -> bool {
        now.since(delivery.kept) > self.lease / 2
    }

    /// Claims what may have been delivered before, by a record. Returns its fence, how many of its
    /// attempts were lost, and whether it is doubtful. `None` if it is over, or somebody else was
    /// quicker.
    async fn claim_again(
        &self,
        of: (&str, u64),
        delivery: Delivery,
        reply: &str,
    ) -> Result<Option<(u64, u32, bool)>, StoreError> {
        let (id, generation) = of;
        let (last, lost) = try_join(self.last_record(id), self.lost(of)).await?;
        let newer = last
            .as_ref()
            .filter(|kept| kept.sequence > delivery.sequence);
        let newest = newer.map(says);
        let is_over = newest == Some(Says::Over);
        let is_doubtful = lost > 0 || delivery.count > 1 && newest != Some(Says::Back);
        let known = Known::of(last.as_ref());
        if is_over || known.generation > generation {
            self.acknowledge(reply).await;
            return Ok(None);
        }
        let known = known.sequence;
        let claim = Fenced {
            id,
            generation,
            fence: known,
            known,
        };
        let record = |after, _: Option<&Kept>| vec![self.record(of, Says::Claimed, after)];
        let step = self.put_record(claim, record);
        match step.await? {
            Step::Kept(sequence) => Ok(Some((sequence, lost, is_doubtful))),
            Step::Refused => Ok(None),
        }
    }

    /// Has a message delivered again later.
    pub(super) async fn put_off(&self, reply: &str, wait: Duration) {
        let body = format!("-NAK {{\"delay\": {}}}", wait.as_nanos());
        let _ = self
            .wire
            .client
            .publish(reply.to_owned(), body.into())
            .await;
    }

    /// Lets the stream drop a message. If that is lost, it is delivered again, and its record says
    /// that it is over.
    pub(super) async fn acknowledge(&self, reply: &str) {
        let _ = self
            .wire
            .client
            .publish(reply.to_owned(), "+ACK".into())
            .await;
    }

    /// Extends all claims, if the consumers' leaders answer; then looks which of them have newer
    /// records.
    pub(super) async fn extend(&self, claims: &[Arc<Claim>]) -> Result<Vec<Verdict>, StoreError> {
        // A leader takes what one connection sends in order. So its answer to the last speaks for
        // all.
        let mut last = HashMap::new();
        for claim in claims.iter().filter(|claim| fenced(claim).is_some()) {
            if let Some(claim) = last.insert(consumer_of(claim), claim) {
                let sent = self
                    .wire
                    .client
                    .publish(reply_of(claim).to_owned(), "+WPI".into());
                sent.await.map_err(StoreError::engine)?;
            }
        }
        for claim in last.values() {
            let answer = self
                .wire
                .client
                .request(reply_of(claim).to_owned(), "+WPI".into())
                .await;
            answer.map_err(StoreError::engine)?;
        }
        self.still_latest(claims).await
    }

    /// Accepts the claims that have no newer record.
    async fn still_latest(&self, claims: &[Arc<Claim>]) -> Result<Vec<Verdict>, StoreError> {
        let records = self.records(claims).await?;
        let latest = claims.iter().zip(records);
        let is_latest = |claim: &Claim, record: Known| {
            fenced(claim).is_some_and(|own| record.sequence <= own.fence)
        };
        let latest = latest.map(|(claim, record)| is_latest(claim, record).into());
        Ok(latest.collect())
    }

    /// The claims' records. Of a few, the stream's leader is asked; of
    /// many, any node, which may not know the latest yet.
    async fn records(&self, claims: &[Arc<Claim>]) -> Result<Vec<Known>, StoreError> {
        if claims.len() <= FEW {
            let records = claims.iter().map(Arc::clone).map(|claim| async move {
                let last = self.last_record(&claim.id).await?;
                Ok(Known::of(last.as_ref()))
            });
            return stream::iter(records).buffered(AT_ONCE).try_collect().await;
        }
        let mut records = Vec::with_capacity(claims.len());
        for batch in claims.chunks(ASKED) {
            records.extend(self.records_somewhere(batch).await?);
        }
        Ok(records)
    }

    async fn records_somewhere(&self, claims: &[Arc<Claim>]) -> Result<Vec<Known>, StoreError> {
        let subjects: Vec<_> = claims
            .iter()
            .map(|claim| self.subjects.record(&claim.id))
            .collect();
        let found = self.wire.direct(&subjects).await?;
        let record = |message: &'_ Message| {
            let (subject, sequence) = sequence_of(message)?;
            let headers = message.headers.as_ref()?;
            Some((subject.to_owned(), Known::read(sequence, headers)))
        };
        let found: HashMap<_, _> = found.iter().filter_map(record).collect();
        let record = |subject: &String| found.get(subject).copied().unwrap_or_default();
        Ok(subjects.iter().map(record).collect())
    }

    pub(super) async fn give_back(&self, claims: &[Arc<Claim>]) -> Result<(), StoreError> {
        if claims.is_empty() {
            return Ok(());
        }
        for claim in claims {
            let reply = reply_of(claim).to_owned();
            let sent = self.wire.client.publish(reply, "-NAK".into());
            sent.await.map_err(StoreError::engine)?;
        }
        self.wire.client.flush().await.map_err(StoreError::engine)
    }
}

/// Subject and sequence of a record that a node has answered with.
pub(super) fn sequence_of(message: &Message) -> Option<(&str, u64)> {
    let headers = message.headers.as_ref()?;
    let subject = headers.get("Nats-Subject")?.as_str();
    Some((
        subject,
        headers.get("Nats-Sequence")?.as_str().parse().ok()?,
    ))
}
