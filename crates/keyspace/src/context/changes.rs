//! Adds, changes and removes entries.

use tidewheel_store::{NewValue, Seen, Slot};

use super::{Context, Key};
use crate::events::Cause;
use crate::key::At;
use crate::shard::{Hold, Stored};
use crate::value::{LARGE, Object};

impl<'a, 'b> Context<'a, 'b> {
    /// An argument as a value to store.
    #[inline(always)]
    pub(crate) fn new_value(&mut self, argument: usize) -> NewValue<'b, Object> {
        let bytes = self.args.get(argument).unwrap_or_default();
        if bytes.len() <= tidewheel_store::INLINE_MAX {
            return NewValue::Inline(bytes);
        }
        self.new_object(argument, bytes)
    }

    /// As [`new_value`](Self::new_value), of bytes that are too many to lie beside a key.
    #[inline(never)]
    fn new_object(&mut self, argument: usize, bytes: &[u8]) -> NewValue<'b, Object> {
        if let Some(large) = &mut self.large
            && let Some(at) = large.prepared.iter().position(|(i, _)| *i == argument)
        {
            return NewValue::Object(large.prepared.swap_remove(at).1);
        }
        debug_assert!(bytes.len() <= LARGE, "the row says what is stored");
        NewValue::Object(Object::new(bytes.to_vec()))
    }

    /// Copies an argument that will be stored before locks are taken, if it is large.
    #[inline(always)]
    pub(crate) fn prepare(&mut self, argument: usize) {
        if let Some(bytes) = self.args.get(argument)
            && bytes.len() > LARGE
        {
            self.copy_ahead(argument, bytes);
        }
    }

    #[cold]
    fn copy_ahead(&mut self, argument: usize, bytes: &[u8]) {
        let copy = Object::new(bytes.to_vec());
        self.large().prepared.push((argument, copy));
    }

    /// A key of the session's database, for a change of it now, and the shard that changes it.
    #[inline(always)]
    pub(crate) fn on<'k>(&mut self, key: Key<'k>) -> (At<'k>, &mut Hold<'a>) {
        self.on_any(key, self.session.db)
    }

    /// As [`on`](Self::on), of any database.
    #[inline(always)]
    pub(crate) fn on_any<'k>(&mut self, key: Key<'k>, db: u32) -> (At<'k>, &mut Hold<'a>) {
        let tick = self.now.tick;
        (At { key, db, tick }, self.hold(key.shard))
    }

    /// Adds a key that does not exist, in the session's database.
    #[inline]
    pub(crate) fn insert(&mut self, key: Key<'_>, stored: Stored<'_>, cause: Cause) {
        let access = self.recency().of_new(self.now.time.tick);
        let (at, hold) = self.on(key);
        hold.insert(at, stored, access, cause);
    }

    /// Replaces a key's type, value and deadline, in the session's database.
    #[inline(never)]
    pub(crate) fn replace(&mut self, key: Key<'_>, slot: Slot, stored: Stored<'_>, cause: Cause) {
        let (at, hold) = self.on(key);
        if let Some(old) = hold.replace(at, slot, stored, cause) {
            self.drop_object(old);
        }
    }

    /// As [`replace`](Self::replace), of an entry that was just looked at. Mostly the new value
    /// goes where the old one was.
    #[inline(always)]
    pub(crate) fn replace_seen(
        &mut self,
        key: Key<'_>,
        seen: &Seen,
        stored: Stored<'_>,
        cause: Cause,
    ) {
        let (at, hold) = self.on(key);
        if !hold.replace_in_place(at, seen, &stored, cause) {
            self.replace(key, seen.slot, stored, cause);
        }
    }

    /// Removes a key from the session's database.
    pub(crate) fn remove(&mut self, key: Key<'_>, slot: Slot, cause: Cause) {
        let (at, hold) = self.on(key);
        if let Some(object) = hold.remove(at, slot, cause) {
            self.drop_object(object);
        }
    }

    /// Frees an object after unlocking.
    pub(crate) fn drop_object(&mut self, object: Object) {
        self.large().garbage.push(object);
    }
}
