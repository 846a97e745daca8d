//! The engine loop looks which queues are paused, and gives back what has not begun of them.

use super::call;
use crate::shape::error::StoreError;
use crate::store::TaskStore;
use crate::worker::shared::{Shared, Wheel};

/// Looks which queues are paused. If some are, that costs by the number of claims that are held.
pub(super) fn look<S: TaskStore>(shared: &Shared<S>, wheel: &Wheel) -> Result<(), StoreError> {
    let paused = call(shared, shared.store.paused())?;
    if paused.is_empty() {
        return Ok(());
    }
    let is_paused = |queue: &str| paused.iter().any(|paused| paused == queue);
    let keys = shared.held().end_of_queues(is_paused);
    for key in &keys {
        // It is not there if it has fired.
        let _ = wheel.remove(key);
    }
    shared.give_back(keys.into_iter());
    Ok(())
}
