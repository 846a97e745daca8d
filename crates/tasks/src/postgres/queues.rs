//! The rules of queues: a row for each queue that has had some.

use std::collections::BTreeMap;

use super::session::StatementName;
use super::{Parameters, PostgresStore};
use crate::shape::error::StoreError;
use crate::shape::overtaken::{TRIES, pause_after};
use crate::shape::queue::{QueueChange, QueueRules};

impl PostgresStore {
    /// All rows, also of queues that have the default again.
    async fn rows_of_rules(&self) -> Result<BTreeMap<String, String>, StoreError> {
        let rows = self.query(StatementName::Rules, &[&self.space]).await?;
        Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
    }

    pub(super) async fn rules(&self) -> Result<BTreeMap<String, QueueRules>, StoreError> {
        let rows = self.rows_of_rules().await?.into_iter();
        let rules = rows.map(|(queue, text)| (queue, QueueRules::read(&text)));
        Ok(rules.filter(|(_, rules)| !rules.is_default()).collect())
    }

    pub(super) async fn change(&self, queue: &str, change: QueueChange) -> Result<(), StoreError> {
        let _one = self.changing.lock().await;
        for tried in 1..=TRIES {
            let before = self.rows_of_rules().await?.remove(queue);
            // A name that is there can be changed though somebody has damaged it.
            change.check(before.as_ref().map_or(queue, |_| ""))?;
            let rules = QueueRules::read(before.as_deref().unwrap_or_default()).after(change);
            let (text, paused, limited) = (rules.text(), rules.paused, rules.limit.is_some());
            let parameters: Parameters<'_> =
                &[&self.space, &queue, &before, &text, &paused, &limited];
            if self.changes(StatementName::ChangeQueue, parameters).await? {
                self.limited.forget();
                return Ok(());
            }
            self.link.sleep(pause_after(tried)).await?;
        }
        Err(StoreError::engine("the queue's rules change all the time"))
    }
}
