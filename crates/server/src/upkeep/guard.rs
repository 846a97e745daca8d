//! Loops that sleep watch over those that run, because a loop in a long command meets no deadline
//! and wakes nobody.
//!
//! An example: loop 0 runs a command of a second, and a key of its shards is due in the middle of
//! it.
//!
//! 1. Loop 1 goes to sleep while loop 0 runs. It sleeps no longer than until a tick after that
//!    deadline.
//! 2. Then it sees that loop 0 is behind, and helps.
//! 3. If loop 1 sleeps already when the command begins, loop 0 wakes it, so that it can do the
//!    same. Loop 0 need not if some loop wakes early enough by itself.

use tidewheel_time::NEVER;

use crate::loop_handle::LoopHandle;
use crate::state::loop_state::LoopState;

/// The ticks after a running loop's next deadline at which sleeping loops check on it.
const GUARD_AFTER: u64 = 1;

/// The last time that a loop asked another one to watch over it.
#[derive(Debug, Default)]
pub(crate) struct Guard {
    /// The tick of that request, and the loop's next deadline then.
    asked: (u64, u64),
}

impl Guard {
    /// Makes sure, before a command that may take long, that some loop will watch over those that
    /// run. A loop that runs does so when it goes to sleep, unless it gets stuck as well.
    #[cold]
    pub(crate) fn ask(&mut self, state: &LoopState) {
        let now = (state.time.tick, state.handle().soonest());
        if std::mem::replace(&mut self.asked, now) == now {
            // Thousands of small commands of this kind may come in one tick.
            return;
        }
        let at = look_at(state.server.loops.iter());
        let guarded = others(state).any(|other| other.sleeps_until(at));
        if at == NEVER || guarded || !state.server.expires() {
            return;
        }
        // If none sleeps, one that runs may be about to, and may have looked at this loop while it
        // slept.
        let guard = others(state).find(|other| other.sleeps());
        if let Some(guard) = guard.or_else(|| others(state).next()) {
            guard.nudge();
        }
    }
}

/// Returns the tick at which to look after the others that run now.
pub(crate) fn wake_at(state: &LoopState) -> u64 {
    look_at(others(state))
}

/// Returns the other loops.
pub(crate) fn others(state: &LoopState) -> impl Iterator<Item = &LoopHandle> {
    let loops = state.server.loops.iter().enumerate();
    loops.filter_map(|(i, other)| (i != state.index).then_some(other))
}

/// Returns the tick at which to check whether those of `loops` that run now have met their
/// deadlines.
fn look_at<'a>(loops: impl Iterator<Item = &'a LoopHandle>) -> u64 {
    let running = loops.filter(|handle| !handle.sleeps());
    let soonest = running.map(LoopHandle::soonest).min();
    soonest.map_or(NEVER, |tick| tick.saturating_add(GUARD_AFTER))
}
