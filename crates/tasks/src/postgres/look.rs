//! Somebody looks at a task.

use std::time::Duration;

use tokio_postgres::Row;

use super::PostgresStore;
use super::rows::number;
use super::session::StatementName;
use crate::shape::error::StoreError;
use crate::shape::pending::Pending;
use crate::shape::sum::sum;
use crate::shape::task::Priority;
use crate::shape::terms::Terms;
use crate::shape::timestamp::Timestamp;

/// Space, id.
pub(super) const LOOK: &str = "
SELECT id, due, payload, priority, every, attempt, terms, checksum
FROM tidewheel_tasks WHERE queue = $1 AND id = $2";

impl PostgresStore {
    pub(super) async fn look_at(&self, id: &str) -> Result<Option<Pending>, StoreError> {
        let rows = self.query(StatementName::Look, &[&self.space, &id]).await?;
        rows.first().map(pending).transpose()
    }
}

fn pending(row: &Row) -> Result<Pending, StoreError> {
    let due = Timestamp(number(row, 1));
    let mut pending = Pending::new(row.get::<_, String>(0), due, row.get(2));
    pending.priority = Priority::of_level(row.get::<_, i16>(3).try_into().unwrap_or(1));
    let every: Option<i64> = row.get(4);
    let every = every.map(|us| Duration::from_micros(us.cast_unsigned()));
    pending.attempt = row.get::<_, i32>(5).try_into().unwrap_or(u32::MAX);
    let terms: Option<&str> = row.get(6);
    pending.terms = Terms::read(every, terms);
    let checksum: i64 = row.get(7);
    let is = sum(
        &pending.id,
        &pending.payload,
        &[],
        terms.unwrap_or_default(),
    );
    if is != checksum.cast_unsigned() {
        return Err(StoreError::engine("it is damaged, or no task of ours"));
    }
    Ok(pending)
}
