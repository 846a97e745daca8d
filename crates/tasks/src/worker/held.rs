//! The claims of a worker: the stage of each, the time until which it may be believed, and the
//! order in which leases are extended.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use super::control::Control;
use super::late::Late;
use super::waits::Turn;
use crate::shape::claim::Claim;
use crate::shape::timestamp::Timestamp;

/// The stage of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// In the wheel.
    Waits,
    /// Its task waits for others, and the engine is asked now and then whether it is its turn.
    Asks,
    /// With its handler.
    Runs,
    /// Its handler has come back, and its run goes on: somebody has its acknowledgement.
    GoesOn,
    /// On its way back to the engine.
    Ended,
}

impl Stage {
    /// With its handler, or with whoever has its acknowledgement.
    fn runs(self) -> bool {
        matches!(self, Self::Runs | Self::GoesOn)
    }

    fn has_begun(self) -> bool {
        !matches!(self, Self::Waits | Self::Asks)
    }
}

/// A claim that the worker holds.
#[derive(Debug)]
pub(super) struct HeldClaim {
    pub(super) claim: Arc<Claim>,
    stage: Stage,
    /// True if it was late when it came.
    late: bool,
    /// True if what its task waits for has ended, or it waits for nothing.
    pub(super) is_its_turn: bool,
    /// True if it had a slot of a limited queue, which is free again: when its turn has come, it
    /// goes back to get another one.
    pub(super) needs_slot: bool,
    /// The engine's time at which something that its task waits for was last seen.
    pub(super) waited_until: Option<Timestamp>,
    /// The time at which its latest lease was asked for.
    pub(super) asked: Duration,
    /// The end of its lease, by the worker's monotonic clock. Counted from when the lease was asked
    /// for: so it is no later than the engine's end.
    pub(super) until: Duration,
    /// Until then it is run without asking the engine first: the lease before the latest protects
    /// it even if a fail-over has lost the latest. After it, and before `until`, the worker asks
    /// first.
    pub(super) sure: Duration,
    /// Its key among the leases.
    listed: Duration,
    /// Its due time, the time at which it came if it was late, or that of the answer if the engine
    /// was asked for its turn.
    due: Duration,
    /// How its handler is spoken with, once it runs.
    control: Option<Arc<Control>>,
}

impl HeldClaim {
    /// The time at which its lease is extended: a quarter of it is over.
    fn extend_at(&self) -> Duration {
        let lease = self.claim.lease;
        self.until.saturating_sub(lease - lease / 4)
    }
}

/// All claims of a worker, by the number under which the wheel has them.
#[derive(Debug)]
pub(super) struct Claims {
    claims: HashMap<u64, HeldClaim>,
    /// The number of claims of each task: one, unless an older one is not known to be lost yet.
    ids: HashMap<String, usize>,
    late: Late,
    /// The claims whose leases are extended, by the time of that.
    leases: BTreeSet<(Duration, u64)>,
    /// The claims not yet begun, by due time: before it they wait for it, after it for a thread.
    waiting: BTreeSet<(Duration, u64)>,
    running: usize,
    /// Of those that run, those that keep no thread any more.
    passed_on: usize,
    /// The time at which the latest run began.
    begun: Duration,
    /// Threads, each of which a handler keeps as long as it runs; `None` if handlers are futures,
    /// which keep none.
    threads: Option<usize>,
    /// The number of claims that wait for their time, and were not late.
    ahead: usize,
    /// The number of claims whose turn is asked for.
    asking: usize,
    /// The number of claims whose turn has not come: they wait for others.
    pub(super) parents: usize,
    /// Until then parents may be in the store that it had no room for, and that are due soon.
    pub(super) crowded_until: Duration,
    latest: u64,
}

impl Claims {
    /// An empty set. `threads` are those that handlers keep while they run; `None` if they keep
    /// none.
    pub(super) fn new(threads: Option<usize>) -> Self {
        Self {
            claims: HashMap::new(),
            ids: HashMap::new(),
            late: Late::new(threads),
            threads,
            begun: Duration::ZERO,
            leases: BTreeSet::new(),
            waiting: BTreeSet::new(),
            running: 0,
            passed_on: 0,
            ahead: 0,
            asking: 0,
            parents: 0,
            crowded_until: Duration::ZERO,
            latest: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.claims.len()
    }

    /// The number of the claim that came last.
    pub(super) fn latest(&self) -> u64 {
        self.latest
    }

    pub(super) fn running(&self) -> usize {
        self.running
    }

    /// Takes a claim in, which is `due` then by the monotonic clock; returns its number. One that
    /// is late is to be [queued](Self::queue).
    pub(super) fn add(&mut self, claim: Claim, asked: Duration, due: Duration, late: bool) -> u64 {
        self.latest += 1;
        self.ahead += usize::from(!late);
        self.parents += usize::from(claim.terms.waits.is_some());
        let mut held = HeldClaim {
            listed: Duration::ZERO,
            due,
            stage: Stage::Waits,
            late,
            is_its_turn: claim.terms.waits.is_none(),
            needs_slot: false,
            waited_until: None,
            asked,
            until: asked.saturating_add(claim.remaining),
            sure: asked.saturating_add(claim.sure),
            claim: Arc::new(claim),
            control: None,
        };
        held.listed = held.extend_at();
        *self.ids.entry(held.claim.id.clone()).or_default() += 1;
        self.leases.insert((held.listed, self.latest));
        self.waiting.insert((due, self.latest));
        self.claims.insert(self.latest, held);
        self.latest
    }

    pub(super) fn get(&self, key: u64) -> Option<&HeldClaim> {
        self.claims.get(&key)
    }

    /// Sets the stage of a claim. Its lease is extended as long as it waits or runs.
    pub(super) fn set_stage(&mut self, key: u64, stage: Stage) {
        let Some(held) = self.claims.get_mut(&key) else {
            return;
        };
        let (was, late) = (std::mem::replace(&mut held.stage, stage), held.late);
        let counts: [(&mut usize, &dyn Fn(Stage) -> bool); 4] = [
            (&mut self.ahead, &|stage| stage == Stage::Waits && !late),
            (&mut self.asking, &|stage| stage == Stage::Asks),
            (&mut self.running, &|stage| stage.runs()),
            (&mut self.passed_on, &|stage| stage == Stage::GoesOn),
        ];
        for (count, is_counted) in counts {
            *count += usize::from(is_counted(stage));
            *count -= usize::from(is_counted(was));
        }
        let lease = (held.listed, key);
        if stage == Stage::Waits {
            self.waiting.insert((held.due, key));
        } else {
            self.waiting.remove(&(held.due, key));
        }
        if stage == Stage::Ended {
            self.leases.remove(&lease);
            self.late.ended(key);
        } else {
            self.leases.insert(lease);
        }
    }

    /// Notes that its handler is to be called. `false` if it is on its way back.
    pub(super) fn begin(&mut self, key: u64, now: Duration) -> bool {
        let held = self.claims.get(&key);
        let may_begin = held.is_some_and(|held| !held.stage.has_begun());
        if may_begin {
            self.set_stage(key, Stage::Runs);
            self.begun = now;
        }
        may_begin
    }

    /// Notes that its turn is asked for. `false` if it is on its way back.
    pub(super) fn ask(&mut self, key: u64) -> bool {
        let held = self.claims.get(&key);
        let waits = held.is_some_and(|held| held.stage == Stage::Waits);
        if waits {
            self.set_stage(key, Stage::Asks);
            self.late.ended(key);
        }
        waits
    }

    /// A claim whose turn is asked for.
    pub(super) fn asked(&self, key: u64) -> Option<&HeldClaim> {
        let held = self.claims.get(&key);
        held.filter(|held| held.stage == Stage::Asks)
    }

    /// The last of those that a claim waits for of which the worker has a claim, too: it has not
    /// ended yet, as far as the worker knows. `None` if there is none, or if one that was dead
    /// would count.
    pub(super) fn also_waits_for(&self, key: u64) -> Option<String> {
        let claim = &self.asked(key)?.claim;
        let waits = claim.terms.waits.as_ref();
        let waits = waits.filter(|waits| !waits.needs_all)?;
        let mut ids = waits.ids.iter().rev();
        ids.find(|id| self.ids.contains_key(*id)).cloned()
    }

    /// Takes the slot from a claim whose turn has not come. `None` if it has none.
    pub(super) fn take_slot(&mut self, key: u64) -> Option<Arc<Claim>> {
        let held = self.claims.get_mut(&key);
        let held = held.filter(|held| held.claim.has_slot)?;
        let with_slot = Arc::clone(&held.claim);
        Arc::make_mut(&mut held.claim).has_slot = false;
        held.needs_slot = true;
        Some(with_slot)
    }

    /// Ends the claim that has the latest slot of those that its queue gave for later times than
    /// this one's, if its task is due before its slot and may run then.
    pub(super) fn end_last_slot(&mut self, freed: &Claim) -> Option<u64> {
        let has_later = |key: &u64| {
            let held = self.claims.get(key)?;
            let claim = &held.claim;
            let waits_for_slot = claim.has_slot && held.is_its_turn && claim.began < claim.due;
            (waits_for_slot && claim.due > freed.due && claim.terms.queue == freed.terms.queue)
                .then_some(*key)
        };
        let mut latest_first = self.waiting.iter().rev();
        let last = latest_first.find_map(|(_, key)| has_later(key))?;
        self.set_stage(last, Stage::Ended);
        Some(last)
    }

    /// Notes the answer: it waits for a thread since `due`, or asks again then. `false` if it is
    /// not there any more.
    pub(super) fn answer(&mut self, key: u64, turn: &Turn, due: Duration) -> bool {
        let held = self.claims.get_mut(&key);
        let Some(held) = held.filter(|held| held.stage == Stage::Asks) else {
            return false;
        };
        held.due = due;
        match turn {
            Turn::Now => {
                held.is_its_turn = true;
                self.parents -= 1;
                self.set_stage(key, Stage::Waits);
            }
            Turn::After { now, .. } => held.waited_until = Some(*now),
            _ => {}
        }
        true
    }

    /// Ends a claim that is not the worker's any more, if its turn is asked for.
    pub(super) fn recall(&mut self, key: u64) -> bool {
        let asks = self.asked(key).is_some();
        if asks {
            self.set_stage(key, Stage::Ended);
        }
        asks
    }

    /// Notes that the handler of a claim has come back, unless its run has ended since.
    pub(super) fn pass_on(&mut self, key: u64) {
        let held = self.claims.get(&key);
        if held.is_some_and(|held| held.stage == Stage::Runs) {
            self.set_stage(key, Stage::GoesOn);
            self.late.ended(key);
        }
    }

    pub(super) fn set_control(&mut self, key: u64, control: Arc<Control>) {
        if let Some(held) = self.claims.get_mut(&key) {
            held.control = Some(control);
        }
    }

    /// How the handler of a claim is spoken with.
    pub(super) fn control(&self, key: u64) -> Option<Arc<Control>> {
        self.claims.get(&key)?.control.clone()
    }

    /// The time since which all threads have been busy with the same runs; `None` if one is free.
    pub(super) fn stuck_since(&self) -> Option<Duration> {
        let busy = self.running - self.passed_on;
        let is_full = self.threads.is_some_and(|threads| busy >= threads);
        is_full.then_some(self.begun)
    }

    /// The earliest due time of a claim not yet begun. If it is past, that claim waits for a
    /// thread.
    pub(super) fn waits_since(&self) -> Option<Duration> {
        self.waiting.first().map(|(due, _)| *due)
    }

    /// Ends claims that have waited for a thread since then, so many at most.
    pub(super) fn end_waiting(&mut self, since: Duration, most: usize) -> Vec<u64> {
        let keys = self.waiting.range(..=(since, u64::MAX)).take(most);
        let keys: Vec<_> = keys.map(|(_, key)| *key).collect();
        for key in &keys {
            self.set_stage(*key, Stage::Ended);
        }
        keys
    }

    /// Ends claims that are due later and have not begun.
    pub(super) fn end_later(&mut self, now: Duration) -> Vec<u64> {
        self.end_those(|held| held.due > now)
    }

    /// Ends claims that have not begun.
    pub(super) fn end_those(&mut self, is_ended: impl Fn(&HeldClaim) -> bool) -> Vec<u64> {
        let claims = self.claims.iter();
        let ended = claims.filter(|(_, held)| !held.stage.has_begun() && is_ended(held));
        let keys: Vec<_> = ended.map(|(key, _)| *key).collect();
        for key in &keys {
            self.set_stage(*key, Stage::Ended);
        }
        keys
    }

    /// The number of claims that have not begun, or run.
    pub(super) fn unfinished(&self) -> usize {
        self.waiting.len() + self.asking + self.running
    }

    /// The engine has given another lease, which was asked for at `asked`. If it loses that, the
    /// one before still holds.
    pub(super) fn extended(&mut self, key: u64, asked: Duration) {
        let Some(held) = self.claims.get_mut(&key) else {
            return;
        };
        let listed = self.leases.remove(&(held.listed, key));
        let before = held.asked.saturating_add(held.claim.sure);
        held.sure = held.sure.max(before);
        held.asked = asked;
        held.until = asked.saturating_add(held.claim.lease);
        held.listed = held.extend_at();
        if listed {
            self.leases.insert((held.listed, key));
        }
    }

    /// The engine could not extend its lease just now: it is asked again a bit later.
    pub(super) fn put_off(&mut self, key: u64, asked: Duration) {
        let Some(held) = self.claims.get_mut(&key) else {
            return;
        };
        if self.leases.remove(&(held.listed, key)) {
            held.listed = asked.saturating_add(held.claim.lease / 16 + Duration::from_millis(1));
            self.leases.insert((held.listed, key));
        }
    }

    /// Notes that it is not the worker's any more, and runs: nothing more is asked about it.
    pub(super) fn give_up(&mut self, key: u64) {
        if let Some(held) = self.claims.get(&key) {
            self.leases.remove(&(held.listed, key));
        }
    }

    pub(super) fn remove(&mut self, key: u64) -> Option<HeldClaim> {
        self.set_stage(key, Stage::Ended);
        let removed = self.claims.remove(&key)?;
        self.parents -= usize::from(!removed.is_its_turn);
        let id = &removed.claim.id;
        if let Some(count) = self.ids.get_mut(id) {
            *count -= 1;
            if *count == 0 {
                self.ids.remove(id);
            }
        }
        Some(removed)
    }

    /// Queues a late claim. In the wheel it is parked until [`admit`](Self::admit) names it and the
    /// caller files it anew.
    pub(super) fn queue(&mut self, key: u64) {
        self.late.add(key);
    }

    /// A late claim whose turn it is.
    pub(super) fn admit(&mut self) -> Option<u64> {
        loop {
            let key = self.late.next(self.ahead > 0)?;
            let held = self.claims.get(&key);
            if held.is_some_and(|held| held.stage == Stage::Waits) {
                return Some(key);
            }
            self.late.ended(key);
        }
    }

    /// The time at which leases are extended next: a bit after the first could be, so that others
    /// are extended with it.
    pub(super) fn next_extension(&self) -> Option<Duration> {
        let (at, key) = self.leases.first()?;
        let lease = self.claims.get(key)?.claim.lease;
        Some(at.saturating_add(lease / 16))
    }

    /// Claims whose lease is to be extended now, because a quarter of it is over; at most `most`. A
    /// claim whose lease is over, and
    /// that does not run, is not extended any more: another worker may be about to claim it.
    pub(super) fn due_for_extension(
        &mut self,
        now: Duration,
        most: usize,
    ) -> Vec<(u64, Arc<Claim>)> {
        let mut ending = Vec::new();
        let mut over = Vec::new();
        for lease in self.leases.range(..=(now, u64::MAX)) {
            let Some(held) = self.claims.get(&lease.1) else {
                continue;
            };
            if !held.stage.has_begun() && held.until <= now {
                over.push(*lease);
            } else if ending.len() < most {
                ending.push((lease.1, Arc::clone(&held.claim)));
            } else {
                break;
            }
        }
        over.iter().for_each(|lease| {
            self.leases.remove(lease);
        });
        ending
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::claim::Fence;
    use crate::shape::timestamp::Timestamp;

    const S: fn(u64) -> Duration = Duration::from_secs;

    fn claim(sure: Duration) -> Claim {
        let mut claim = Claim::new("a", Timestamp(0), Fence(1), S(12));
        claim.sure = sure;
        claim
    }

    fn keys(claims: &mut Claims, now: u64) -> Vec<u64> {
        let ending = claims.due_for_extension(S(now), 9);
        ending.iter().map(|(key, _)| *key).collect()
    }

    #[test]
    fn leases_are_extended_together_when_a_quarter_is_over() {
        let mut claims = Claims::new(None);
        assert_eq!(claims.next_extension(), None);
        let (first, second) = (
            claims.add(claim(S(16)), S(0), S(0), false),
            claims.add(claim(S(16)), S(1), S(1), false),
        );
        assert_eq!(claims.next_extension(), Some(Duration::from_millis(3750)));
        assert_eq!(
            (keys(&mut claims, 2), keys(&mut claims, 4)),
            (vec![], vec![first, second])
        );
        claims.extended(first, S(4));
        assert_eq!(keys(&mut claims, 6), [second]);
        claims.set_stage(second, Stage::Ended);
        assert_eq!(keys(&mut claims, 7), [first]);
        claims.remove(first);
        assert_eq!((keys(&mut claims, 9), claims.len()), (vec![], 1));
    }

    #[test]
    fn a_lease_that_is_over_is_extended_only_if_its_claim_runs() {
        let mut claims = Claims::new(None);
        let (waits, runs) = (
            claims.add(claim(S(16)), S(0), S(0), false),
            claims.add(claim(S(16)), S(0), S(0), false),
        );
        claims.set_stage(runs, Stage::Runs);
        assert_eq!((keys(&mut claims, 12), claims.running()), (vec![runs], 1));
        claims.give_up(runs);
        assert_eq!(keys(&mut claims, 13), [0; 0]);
        claims.set_stage(runs, Stage::Ended);
        assert_eq!((claims.running(), claims.len()), (0, 2));
        assert!(claims.get(waits).is_some());
    }

    #[test]
    fn a_claim_is_sure_by_the_lease_before_the_latest() {
        let mut claims = Claims::new(None);
        let key = claims.add(claim(S(16)), S(0), S(0), false);
        let sure = |claims: &Claims| claims.get(key).map(|held| held.sure);
        claims.extended(key, S(4));
        assert_eq!(sure(&claims), Some(S(16)));
        claims.extended(key, S(8));
        assert_eq!(sure(&claims), Some(S(20)));
        let key = claims.add(claim(Duration::MAX), S(0), S(0), false);
        claims.extended(key, S(8));
        assert_eq!(claims.get(key).map(|held| held.sure), Some(Duration::MAX));
    }
}
