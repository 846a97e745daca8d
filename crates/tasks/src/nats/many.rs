//! Many tasks go to the stream in atomic batches, one after another. What is due at once goes with
//! the others: each alone, fifty on a busy node took longer than a call may.

use std::collections::HashMap;
use std::time::Duration;

use futures_util::{StreamExt, TryStreamExt, stream};

use super::Inner;
use super::claims::sequence_of;
use super::generation::{generation, generation_of};
use super::order::Order;
use super::record::Says;
use super::subjects::id_of;
use super::unique::unique_until;
use super::wire::{Kept, Letter, Put, kept_directly};
use crate::shape::error::StoreError;
use crate::shape::many::Many;
use crate::shape::overtaken::{TRIES, pause_after};
use crate::shape::task::Task;
use crate::shape::timestamp::Timestamp;

/// Tasks in one batch, each of two to four letters, and the bytes of their payloads. A server takes
/// a thousand letters. A node that alone has the stream makes files for each batch, syncs and
/// removes them: that takes longer than a hundred tasks do.
const BATCH: usize = 250;
const BATCH_BYTES: usize = 4_000_000;

/// The pauses before each question to a node, in milliseconds.
const PAUSES_MS: [u64; 4] = [0, 20, 100, 500];

/// Questions to the leader at a time.
const FEW: usize = 8;

/// Ids and tasks of one batch.
type Batch = Vec<(String, Order)>;

/// The messages of a batch's ids that are there already, as some node has them.
#[derive(Debug, Default)]
struct There {
    pending: HashMap<String, Kept>,
    marks: HashMap<String, Kept>,
}

impl Inner {
    /// Returns when each is due; `None` for one that is to be unique, and is not.
    pub(super) async fn schedule_many(
        &self,
        many: Many,
    ) -> Result<Vec<Option<Timestamp>>, StoreError> {
        let now = self.about_now().await?;
        let (ids, tasks) = many.into_sorted();
        let mut batches = vec![Batch::new()];
        for task in tasks {
            self.line(&task.terms.queue).await?;
            add(&mut batches, task, now);
        }
        let mut dues = HashMap::new();
        // A server takes one after another anyway.
        for batch in batches {
            dues.extend(self.schedule_batch(batch, now).await?);
        }
        Ok(Many::dues(&ids, &dues))
    }

    /// Keeps a batch, and returns when each task is due that was kept.
    async fn schedule_batch(
        &self,
        mut batch: Batch,
        now: Timestamp,
    ) -> Result<HashMap<String, Timestamp>, StoreError> {
        // Mostly there is nothing of these ids.
        let mut there = There::default();
        for tried in 1..=TRIES {
            if batch.is_empty() {
                return Ok(HashMap::new());
            }
            let letters = batch.iter();
            let letters = letters.map(|(id, order)| self.anew(id, order, &there, now));
            let letters: Vec<_> = letters.flatten().collect();
            let count = letters.len() as u64;
            if let Put::Kept(last) = self.wire.put_all(letters).await? {
                // A batch is kept as one: its sequences follow each other.
                let first = (last + 1).saturating_sub(count);
                let (ids, dues): (Vec<_>, Vec<_>) =
                    batch.into_iter().map(|(id, order)| (id, order.due)).unzip();
                self.forget_all(&ids, first).await?;
                return Ok(ids.into_iter().zip(dues).collect());
            }
            there = self.there(&batch).await?;
            batch.retain(|(id, order)| {
                let mark = there.marks.get(id).and_then(unique_until);
                order.terms.unique_for.is_none() || mark.is_none_or(|until| until <= now)
            });
            tokio::time::sleep(pause_after(tried)).await;
        }
        Err(StoreError::engine("the ids are scheduled all the time"))
    }

    /// A task's mark if it is to be unique, its record and its message, in this order: what was
    /// claimed before is over.
    fn anew(&self, id: &str, order: &Order, there: &There, now: Timestamp) -> Vec<Letter> {
        let old = there.pending.get(id);
        let of = (id, generation(now, generation_of(old)));
        let mark = order.terms.unique_for.map(|time| {
            let after = there.marks.get(id).map_or(0, |mark| mark.sequence);
            self.mark(id, (time, now), after)
        });
        let mut letters: Vec<_> = mark.into_iter().collect();
        letters.push(self.record_anyway(of, Says::Over));
        letters.extend(self.instead_of(old, id, self.letter(order, of, now)));
        letters
    }

    /// Asks for the messages of a batch's ids that are there already.
    async fn there(&self, batch: &Batch) -> Result<There, StoreError> {
        let ids = batch.iter().map(|(id, _)| id.clone());
        let unique = batch.iter();
        let unique = unique.filter(|(_, order)| order.terms.unique_for.is_some());
        let unique: Vec<_> = unique.map(|(id, _)| id.clone()).collect();
        Ok(There {
            pending: self.pending_of(&ids.collect::<Vec<_>>()).await?,
            marks: match unique.is_empty() {
                true => HashMap::new(),
                false => self.marks_of(&unique).await?,
            },
        })
    }

    /// The messages that are pending of many ids, as some node has them: the latest of each.
    async fn pending_of(&self, ids: &[String]) -> Result<HashMap<String, Kept>, StoreError> {
        let subjects: Vec<_> = ids.iter().map(|id| self.subjects.pending_any(id)).collect();
        let found = self.wire.direct(&subjects).await?;
        let mut latest = HashMap::<String, Kept>::new();
        for kept in found.into_iter().filter_map(kept_directly) {
            let (id, _) = self.subjects.named(&kept.subject);
            let before = latest.get(&id).map(|before| before.sequence);
            if before.is_none_or(|before| before < kept.sequence) {
                latest.insert(id, kept);
            }
        }
        Ok(latest)
    }

    /// The messages that keep ids unique, as some node has them.
    async fn marks_of(&self, ids: &[String]) -> Result<HashMap<String, Kept>, StoreError> {
        let subjects: Vec<_> = ids.iter().map(|id| self.subjects.unique(id)).collect();
        let found = self.wire.direct(&subjects).await?.into_iter();
        let found = found.filter_map(kept_directly);
        Ok(found
            .filter_map(|kept| Some((id_of(&kept.subject)?, kept)))
            .collect())
    }

    /// Removes what was handed over of these ids before a batch, which begins at a sequence. Any
    /// node is asked, again if it does not have the batch yet: a follower may hear of it a moment
    /// later. A record of the batch proves that it has it: the tasks may have been handed over, run
    /// and ended since.
    async fn forget_all(&self, ids: &[String], first: u64) -> Result<(), StoreError> {
        let handed = ids.iter().map(|id| self.subjects.handed_any(id));
        let proof = ids.last().map(|id| self.subjects.record(id));
        let subjects: Vec<_> = handed.chain(proof).collect();
        for pause in PAUSES_MS {
            tokio::time::sleep(Duration::from_millis(pause)).await;
            let found = self.wire.direct(&subjects).await?;
            let found: Vec<_> = found.iter().filter_map(sequence_of).collect();
            if found.iter().any(|(_, sequence)| *sequence >= first) {
                let old = found.iter().filter(|(_, sequence)| *sequence < first);
                for (subject, _) in old {
                    self.wire.purge(subject, Some(first)).await?;
                }
                return Ok(());
            }
        }
        // The leader knows.
        let forgotten = ids.iter().cloned();
        let forgotten = forgotten.map(|id| async move { self.forget_handed(&id, first).await });
        let forgotten = stream::iter(forgotten).buffer_unordered(FEW);
        forgotten.try_collect::<()>().await
    }
}

/// Adds a task to the last batch; to another one if that is full.
fn add(batches: &mut Vec<Batch>, task: Task, now: Timestamp) {
    let (id, due) = (task.id.clone(), task.first_due(now));
    let order = Order::of(task, due);
    let last = batches.last().map_or(&[][..], |last| last);
    let bytes: usize = last.iter().map(|(_, order)| order.payload.len()).sum();
    if last.len() >= BATCH || bytes + order.payload.len() > BATCH_BYTES {
        batches.push(Batch::new());
    }
    if let Some(last) = batches.last_mut() {
        last.push((id, order));
    }
}
