//! Asking for claims: when, and for how many.

use std::hash::BuildHasher;
use std::time::Duration;

use tidewheel_time::{Clock, DefaultHashBuilder, mix};

use super::{BATCH, call};
use crate::shape::claim::Claim;
use crate::shape::error::StoreError;
use crate::store::{Ask, TaskStore};
use crate::worker::settings::Settings;
use crate::worker::shared::{Shared, Wheel};
use crate::worker::stats::count;

/// Claims in one call while none of them is urgent. So workers that ask at the same time share what there is.
const SHARE: usize = 64;

/// After such a call that could have brought more.
const SHARE_PAUSE: Duration = Duration::from_millis(20);

/// A claim that is due within this is urgent.
const URGENT: Duration = Duration::from_secs(1);

/// From one question for claims to the next when nothing is claimed ahead.
const POLL_SKEWED: Duration = Duration::from_millis(50);

/// A claim that comes later than this has to wait until what is on time has a thread: it is in the wheel for so long.
const LATE: Duration = Duration::from_millis(100);
const PARKED: Duration = Duration::from_secs(24 * 3600);

/// When claims are asked for, and how the last ones were.
#[derive(Debug, Default)]
pub(super) struct Asking {
    /// When claims are asked for next.
    at: Duration,
    /// There was no room for claims.
    full: bool,
    /// The last claims were urgent.
    urgent: bool,
    /// Calls so far.
    asked: u64,
}

impl Asking {
    /// When claims are asked for next.
    pub(super) fn at(&self) -> Duration {
        self.at
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
        if std::mem::take(&mut self.full) || claim.every.is_some() {
            self.at_once();
        }
    }

    pub(super) fn claim<S: TaskStore>(
        &mut self,
        shared: &Shared<S>,
        wheel: &Wheel,
    ) -> Result<(), StoreError> {
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
        self.at = sent + jittered(poll, settings, self.asked);
        self.full = room == 0;
        if self.full {
            return Ok(());
        }
        let ask = Ask::new(&settings.name, lookahead, settings.lease, most);
        let claims = call(shared, shared.store.claim(ask))?;
        let soon = shared.engine_now().unwrap_or_default().plus(URGENT);
        self.urgent = claims.iter().any(|claim| claim.due <= soon);
        if claims.len() >= most {
            self.at = sent
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
