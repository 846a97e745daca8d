//! The engine loop looks at the rules of queues. What has not begun of those that are paused goes
//! back, and of those that are limited what waits for others, and never had a slot.

use crate::shape::error::StoreError;
use crate::store::TaskStore;
use crate::worker::held::HeldClaim;
use crate::worker::shared::{Shared, Wheel};

/// Looks at the rules. If there are some, that costs by the number of claims that are held.
pub(super) fn look<S: TaskStore>(shared: &Shared<S>, wheel: &Wheel) -> Result<(), StoreError> {
    let rules = shared.call(shared.store.queue_rules())?;
    if rules.is_empty() {
        return Ok(());
    }
    let goes_back = |held: &HeldClaim| {
        let rules = rules.get(&held.claim.terms.queue);
        rules.is_some_and(|rules| {
            // A parent may be held for hours, and is to begin by the limit then.
            let waits = !held.is_its_turn && !held.claim.has_slot && !held.needs_slot;
            rules.paused || (rules.limit.is_some() && waits)
        })
    };
    let keys = shared.held().end_those(goes_back);
    for key in &keys {
        // It is not there if it has fired.
        let _ = wheel.remove(key);
    }
    shared.give_back(keys.into_iter());
    Ok(())
}
