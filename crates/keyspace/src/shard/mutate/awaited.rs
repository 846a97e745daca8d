//! The observer for clients that wait for keys.

use std::sync::Arc;

use super::{AWAITED, Hold, Key};
use crate::shard::ShardState;
use crate::time::Now;
use crate::value::is_timed;
use crate::waiters::{Change, ReadyKey, Ticket, Waiters};

impl Hold<'_> {
    /// Puts a ticket into the queue of its key at an argument's position.
    pub(crate) fn await_key(&mut self, key: Key<'_>, at: usize, ticket: &Arc<Ticket>) {
        let waiters = self.state.waiters.get_or_insert_default();
        waiters.add(key, at, ticket);
        self.shard.shared.awaited.add(waiters.take_growth());
        self.state.observers |= AWAITED;
    }

    /// Undoes an [`await_key`](Self::await_key).
    pub(crate) fn leave_key(&mut self, at: usize, ticket: &Ticket) {
        if let Some(waiters) = &mut self.state.waiters {
            waiters.remove(at, ticket);
            self.shard.shared.awaited.add(waiters.take_growth());
        }
        self.forget_waiters();
    }

    /// A key has changed for which somebody may wait.
    #[cold]
    pub(crate) fn note_awaited(&mut self, db: u32, key: &[u8], change: Change) {
        let ShardState {
            waiters, databases, ..
        } = &mut *self.state;
        let Some(waiters) = waiters else { return };
        let entries = &databases[db as usize].entries;
        let shared = &self.shard.shared;
        waiters.note(db, key, entries, change, || shared.next_note());
    }

    /// All keys of a database have changed.
    #[cold]
    pub(super) fn note_all_awaited(&mut self, db: u32) {
        let waiters = self.state.waiters.as_ref();
        for key in waiters.map_or(Vec::new(), |waiters| waiters.keys_of(db)) {
            self.note_awaited(db, &key, Change::Any);
        }
    }

    /// True if a key for which somebody waits holds something.
    #[inline]
    pub(crate) fn has_ready(&self) -> bool {
        self.state.observers & AWAITED != 0 && self.first_ready().is_some()
    }

    /// The place of the first such key among those of all shards.
    pub(crate) fn first_ready(&self) -> Option<u64> {
        self.state.waiters.as_ref()?.first_ready()
    }

    /// The first of those keys. Say when it was [served](Self::served).
    pub(crate) fn take_ready(&mut self) -> Option<ReadyKey> {
        self.state.waiters.as_mut()?.take_ready()
    }

    /// The next who waits for a key.
    pub(crate) fn next_of(&mut self, ready: &ReadyKey) -> Option<Arc<Ticket>> {
        let ShardState {
            waiters, databases, ..
        } = &mut *self.state;
        let entries = &databases[ready.db as usize].entries;
        let waiters = waiters.as_mut()?;
        let next = waiters.next(ready, entries);
        self.shard.shared.awaited.add(waiters.take_growth());
        next
    }

    /// True if a key's deadline was reached, and it is still there.
    pub(crate) fn is_dead(&self, key: Key<'_>, db: u32, now: &Now) -> bool {
        let seen = self.entries(db).look(key.hash, key.bytes);
        seen.is_some_and(|seen| seen.is_due(now.tick) && !is_timed(seen.tag))
    }

    /// A key was served in part.
    pub(crate) fn put_back(&mut self, ready: ReadyKey) {
        if let Some(waiters) = &mut self.state.waiters {
            waiters.put_back(ready);
        }
    }

    /// A key was served as far as it goes.
    pub(crate) fn served(&mut self, ready: &ReadyKey) {
        if let Some(waiters) = &mut self.state.waiters {
            waiters.served(ready);
        }
        self.forget_waiters();
    }

    /// True if a key for which a ticket waits holds something.
    pub(crate) fn is_ready(&self, key: &[u8], ticket: &Ticket) -> bool {
        let waiters = self.state.waiters.as_ref();
        waiters.is_some_and(|waiters| waiters.is_ready(key, ticket))
    }

    fn forget_waiters(&mut self) {
        let is_idle = |waiters: &Waiters| waiters.is_empty() && waiters.first_ready().is_none();
        if self.state.waiters.as_deref().is_some_and(is_idle) {
            self.state.waiters = None;
            self.state.observers &= !AWAITED;
        }
    }
}
