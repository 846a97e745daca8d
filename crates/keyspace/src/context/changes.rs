//! Adding, changing and removing entries, with all that must be told of it.

use tidewheel_store::{NewValue, Slot};

use super::{Context, Key};
use crate::events::NotifyClass;
use crate::value::{LARGE, Object};

impl<'b> Context<'_, 'b> {
    /// An argument as a value to store.
    #[inline]
    pub(crate) fn new_value(&mut self, argument: usize) -> NewValue<'b, Object> {
        let bytes = self.args.get(argument).unwrap_or_default();
        if bytes.len() <= tidewheel_store::INLINE_MAX {
            return NewValue::Inline(bytes);
        }
        if let Some(large) = &mut self.large
            && let Some(at) = large.prepared.iter().position(|(i, _)| *i == argument)
        {
            return NewValue::Object(large.prepared.swap_remove(at).1);
        }
        NewValue::Object(Object::new(bytes.to_vec()))
    }

    /// Copies an argument that will be stored before locks are taken, if it is large.
    #[inline]
    pub(crate) fn prepare(&mut self, argument: usize) {
        if let Some(bytes) = self.args.get(argument)
            && bytes.len() > LARGE
        {
            self.large()
                .prepared
                .push((argument, Object::new(bytes.to_vec())));
        }
    }

    /// Adds a key that does not exist, in the session's database.
    #[inline]
    pub(crate) fn insert(
        &mut self,
        key: Key<'_>,
        tag: u8,
        value: NewValue<'_, Object>,
        deadline: Option<u64>,
    ) {
        let db = self.session.db;
        let access = self.recency().of_new(self.now.time.tick);
        self.insert_at(key, db, tag, value, deadline, access);
    }

    /// Adds a key that does not exist, in any database.
    #[inline]
    pub(crate) fn insert_at(
        &mut self,
        key: Key<'_>,
        db: u32,
        tag: u8,
        value: NewValue<'_, Object>,
        deadline: Option<u64>,
        access: u32,
    ) {
        let tick = self.now.tick;
        let database = self.database_at(key, db);
        if let NewValue::Object(object) = &value {
            database.object_bytes += object.bytes();
        }
        let slot = database
            .entries
            .insert(key.hash, key.bytes, tag, value, deadline, tick);
        database.entries.set_access(slot, access);
        self.changed(key, db, deadline);
        self.notify(key, db, NotifyClass::New, "new");
    }

    /// Replaces a key's type, value and deadline, in the session's database.
    #[inline]
    pub(crate) fn replace(
        &mut self,
        key: Key<'_>,
        slot: Slot,
        tag: u8,
        value: NewValue<'_, Object>,
        deadline: Option<u64>,
    ) {
        let (tick, db) = (self.now.tick, self.session.db);
        let database = self.database(key);
        if let NewValue::Object(object) = &value {
            database.object_bytes += object.bytes();
        }
        let (_, old) = database.entries.replace(slot, tag, value, deadline, tick);
        if let Some(old) = old {
            self.drop_object(key, db, old);
        }
        self.changed(key, db, deadline);
    }

    /// Gives a key a deadline, or takes it away, in the session's database.
    #[inline]
    pub(crate) fn set_deadline(&mut self, key: Key<'_>, slot: Slot, deadline: Option<u64>) {
        let (tick, db) = (self.now.tick, self.session.db);
        self.database(key)
            .entries
            .set_deadline(slot, deadline, tick);
        self.changed(key, db, deadline);
    }

    /// Removes a key from the session's database.
    pub(crate) fn remove(&mut self, key: Key<'_>, slot: Slot) {
        let db = self.session.db;
        self.remove_at(key, db, slot);
    }

    /// Removes a key from any database.
    pub(crate) fn remove_at(&mut self, key: Key<'_>, db: u32, slot: Slot) {
        let object = self.database_at(key, db).entries.remove(slot);
        if let Some(object) = object {
            self.drop_object(key, db, object);
        }
        self.changed(key, db, None);
    }

    /// Removes a key from any database and keeps its object for the caller.
    pub(crate) fn take_at(&mut self, key: Key<'_>, db: u32, slot: Slot) -> Option<Object> {
        let database = self.database_at(key, db);
        let object = database.entries.remove(slot);
        if let Some(object) = &object {
            database.object_bytes -= object.bytes();
        }
        self.changed(key, db, None);
        object
    }

    /// Changes an object in place, in the session's database. `change` keeps it an object.
    pub(crate) fn change_object<R>(
        &mut self,
        key: Key<'_>,
        slot: Slot,
        change: impl FnOnce(&mut Object) -> R,
    ) -> Option<R> {
        let db = self.session.db;
        let database = self.database(key);
        let object = database.entries.object_mut(slot)?;
        let before = object.bytes();
        let result = change(object);
        let after = object.bytes();
        database.object_bytes = database.object_bytes + after - before;
        self.changed(key, db, None);
        Some(result)
    }

    fn drop_object(&mut self, key: Key<'_>, db: u32, object: Object) {
        self.database_at(key, db).object_bytes -= object.bytes();
        self.large().garbage.push(object);
    }

    /// Publishes what a change did to the shard: its bytes and its earliest deadline.
    #[inline]
    fn changed(&mut self, key: Key<'_>, db: u32, deadline: Option<u64>) {
        let keyspace = self.keyspace;
        let state = self.state(key.shard);
        keyspace.count_bytes(state, db);
        if deadline.is_some() {
            keyspace.shards[key.shard].note_deadline(state, db);
        }
    }
}
