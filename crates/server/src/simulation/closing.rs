//! Checks that the server closes idle clients and slow readers, and no others.

use super::client::{Client, End};
use super::model::Talker;
use super::terms::Terms;

const SECOND_US: u64 = 1_000_000;

/// Ticks are rounded, so the silent may stay a little longer.
const ROUNDING_US: u64 = 2_000;

impl Client {
    /// Bytes have moved in its connection, between two moments in engine microseconds.
    pub(super) fn note_moves(&mut self, began: u64, ended: u64) {
        if self.peer.wire.borrow_mut().has_moved() {
            (self.active_from, self.active_until) = (began, ended);
        }
    }

    /// The server has let go of it.
    pub(super) fn closed(
        &mut self,
        talker: &mut Talker,
        terms: &Terms,
        now: u64,
    ) -> Result<(), String> {
        if self.end == End::Gone || talker.killed {
            return Ok(());
        }
        let silent = terms.timeout_s > 0 && now - self.active_from >= terms.timeout_s * SECOND_US;
        let unread = terms.output_max > 0 && self.backlog(talker) as u64 > terms.output_max;
        if silent || unread {
            // Its unanswered commands and undelivered messages are lost with it.
            talker.killed = true;
            return Ok(());
        }
        // The end of the episode checks whether these were served first.
        if self.end == End::Half || self.spoilt || talker.leaves {
            return Ok(());
        }
        Err("it was closed though it is active, and reads what it gets".to_owned())
    }

    /// After a turn that began at `began`: whether it should have been closed for its silence.
    pub(super) fn check_silence(
        &self,
        talker: &Talker,
        terms: &Terms,
        began: u64,
    ) -> Result<(), String> {
        let most = terms.timeout_s * SECOND_US + ROUNDING_US;
        let silent = began.saturating_sub(self.active_until) > most;
        let waits = talker.is_subscribed() || self.is_held_up();
        if terms.timeout_s > 0 && silent && !waits && !self.peer.is_closed() {
            return Err("it was silent for too long, and stays".to_owned());
        }
        Ok(())
    }
}
