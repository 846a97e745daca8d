//! Many tasks go to the stream in atomic batches of schedules, several on their way at once.

use std::collections::HashMap;
use std::time::Duration;

use futures_util::{StreamExt, TryStreamExt, stream};

use super::Inner;
use super::change::COARSE;
use super::claims::{AT_ONCE, sequence_of};
use super::generation::{generation, generation_of};
use super::order::Order;
use super::record::Says;
use super::subjects::task_of;
use super::wire::{Kept, Letter, Put, kept_directly};
use crate::shape::error::StoreError;
use crate::shape::many::Many;
use crate::shape::overtaken::{TRIES, pause_after};
use crate::shape::task::Task;
use crate::shape::timestamp::Timestamp;

/// Schedules in one batch, each with a record, and the bytes of their payloads.
const BATCH: usize = 100;
const BATCH_BYTES: usize = 4_000_000;

/// Batches on their way: more of them wait for each other, and may not be answered in time.
const BATCHES: usize = 2;

/// The pauses before each question to a node, in milliseconds.
const PAUSES_MS: [u64; 4] = [0, 20, 100, 500];

/// Questions to the leader at a time.
const FEW: usize = 8;

/// Ids and tasks of one batch, and when each is handed over.
type Batch = Vec<(String, (Order, Timestamp))>;

impl Inner {
    pub(super) async fn schedule_many(&self, many: Many) -> Result<Vec<Timestamp>, StoreError> {
        let now = self.about_now().await?;
        let (ids, tasks) = many.into_parts();
        let tasks = tasks.into_values();
        let (mut dues, mut soon, mut batches) = (HashMap::new(), Vec::new(), vec![Batch::new()]);
        for task in tasks {
            self.line(&task.terms.queue).await?;
            let due = task.first_due(now);
            dues.insert(task.id.clone(), due);
            if due <= now.plus(COARSE) {
                soon.push(task.at(due));
            } else {
                self.add(&mut batches, task, due, now);
            }
        }
        let soon = soon.into_iter().map(|task| self.schedule(task));
        let kept = stream::iter(soon).buffer_unordered(AT_ONCE);
        kept.try_collect::<Vec<_>>().await?;
        batches.retain(|batch| !batch.is_empty());
        let batches = batches.into_iter();
        let batches = batches.map(|batch| self.schedule_batch(batch, now));
        let kept = stream::iter(batches).buffer_unordered(BATCHES);
        kept.try_collect::<()>().await?;
        Ok(Many::dues(&ids, &dues))
    }

    /// Adds a schedule to the last batch; to another one if that is full.
    fn add(&self, batches: &mut Vec<Batch>, task: Task, due: Timestamp, now: Timestamp) {
        let (id, from) = (task.id.clone(), due.minus(self.lookahead).max(now));
        let order = Order::of(task, due);
        let last = batches.last().map_or(&[][..], |last| last);
        let bytes: usize = last.iter().map(|(_, (order, _))| order.payload.len()).sum();
        if last.len() >= BATCH || bytes + order.payload.len() > BATCH_BYTES {
            batches.push(Batch::new());
        }
        if let Some(last) = batches.last_mut() {
            last.push((id, (order, from)));
        }
    }

    async fn schedule_batch(&self, batch: Batch, now: Timestamp) -> Result<(), StoreError> {
        let (ids, orders): (Vec<_>, Vec<_>) = batch.into_iter().unzip();
        // Mostly nothing of these ids is pending.
        let mut pending = HashMap::new();
        for tried in 1..=TRIES {
            let letters = ids.iter().zip(&orders);
            let letters = letters.map(|(id, order)| self.anew(id, order, pending.get(id), now));
            let letters: Vec<_> = letters.flatten().collect();
            let count = letters.len() as u64;
            if let Put::Kept(last) = self.wire.put_all(letters).await? {
                // A batch is kept as one: its sequences follow each other.
                let first = (last + 1).saturating_sub(count);
                return self.forget_all(&ids, first, last).await;
            }
            pending = self.pending_of(&ids).await?;
            tokio::time::sleep(pause_after(tried)).await;
        }
        Err(StoreError::engine("the ids are scheduled all the time"))
    }

    /// A task's record and its schedule, in this order: what was claimed before is over.
    fn anew(
        &self,
        id: &str,
        (order, from): &(Order, Timestamp),
        old: Option<&Kept>,
        now: Timestamp,
    ) -> Vec<Letter> {
        let of = (id, generation(now, generation_of(old)));
        let mut letters = vec![self.record_anyway(of, Says::Over)];
        let schedule = order.schedule(&self.subjects, of, *from);
        letters.extend(self.instead_of(old, id, schedule));
        letters
    }

    /// The messages that are pending of many ids, as some node has them: the latest of each.
    async fn pending_of(&self, ids: &[String]) -> Result<HashMap<String, Kept>, StoreError> {
        let subjects: Vec<_> = ids.iter().map(|id| self.subjects.pending_any(id)).collect();
        let found = self.wire.direct(&subjects).await?;
        let mut latest = HashMap::<String, Kept>::new();
        for kept in found.into_iter().filter_map(kept_directly) {
            let Some((id, _)) = task_of(&kept.subject) else {
                continue;
            };
            let before = latest.get(&id).map(|before| before.sequence);
            if before.is_none_or(|before| before < kept.sequence) {
                latest.insert(id, kept);
            }
        }
        Ok(latest)
    }

    /// Removes what was handed over of these ids before a sequence. Any node is asked, again if it
    /// does not have the batch yet: a follower may hear of it a moment later.
    async fn forget_all(&self, ids: &[String], first: u64, last: u64) -> Result<(), StoreError> {
        let handed = ids.iter().map(|id| self.subjects.handed_any(id));
        let proof = ids.last().map(|id| self.subjects.pending_any(id));
        let subjects: Vec<_> = handed.chain(proof).collect();
        for pause in PAUSES_MS {
            tokio::time::sleep(Duration::from_millis(pause)).await;
            let found = self.wire.direct(&subjects).await?;
            let found: Vec<_> = found.iter().filter_map(sequence_of).collect();
            if found.iter().any(|(_, sequence)| *sequence >= last) {
                let old = found.iter().filter(|(_, sequence)| *sequence < first);
                for (subject, _) in old {
                    self.wire.purge(subject, Some(first)).await?;
                }
                return Ok(());
            }
        }
        // The last task may have been handed over since: the leader knows.
        let forgotten = ids.iter().cloned();
        let forgotten = forgotten.map(|id| async move { self.forget_handed(&id, first).await });
        let forgotten = stream::iter(forgotten).buffer_unordered(FEW);
        forgotten.try_collect::<()>().await
    }
}
