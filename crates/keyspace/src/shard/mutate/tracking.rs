//! The observer for clients that track: what they have read, and what is invalid.

use super::{BROADCASTS, Hold, TRACKED};
use crate::session::Waiter;
use crate::shard::TELL;
use crate::tracking::Invalid;

/// Keys that leave a full table for one that comes: one more than comes, so that a lower limit is
/// reached in time.
const LEAVE_FOR_ONE: usize = 2;

/// Keys that were noted last, among which a key is not noted again.
const RECENT: usize = 8;

impl Hold<'_> {
    /// Notes that a client reads a key.
    pub(crate) fn track(&mut self, key: &[u8], reader: Waiter) {
        let shared = &self.shard.shared;
        let is_gone = |reader: &Waiter| shared.registry.is_gone(reader);
        let tracked = self.state.tracked.get_or_insert_default();
        let size = tracked.add(key, reader, is_gone);
        shared.tracking.add(size);
        self.state.observers |= TRACKED;
        if size.keys > 0 {
            self.make_room_for_tracked();
        }
    }

    /// Lets keys leave that are beyond the limit of all tables, but not the one that has just come.
    fn make_room_for_tracked(&mut self) {
        for _ in 0..LEAVE_FOR_ONE {
            if !self.shard.shared.tracks_too_many() {
                return;
            }
            let state = &mut *self.state;
            let any = state
                .tracked
                .as_ref()
                .and_then(|of| of.any_but_last(&mut state.random));
            let Some(key) = any else { return };
            self.note_invalid(&key, true);
        }
    }

    /// Lets at most `budget` keys leave while all tables have more than they may. Returns true if
    /// a key has left.
    pub(crate) fn bound_tracked(&mut self, budget: u32) -> bool {
        let mut left = 0;
        while left < budget && self.shard.shared.tracks_too_many() {
            let state = &mut *self.state;
            let tracked = state.tracked.as_ref();
            let Some(key) = tracked.and_then(|of| of.any(&mut state.random)) else {
                break;
            };
            self.note_invalid(&key, true);
            left += 1;
        }
        left > 0
    }

    /// A key has changed that somebody may have read. `by_itself`: by no command.
    #[cold]
    pub(super) fn note_invalid(&mut self, key: &[u8], by_itself: bool) {
        let taken = self.state.tracked.as_mut().and_then(|of| of.take(key));
        let readers = taken.map(|(readers, size)| {
            self.shard.shared.tracking.add(size);
            readers
        });
        if self.state.tracked.as_ref().is_some_and(|of| of.is_empty()) {
            self.forget_tracked();
        }
        let broadcasts = self.state.observers & BROADCASTS != 0;
        let mut recent = self.state.invalid.iter().rev().take(RECENT);
        let is_noted = |noted: &Invalid| *noted.key == *key && noted.by_itself == by_itself;
        if readers.is_none() && (!broadcasts || recent.any(is_noted)) {
            return;
        }
        self.state.invalid.push(Invalid {
            key: key.into(),
            readers,
            by_itself,
        });
        self.state.after |= TELL;
    }

    /// Nothing is known any more of what clients have read.
    pub(super) fn forget_tracked(&mut self) {
        if let Some(tracked) = self.state.tracked.take() {
            self.shard.shared.tracking.add(tracked.leaving());
        }
        self.state.observers &= !TRACKED;
    }

    /// Notes all changes from now on.
    pub(crate) fn observe_broadcasts(&mut self) {
        self.end_tracking();
        if self.shard.shared.registry.has_broadcasters() {
            self.state.observers |= BROADCASTS;
        }
    }

    /// Notes nothing any more for clients that are gone.
    pub(crate) fn end_tracking(&mut self) {
        if !self.shard.shared.registry.has_readers() {
            self.forget_tracked();
        }
        if !self.shard.shared.registry.has_broadcasters() {
            self.state.observers &= !BROADCASTS;
        }
    }

    /// The keys that are invalid, for whoever is about to unlock the shard.
    pub(crate) fn take_invalid(&mut self) -> Vec<Invalid> {
        self.state.after &= !TELL;
        std::mem::take(&mut self.state.invalid)
    }
}
