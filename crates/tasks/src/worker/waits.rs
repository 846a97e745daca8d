//! Whether a claim that is due may run: one whose task waits for others is put off as long as one
//! of them is there, unless they wait in a circle, and one whose attempts all ended with their
//! process does not run any more.

use std::sync::Arc;
use std::time::Duration;

use super::shared::Shared;
use crate::shape::claim::{Claim, Verdict};
use crate::shape::look::{Look, State};
use crate::shape::outcome::Outcome;
use crate::shape::task::Due;
use crate::shape::waits::in_circle;
use crate::store::{Failure, TaskStore};
use crate::wait::wait_for;

/// The range of the times by which it is put off.
const SHORTEST: Duration = Duration::from_millis(250);
const LONGEST: Duration = Duration::from_secs(30);

/// The tasks of a circle that is seen.
const CIRCLE: usize = 12;

/// The looks of one search for a circle: also at what has ended and is passed over.
const LOOKS: usize = 100;

/// The answer to whether a claim may run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Turn {
    Now,
    /// It was put off: the claim is over.
    Later,
    /// The claim is not the worker's any more.
    Lost,
    /// It ends without a run.
    Never(Outcome),
    /// The engine does not say.
    Unknown,
}

impl<S: TaskStore> Shared<S> {
    pub(super) fn turn_of(&self, claim: &Arc<Claim>) -> Turn {
        let spent = claim.attempt.saturating_sub(1);
        if claim.lost > 0 && self.settings.retry.is_last(spent) {
            let lost = claim.lost;
            let times = if lost == 1 {
                "once"
            } else {
                &*format!("{lost} times")
            };
            return Turn::Never(Outcome::dead(format!(
                "the process ended {times} while it ran"
            )));
        }
        match self.turn_among(claim) {
            Turn::Now if claim.doubtful => self.note_start(claim),
            turn => turn,
        }
    }

    /// Has the store note that a run begins which may end the process.
    fn note_start(&self, claim: &Arc<Claim>) -> Turn {
        let noted = self.store.note_start(claim);
        match wait_for(&self.clock, self.settings.limit, noted) {
            Ok(Verdict::Accepted) => Turn::Now,
            Ok(Verdict::Refused) => Turn::Lost,
            Ok(Verdict::Busy) | Err(_) => Turn::Unknown,
        }
    }

    /// The turn of a claim among those that its task waits for.
    fn turn_among(&self, claim: &Arc<Claim>) -> Turn {
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
                // What waits for a short time is in no circle, and is not looked into.
                if wait > SHORTEST
                    && let Some(circle) = self.circle_of(claim, look)
                {
                    return Turn::Never(Outcome::dead(circle));
                }
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

    /// The words for the circle in which a claim waits, if it does and its id is the first there:
    /// of several that see a circle at the same time one ends. From each task it goes on to the
    /// first that this one waits for: a task in a circle comes back to itself so.
    fn circle_of(&self, claim: &Claim, mut look: Look) -> Option<String> {
        let (mut ids, mut looks) = (vec![claim.id.clone()], LOOKS);
        while ids.len() < CIRCLE && look.id > claim.id {
            ids.push(std::mem::take(&mut look.id));
            let waits = look.terms.waits?;
            if waits.ids.contains(&claim.id) {
                let ids: Vec<_> = ids.iter().map(String::as_str).collect();
                return Some(in_circle(&ids));
            }
            look = self.first_ahead(&waits.ids, &mut looks)?;
        }
        None
    }

    /// The first of these tasks that has not ended, if so many looks find it.
    fn first_ahead(&self, ids: &[String], looks: &mut usize) -> Option<Look> {
        for id in ids {
            *looks = looks.checked_sub(1)?;
            let found = wait_for(&self.clock, self.settings.limit, self.store.look(id));
            let found = found.ok()?.filter(Look::is_ahead);
            if found.is_some() {
                return found;
            }
        }
        None
    }
}
