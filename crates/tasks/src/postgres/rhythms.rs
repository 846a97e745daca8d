//! Rhythms are computed here, and not by the database: by its time, which is asked for first.

use std::borrow::Borrow;
use std::collections::BTreeMap;

use tokio_postgres::GenericClient;

use super::rows::{number, signed};
use super::session::engine_error;
use super::{PostgresStore, sql};
use crate::shape::claim::Claim;
use crate::shape::error::StoreError;
use crate::shape::task::{Due, Task};
use crate::shape::timestamp::Timestamp;
use crate::store::TaskStore;

/// True if the time of its first run depends on the database's time in a way that SQL does not
/// know.
fn is_open(task: &Task) -> bool {
    task.terms.rhythm.is_some() && task.terms.every().is_none()
}

fn settle(task: Task, now: Timestamp) -> Task {
    let due = Due::At(task.first_due(now));
    Task { due, ..task }
}

/// A task whose first run has its time, by a caller's own connection.
pub(super) async fn settled_in(
    client: &impl GenericClient,
    task: Task,
) -> Result<Task, StoreError> {
    if !is_open(&task) {
        return Ok(task);
    }
    let row = client.query_one(sql::NOW, &[]).await;
    let row = row.map_err(engine_error)?;
    Ok(settle(task, Timestamp(number(&row, 0))))
}

impl PostgresStore {
    /// A task whose first run has its time.
    pub(super) async fn settled(&self, task: Task) -> Result<Task, StoreError> {
        match is_open(&task) {
            true => Ok(settle(task, self.now().await?)),
            false => Ok(task),
        }
    }

    /// Many such tasks, at the same time.
    pub(super) async fn all_settled(
        &self,
        tasks: BTreeMap<String, Task>,
    ) -> Result<Vec<Task>, StoreError> {
        if !tasks.values().any(is_open) {
            return Ok(tasks.into_values().collect());
        }
        let now = self.now().await?;
        let settled = tasks.into_values().map(|task| match is_open(&task) {
            true => settle(task, now),
            false => task,
        });
        Ok(settled.collect())
    }

    /// The next runs of claims; null for those that have none.
    pub(super) async fn next_runs(
        &self,
        claims: &[impl Borrow<Claim>],
    ) -> Result<Vec<Option<i64>>, StoreError> {
        if !claims
            .iter()
            .any(|claim| claim.borrow().terms.rhythm.is_some())
        {
            return Ok(vec![None; claims.len()]);
        }
        let now = self.now().await?;
        let next = |claim: &Claim| claim.next_run(now).map(|at| signed(at.0));
        Ok(claims.iter().map(|claim| next(claim.borrow())).collect())
    }
}
