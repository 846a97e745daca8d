//! The ferry: all calls of the engine, one after another, each within a limit of time.
//!
//! A turn is: take what has come; tell the engine how runs have ended; extend leases of which a quarter is over, many at a
//! time; ask for the time; claim. A call that fails is made again in a later turn, after a pause that doubles up to a quarter of a second. What ends
//! while the engine is away, or what it does not take just now, waits here: it is bounded by the number of claims.

use std::collections::HashMap;
use std::future::Future;
use std::hash::BuildHasher;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use tidewheel_scheduler::Outcome;
use tidewheel_time::{Clock, DefaultHashBuilder, mix};

use super::mailbox::End;
use super::settings::Settings;
use super::shared::{Shared, Wheel};
use super::stats::count;
use crate::shape::claim::{Claim, Verdict};
use crate::shape::error::StoreError;
use crate::shape::task::Due;
use crate::store::{Ask, Failure, TaskStore};
use crate::wait::wait_for;

/// Claims in one call.
const BATCH: usize = 1000;

/// Claims in one call while none of them is urgent. So workers that ask at the same time share what there is.
const SHARE: usize = 64;

/// After such a call that could have brought more.
const SHARE_PAUSE: Duration = Duration::from_millis(20);

/// How long an end waits for others that the engine is told of in the same call.
const GATHER: Duration = Duration::from_millis(5);

/// A claim that is due within this is urgent.
const URGENT: Duration = Duration::from_secs(1);

/// From one question for claims to the next when nothing is claimed ahead.
const POLL_SKEWED: Duration = Duration::from_millis(50);

/// From one turn to the next while the worker stops.
const CLOSING: Duration = Duration::from_millis(100);

const PAUSE_MIN: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_millis(250);

/// A claim that comes later than this has to wait until what is on time has a thread: it is in the wheel for so long.
const LATE: Duration = Duration::from_millis(100);
const PARKED: Duration = Duration::from_secs(24 * 3600);

/// Bytes of an error that the engine keeps.
const ERROR_MAX: usize = 1000;

/// Calls about ends that may fail in one turn, unless the engine does not answer at all.
const FAILURES: usize = 3;

/// How long an end waits at most that the engine did not take.
const END_PAUSE_MAX: Duration = Duration::from_millis(500);

/// An end that the engine does not know yet.
#[derive(Debug)]
struct Untold {
    end: End,
    tries: u32,
    /// It is not told before this.
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

/// The ferry's own memory.
#[derive(Debug, Default)]
pub(super) struct Ferry {
    /// What the engine does not know yet.
    ends: HashMap<u64, Untold>,
    /// Calls about ends that failed one after another.
    failures: usize,
    /// When claims are asked for next.
    claim_at: Duration,
    /// When the engine is asked for its time next.
    observe_at: Duration,
    /// The pause after the latest failure.
    pause: Duration,
    /// No call is made before this.
    resume_at: Duration,
    /// There was no room for claims.
    full: bool,
    /// The last claims were urgent.
    urgent: bool,
    /// Calls for claims so far.
    asked: u64,
}

/// What follows a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// Another one, after this long at most.
    Turn(Duration),
    /// Nothing: the worker has stopped.
    End,
}

impl Ferry {
    /// One turn.
    pub(super) fn turn<S: TaskStore>(&mut self, shared: &Shared<S>, wheel: &Wheel) -> Next {
        let mail = shared.mailbox.take();
        let ends = mail.ends.into_iter();
        self.ends.extend(ends.map(|(key, end)| {
            let (tries, at) = (0, Duration::ZERO);
            (key, Untold { end, tries, at })
        }));
        if mail.arrived {
            self.claim_at = Duration::ZERO;
        }
        let now = shared.clock.now();
        if let Some(until) = mail.stop
            && (shared.held().len() == 0 || now >= until)
        {
            // The last call: what goes back should not wait for its lease to end.
            self.ends
                .values_mut()
                .for_each(|end| end.at = Duration::ZERO);
            let _ = self.tell(shared);
            let _ = call(shared, shared.store.leave());
            return Next::End;
        }
        if now >= self.resume_at {
            let result = self.calls(shared, wheel, mail.closing);
            self.rest(shared, result);
        }
        Next::Turn(self.sleep(shared, mail.closing))
    }

    fn calls<S: TaskStore>(
        &mut self,
        shared: &Shared<S>,
        wheel: &Wheel,
        closing: bool,
    ) -> Result<(), StoreError> {
        // An engine may do the one while it cannot do the other.
        let told = self.tell(shared);
        extend(shared, wheel)?;
        if let Err(StoreError::TimedOut) = told {
            return told;
        }
        let now = shared.clock.now();
        if now >= self.observe_at {
            observe(shared)?;
            self.observe_at = now.saturating_add(shared.settings.poll);
        }
        if !closing && now >= self.claim_at {
            self.claim(shared, wheel)?;
        }
        Ok(())
    }

    /// Sets when the next call may be made.
    fn rest<S: TaskStore>(&mut self, shared: &Shared<S>, result: Result<(), StoreError>) {
        self.pause = match result {
            Ok(()) => Duration::ZERO,
            Err(_) => (self.pause * 2).clamp(PAUSE_MIN, PAUSE_MAX),
        };
        self.resume_at = shared.clock.now() + self.pause;
    }

    fn sleep<S: TaskStore>(&self, shared: &Shared<S>, closing: bool) -> Duration {
        let now = shared.clock.now();
        let extend = shared.held().next_extension();
        // What stops looks again and again whether all has ended.
        let other = if closing {
            now + CLOSING
        } else {
            self.claim_at
        };
        let end = self.ends.values().map(|end| end.at).min();
        let next = extend.into_iter().chain(end).fold(other, Duration::min);
        next.max(self.resume_at).saturating_sub(now)
    }

    /// Sleeps until something comes, `limit` at most. While calls fail, nothing that comes ends the pause.
    pub(super) fn wait<S>(&self, shared: &Shared<S>, limit: Duration) {
        if self.pause.is_zero() {
            let gather = if self.full { Duration::ZERO } else { GATHER };
            shared.mailbox.wait(limit, gather);
        } else {
            std::thread::sleep(limit.min(PAUSE_MAX));
        }
    }

    /// Tells the engine how runs have ended. What it does not take now waits, and keeps nothing else waiting.
    fn tell<S: TaskStore>(&mut self, shared: &Shared<S>) -> Result<(), StoreError> {
        self.failures = 0;
        let (mut done, mut back, mut failed) = (Vec::new(), Vec::new(), Vec::new());
        let now = shared.clock.now();
        self.ends.retain(|key, untold| {
            let Some(claim) = shared.held().get(*key).map(|held| Arc::clone(&held.claim)) else {
                return false;
            };
            match &untold.end {
                _ if untold.at > now => {}
                End::Ran(Outcome::Done) => done.push((*key, claim)),
                End::Ran(outcome) => failed.push((untold.tries, *key, claim, outcome.clone())),
                End::Back => back.push((*key, claim)),
            }
            true
        });
        for batch in done.chunks(BATCH) {
            let verdicts = call(shared, shared.store.done(&claims_of(batch)));
            self.settle(shared, batch, verdicts, &shared.counters.done)?;
        }
        failed.sort_by_key(|(tries, ..)| *tries);
        for (_, key, claim, outcome) in failed {
            self.fail(shared, key, claim, outcome)?;
        }
        for batch in back.chunks(BATCH) {
            let verdicts = call(shared, shared.store.release(&claims_of(batch)));
            self.settle(shared, batch, verdicts, &shared.counters.released)?;
        }
        Ok(())
    }

    fn settle<S: TaskStore>(
        &mut self,
        shared: &Shared<S>,
        batch: &[(u64, Arc<Claim>)],
        verdicts: Result<Vec<Verdict>, StoreError>,
        accepted: &std::sync::atomic::AtomicU64,
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
            // There is room again, or the task's next run may be near.
            if std::mem::take(&mut self.full) || claim.every.is_some() {
                self.claim_at = Duration::ZERO;
            }
            self.ends.remove(key);
            shared.held().remove(*key);
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
        batch: &[(u64, Arc<Claim>)],
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
        key: u64,
        claim: Arc<Claim>,
        outcome: Outcome,
    ) -> Result<(), StoreError> {
        let failure = failure(shared, &claim, outcome);
        if failure.retry.is_some() {
            self.claim_at = Duration::ZERO;
        }
        let mut counter = match failure.retry {
            Some(_) => &shared.counters.retried,
            None => &shared.counters.dead,
        };
        let mut verdict = call(shared, shared.store.fail(&claim, failure));
        if let Err(StoreError::Refused(why)) = &verdict {
            // It will never take that.
            counter = &shared.counters.dead;
            let dead = Failure::dead(bounded(why.clone()));
            verdict = call(shared, shared.store.fail(&claim, dead));
        }
        let verdicts = verdict.map(|verdict| vec![verdict]);
        self.settle(shared, &[(key, claim)], verdicts, counter)
    }

    fn claim<S: TaskStore>(&mut self, shared: &Shared<S>, wheel: &Wheel) -> Result<(), StoreError> {
        let settings = &shared.settings;
        let skewed = shared.is_skewed();
        let (lookahead, poll) = if skewed {
            (Duration::ZERO, settings.poll.min(POLL_SKEWED))
        } else {
            (settings.lookahead, settings.poll)
        };
        let room = settings.held.saturating_sub(shared.held().len());
        let most = room.min(if self.urgent { BATCH } else { SHARE });
        let sent = shared.clock.now();
        self.asked += 1;
        self.claim_at = sent + jittered(poll, settings, self.asked);
        self.full = room == 0;
        if self.full {
            return Ok(());
        }
        let ask = Ask::new(&settings.name, lookahead, settings.lease, most);
        let claims = call(shared, shared.store.claim(ask))?;
        let soon = shared.engine_now().unwrap_or_default().plus(URGENT);
        self.urgent = claims.iter().any(|claim| claim.due <= soon);
        if claims.len() >= most {
            self.claim_at = sent
                + if self.urgent {
                    Duration::ZERO
                } else {
                    SHARE_PAUSE
                };
        }
        claims
            .into_iter()
            .for_each(|claim| hold(shared, wheel, claim, sent));
        shared.admit(wheel);
        Ok(())
    }
}

/// From three to five quarters of a pause: workers that started together do not ask together for ever.
fn jittered(pause: Duration, settings: &Settings, seed: u64) -> Duration {
    let random = mix(DefaultHashBuilder::default().hash_one((&settings.name, seed))) >> 56;
    let random = u32::try_from(random).unwrap_or(0);
    pause * 3 / 4 + pause * random / 512
}

/// Takes a claim in, and lets the wheel fire it at its time; one that is late, when there is room for it.
fn hold<S: TaskStore>(shared: &Shared<S>, wheel: &Wheel, claim: Claim, sent: Duration) {
    count(&shared.counters.claimed);
    let now = shared.engine_now().unwrap_or_default();
    let is_late = now > claim.due.plus(LATE);
    let wait = if is_late {
        PARKED
    } else {
        claim.due.since(now)
    };
    let key = shared.held().add(claim, sent, is_late);
    shared.file(wheel, key, wait);
    if is_late {
        shared.held().queue(key);
    }
}

/// Asks the engine what time it is.
fn observe<S: TaskStore>(shared: &Shared<S>) -> Result<(), StoreError> {
    let sent = shared.clock.now();
    let engine = call(shared, shared.store.now())?;
    if shared.learn(sent, engine) {
        count(&shared.counters.skews);
    }
    Ok(())
}

/// Extends the leases of which a quarter is over. Claims that are not ours any more are dropped, unless they run.
fn extend<S: TaskStore>(shared: &Shared<S>, wheel: &Wheel) -> Result<(), StoreError> {
    let lease = shared.settings.lease;
    let now = shared.clock.now();
    if shared.held().next_extension().is_none_or(|at| at > now) {
        return Ok(());
    }
    loop {
        let batch = shared.held().ending(shared.clock.now(), BATCH);
        if batch.is_empty() {
            return Ok(());
        }
        let (sent, claims) = (shared.clock.now(), claims_of(&batch));
        let verdicts = call(shared, shared.store.extend(&claims, lease))?;
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
    } else if wheel.remove(&key).is_some() {
        shared.held().remove(key);
        count(&shared.counters.recalled);
    } else {
        // It runs: its end will be refused.
        shared.held().give_up(key);
    }
}

/// What a run that failed comes to.
fn failure<S: TaskStore>(shared: &Shared<S>, claim: &Claim, outcome: Outcome) -> Failure {
    let retry = &shared.settings.retry;
    let seed = claim.fence.0;
    match outcome {
        Outcome::Failed { error, after } if !retry.is_last(claim.attempt) => {
            let wait = after.unwrap_or_else(|| retry.delay(claim.attempt, seed));
            Failure::retry(Due::After(wait), bounded(error))
        }
        Outcome::Failed { error, .. } | Outcome::Dead { error } => Failure::dead(bounded(error)),
        _ => Failure::dead("an outcome that is not known"),
    }
}

fn bounded(mut error: String) -> String {
    error.truncate(error.floor_char_boundary(ERROR_MAX));
    // Databases take no such character in a text.
    error.replace('\0', "")
}

/// One call of the engine.
fn call<S: TaskStore, T>(
    shared: &Shared<S>,
    future: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    let result = wait_for(&shared.clock, shared.settings.limit, future);
    if result.is_err() {
        count(&shared.counters.errors);
    }
    result
}

fn claims_of(batch: &[(u64, Arc<Claim>)]) -> Vec<Arc<Claim>> {
    batch.iter().map(|(_, claim)| Arc::clone(claim)).collect()
}
