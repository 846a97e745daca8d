//! The calls of the trait, as statements.

use std::collections::BTreeMap;
use std::slice::from_mut;
use std::sync::Arc;
use std::time::Duration;

use tokio_postgres::Row;

use super::rows::{
    Named, Order, Orders, When, dues, extended, is_whole, letter, look, micros, number, text,
    verdict, verdicts,
};
use super::session::StatementName;
use super::{Parameters, PostgresStore};
use crate::shape::claim::{Claim, Verdict};
use crate::shape::counts::Counts;
use crate::shape::dead::DeadLetter;
use crate::shape::error::StoreError;
use crate::shape::look::{Look, PAGE_BYTES, State, check_note, check_results};
use crate::shape::many::Many;
use crate::shape::queue::{QueueChange, QueueRules};
use crate::shape::sum::{letter_refused, letter_sum, set_aside};
use crate::shape::task::{Due, Task, check_id};
use crate::shape::timestamp::Timestamp;
use crate::shape::waits::Waits;
use crate::store::{Ask, Failure, TaskStore, Wake};

impl TaskStore for PostgresStore {
    async fn schedule(&self, mut task: Task) -> Result<Timestamp, StoreError> {
        task.check()?;
        self.settle(from_mut(&mut task)).await?;
        let is_unique = task.terms.unique_for.is_some();
        let order = Order::of(task);
        let rows = self
            .query(StatementName::Schedule, &order.parameters(&self.space))
            .await?;
        if is_unique {
            self.forget(1).await;
        }
        let due = rows.first().map(|row| Timestamp(number(row, 0)));
        due.ok_or(StoreError::Duplicate)
    }

    async fn schedule_many(&self, tasks: Vec<Task>) -> Result<Vec<Option<Timestamp>>, StoreError> {
        let (ids, mut tasks) = Many::of(tasks)?.into_sorted();
        self.settle(&mut tasks).await?;
        let orders = Orders::of(tasks);
        let rows = self
            .query(StatementName::ScheduleMany, &orders.parameters(&self.space))
            .await?;
        if orders.unique() > 0 {
            self.forget(orders.unique()).await;
        }
        Ok(Many::dues(&ids, &dues(&rows)))
    }

    async fn cancel(&self, id: &str) -> Result<bool, StoreError> {
        self.ends(StatementName::Cancel, id).await
    }

    async fn reschedule(&self, id: &str, due: Due) -> Result<bool, StoreError> {
        check_id(id)?;
        let When { wait, at } = When::of(due);
        self.changes(StatementName::Reschedule, &[&self.space, &id, &wait, &at])
            .await
    }

    async fn claim(&self, ask: Ask) -> Result<Vec<Claim>, StoreError> {
        ask.check()?;
        let claims = self.claims(&ask).await?;
        Ok(set_aside(self, claims).await)
    }

    async fn extend(
        &self,
        claims: &[Arc<Claim>],
        lease: Duration,
    ) -> Result<Vec<Verdict>, StoreError> {
        let named = Named::of(claims);
        let lease = micros(lease);
        let parameters: Parameters<'_> = &[&self.space, &named.ids, &named.fences, &lease];
        let rows = self.query(StatementName::Extend, parameters).await?;
        Ok(extended(claims, &rows))
    }

    async fn note_start(&self, claim: &Arc<Claim>) -> Result<Verdict, StoreError> {
        let Named { ids, fences } = Named::one(claim);
        let parameters: Parameters<'_> = &[&self.space, &ids, &fences];
        let rows = self.query(StatementName::NoteStart, parameters).await?;
        Ok(verdict(rows.first().map(|row| row.get::<_, bool>(1))))
    }

    async fn done(&self, claims: &[Arc<Claim>]) -> Result<Vec<Verdict>, StoreError> {
        check_results(claims)?;
        let named = Named::of(claims);
        let nexts = self.next_runs(claims).await?;
        let keep = |claim: &Arc<Claim>| claim.terms.keep_result.map(micros);
        let keeps: Vec<_> = claims.iter().map(keep).collect();
        let results = claims.iter().map(|claim| claim.result.as_deref());
        let results: Vec<_> = results.collect();
        let parameters: Parameters<'_> = &[
            &self.space,
            &named.ids,
            &named.fences,
            &nexts,
            &keeps,
            &results,
        ];
        let rows = self.query(StatementName::Done, parameters).await?;
        let kept = keeps.iter().flatten().count();
        if kept > 0 {
            self.forget(kept).await;
        }
        Ok(verdicts(claims, &rows))
    }

    async fn fail(&self, claim: &Claim, failure: Failure) -> Result<Verdict, StoreError> {
        let Named { ids, fences } = Named::one(claim);
        let rows = match failure.retry {
            Some(due) => {
                let When { wait, at } = When::of(due);
                let more = i32::from(failure.counts);
                let parameters: Parameters<'_> = &[&self.space, &ids, &fences, &wait, &at, &more];
                self.query(StatementName::Retry, parameters).await?
            }
            None => {
                // A text has no such character.
                let error = failure.error.replace('\0', "");
                let nexts = self.next_runs(std::slice::from_ref(claim)).await?;
                let terms = claim.terms.of_letter().text();
                let checksum = letter_sum(claim, &terms).cast_signed();
                let terms = text(terms);
                let attempts = failure.attempts(claim.attempt);
                let attempts = i32::try_from(attempts).unwrap_or(i32::MAX);
                let parameters: Parameters<'_> = &[
                    &self.space,
                    &ids,
                    &fences,
                    &nexts,
                    &error,
                    &terms,
                    &checksum,
                    &attempts,
                ];
                self.query(StatementName::Bury, parameters).await?
            }
        };
        let verdict = verdict(rows.first().map(|row| row.get::<_, bool>(1)));
        if !failure.counts && verdict.is_accepted() {
            self.free_slots(std::iter::once(claim)).await;
        }
        Ok(verdict)
    }

    async fn release(&self, claims: &[Arc<Claim>]) -> Result<Vec<Verdict>, StoreError> {
        self.give_back(claims).await
    }

    async fn free_slot(&self, claim: &Claim) -> Result<(), StoreError> {
        self.free_slots(std::iter::once(claim)).await;
        Ok(())
    }

    async fn now(&self) -> Result<Timestamp, StoreError> {
        let rows = self.query(StatementName::Now, &[]).await?;
        Ok(Timestamp(rows.first().map_or(0, |row| number(row, 0))))
    }

    async fn dead_letters(&self, most: usize) -> Result<Vec<DeadLetter>, StoreError> {
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let rows = self
            .query(StatementName::Letters, &[&self.space, &most])
            .await?;
        Ok(rows.iter().map(letter).collect())
    }

    async fn requeue(&self, id: &str, due: Due) -> Result<bool, StoreError> {
        check_id(id)?;
        let letter: Parameters<'_> = &[&self.space, &id];
        let letter = self.query(StatementName::Letter, letter).await?;
        let is_whole = |row: &Row| is_whole(id, row.get(0), row.get(1), row.get(2));
        if !letter.iter().all(is_whole) {
            return Err(letter_refused());
        }
        let When { wait, at } = When::of(due);
        self.changes(StatementName::Requeue, &[&self.space, &id, &wait, &at])
            .await
    }

    async fn remove_dead(&self, id: &str) -> Result<bool, StoreError> {
        self.ends(StatementName::RemoveDead, id).await
    }

    async fn progress(&self, claim: &Claim, progress: Vec<u8>) -> Result<Verdict, StoreError> {
        check_note(&progress)?;
        let Named { ids, fences } = Named::one(claim);
        let parameters: Parameters<'_> = &[&self.space, &ids, &fences, &progress];
        let rows = self.query(StatementName::Progress, parameters).await?;
        Ok(verdict(rows.first().map(|row| row.get::<_, bool>(1))))
    }

    async fn look(&self, id: &str) -> Result<Option<Look>, StoreError> {
        check_id(id)?;
        let rows = self.query(StatementName::Look, &[&self.space, &id]).await?;
        let [mut task, mut done, mut dead] = [const { None }; 3];
        for row in &rows {
            let found = look(row);
            match (found.state, &found.error) {
                (State::Done, _) => done = Some(found),
                (State::Dead, _) => dead = Some(found),
                (_, None) => task = Some(found),
                (_, Some(error)) => return Err(StoreError::engine(format!("{id:?}: {error}"))),
            }
        }
        Ok(Look::first_of(task, done, dead))
    }

    async fn look_ahead(&self, waits: &Waits) -> Result<Option<Look>, StoreError> {
        waits.check()?;
        let parameters: Parameters<'_> = &[&self.space, &waits.ids, &waits.needs_all];
        for row in &self.query(StatementName::LookAhead, parameters).await? {
            let look = self.look(row.get(0)).await?;
            if let Some(look) = look.filter(|look| look.is_in_the_way_of(waits)) {
                return Ok(Some(look));
            }
        }
        Ok(None)
    }

    async fn list(
        &self,
        state: State,
        queue: Option<&str>,
        after: Option<&str>,
        most: usize,
    ) -> Result<Vec<Look>, StoreError> {
        // A text has no zero byte, and so neither has a queue or an id.
        let [queue, after] = [queue, after].map(|text| text.map(|text| text.replace('\0', "")));
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let is_claimed = state == State::Claimed;
        let bytes = i64::try_from(PAGE_BYTES).unwrap_or(i64::MAX);
        let parameters: Parameters<'_> = &[&self.space, &queue, &after, &most, &bytes];
        let rows = match state {
            State::Done => self.query(StatementName::ListDone, parameters).await?,
            State::Dead => self.query(StatementName::ListDead, parameters).await?,
            _ => {
                let parameters = [parameters, &[&is_claimed]].concat();
                self.query(StatementName::ListTasks, &parameters).await?
            }
        };
        Ok(rows.iter().map(look).collect())
    }

    async fn counts(&self) -> Result<BTreeMap<String, Counts>, StoreError> {
        let rows = self.query(StatementName::Counts, &[&self.space]).await?;
        let mut counts = BTreeMap::<String, Counts>::new();
        for row in &rows {
            let state = State::ALL[row.get::<_, i16>(1).clamp(0, 3) as usize];
            let queue = counts.entry(row.get(0)).or_default();
            queue.add(state, number(row, 2));
        }
        Ok(counts)
    }

    async fn change_queue(&self, queue: &str, change: QueueChange) -> Result<(), StoreError> {
        self.change(queue, change).await
    }

    async fn queue_rules(&self) -> Result<BTreeMap<String, QueueRules>, StoreError> {
        self.rules().await
    }

    fn on_arrival(&self, wake: Wake) {
        self.work.wakes.add(wake);
    }
}
