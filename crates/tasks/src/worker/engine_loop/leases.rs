//! The engine loop extends the leases of claims that are held, many at a time.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use tidewheel_time::Clock;

use super::{BATCH, claims_of};
use crate::shape::claim::Verdict;
use crate::shape::error::StoreError;
use crate::store::TaskStore;
use crate::worker::shared::{Shared, Wheel};

/// Extends the leases of which a quarter is over. Claims that are not ours any more are dropped,
/// unless they run.
pub(super) fn extend<S: TaskStore>(shared: &Shared<S>, wheel: &Wheel) -> Result<(), StoreError> {
    let lease = shared.settings.lease;
    let now = shared.clock.now();
    if shared.held().next_extension().is_none_or(|at| at > now) {
        return Ok(());
    }
    loop {
        let batch = shared.held().due_for_extension(shared.clock.now(), BATCH);
        if batch.is_empty() {
            return Ok(());
        }
        let (sent, claims) = (shared.clock.now(), claims_of(&batch));
        let verdicts = shared.call(shared.store.extend(&claims, lease))?;
        for ((key, _), verdict) in batch.iter().zip(verdicts) {
            extended(shared, wheel, *key, verdict, sent);
        }
    }
}

fn extended<S: TaskStore>(
    shared: &Shared<S>,
    wheel: &Wheel,
    key: u64,
    verdict: Verdict,
    sent: Duration,
) {
    if verdict == Verdict::Busy {
        shared.held().put_off(key, sent);
    } else if verdict.is_accepted() {
        shared.counters.extended.fetch_add(1, Relaxed);
        shared.held().extended(key, sent);
    } else if shared.held().recall(key) || wheel.remove(&key).is_some() {
        shared.recalled(wheel, key);
    } else {
        // It runs: its end will be refused.
        let control = {
            let mut held = shared.held();
            held.give_up(key);
            held.control(key)
        };
        // Wakers are called without a lock.
        if let Some(control) = control {
            control.cancel();
        }
    }
}
