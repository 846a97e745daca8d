//! Appends expired keys to the streams that `expired-stream` names.
//!
//! The funnel queues them while their shards are locked. A loop appends them when nothing is
//! locked: after each hold of expiry, within the microseconds of its pass, and at the end of its
//! turn, for those that commands have met. If another has the stream's shard for long, for example
//! a script, the loop tries again in the next tick.

use tidewheel_keyspace::{AppendedExpired, ExpiredStreamTrouble};

use crate::state::loop_state::LoopState;
use crate::time::clock;

/// Returns the tick at which the loop has something to append, if it knows of any.
pub(crate) fn wake_at(state: &LoopState) -> Option<u64> {
    let waits = state.server.keyspace.expired_pending() && !state.server.pause.is_on();
    waits.then_some(state.append_expired_at)
}

/// Appends what is queued until an engine microsecond, and at least once.
#[inline]
pub(crate) fn append_until(state: &mut LoopState, end_us: u64) {
    if wake_at(state).is_some_and(|tick| tick <= state.time.tick) {
        append_some(state, end_us);
    }
}

/// Appends what is queued in one share of a turn.
#[inline]
pub(crate) fn append(state: &mut LoopState) {
    let end_us = clock::micros(state.time) + state.settings.expiry_turn_us;
    append_until(state, end_us);
}

#[cold]
fn append_some(state: &mut LoopState, end_us: u64) {
    loop {
        let keyspace = &state.server.keyspace;
        let appended = keyspace.append_expired(&mut state.seat, state.time);
        state.server.publish_events();
        state.time = state.server.clock.now();
        match appended {
            AppendedExpired::Some if clock::micros(state.time) < end_us => {}
            AppendedExpired::Blocked => {
                state.append_expired_at = state.time.tick + 1;
                break;
            }
            AppendedExpired::Some | AppendedExpired::All => break,
        }
    }
    for trouble in state.server.keyspace.expired_stream_troubles() {
        tell(&trouble);
    }
}

fn tell(trouble: &ExpiredStreamTrouble) {
    match trouble {
        ExpiredStreamTrouble::Failed(name) => tracing::warn!(
            stream = %String::from_utf8_lossy(name),
            "expired keys cannot be appended to the stream that expired-stream names: the key has another type, or no \
             id is left; INFO counts them as expired_stream_failed"
        ),
        ExpiredStreamTrouble::Dropped => tracing::warn!(
            "too many expired keys wait for a stream whose shard is in use for long: INFO counts those that are lost \
             as expired_stream_dropped"
        ),
    }
}
