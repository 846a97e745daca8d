//! The turn of a claim that is due: one whose task waits for others is put off as long as one of
//! them is there, unless they wait in a circle, and one whose attempts all ended with their process
//! does not run any more.

use std::sync::Arc;
use std::time::Duration;

use super::shared::Shared;
use crate::shape::claim::{Claim, Verdict};
use crate::shape::look::Look;
use crate::shape::outcome::Outcome;
use crate::shape::task::Due;
use crate::shape::waits::in_circle;
use crate::store::{Failure, TaskStore};
use crate::wait::wait_for;

/// The range of the times by which it is put off.
const SHORTEST: Duration = Duration::from_millis(250);
const LONGEST: Duration = Duration::from_secs(30);

/// The tasks of a circle that is seen. A search goes on only as long as each id that it comes to is
/// after the first, so few come near.
const CIRCLE: usize = 100;

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

/// The time by which a task is put off that has waited for so long.
fn put_off_by(waited: Duration) -> Duration {
    (waited / 8).clamp(SHORTEST, LONGEST)
}

/// True if a circle is searched now. A search may be many looks: it is made each time that the wait
/// has doubled from two seconds on, and then whenever a task is put off by the longest time.
/// `planned` is the wait that was ahead when it was put off.
fn is_time_to_search(planned: Duration, waited: Duration) -> bool {
    let before = planned.saturating_sub((planned / 9).clamp(SHORTEST, LONGEST));
    let doublings =
        |waited: Duration| (waited.as_micros() / (8 * SHORTEST).as_micros()).checked_ilog2();
    put_off_by(waited) == LONGEST || doublings(waited) > doublings(before)
}

impl<S: TaskStore> Shared<S> {
    /// The turn of a claim after the processes that ended while it ran.
    pub(super) fn turn_after_losses(&self, claim: &Arc<Claim>) -> Turn {
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
        if claim.doubtful {
            return self.note_start(claim);
        }
        Turn::Now
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
    pub(super) fn turn_among(&self, claim: &Arc<Claim>) -> Turn {
        let Some(waits) = &claim.terms.waits else {
            return Turn::Now;
        };
        let limit = self.settings.limit;
        let look = match wait_for(&self.clock, limit, self.store.look_ahead(waits)) {
            Ok(Some(look)) => look,
            Ok(None) => return Turn::Now,
            Err(_) => return Turn::Unknown,
        };
        if !look.is_ahead() {
            let id = look.id;
            return Turn::Never(Outcome::dead(format!("{id} is dead, which it needs")));
        }
        let now = self.engine_now().unwrap_or(claim.due);
        let waited = now.since(claim.began);
        if is_time_to_search(claim.due.since(claim.began), waited)
            && let Some(circle) = self.circle_of(claim, look)
        {
            return Turn::Never(Outcome::dead(circle));
        }
        let failure = Failure::put_off(Due::After(put_off_by(waited)));
        match wait_for(&self.clock, limit, self.store.fail(claim, failure)) {
            Ok(_) => Turn::Later,
            Err(_) => Turn::Unknown,
        }
    }

    /// The words for the circle in which a claim waits, if it does and its id is the first there:
    /// of several that see a circle at the same time one ends. From each task it goes on to the
    /// first that this one waits for: a task in a circle comes back to itself so.
    fn circle_of(&self, claim: &Claim, mut look: Look) -> Option<String> {
        let mut ids = vec![claim.id.clone()];
        while ids.len() < CIRCLE && look.id > claim.id {
            ids.push(std::mem::take(&mut look.id));
            let mut waits = look.terms.waits?;
            if waits.ids.contains(&claim.id) {
                let ids: Vec<_> = ids.iter().map(String::as_str).collect();
                return Some(in_circle(&ids));
            }
            // What is dead ends nobody's wait in a circle.
            waits.needs_all = false;
            let found = self.store.look_ahead(&waits);
            look = wait_for(&self.clock, self.settings.limit, found).ok()??;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_circle_is_searched_each_time_that_the_wait_has_doubled() {
        let (mut planned, mut waited, mut searched) = (Duration::ZERO, Duration::ZERO, vec![]);
        while waited < Duration::from_secs(420) {
            if is_time_to_search(planned, waited) {
                searched.push(waited.as_secs());
            }
            planned = waited + put_off_by(waited);
            // Its thread looks a bit later.
            waited = planned + Duration::from_millis(20);
        }
        assert_eq!(
            searched,
            [2, 4, 8, 17, 34, 70, 143, 257, 287, 317, 347, 377, 407]
        );
    }
}
