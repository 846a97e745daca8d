//! Adding, changing and removing entries.

use std::sync::Arc;

use tidewheel_store::{NewValue, Seen, Slot};

use super::{Context, Key};
use crate::events::Cause;
use crate::shard::Stored;
use crate::value::{LARGE, Object};

impl<'b> Context<'_, 'b> {
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

    /// Adds a key that does not exist, in the session's database.
    #[inline]
    pub(crate) fn insert(&mut self, key: Key<'_>, stored: Stored<'_>, cause: Cause) {
        let db = self.session.db;
        let access = self.recency().of_new(self.now.time.tick);
        self.insert_at(key, db, stored, access, cause);
    }

    /// Adds a key that does not exist, in any database.
    #[inline]
    pub(crate) fn insert_at(
        &mut self,
        key: Key<'_>,
        db: u32,
        stored: Stored<'_>,
        access: u32,
        cause: Cause,
    ) {
        let tick = self.now.tick;
        self.hold(key.shard)
            .insert(key, db, stored, access, tick, cause);
    }

    /// Replaces a key's type, value and deadline, in the session's database.
    #[inline(never)]
    pub(crate) fn replace(&mut self, key: Key<'_>, slot: Slot, stored: Stored<'_>, cause: Cause) {
        let (tick, db) = (self.now.tick, self.session.db);
        let old = self
            .hold(key.shard)
            .replace(key, db, slot, stored, tick, cause);
        if let Some(old) = old {
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
        let (tick, db) = (self.now.tick, self.session.db);
        let hold = self.hold(key.shard);
        if !hold.replace_in_place(key, db, seen, &stored, tick, cause) {
            self.replace(key, seen.slot, stored, cause);
        }
    }

    /// Removes a key from any database, as a part of moving it, and keeps its object for the
    /// caller.
    pub(crate) fn take_at(&mut self, key: Key<'_>, db: u32, slot: Slot) -> Option<Object> {
        self.hold(key.shard).remove(key, db, slot, Cause::Silent)
    }

    /// Overwrites the bytes of a value that lies beside its key, in the session's database. False,
    /// and nothing is done, if the new value has another length or the old one lies elsewhere.
    #[inline]
    pub(crate) fn overwrite(
        &mut self,
        key: Key<'_>,
        seen: &Seen,
        bytes: &[u8],
        cause: Cause,
    ) -> bool {
        let db = self.session.db;
        self.hold(key.shard).overwrite(key, db, seen, bytes, cause)
    }

    /// Gives a key a deadline, or takes it away, in the session's database.
    #[inline]
    pub(crate) fn set_deadline(
        &mut self,
        key: Key<'_>,
        slot: Slot,
        deadline: Option<u64>,
        cause: Cause,
    ) {
        let (tick, db) = (self.now.tick, self.session.db);
        self.hold(key.shard)
            .set_deadline(key, db, slot, deadline, tick, cause);
    }

    /// Removes a key from the session's database.
    pub(crate) fn remove(&mut self, key: Key<'_>, slot: Slot, cause: Cause) {
        let db = self.session.db;
        self.remove_at(key, db, slot, cause);
    }

    /// Removes a key from any database.
    pub(crate) fn remove_at(&mut self, key: Key<'_>, db: u32, slot: Slot, cause: Cause) {
        if let Some(object) = self.hold(key.shard).remove(key, db, slot, cause) {
            self.drop_object(object);
        }
    }

    /// Changes the bytes of a string object in place, in the session's database.
    pub(crate) fn change_bytes<R>(
        &mut self,
        key: Key<'_>,
        slot: Slot,
        cause: Cause,
        change: impl FnOnce(&mut Arc<Vec<u8>>) -> R,
    ) -> Option<R> {
        let db = self.session.db;
        self.hold(key.shard)
            .change_bytes(key, db, slot, cause, change)
    }

    /// Frees an object after unlocking.
    pub(crate) fn drop_object(&mut self, object: Object) {
        self.large().garbage.push(object);
    }
}
