//! The engine loop tells the engine how runs have ended, many at a time.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use tidewheel_time::Clock;

use super::asking::Asking;
use super::failure::{bounded, failure, never};
use super::{BATCH, PAUSE_MIN, claims_of};
use crate::shape::claim::{Claim, Verdict};
use crate::shape::error::StoreError;
use crate::shape::outcome::Outcome;
use crate::store::{Failure, TaskStore};
use crate::worker::mailbox::End;
use crate::worker::shared::Shared;
use crate::worker::stats::count;

/// Calls about ends that may fail in one turn, unless the engine does not answer at all.
const FAILURES: usize = 3;

/// The longest wait of an end that the engine did not take.
const END_PAUSE_MAX: Duration = Duration::from_millis(500);

/// An end that the engine does not know yet.
#[derive(Debug)]
struct Untold {
    end: End,
    tries: u32,
    /// The earliest time at which it is told.
    at: Duration,
}

impl Untold {
    /// The engine did not take it: others go first.
    fn put_off(&mut self, now: Duration) {
        let pause = PAUSE_MIN * (1 << self.tries.min(8));
        self.tries = self.tries.saturating_add(1);
        self.at = now.saturating_add(pause.min(END_PAUSE_MAX));
    }
}

/// A claim whose run has succeeded, with its result if that is kept.
fn with_result<S>(shared: &Shared<S>, (key, claim): Keyed) -> Keyed {
    if claim.terms.keep_result.is_none() {
        return (key, claim);
    }
    let control = shared.held().control(key);
    let mut claim = Claim::clone(&claim);
    claim.result = control.and_then(|control| control.result());
    (key, Arc::new(claim))
}

/// A claim, and its number.
type Keyed = (u64, Arc<Claim>);

/// The ends that the engine does not know yet.
#[derive(Debug, Default)]
pub(super) struct Telling {
    ends: HashMap<u64, Untold>,
    /// Calls that failed one after another.
    failures: usize,
}

/// Ends that may be told now, by kind.
#[derive(Debug, Default)]
struct Ready {
    done: Vec<Keyed>,
    back: Vec<Keyed>,
    /// The runs that failed, and those that never are, with the number of tries.
    failed: Vec<(u32, Keyed, Failure)>,
}

impl Telling {
    pub(super) fn add(&mut self, ends: Vec<(u64, End)>) {
        self.ends.extend(ends.into_iter().map(|(key, end)| {
            let (tries, at) = (0, Duration::ZERO);
            (key, Untold { end, tries, at })
        }));
    }

    /// Lets ends that were put off be told now.
    pub(super) fn hurry(&mut self) {
        let ends = self.ends.values_mut();
        ends.for_each(|end| end.at = Duration::ZERO);
    }

    /// The time at which the next end is told.
    pub(super) fn next(&self) -> Option<Duration> {
        self.ends.values().map(|end| end.at).min()
    }

    /// Tells the engine how runs have ended. What it does not take now waits, and keeps nothing
    /// else waiting.
    pub(super) fn tell<S: TaskStore>(
        &mut self,
        shared: &Shared<S>,
        asking: &mut Asking,
    ) -> Result<(), StoreError> {
        self.failures = 0;
        let Ready { done, back, failed } = self.ready(shared);
        let told = (&shared.counters.done, true);
        for batch in done.chunks(BATCH) {
            let verdicts = shared.call(shared.store.done(&claims_of(batch)));
            self.settle(shared, asking, batch, verdicts, told)?;
        }
        for (_, keyed, failure) in failed {
            self.fail(shared, asking, keyed, failure)?;
        }
        let told = (&shared.counters.released, false);
        for batch in back.chunks(BATCH) {
            let verdicts = shared.call(shared.store.release(&claims_of(batch)));
            self.settle(shared, asking, batch, verdicts, told)?;
        }
        Ok(())
    }

    /// The ends that may be told now. Of failures, those that were tried least come first.
    fn ready<S>(&mut self, shared: &Shared<S>) -> Ready {
        let (mut ready, now) = (Ready::default(), shared.clock.now());
        self.ends.retain(|key, untold| {
            let Some(claim) = shared.held().get(*key).map(|held| Arc::clone(&held.claim)) else {
                return false;
            };
            let keyed = (*key, claim);
            match &untold.end {
                _ if untold.at > now => {}
                End::Ran(Outcome::Done) => ready.done.push(with_result(shared, keyed)),
                End::Ran(outcome) => {
                    let failure = failure(shared, &keyed.1, outcome.clone());
                    ready.failed.push((untold.tries, keyed, failure));
                }
                End::Never(outcome) => {
                    let failure = never(shared, &keyed.1, outcome.clone());
                    ready.failed.push((untold.tries, keyed, failure));
                }
                End::Back => ready.back.push(keyed),
            }
            true
        });
        ready.failed.sort_by_key(|(tries, ..)| *tries);
        ready
    }

    /// Takes the verdicts for claims: with what counts those that are accepted, and whether their
    /// tasks are over then.
    fn settle<S: TaskStore>(
        &mut self,
        shared: &Shared<S>,
        asking: &mut Asking,
        batch: &[Keyed],
        verdicts: Result<Vec<Verdict>, StoreError>,
        (accepted, is_over): (&AtomicU64, bool),
    ) -> Result<(), StoreError> {
        let verdicts = match verdicts {
            Ok(verdicts) => verdicts,
            Err(error) => return self.failed(shared, batch, error),
        };
        self.failures = 0;
        for ((key, claim), verdict) in batch.iter().zip(verdicts) {
            if verdict == Verdict::Busy {
                self.put_off(shared, *key);
                continue;
            }
            asking.ended(claim);
            self.ends.remove(key);
            shared.held().remove(*key);
            if is_over && claim.terms.rhythm.is_none() {
                shared.task_ended(&claim.id);
            }
            count(if verdict.is_accepted() {
                accepted
            } else {
                &shared.counters.refused
            });
        }
        Ok(())
    }

    /// A call about ends has failed: is it only these, or the engine?
    fn failed<S: TaskStore>(
        &mut self,
        shared: &Shared<S>,
        batch: &[Keyed],
        error: StoreError,
    ) -> Result<(), StoreError> {
        for (key, _) in batch {
            self.put_off(shared, *key);
        }
        self.failures += 1;
        if error == StoreError::TimedOut || self.failures >= FAILURES {
            return Err(error);
        }
        Ok(())
    }

    fn put_off<S: TaskStore>(&mut self, shared: &Shared<S>, key: u64) {
        if let Some(untold) = self.ends.get_mut(&key) {
            untold.put_off(shared.clock.now());
        }
    }

    fn fail<S: TaskStore>(
        &mut self,
        shared: &Shared<S>,
        asking: &mut Asking,
        (key, claim): Keyed,
        failure: Failure,
    ) -> Result<(), StoreError> {
        if failure.retry.is_some() {
            asking.at_once();
        }
        let mut told = match failure.retry {
            Some(_) => (&shared.counters.retried, false),
            None => (&shared.counters.dead, true),
        };
        let mut verdict = shared.call(shared.store.fail(&claim, failure));
        if let Err(StoreError::Refused(why)) = &verdict {
            // It will never take that.
            told = (&shared.counters.dead, true);
            let dead = Failure::dead(bounded(why.clone()));
            verdict = shared.call(shared.store.fail(&claim, dead));
        }
        let verdicts = verdict.map(|verdict| vec![verdict]);
        self.settle(shared, asking, &[(key, claim)], verdicts, told)
    }
}
