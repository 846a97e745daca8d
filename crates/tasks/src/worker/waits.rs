//! The turn of a claim that is due: one whose task waits for others has none as long as one of them
//! is there, and never if they wait in a circle; one whose attempts all ended with their process
//! does not run any more.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use tidewheel_time::Clock;

use super::shared::Shared;
use crate::shape::claim::{Claim, Verdict};
use crate::shape::look::Look;
use crate::shape::outcome::Outcome;
use crate::shape::task::Due;
use crate::shape::timestamp::Timestamp;
use crate::shape::waits::in_circle;
use crate::store::{Failure, TaskStore};

/// The range of the pauses between two questions about a claim that is held.
const SHORTEST: Duration = Duration::from_millis(250);
const LONG: Duration = Duration::from_secs(1);

/// All questions together leave so much time to each.
const EACH: Duration = Duration::from_millis(4);

/// The longest time by which a task is put off.
const LONGEST: Duration = Duration::from_secs(30);

/// The tasks of a circle that is seen. A search goes on only as long as each id that it comes to is
/// after the first, so few come near.
const CIRCLE: usize = 100;

/// A task that was seen to be in no circle counts as in none for this long. A circle stays one, so
/// it is seen later.
const SEEN: Duration = Duration::from_secs(1);

/// The tasks from which a search has come to one that waits for nothing: those that wait for them
/// are searched no further. So of a thousand that wait one after another each is looked at once.
#[derive(Debug, Default)]
pub(super) struct DeadEnds {
    ids: HashSet<String>,
    since: Duration,
}

impl DeadEnds {
    fn has(&mut self, id: &str, now: Duration) -> bool {
        if now.saturating_sub(self.since) > SEEN {
            self.ids.clear();
            self.since = now;
        }
        self.ids.contains(id)
    }
}

/// The answer to whether a claim may run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Turn {
    Now,
    /// Now, with a slot of its queue: it goes back to get one.
    Slot,
    /// The engine is asked again after this, since a task was in its way at this time of the
    /// engine's.
    After {
        wait: Duration,
        now: Timestamp,
        ahead: String,
    },
    /// It was put off: the claim is over.
    Later,
    /// The claim is not the worker's any more.
    Lost,
    /// It ends without a run.
    Never(Outcome),
    /// The engine does not say.
    Unknown,
}

/// The time until the engine is asked again for a task that has waited for so long: an eighth of it
/// within limits, unless there are many of these.
fn pause_after(waited: Duration, parents: usize) -> Duration {
    (waited / 8).clamp(SHORTEST, LONG).max(share_of(parents))
}

/// The pause that leaves to each of so many its time.
fn share_of(parents: usize) -> Duration {
    EACH.saturating_mul(u32::try_from(parents).unwrap_or(u32::MAX))
}

/// A circle is searched for when a wait comes to its next stage: after two seconds, each time that
/// it has doubled, and from a minute on each half a minute. A search may be many looks.
fn stage_of(waited: Duration) -> (Option<u32>, u64) {
    let minute = Duration::from_secs(64);
    let doublings = (waited.min(minute).as_secs() / 2).checked_ilog2();
    (doublings, waited.saturating_sub(minute).as_secs() / 30)
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
        match self.call(self.store.note_start(claim)) {
            Ok(Verdict::Accepted) => Turn::Now,
            Ok(Verdict::Refused) => Turn::Lost,
            Ok(Verdict::Busy) | Err(_) => Turn::Unknown,
        }
    }

    /// The shortest pause between two questions about a claim.
    pub(super) fn share_of_each(&self) -> Duration {
        share_of(self.held().parents)
    }

    /// The turn of the claim of this number among those that its task waits for.
    /// `waited_until` is when something was last seen in its way.
    pub(super) fn turn_among(
        &self,
        key: u64,
        claim: &Arc<Claim>,
        waited_until: Option<Timestamp>,
    ) -> Turn {
        let Some(waits) = &claim.terms.waits else {
            return Turn::Now;
        };
        let latest = self.held().latest();
        let left = self.seen_ends().left_of(waits, key);
        if left.ids.is_empty() {
            return Turn::Now;
        }
        let Ok(look) = self.call(self.store.look_ahead(&left)) else {
            return Turn::Unknown;
        };
        let is_there = |id: &String| look.as_ref().is_some_and(|look| look.id == *id);
        let ended = left.ids.iter().position(is_there);
        let ended = ended.unwrap_or(if look.is_some() { 0 } else { left.ids.len() });
        self.seen_ends().note(&left.ids[..ended], latest);
        let Some(look) = look else {
            return Turn::Now;
        };
        if !look.is_ahead() {
            let id = look.id;
            return Turn::Never(Outcome::dead(format!("{id} is dead, which it needs")));
        }
        let now = self.engine_now().unwrap_or(claim.due);
        let waited = now.since(claim.began);
        let before = waited_until.map_or(Duration::ZERO, |until| until.since(claim.began));
        let ahead = look.id.clone();
        if stage_of(waited) > stage_of(before)
            && let Some(circle) = self.circle_of(claim, look)
        {
            return Turn::Never(Outcome::dead(circle));
        }
        let parents = self.held().parents;
        // Others need room.
        if parents <= self.settings.held / 2 {
            let wait = pause_after(waited, parents);
            return Turn::After { wait, now, ahead };
        }
        self.held().crowded_until = self.clock.now().saturating_add(LONGEST);
        let wait = (waited / 8).clamp(SHORTEST, LONGEST);
        let failure = Failure::put_off(Due::After(wait));
        match self.call(self.store.fail(claim, failure)) {
            Ok(_) => Turn::Later,
            Err(_) => Turn::Unknown,
        }
    }

    /// The words for the circle in which a claim waits, if it does and its id is the first there:
    /// of several that see a circle at the same time one ends. From each task it goes on to the
    /// first that this one waits for: a task in a circle comes back to itself so.
    fn circle_of(&self, claim: &Claim, look: Look) -> Option<String> {
        let (mut ids, mut next) = (vec![claim.id.clone()], Some(look));
        while let Some(mut look) = next {
            if ids.len() == CIRCLE || look.id < claim.id || self.turns.is_stopped() {
                return None;
            }
            if self.dead_ends().has(&look.id, self.clock.now()) {
                break;
            }
            ids.push(std::mem::take(&mut look.id));
            let Some(mut waits) = look.terms.waits else {
                break;
            };
            if waits.ids.contains(&claim.id) {
                let ids: Vec<_> = ids.iter().map(String::as_str).collect();
                return Some(in_circle(&ids));
            }
            // What is dead ends nobody's wait in a circle.
            waits.needs_all = false;
            next = self.call(self.store.look_ahead(&waits)).ok()?;
        }
        self.dead_ends().ids.extend(ids);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_circle_is_searched_each_time_that_the_wait_has_doubled() {
        let (mut before, mut waited, mut searched) = (Duration::ZERO, Duration::ZERO, vec![]);
        while waited < Duration::from_secs(160) {
            if stage_of(waited) > stage_of(before) {
                searched.push(waited.as_secs());
            }
            before = waited;
            waited += pause_after(waited, 1);
        }
        assert_eq!(searched, [2, 4, 8, 16, 32, 64, 94, 124, 154]);
    }

    #[test]
    fn questions_are_as_many_in_a_second_whatever_waits() {
        let pause = |secs, parents| pause_after(Duration::from_secs(secs), parents).as_millis();
        assert_eq!(
            [pause(0, 1), pause(4, 62), pause(90, 250)],
            [250, 500, 1000]
        );
        assert_eq!([pause(0, 250), pause(90, 5000)], [1000, 20_000]);
    }
}
