//! The observer for clients that wait for keys.

use std::sync::Arc;

use super::{AWAITED, Hold};
use crate::waiters::{ReadyKey, Ticket, Waiters};

impl Hold<'_> {
    /// Puts a ticket into the queue of a key.
    pub(crate) fn await_key(&mut self, key: &[u8], ticket: &Arc<Ticket>) {
        self.state.waiters.get_or_insert_default().add(key, ticket);
        self.state.observers |= AWAITED;
    }

    /// Undoes an [`await_key`](Self::await_key).
    pub(crate) fn leave_key(&mut self, key: &[u8], ticket: &Ticket) {
        if let Some(waiters) = &mut self.state.waiters {
            waiters.remove(key, ticket);
        }
        self.forget_waiters();
    }

    /// A key has changed for which somebody may wait.
    #[cold]
    pub(crate) fn note_awaited(&mut self, db: u32, key: &[u8]) {
        if let Some(waiters) = &mut self.state.waiters {
            waiters.note(db, key);
        }
    }

    /// Whether a key has changed for which somebody waits.
    #[inline]
    pub(crate) fn has_ready(&self) -> bool {
        self.state.observers & AWAITED != 0
            && self
                .state
                .waiters
                .as_ref()
                .is_some_and(|waiters| waiters.has_ready())
    }

    /// The next of those keys: its database, what is waited for, and its name.
    pub(crate) fn take_ready(&mut self) -> Option<ReadyKey> {
        let ready = self.state.waiters.as_mut()?.take_ready();
        if ready.is_none() {
            self.forget_waiters();
        }
        ready
    }

    pub(crate) fn waiters_mut(&mut self) -> Option<&mut Waiters> {
        self.state.waiters.as_deref_mut()
    }

    fn forget_waiters(&mut self) {
        let waiters = self.state.waiters.as_ref();
        if waiters.is_some_and(|waiters| waiters.is_empty() && !waiters.has_ready()) {
            self.state.waiters = None;
            self.state.observers &= !AWAITED;
        }
    }
}
