//! Rhythms are computed here, and not by the database: by its time, which is asked for first.

use std::borrow::Borrow;

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

/// Gives the first run of each open task its time.
fn settle(tasks: &mut [Task], now: Timestamp) {
    for task in tasks.iter_mut().filter(|task| is_open(task)) {
        task.due = Due::At(task.first_due(now));
    }
}

/// Gives first runs their times, by a caller's own connection, which is asked for the time once.
pub(super) async fn settle_in(
    client: &impl GenericClient,
    tasks: &mut [Task],
) -> Result<(), StoreError> {
    if tasks.iter().any(is_open) {
        let row = client.query_one(sql::NOW, &[]).await;
        let row = row.map_err(engine_error)?;
        settle(tasks, Timestamp(number(&row, 0)));
    }
    Ok(())
}

impl PostgresStore {
    /// Gives first runs their times.
    pub(super) async fn settle(&self, tasks: &mut [Task]) -> Result<(), StoreError> {
        if tasks.iter().any(is_open) {
            settle(tasks, self.now().await?);
        }
        Ok(())
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
