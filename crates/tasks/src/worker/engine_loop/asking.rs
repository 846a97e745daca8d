//! The engine loop asks for claims: this module decides when, and for how many.

use std::hash::BuildHasher;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use tidewheel_time::{Clock, DefaultHashBuilder, mix};

use super::pace::Pace;
use super::{BATCH, SHARE};
use crate::shape::claim::Claim;
use crate::shape::error::StoreError;
use crate::store::{Ask, TaskStore};
use crate::worker::mailbox::End;
use crate::worker::settings::Settings;
use crate::worker::shared::{Shared, Wheel};
use crate::worker::stats::count;

/// The pause after such a call that could have brought more.
const SHARE_PAUSE: Duration = Duration::from_millis(20);

/// A claim that is due within this is urgent.
const URGENT: Duration = Duration::from_secs(1);

/// The time from one question for claims to the next when nothing is claimed ahead, or little.
const POLL_SHORT: Duration = Duration::from_millis(50);

/// While there are more parents than a worker has room for, it claims no further ahead. What it had
/// put off would be claimed long before its time, and keep the room of everything else.
const CROWDED: Duration = Duration::from_millis(100);

/// A claim that comes later than this has to wait until what is on time has a thread: it is in the
/// wheel for so long.
const LATE: Duration = Duration::from_millis(100);
const PARKED: Duration = Duration::from_secs(24 * 3600);

/// The time of the next question for claims, and the result of the last.
#[derive(Debug)]
pub(super) struct Asking {
    pace: Pace,
    /// The time of the next question for claims.
    at: Duration,
    /// There was no room for claims, or no thread.
    full: bool,
    /// The last claims were urgent.
    urgent: bool,
    /// Calls so far.
    asked: u64,
    /// The engine may have fetched more for later claims.
    fetches: bool,
}

impl Asking {
    pub(super) fn new(settings: &Settings) -> Self {
        Self {
            pace: Pace::new(settings.threads),
            at: Duration::ZERO,
            full: false,
            urgent: false,
            asked: 0,
            fetches: false,
        }
    }

    /// The time of the next question for claims.
    pub(super) fn at(&self) -> Duration {
        self.at
    }

    /// The time at which claims are asked for next, or given back.
    pub(super) fn next<S>(&self, shared: &Shared<S>) -> Duration {
        let back = self.pace.next(&shared.held());
        back.map_or(self.at, |back| back.min(self.at))
    }

    /// Asks in this turn, or in the next.
    pub(super) fn at_once(&mut self) {
        self.at = Duration::ZERO;
    }

    pub(super) fn is_full(&self) -> bool {
        self.full
    }

    /// A claim is held no more: there is room again, or the task's next run may be near.
    pub(super) fn ended(&mut self, claim: &Claim) {
        if std::mem::take(&mut self.full) || claim.terms.rhythm.is_some() {
            self.at_once();
        }
    }

    /// Looks whether runs are among what has ended.
    pub(super) fn ran(&mut self, ends: &[(u64, End)]) {
        if ends.iter().any(|(_, end)| *end != End::Back) {
            self.pace.ran();
        }
    }

    /// Gives back what no thread has begun in time.
    pub(super) fn give_back<S: TaskStore>(
        &mut self,
        shared: &Shared<S>,
        wheel: &Wheel,
    ) -> Result<(), StoreError> {
        let now = shared.clock.now();
        self.pace.count(shared.counters.ran.load(Relaxed), now);
        let keys = self.pace.give_back(&mut shared.held(), now);
        for key in &keys {
            // It is not there if it has fired.
            let _ = wheel.remove(key);
        }
        if keys.is_empty() {
            return Ok(());
        }
        shared.give_back(keys.into_iter());
        self.leave(shared)
    }

    /// Others are to have what the engine has fetched for this worker.
    fn leave<S: TaskStore>(&mut self, shared: &Shared<S>) -> Result<(), StoreError> {
        if std::mem::take(&mut self.fetches) {
            shared.call(shared.store.leave())?;
        }
        Ok(())
    }

    pub(super) fn claim<S: TaskStore>(
        &mut self,
        shared: &Shared<S>,
        wheel: &Wheel,
    ) -> Result<(), StoreError> {
        let sent = shared.clock.now();
        let most = self.most(shared, sent);
        let ask = self.question(shared, sent, most);
        self.full = most == 0;
        if self.full {
            return if self.pace.is_narrow() {
                self.leave(shared)
            } else {
                Ok(())
            };
        }
        self.fetches = true;
        let claims = shared.call(shared.store.claim(ask))?;
        self.look(shared, sent, most, &claims);
        for claim in claims {
            hold(shared, wheel, claim, sent);
        }
        shared.admit(wheel);
        Ok(())
    }

    /// Makes the question, and sets the time of the next.
    fn question<S>(&mut self, shared: &Shared<S>, sent: Duration, most: usize) -> Ask {
        let settings = &shared.settings;
        let ahead = if shared.is_skewed() {
            Some(Duration::ZERO)
        } else {
            (sent < shared.held().crowded_until).then_some(CROWDED)
        };
        let (lookahead, poll) = match ahead {
            Some(ahead) => (settings.lookahead.min(ahead), settings.poll.min(POLL_SHORT)),
            None => (settings.lookahead, settings.poll),
        };
        self.asked += 1;
        self.at = sent + jittered(poll, settings, self.asked);
        let ask = Ask::new(&settings.name, lookahead, settings.lease, most);
        ask.queues(&settings.queues)
    }

    /// Looks at what has come: is there more?
    fn look<S>(&mut self, shared: &Shared<S>, sent: Duration, most: usize, claims: &[Claim]) {
        let soon = shared.engine_now().unwrap_or_default().plus(URGENT);
        self.urgent = claims.iter().any(|claim| claim.due <= soon);
        let throng = claims.len() >= most;
        self.pace.asked(throng && self.urgent);
        match (throng, self.urgent) {
            (true, true) => self.at = sent,
            (true, false) => self.at = sent + SHARE_PAUSE,
            _ => {}
        }
    }

    /// The number of claims that may be asked for.
    fn most<S>(&self, shared: &Shared<S>, now: Duration) -> usize {
        let held = shared.held();
        let room = shared.settings.held.saturating_sub(held.len());
        let call = if self.urgent { BATCH } else { SHARE };
        room.min(call).min(self.pace.most(&held, now))
    }
}

/// A random pause of three to five quarters: workers that started together do not ask together for
/// ever.
fn jittered(pause: Duration, settings: &Settings, seed: u64) -> Duration {
    let random = mix(DefaultHashBuilder::default().hash_one((&settings.name, seed))) >> 56;
    let random = u32::try_from(random).unwrap_or(0);
    pause * 3 / 4 + pause * random / 512
}

/// Takes a claim in, and lets the wheel fire it at its time; one that is late, when there is room
/// for it.
fn hold<S: TaskStore>(shared: &Shared<S>, wheel: &Wheel, claim: Claim, sent: Duration) {
    count(&shared.counters.claimed);
    let now = shared.engine_now().unwrap_or_default();
    let is_late = now > claim.due.plus(LATE);
    let (wait, ahead) = if is_late {
        (PARKED, Duration::ZERO)
    } else {
        (claim.asked_at().since(now), claim.due.since(now))
    };
    let due = shared.clock.now().saturating_add(ahead);
    let key = shared.held().add(claim, sent, due, is_late);
    shared.file(wheel, key, wait);
    if is_late {
        shared.held().queue(key);
    }
}
