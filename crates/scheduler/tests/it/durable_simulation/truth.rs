//! The truth of a simulation: the disk, the changes that the journal was told, the runs and their
//! ends; and the invariants between them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tidewheel_scheduler::Place;

use super::baton::Random;
use super::disk::{Disk, Entry, State};
use super::world::Plan;

/// A job in the journal's view: what was on disk at the start, and every change since.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Live {
    pub(crate) key: u8,
    pub(crate) value: u64,
    pub(crate) state: State,
    /// Its handler was called in this life, and the run has no end yet.
    pub(crate) running: bool,
    /// Its run has succeeded: nothing but its end may follow.
    done: bool,
    /// It was on disk at the start of this life.
    restored: bool,
    /// The attempt whose start was noted, as if it had failed already.
    noted: Option<u32>,
}

impl Live {
    /// True if it waits for its time.
    pub(crate) fn is_pending(&self) -> bool {
        !self.running && self.state.place != Place::Dead
    }

    /// The attempt that is next, or runs.
    fn attempt(&self) -> u32 {
        self.noted.unwrap_or(self.state.attempt)
    }

    /// True if a change says beforehand that the run which is about to begin has failed.
    fn is_note(&self, state: &State) -> bool {
        let one_more = state.attempt == self.state.attempt + 1 && state.place == self.state.place;
        let is_dead = state.place == Place::Dead && state.attempt == self.state.attempt;
        // Or a run of a periodic job, made up at the start.
        let is_old = self.restored || self.state.place == Place::Unkeyed;
        is_old && self.is_pending() && !self.is_periodic() && (one_more || is_dead)
    }

    pub(crate) fn is_periodic(&self) -> bool {
        self.state.period_ms > 0
    }
}

/// The effect of an append on a job that was not running.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ended(pub(crate) u64);

#[derive(Debug)]
pub(crate) struct Truth {
    pub(crate) disk: Disk,
    pub(crate) random: Random,
    pub(crate) plan: Plan,
    pub(crate) points: u64,
    /// The process has died: nothing that it does counts.
    pub(crate) dead: bool,
    /// The journal has failed in this life.
    pub(crate) failed: bool,
    /// Jobs may be on their way from the wheel to the handler.
    pub(crate) advancing: bool,
    pub(crate) view: BTreeMap<u64, Live>,
    pub(crate) last_token: u64,
    pub(crate) next_value: u64,
    /// One-off jobs whose set has returned `Ok`.
    pub(crate) set: BTreeSet<u64>,
    /// Values of jobs of which a run has succeeded.
    done: BTreeSet<u64>,
    /// Jobs that a call has replaced or removed.
    pub(crate) ended: BTreeSet<u64>,
    /// The latest append that a call has returned for.
    pub(crate) acknowledged: u64,
    /// The first error that was found.
    pub(crate) wrong: Option<String>,
    /// The kinds of events that have happened at all, so that the simulation is known to reach
    /// them.
    pub(crate) seen: BTreeMap<&'static str, u64>,
}

impl Truth {
    pub(crate) fn new(seed: u64, plan: Plan) -> Self {
        Self {
            disk: Disk::default(),
            random: Random::new(seed),
            plan,
            points: 0,
            dead: false,
            failed: false,
            advancing: false,
            view: BTreeMap::new(),
            last_token: 0,
            next_value: 0,
            set: BTreeSet::new(),
            done: BTreeSet::new(),
            ended: BTreeSet::new(),
            acknowledged: 0,
            wrong: None,
            seen: BTreeMap::new(),
        }
    }

    pub(crate) fn wrong(&mut self, what: impl FnOnce() -> String) {
        if self.wrong.is_none() && !self.dead {
            self.wrong = Some(what());
        }
    }

    pub(crate) fn saw(&mut self, what: &'static str) {
        *self.seen.entry(what).or_default() += 1;
    }

    /// A moment at which the process may die. Tells whether it is dead.
    pub(crate) fn point(&mut self) -> bool {
        if self.dead {
            return true;
        }
        self.points += 1;
        self.dead = self.plan.crash_at == Some(self.points)
            || self
                .plan
                .crash_one_in
                .is_some_and(|n| self.random.one_in(n));
        self.dead
    }

    pub(crate) fn fails(&mut self) -> bool {
        let fails = self
            .plan
            .failure_one_in
            .is_some_and(|n| self.random.one_in(n));
        self.failed |= fails;
        fails
    }

    /// A handler begins; `None` if what it got is not what the journal says.
    pub(crate) fn begin(&mut self, id: u64, value: u64, attempt: u32, now: Duration) {
        let failed = self.failed;
        let Some(live) = self.view.get_mut(&id) else {
            if !failed {
                self.wrong(|| format!("job {id} runs, and the journal does not have it"));
            }
            return;
        };
        let before = *live;
        live.running = true;
        if failed {
            return;
        }
        let is_same = before.value == value && before.attempt() == attempt;
        let may_run = before.is_pending() || before.noted.is_some();
        if !is_same || !may_run || before.is_periodic() || before.done {
            self.wrong(|| format!("attempt {attempt} of {value} runs as {before:?}"));
        }
        if before.noted.is_none() && now < before.state.due {
            self.wrong(|| format!("at {now:?} {before:?} runs early"));
        }
    }

    /// A run has succeeded.
    pub(crate) fn succeed(&mut self, id: u64, value: u64) {
        if self.dead {
            return;
        }
        self.done.insert(value);
        if let Some(live) = self.view.get_mut(&id) {
            live.done = true;
        }
    }

    /// Applies what an append says; returns the value of a job that it ended without its having
    /// run.
    pub(crate) fn apply(&mut self, entry: Entry) -> Option<Ended> {
        match entry {
            Entry::Set {
                id,
                key,
                value,
                state,
            } => self.apply_set(id, key, value, state),
            Entry::Update { id, state } => self.apply_update(id, state),
            Entry::End { id } => return self.apply_end(id),
        }
        None
    }

    fn apply_set(&mut self, id: u64, key: u8, value: u64, state: State) {
        let same_key = |(_, live): &(&u64, &Live)| live.key == key;
        let greatest = self.view.iter().filter(same_key).map(|(id, _)| *id).max();
        if greatest.is_some_and(|greatest| greatest >= id) {
            self.wrong(|| format!("id {id} of key {key} is not greater than {greatest:?}"));
        }
        let live = Live {
            key,
            value,
            state,
            running: false,
            done: false,
            restored: false,
            noted: None,
        };
        self.view.insert(id, live);
    }

    fn apply_update(&mut self, id: u64, state: State) {
        let Some(live) = self.view.get_mut(&id) else {
            return;
        };
        let old = *live;
        live.state = state;
        if old.is_note(&state) {
            live.running = true;
            live.noted = Some(old.state.attempt);
            self.saw("the start of a run is noted");
            return;
        }
        live.running = false;
        live.noted = None;
        let is_right = if old.running {
            let one_more = state.attempt == old.attempt() + 1;
            let is_dead = state.place == Place::Dead && state.attempt == old.attempt();
            !old.done && (one_more && state.place != Place::Dead || is_dead)
        } else if old.state.place == Place::Dead {
            state.attempt == 1 && state.place != Place::Dead
        } else {
            state.attempt == old.state.attempt && state.place == old.state.place
        };
        if !is_right && !self.failed {
            self.wrong(|| format!("{old:?} became {state:?}"));
        }
        if old.running && state.place == Place::Unkeyed && old.state.place == Place::Keyed {
            self.saw("a job waits without its key");
        }
        if old.is_periodic() && !self.failed {
            self.saw("a periodic job goes on");
            self.keeps_its_rhythm(&old, &state);
        }
    }

    /// A periodic job goes on a whole number of periods later, unless its distance counts from the
    /// run.
    fn keeps_its_rhythm(&mut self, old: &Live, new: &State) {
        let step = new.due.saturating_sub(old.state.due);
        let period = Duration::from_millis(old.state.period_ms);
        let rest = step.as_nanos() % period.as_nanos();
        let drifts = old.state.catch_up == super::world::DELAY;
        if step < period || !drifts && rest > 0 {
            self.wrong(|| format!("{old:?} goes on with {new:?}"));
        }
    }

    fn apply_end(&mut self, id: u64) -> Option<Ended> {
        let live = self.view.remove(&id)?;
        if !live.running {
            return Some(Ended(live.value));
        }
        if !live.done && !self.failed {
            self.wrong(|| format!("{live:?} ended and did not succeed"));
        }
        None
    }

    /// The power fails, and the next life reads what is left.
    pub(crate) fn restart(&mut self) {
        self.disk.lose_power(&mut self.random);
        let log = self.disk.open();
        self.dead = false;
        self.failed = false;
        self.advancing = false;
        let (length, acknowledged) = (log.len() as u64, self.acknowledged);
        if length < acknowledged {
            self.wrong(|| format!("{acknowledged} appends were acknowledged, {length} survived"));
        }
        self.acknowledged = length;
        self.view.clear();
        // Whose run it was that ended or failed, the log does not say.
        for entry in log.into_iter().flatten() {
            match entry {
                Entry::Update { id, state } => {
                    if let Some(live) = self.view.get_mut(&id) {
                        live.state = state;
                    }
                }
                Entry::End { id } => {
                    self.view.remove(&id);
                }
                set @ Entry::Set { .. } => {
                    self.apply(set);
                }
            }
        }
        self.view.values_mut().for_each(|live| live.restored = true);
    }

    /// The records that were loaded are sorted out: of each key the newest job that was under it is
    /// under it now.
    pub(crate) fn set_cut_off_unkeyed(&mut self) {
        let keyed = |live: &Live| live.state.place == Place::Keyed;
        let mut newest: BTreeMap<u8, u64> = BTreeMap::new();
        for (id, live) in self.view.iter().filter(|(_, live)| keyed(live)) {
            newest.insert(live.key, *id);
        }
        for (id, live) in self.view.iter_mut().filter(|(_, live)| keyed(live)) {
            if newest[&live.key] != *id {
                live.state.place = Place::Unkeyed;
            }
        }
    }

    /// The job that waits under a key.
    pub(crate) fn keyed(&self, key: u8) -> Option<&Live> {
        let is_it = |live: &&Live| live.key == key && live.state.place == Place::Keyed;
        self.view
            .values()
            .filter(is_it)
            .find(|live| live.is_pending())
    }

    /// The contents that a power failure now would leave at worst.
    pub(crate) fn certain(&self) -> BTreeSet<u64> {
        let mut ids = BTreeSet::new();
        for entry in self.disk.read().into_iter().flatten() {
            match entry {
                Entry::Set { id, .. } => {
                    ids.insert(id);
                }
                Entry::Update { .. } => {}
                Entry::End { id } => {
                    ids.remove(&id);
                }
            }
        }
        ids
    }

    /// At the end of all lives: whatever was acknowledged has succeeded, or was ended by a call.
    pub(crate) fn nothing_is_lost(&mut self) {
        let ended = |value: &&u64| self.done.contains(value) || self.ended.contains(value);
        let lost = self.set.iter().find(|value| !ended(value)).copied();
        if let Some(lost) = lost {
            self.wrong(|| format!("job {lost} was acknowledged and never succeeded"));
        }
        if !self.view.is_empty() {
            let left = format!("left in the journal: {:?}", self.view);
            self.wrong(|| left);
        }
    }
}
