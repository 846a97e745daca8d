//! The limit of tracked keys: lets some leave in each turn while there are too many, after
//! `tracking-table-max-keys` was lowered or after a command.
//!
//! The keys leave wherever they are. If others have all shards that have some, the loop tries again
//! in the next tick.

use tidewheel_time::NEVER;

use crate::state::loop_state::LoopState;

/// Keys that leave in one turn.
const PER_TURN: u32 = 64;

/// One loop's part in forgetting keys.
#[derive(Debug, Default)]
pub(crate) struct Forgetting {
    /// The shard that is next.
    next: usize,
    /// The tick of the last attempt in which no key has left.
    in_vain_at: u64,
}

impl Forgetting {
    /// Returns the tick at which there is something to do.
    #[inline]
    pub(crate) fn wake_at(&self, state: &LoopState) -> u64 {
        match state.server.keyspace.tracks_too_many() {
            true => self.in_vain_at + 1,
            false => NEVER,
        }
    }

    /// Does a turn's share.
    #[inline]
    pub(crate) fn forget(&mut self, state: &mut LoopState) {
        if self.wake_at(state) <= state.time.tick && !self.forget_some(state) {
            self.in_vain_at = state.time.tick;
        }
    }

    /// Returns true if a key has left.
    #[cold]
    fn forget_some(&mut self, state: &mut LoopState) -> bool {
        let keyspace = &state.server.keyspace;
        (0..keyspace.shards()).any(|_| {
            let shard = self.next;
            self.next = (shard + 1) % keyspace.shards();
            keyspace.bound_tracked(&mut state.seat, shard, PER_TURN)
        })
    }
}
