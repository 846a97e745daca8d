//! A claim whose task waits for others is put off as long as one of them is there.

use std::sync::Arc;
use std::time::Duration;

use super::shared::Shared;
use crate::shape::claim::Claim;
use crate::shape::look::State;
use crate::shape::outcome::Outcome;
use crate::shape::task::Due;
use crate::store::{Failure, TaskStore};
use crate::wait::wait_for;

/// The range of the times by which it is put off.
const SHORTEST: Duration = Duration::from_millis(250);
const LONGEST: Duration = Duration::from_secs(30);

/// The answer to whether a claim may run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Turn {
    Now,
    /// It was put off: the claim is over.
    Later,
    /// It ends without a run.
    Never(Outcome),
    /// The engine does not say.
    Unknown,
}

impl<S: TaskStore> Shared<S> {
    pub(super) fn turn_of(&self, claim: &Arc<Claim>) -> Turn {
        let Some(waits) = &claim.terms.waits else {
            return Turn::Now;
        };
        let limit = self.settings.limit;
        for id in &waits.ids {
            let Ok(look) = wait_for(&self.clock, limit, self.store.look(id)) else {
                return Turn::Unknown;
            };
            let Some(look) = look else {
                continue;
            };
            if look.is_ahead() {
                let now = self.engine_now().unwrap_or(claim.due);
                let wait = now.since(claim.began) / 8;
                let due = Due::After(wait.clamp(SHORTEST, LONGEST));
                let failure = Failure::put_off(due);
                return match wait_for(&self.clock, limit, self.store.fail(claim, failure)) {
                    Ok(_) => Turn::Later,
                    Err(_) => Turn::Unknown,
                };
            }
            if waits.needs_all && look.state == State::Dead {
                return Turn::Never(Outcome::dead(format!("{id} is dead, which it needs")));
            }
        }
        Turn::Now
    }
}
