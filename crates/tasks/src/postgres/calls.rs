//! The calls of the trait, as statements.

use std::sync::Arc;
use std::time::Duration;

use super::rows::{
    Named, Order, Orders, When, claim, dues, letter, micros, number, signed, verdicts,
};
use super::session::Of;
use super::{Parameters, PostgresStore};
use crate::shape::claim::{Claim, Verdict};
use crate::shape::dead::DeadLetter;
use crate::shape::error::StoreError;
use crate::shape::many::Many;
use crate::shape::task::{Due, Task, check_id};
use crate::shape::timestamp::Timestamp;
use crate::store::{Ask, Failure, TaskStore, Wake};

impl TaskStore for PostgresStore {
    async fn schedule(&self, task: Task) -> Result<Timestamp, StoreError> {
        task.check()?;
        let order = Order::of(task);
        let rows = self
            .query(Of::Schedule, &order.parameters(&self.queue))
            .await?;
        Ok(Timestamp(rows.first().map_or(0, |row| number(row, 0))))
    }

    async fn schedule_many(&self, tasks: Vec<Task>) -> Result<Vec<Timestamp>, StoreError> {
        let (ids, tasks) = Many::of(tasks)?.into_parts();
        let orders = Orders::of(tasks.into_values());
        let rows = self
            .query(Of::ScheduleMany, &orders.parameters(&self.queue))
            .await?;
        Ok(Many::dues(&ids, &dues(&rows)))
    }

    async fn cancel(&self, id: &str) -> Result<bool, StoreError> {
        check_id(id)?;
        self.changes(Of::Cancel, &[&self.queue, &id]).await
    }

    async fn reschedule(&self, id: &str, due: Due) -> Result<bool, StoreError> {
        check_id(id)?;
        let When { wait, at } = When::of(due);
        self.changes(Of::Reschedule, &[&self.queue, &id, &wait, &at])
            .await
    }

    async fn claim(&self, ask: Ask) -> Result<Vec<Claim>, StoreError> {
        let (ahead, lease) = (micros(ask.lookahead), micros(ask.lease));
        let most = i64::try_from(ask.most).unwrap_or(i64::MAX);
        let parameters: Parameters<'_> = &[&self.queue, &ahead, &lease, &ask.worker, &most];
        let rows = self.query(Of::Claim, parameters).await?;
        Ok(rows.iter().map(|row| claim(row, ask.lease)).collect())
    }

    async fn extend(
        &self,
        claims: &[Arc<Claim>],
        lease: Duration,
    ) -> Result<Vec<Verdict>, StoreError> {
        let named = Named::of(claims);
        let lease = micros(lease);
        let parameters: Parameters<'_> = &[&self.queue, &named.ids, &named.fences, &lease];
        let rows = self.query(Of::Extend, parameters).await?;
        Ok(verdicts(claims, &rows))
    }

    async fn done(&self, claims: &[Arc<Claim>]) -> Result<Vec<Verdict>, StoreError> {
        self.accept(Of::Done, claims).await
    }

    async fn fail(&self, claim: &Claim, failure: Failure) -> Result<Verdict, StoreError> {
        let fence = signed(claim.fence.0);
        let failed = match failure.retry {
            Some(due) => {
                let When { wait, at } = When::of(due);
                self.changes(Of::Retry, &[&self.queue, &claim.id, &fence, &wait, &at])
                    .await?
            }
            None => {
                let error = &failure.error;
                self.changes(Of::Bury, &[&self.queue, &claim.id, &fence, error])
                    .await?
            }
        };
        Ok(failed.into())
    }

    async fn release(&self, claims: &[Arc<Claim>]) -> Result<Vec<Verdict>, StoreError> {
        self.accept(Of::Release, claims).await
    }

    async fn now(&self) -> Result<Timestamp, StoreError> {
        let rows = self.query(Of::Now, &[]).await?;
        Ok(Timestamp(rows.first().map_or(0, |row| number(row, 0))))
    }

    async fn dead_letters(&self, most: usize) -> Result<Vec<DeadLetter>, StoreError> {
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let rows = self.query(Of::Letters, &[&self.queue, &most]).await?;
        Ok(rows.iter().map(letter).collect())
    }

    async fn requeue(&self, id: &str, due: Due) -> Result<bool, StoreError> {
        let When { wait, at } = When::of(due);
        self.changes(Of::Requeue, &[&self.queue, &id, &wait, &at])
            .await
    }

    async fn remove_dead(&self, id: &str) -> Result<bool, StoreError> {
        self.changes(Of::RemoveDead, &[&self.queue, &id]).await
    }

    fn on_arrival(&self, wake: Wake) {
        self.link.on_arrival(wake);
    }
}
