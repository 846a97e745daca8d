//! Somebody looks at a task.

use super::Inner;
use super::order::Order;
use crate::shape::error::StoreError;
use crate::shape::pending::Pending;

/// Looks at a task that is not found: it may be on its way from one subject to the other, and then
/// back.
const TRIES: u32 = 2;

impl Inner {
    pub(super) async fn look(&self, id: &str) -> Result<Option<Pending>, StoreError> {
        for _ in 0..TRIES {
            let pending = self.wire.last(&self.subjects.pending(id)).await?;
            let kept = match pending {
                Some(kept) => Some(kept),
                None => self.handed_over(id).await?,
            };
            let Some(kept) = kept else {
                continue;
            };
            let order = Order::of_kept(id, kept);
            let order =
                order.ok_or_else(|| StoreError::engine("it is damaged, or no task of ours"))?;
            let mut pending = Pending::new(id, order.due, order.payload.to_vec());
            (pending.priority, pending.attempt) = (order.priority, order.attempt);
            pending.terms = order.terms;
            return Ok(Some(pending));
        }
        Ok(None)
    }
}
