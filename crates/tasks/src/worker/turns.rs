//! Claims of tasks that wait for others are asked about on a thread of their own, again and again
//! until it is their turn, and at once when the worker has ended what was in their way: the threads
//! of the wheel wait for none of the looks that takes, and no handler keeps a claim from being
//! asked about.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tidewheel_scheduler::Error;
use tidewheel_time::Clock;

use super::fire::ASK_AGAIN;
use super::held::Stage;
use super::mailbox::End;
use super::shared::{Shared, Wheel};
use super::stats::count;
use super::waits::Turn;
use crate::shape::claim::{Claim, Verdict};
use crate::store::TaskStore;

/// The longest sleep while there are claims. The worker's clock may be another than the system's.
const SLEEP: Duration = Duration::from_millis(250);

/// Claims whose turn has come that one call asks about.
const TOGETHER: usize = 250;

/// The claims whose turn is asked for, by the time of that. It is bounded: a worker holds so many.
#[derive(Debug, Default)]
pub(super) struct Turns {
    queue: Mutex<Queue>,
    came: Condvar,
}

/// A claim, after the time at which its turn is asked for.
type Place = (Duration, u64);

#[derive(Debug, Default)]
struct Queue {
    /// The claims, and the task that was last seen in the way of each.
    keys: BTreeMap<Place, Option<String>>,
    /// The same by that task.
    behind: HashMap<String, BTreeSet<Place>>,
    /// The claim that is asked about now, or was last.
    asked: Option<Arc<Claim>>,
    /// True if a task that it waits for has ended since: the answer may be older than that.
    has_ended: bool,
    stopped: bool,
}

impl Queue {
    fn insert(&mut self, place: Place, ahead: Option<String>) {
        if let Some(ahead) = &ahead {
            self.behind.entry(ahead.clone()).or_default().insert(place);
        }
        self.keys.insert(place, ahead);
    }

    fn pop_first(&mut self) -> Option<u64> {
        let (place, ahead) = self.keys.pop_first()?;
        if let Some(ahead) = ahead
            && let Some(behind) = self.behind.get_mut(&ahead)
        {
            behind.remove(&place);
            if behind.is_empty() {
                self.behind.remove(&ahead);
            }
        }
        Some(place.1)
    }
}

impl Turns {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a claim; one that was asked about with the task that was seen in its way. `false` if
    /// the worker stops.
    fn add(&self, key: u64, at: Duration, ahead: Option<String>) -> bool {
        let mut queue = self.lock();
        if queue.stopped {
            return false;
        }
        if ahead.is_some() && queue.has_ended {
            queue.insert((Duration::ZERO, key), None);
        } else {
            queue.insert((at, key), ahead);
        }
        drop(queue);
        self.came.notify_one();
        true
    }

    /// The next claim; `None` if there is none now. All go back when the worker stops.
    fn next(&self, now: Duration) -> Option<u64> {
        let mut queue = self.lock();
        let is_next = |at| at <= now || queue.stopped;
        queue
            .keys
            .first_key_value()
            .filter(|((at, _), _)| is_next(*at))?;
        queue.pop_first()
    }

    /// Notes which claim is asked about now.
    fn asks(&self, claim: &Arc<Claim>) {
        let mut queue = self.lock();
        (queue.asked, queue.has_ended) = (Some(Arc::clone(claim)), false);
    }

    /// This worker has ended a task. Returns the places of what was behind it.
    fn ended(&self, id: &str) -> BTreeSet<Place> {
        let mut queue = self.lock();
        let waits = (queue.asked.as_ref()).and_then(|claim| claim.terms.waits.as_ref());
        queue.has_ended |= waits.is_some_and(|waits| waits.ids.iter().any(|of| of == id));
        queue.behind.remove(id).unwrap_or_default()
    }

    /// Files claims behind other tasks, without another time; those that are behind none are asked
    /// about now.
    fn refile(&self, claims: Vec<(Place, Option<String>)>, now: Duration) {
        let mut queue = self.lock();
        for ((at, key), ahead) in claims {
            // It may be asked about already.
            if queue.keys.remove(&(at, key)).is_some() {
                let at = if ahead.is_some() { at } else { at.min(now) };
                queue.insert((at, key), ahead);
            }
        }
        drop(queue);
        self.came.notify_one();
    }

    /// Waits until there is a claim. `false` if the worker stops.
    fn wait(&self, clock: &dyn Clock) -> bool {
        let mut queue = self.lock();
        while !queue.stopped {
            let wait = match queue.keys.first_key_value() {
                None => Duration::MAX,
                Some(((at, _), _)) => at.saturating_sub(clock.now()).min(SLEEP),
            };
            if wait.is_zero() {
                return true;
            }
            let waited = self.came.wait_timeout(queue, wait);
            queue = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        false
    }

    /// Nothing more is asked for.
    pub(super) fn stop(&self) {
        self.lock().stopped = true;
        self.came.notify_one();
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.lock().stopped
    }
}

impl<S: TaskStore> Shared<S> {
    /// Has a claim's turn asked for. `false` if it has come.
    pub(super) fn ask_for_turn(&self, key: u64) -> bool {
        if self.held().get(key).is_none_or(|held| held.is_its_turn) {
            return false;
        }
        let asks = self.held().ask(key);
        if asks {
            self.ask_at(key, self.clock.now(), None);
        }
        true
    }

    /// This worker has ended a task: what was behind it is asked about now. What waits for another
    /// task that this worker has not ended goes behind that: its turn has not come, and its next
    /// look is no later than it was.
    pub(super) fn task_ended(&self, id: &str) {
        let behind = self.turns.ended(id);
        if behind.is_empty() {
            return;
        }
        let held = self.held();
        let next = |place: Place| (place, held.also_waits_for(place.1));
        let claims = behind.into_iter().map(next).collect();
        drop(held);
        self.turns.refile(claims, self.clock.now());
    }

    /// Has a claim's turn asked for at a time. One of a worker that stops goes back.
    fn ask_at(&self, key: u64, at: Duration, ahead: Option<String>) {
        if !self.turns.add(key, at, ahead) {
            self.give_back(std::iter::once(key));
        }
    }

    /// Asks for the turns of all claims that are to be asked about now.
    pub(super) fn answer_turns(&self, wheel: &Wheel) {
        let mut begin = Vec::new();
        while let Some(key) = self.turns.next(self.clock.now()) {
            begin.extend(self.answer_turn(wheel, key));
            if begin.len() >= TOGETHER {
                self.begin_those(wheel, std::mem::take(&mut begin));
            }
        }
        self.begin_those(wheel, begin);
    }

    /// Asks for the turn of a claim. Returns it if that has come.
    fn answer_turn(&self, wheel: &Wheel, key: u64) -> Option<(u64, Arc<Claim>)> {
        // It is not there if it went back meanwhile.
        let (claim, until, needs_slot, waited_until) = {
            let held = self.held();
            let held = held.asked(key)?;
            let claim = Arc::clone(&held.claim);
            (claim, held.until, held.needs_slot, held.waited_until)
        };
        if self.turns.is_stopped() {
            self.give_back(std::iter::once(key));
            return None;
        }
        if self.clock.now() >= until {
            self.held().remove(key);
            count(&self.counters.lapsed);
            return None;
        }
        self.turns.asks(&claim);
        // A store's panic is the end of this question, and not of the thread.
        let ask = AssertUnwindSafe(|| self.turn_among(key, &claim, waited_until));
        let turn = match catch_unwind(ask).unwrap_or(Turn::Unknown) {
            Turn::Now if needs_slot => Turn::Slot,
            turn => turn,
        };
        if matches!(turn, Turn::After { .. }) {
            self.free_slot_of(wheel, key);
        }
        let wait = match turn {
            Turn::Now => return Some((key, claim)),
            Turn::Unknown => ASK_AGAIN.max(self.share_of_each()),
            Turn::After { wait, .. } if !self.mailbox.is_closing() => wait,
            turn => {
                self.not_now(wheel, key, turn);
                return None;
            }
        };
        let at = self.clock.now().saturating_add(wait);
        if self.held().answer(key, &turn, at) {
            match turn {
                Turn::After { ahead, .. } => self.ask_at(key, at, Some(ahead)),
                _ => self.ask_at(key, at, None),
            }
        }
        None
    }

    /// Lets the wheel fire claims whose turn has come, if they are still the worker's: they were
    /// held for long. One call asks about all of them. If there is no answer, each is asked about
    /// when it fires.
    fn begin_those(&self, wheel: &Wheel, those: Vec<(u64, Arc<Claim>)>) {
        if those.is_empty() {
            return;
        }
        let claims: Vec<_> = those.iter().map(|(_, claim)| Arc::clone(claim)).collect();
        let (sent, lease) = (self.clock.now(), self.settings.lease);
        let ask = AssertUnwindSafe(|| self.call(self.store.extend(&claims, lease)));
        let verdicts = catch_unwind(ask).ok().and_then(Result::ok);
        let mut verdicts = verdicts.unwrap_or_default().into_iter();
        for (key, claim) in those {
            match verdicts.next().unwrap_or(Verdict::Busy) {
                Verdict::Refused if self.held().recall(key) => {
                    self.recalled(wheel, key);
                    continue;
                }
                Verdict::Accepted => self.held().extended(key, sent),
                _ => {}
            }
            let wait = self.too_early(&claim).unwrap_or_default();
            let at = self.clock.now().saturating_add(wait);
            if self.held().answer(key, &Turn::Now, at) {
                self.file(wheel, key, wait);
            }
        }
    }

    /// Frees the slot of a claim that waits, if it has one: a slot is for now.
    fn free_slot_of(&self, wheel: &Wheel, key: u64) {
        let claim = self.held().take_slot(key);
        if let Some(claim) = claim {
            self.free_slot(wheel, &claim);
        }
    }

    /// The engine has taken back a claim whose run has not begun: another one may have its slot.
    pub(super) fn recalled(&self, wheel: &Wheel, key: u64) {
        count(&self.counters.recalled);
        let lost = self.held().remove(key);
        if let Some(lost) = lost.filter(|lost| lost.claim.has_slot) {
            self.free_slot(wheel, &lost.claim);
        }
    }

    fn free_slot(&self, wheel: &Wheel, claim: &Claim) {
        // If that fails, it counts as if the task had run.
        let free = AssertUnwindSafe(|| self.call(self.store.free_slot(claim)));
        let _ = catch_unwind(free);
        // What has the last of the later slots is claimed again, perhaps with an earlier one: so no
        // slot before that of a claim stays free.
        let last = self.held().end_last_slot(claim);
        if let Some(last) = last {
            // It is not there if it has fired.
            let _ = wheel.remove(&last);
            self.give_back(std::iter::once(last));
        }
        // Another task may have it.
        self.mailbox.arrived();
    }

    /// Settles a claim that does not begin now.
    pub(super) fn not_now(&self, wheel: &Wheel, key: u64, turn: Turn) {
        match turn {
            Turn::Now | Turn::Unknown => self.file(wheel, key, ASK_AGAIN),
            Turn::After { .. } | Turn::Slot => self.give_back(std::iter::once(key)),
            Turn::Later => {
                self.held().remove(key);
                // There is room for another.
                self.mailbox.arrived();
            }
            Turn::Lost => self.recalled(wheel, key),
            Turn::Never(outcome) => {
                if self.held().begin(key, self.clock.now()) {
                    self.held().set_stage(key, Stage::Ended);
                    self.mailbox.end(key, End::Never(outcome));
                }
            }
        }
    }
}

/// Starts the thread.
pub(super) fn start<S: TaskStore>(
    shared: &Arc<Shared<S>>,
    wheel: Wheel,
) -> Result<JoinHandle<()>, Error> {
    let shared = Arc::clone(shared);
    let name = format!("{}-turns", shared.settings.name);
    let thread = thread::Builder::new().name(name);
    let thread = thread.spawn(move || {
        while shared.turns.wait(&shared.clock) {
            shared.answer_turns(&wheel);
        }
        // What was not asked about goes back.
        shared.answer_turns(&wheel);
    });
    thread.map_err(Error::Thread)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::claim::Fence;
    use crate::shape::timestamp::Timestamp;
    use crate::shape::waits::Waits;

    const S: fn(u64) -> Duration = Duration::from_secs;

    fn ended(turns: &Turns, id: &str, now: Duration) {
        let places = turns.ended(id).into_iter();
        turns.refile(places.map(|place| (place, None)).collect(), now);
    }

    fn behind(id: &str) -> Option<String> {
        Some(id.to_owned())
    }

    #[test]
    fn what_is_behind_a_task_that_has_ended_is_next() {
        let turns = Turns::default();
        for (key, at, id) in [(1, 20, "b"), (2, 30, "a"), (3, 10, "b"), (4, 40, "a")] {
            assert!(turns.add(key, S(at), behind(id)));
        }
        assert_eq!(turns.next(S(9)), None);
        ended(&turns, "a", S(9));
        assert_eq!((turns.next(S(9)), turns.next(S(9))), (Some(2), Some(4)));
        ended(&turns, "a", S(9));
        assert_eq!((turns.next(S(9)), turns.next(S(10))), (None, Some(3)));
        assert_eq!(turns.next(S(20)), Some(1));
        assert!(turns.lock().behind.is_empty());
    }

    #[test]
    fn what_ends_while_the_engine_is_asked_is_asked_about_again() {
        let turns = Turns::default();
        let mut claim = Claim::new("parent", Timestamp(0), Fence(1), S(12));
        claim.terms.waits = Some(Waits::new(["a", "b"], false));
        let claim = Arc::new(claim);
        for (id, next) in [("b", Some(1)), ("c", None)] {
            turns.asks(&claim);
            ended(&turns, id, S(0));
            assert!(turns.add(1, S(10), behind("b")));
            assert_eq!(turns.next(S(0)), next);
        }
        assert_eq!(turns.next(S(10)), Some(1));
    }
}
