//! The wheel fires a claim: it is run if it is due and still the worker's.

use std::sync::Arc;
use std::time::Duration;

use tidewheel_time::Clock;

use super::control::Control;
use super::ends::Slot;
use super::run::Run;
use super::shared::{Shared, Wheel};
use super::stats::count;
use super::waits::Turn;
use crate::shape::claim::{Claim, Verdict};
use crate::shape::timestamp::Timestamp;
use crate::store::TaskStore;

/// The pause after an engine did not say whether an unsure claim is still the worker's.
pub(super) const ASK_AGAIN: Duration = Duration::from_millis(50);

/// A claim whose lease was asked for within this is the worker's.
const JUST_ASKED: Duration = Duration::from_millis(250);

impl<S: TaskStore> Shared<S> {
    /// Runs a claim, or files it again, or drops it. Then there may be room for one that is late.
    pub(super) fn fire(self: &Arc<Self>, wheel: &Wheel, key: u64) {
        self.decide(wheel, key);
        self.admit(wheel);
    }

    /// Lets the wheel fire late claims, as many as there is room for.
    pub(super) fn admit(&self, wheel: &Wheel) {
        loop {
            let Some(key) = self.held().admit() else {
                return;
            };
            // It is not there if it was taken back meanwhile.
            if wheel.remove(&key).is_some() {
                self.file(wheel, key, Duration::ZERO);
            }
        }
    }

    fn decide(self: &Arc<Self>, wheel: &Wheel, key: u64) {
        let (claim, until, sure, is_its_turn, asked) = match self.held().get(key) {
            Some(held) => (
                Arc::clone(&held.claim),
                held.until,
                held.sure,
                held.is_its_turn,
                held.asked,
            ),
            // Dropped meanwhile.
            None => return,
        };
        let at = if is_its_turn {
            claim.due
        } else {
            claim.asked_at()
        };
        if let Some(wait) = self.time_until(at) {
            self.file(wheel, key, wait);
            return;
        }
        let now = self.clock.now();
        if now >= until {
            self.held().remove(key);
            count(&self.counters.lapsed);
            return;
        }
        if claim.terms.waits.is_some() && self.ask_for_turn(key) {
            return;
        }
        let is_sure = now < sure && claim.interruptions == self.store.interruptions();
        // One that has waited for others was held for long: it was asked about when its turn had
        // come. One that is doubtful is asked about when its start is noted.
        let waited = claim.terms.waits.is_some() && now.saturating_sub(asked) > JUST_ASKED;
        let asks = self.settings.strict || !is_sure || waited;
        let is_ours = if asks && !claim.doubtful {
            self.is_still_ours(&claim)
        } else {
            Some(true)
        };
        match is_ours {
            Some(false) => self.recalled(wheel, key),
            // Somebody else may have run it, under a higher fence.
            None if !is_sure => self.file(wheel, key, ASK_AGAIN),
            _ => match self.turn_after_losses(&claim) {
                Turn::Now => self.begin(key, claim),
                turn => self.not_now(wheel, key, turn),
            },
        }
    }

    /// Lets the wheel fire a claim. A wheel that has stopped does not: the claim goes back.
    pub(super) fn file(&self, wheel: &Wheel, key: u64, wait: Duration) {
        if wheel.set(key, (), wait).is_err() {
            self.give_back(std::iter::once(key));
        }
    }

    /// The time that a claim still has to wait; `None` if it is due.
    pub(super) fn too_early(&self, claim: &Claim) -> Option<Duration> {
        self.time_until(claim.due)
    }

    /// The time until then by the engine's clock; `None` if it has come.
    fn time_until(&self, at: Timestamp) -> Option<Duration> {
        let now = self.engine_now()?;
        (now < at).then(|| at.since(now))
    }

    /// Asks the engine whether a claim has been taken back. `None` if it does not say.
    fn is_still_ours(&self, claim: &Arc<Claim>) -> Option<bool> {
        let (claims, lease) = (std::slice::from_ref(claim), self.settings.lease);
        let verdicts = self.call(self.store.extend(claims, lease));
        match verdicts.ok()?.first()? {
            Verdict::Accepted => Some(true),
            Verdict::Refused => Some(false),
            Verdict::Busy => None,
        }
    }

    fn begin(self: &Arc<Self>, key: u64, claim: Arc<Claim>) {
        let (is_full, waited_until) = {
            let mut held = self.held();
            if !held.begin(key, self.clock.now()) {
                return;
            }
            let is_full = held.stuck_since().is_some() && held.waits_since().is_some();
            (is_full, held.get(key).and_then(|held| held.waited_until))
        };
        if is_full {
            // What waits may have to go back.
            self.mailbox.nudge();
        }
        let now = self.engine_now().unwrap_or(claim.due);
        let late = now.since(waited_until.map_or(claim.due, |until| until.max(claim.due)));
        self.counters.record_late(late);
        count(&self.counters.ran);
        let control = Arc::new(Control::new(key, Arc::clone(&self.mailbox)));
        self.held().set_control(key, Arc::clone(&control));
        let slot = Slot::new(Arc::clone(self) as _, key);
        let run = Run::new(claim, late, (slot, Arc::clone(&control)));
        let (passed, ended) = self.around.before(&run);
        control.set_passed(passed);
        match ended {
            None => (self.handler)(run),
            Some(outcome) => {
                if let Some(mut ending) = run.slot.take() {
                    ending.say(outcome);
                }
            }
        }
    }
}
