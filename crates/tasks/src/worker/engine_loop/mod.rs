//! The engine loop makes all calls of the engine, one after another, each within a limit of time.
//!
//! A turn is: take what has come; tell the engine how runs have ended, and how far others have
//! come; extend leases of which a quarter is over, many at a time; give back what no thread has
//! begun in time; ask for the time, and which queues are paused; claim. A call that fails is made
//! again in a later turn, after a pause that doubles up to a quarter of a second. What ends while
//! the engine is away, or what it does not take just now, waits here: it is bounded by the number
//! of claims.

mod asking;
mod failure;
mod leases;
mod pace;
mod progress;
mod rules;
mod telling;

use std::sync::Arc;
use std::time::Duration;

use tidewheel_time::Clock;

use self::asking::Asking;
use self::leases::extend;
use self::progress::Progress;
use self::telling::Telling;
use super::shared::{Shared, Wheel};
use super::stats::count;
use crate::shape::claim::Claim;
use crate::shape::error::StoreError;
use crate::store::TaskStore;

/// Claims in one call.
const BATCH: usize = 1000;

/// Claims in one call while none of them is urgent, or some wait for a thread. So workers that ask
/// at the same time share what there is.
const SHARE: usize = 64;

/// An end waits so long for others, of which the engine is told in the same call.
const GATHER: Duration = Duration::from_millis(5);

/// The time from one turn to the next while the worker stops.
const CLOSING: Duration = Duration::from_millis(100);

const PAUSE_MIN: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_millis(250);

/// The engine loop's own state.
#[derive(Debug)]
pub(super) struct EngineLoop {
    telling: Telling,
    progress: Progress,
    asking: Asking,
    /// The time at which the engine's time, and its paused queues, are asked for next.
    observe_at: Duration,
    /// The pause after the latest failure.
    pause: Duration,
    /// No call is made before this.
    resume_at: Duration,
    /// The store knows that this worker claims nothing more.
    has_left: bool,
}

/// The action after a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// Another one, after this long at most.
    Turn(Duration),
    /// Nothing: the worker has stopped.
    End,
}

impl EngineLoop {
    pub(super) fn new<S>(shared: &Shared<S>) -> Self {
        Self {
            telling: Telling::default(),
            progress: Progress::default(),
            asking: Asking::new(&shared.settings),
            observe_at: Duration::ZERO,
            pause: Duration::ZERO,
            resume_at: Duration::ZERO,
            has_left: false,
        }
    }

    /// Runs one turn.
    pub(super) fn turn<S: TaskStore>(&mut self, shared: &Shared<S>, wheel: &Wheel) -> Next {
        let mail = shared.mailbox.take();
        self.asking.ran(&mail.ends);
        self.telling.add(mail.ends);
        self.progress.add(mail.progress);
        if mail.arrived {
            self.asking.at_once();
        }
        let now = shared.clock.now();
        if let Some(until) = mail.stop
            && (shared.held().len() == 0 || now >= until)
        {
            // The last call: what goes back should not wait for its lease to end.
            self.telling.hurry();
            let _ = self.leave(shared);
            let _ = self.telling.tell(shared, &mut self.asking);
            return Next::End;
        }
        if now >= self.resume_at {
            let result = self.calls(shared, wheel, mail.closing);
            self.rest(shared, result);
        }
        Next::Turn(self.sleep(shared, mail.closing))
    }

    /// Nothing more is claimed, so nothing more is to come from the engine: what goes back after
    /// that goes to others.
    fn leave<S: TaskStore>(&mut self, shared: &Shared<S>) -> Result<(), StoreError> {
        if !self.has_left {
            shared.call(shared.store.leave())?;
            self.has_left = true;
        }
        Ok(())
    }

    fn calls<S: TaskStore>(
        &mut self,
        shared: &Shared<S>,
        wheel: &Wheel,
        closing: bool,
    ) -> Result<(), StoreError> {
        if closing && let Err(StoreError::TimedOut) = self.leave(shared) {
            return Err(StoreError::TimedOut);
        }
        // An engine may do the one while it cannot do the other.
        let told = self.telling.tell(shared, &mut self.asking);
        extend(shared, wheel)?;
        if let Err(StoreError::TimedOut) = told {
            return told;
        }
        self.progress.tell(shared)?;
        if !closing {
            self.asking.give_back(shared, wheel)?;
        }
        let now = shared.clock.now();
        if now >= self.observe_at {
            observe(shared)?;
            rules::look(shared, wheel)?;
            self.observe_at = now.saturating_add(shared.settings.poll);
        }
        if !closing && now >= self.asking.at() {
            self.asking.claim(shared, wheel)?;
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
            self.asking.next(shared)
        };
        let (end, progress) = (self.telling.next(), self.progress.next());
        let next = extend
            .into_iter()
            .chain(end)
            .chain(progress)
            .fold(other, Duration::min);
        next.max(self.resume_at).saturating_sub(now)
    }

    /// Sleeps until something comes, `limit` at most. While calls fail, nothing that comes ends the
    /// pause.
    pub(super) fn wait<S>(&self, shared: &Shared<S>, limit: Duration) {
        if self.pause.is_zero() {
            let gather = if self.asking.is_full() {
                Duration::ZERO
            } else {
                GATHER
            };
            shared.mailbox.wait(limit, gather);
        } else {
            std::thread::sleep(limit.min(PAUSE_MAX));
        }
    }
}

/// Asks the engine what time it is.
fn observe<S: TaskStore>(shared: &Shared<S>) -> Result<(), StoreError> {
    let sent = shared.clock.now();
    let engine = shared.call(shared.store.now())?;
    if shared.learn(sent, engine) {
        count(&shared.counters.skews);
    }
    Ok(())
}

fn claims_of(batch: &[(u64, Arc<Claim>)]) -> Vec<Arc<Claim>> {
    batch.iter().map(|(_, claim)| Arc::clone(claim)).collect()
}
