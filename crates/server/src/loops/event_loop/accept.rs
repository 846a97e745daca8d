//! Accepts new connections, and assigns them to the loops.

use crate::loops::assign;
use crate::net::listener::{Accepted, Listener};
use crate::net::output::write_some;
use crate::state::loop_state::LoopState;

/// Connections accepted in a turn.
const ACCEPTS_PER_TURN: usize = 64;

/// The time before the next attempt when the process or the system has no free descriptors.
const RETRY_MS: u64 = 100;

/// The listeners of a loop.
#[derive(Debug)]
pub(super) struct Doors {
    pub(super) listeners: Vec<Listener>,
    /// Connections may wait at the listeners.
    pub(super) accepting: bool,
    /// The tick at which accepting is tried again.
    pub(super) retry: Option<u64>,
}

impl Doors {
    /// Accepts what is waiting, within the turn's share. Adds those that are this loop's.
    pub(super) fn accept(&mut self, state: &mut LoopState, own: &mut Vec<Accepted>) {
        self.retry = None;
        let mut left = ACCEPTS_PER_TURN;
        let mut next = 0;
        while left > 0 && next < self.listeners.len() {
            match self.listeners[next].accept() {
                Ok(Some(accepted)) => {
                    left -= 1;
                    own.extend(assign(state, accepted));
                }
                Ok(None) => next += 1,
                Err(why) => {
                    tracing::error!(%why, "cannot accept a connection");
                    self.accepting = false;
                    self.retry = Some(state.time.tick + RETRY_MS);
                    return;
                }
            }
        }
        self.accepting = next < self.listeners.len();
    }
}

/// Gives a connection to the loop that has the fewest. Returns it if that is this one.
fn assign(state: &mut LoopState, mut accepted: Accepted) -> Option<Accepted> {
    state.follow_settings();
    if !assign::lets_in(&state.server, &state.settings) {
        state.tally.rejected += 1;
        tracing::debug!(address = %accepted.peer, "refused: there are maxclients clients");
        let refusal = b"-ERR max number of clients reached\r\n";
        if let Err(why) = write_some(&mut accepted.stream, refusal) {
            tracing::debug!(%why, "a client that was refused had gone already");
        }
        return None;
    }
    assign::to_emptiest(&state.server, accepted, Some(state.index))
}
