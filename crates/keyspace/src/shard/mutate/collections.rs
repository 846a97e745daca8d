//! The funnel for collections: changes of members.

use tidewheel_collections::{Hash, Set, ZSet};
use tidewheel_store::{NewValue, Slot, Value};

use super::{Hold, Stored};
use crate::events::Cause;
use crate::key::At;
use crate::value::collection::{Collection, OWN_DEADLINE_BYTES, Owned, prefix, split};
use crate::value::{self, Object, TAG_HASH_TIMED, TAG_SET_TIMED, TAG_ZSET_TIMED};

/// The longest packed collection that lies beside its key.
const BESIDE_MAX: usize = tidewheel_store::INLINE_MAX - OWN_DEADLINE_BYTES;

/// Steps of tidying in a large collection after members have left.
pub(super) const TIDYING: u32 = 4;

/// Memory for packed collections that is kept.
const SCRATCH_KEPT: usize = 8 << 10;

/// The outcome of a change.
#[derive(Debug)]
pub(crate) struct ChangeOutcome<R> {
    /// The value that the change returned.
    pub(crate) result: R,
    /// The object of a key that is gone, or of one that lies beside its key now.
    pub(crate) garbage: Option<Object>,
}

/// The tick at which an entry is due: the earlier of its own deadline and its members' first.
fn earlier(own: Option<u64>, members: Option<u64>) -> Option<u64> {
    match (own, members) {
        (Some(own), Some(members)) => Some(own.min(members)),
        (own, members) => own.or(members),
    }
}

impl Hold<'_> {
    /// Changes a collection: that of a key, or a new one. `change` returns the event of what it has
    /// done; `None` if it has changed nothing. A collection that is gone leaves with its key.
    pub(crate) fn edit<C: Collection, R>(
        &mut self,
        at: At<'_>,
        slot: Option<Slot>,
        access: u32,
        change: impl FnOnce(&mut C) -> (R, Option<Cause>),
    ) -> ChangeOutcome<R> {
        let db = at.db;
        let Some(slot) = slot else {
            let mut of = C::empty(self.take_scratch());
            let (result, cause) = change(&mut of);
            match cause.filter(|_| !of.is_gone()) {
                Some(cause) => self.store_new(at, of, access, cause),
                None => self.keep_scratch(of),
            }
            let garbage = None;
            return ChangeOutcome { result, garbage };
        };
        if self.entries(db).is_inline(slot) {
            self.edit_beside(at, slot, change)
        } else {
            self.edit_object(at, slot, change)
        }
    }

    /// Changes a copy of a packed collection, and writes it back.
    fn edit_beside<C: Collection, R>(
        &mut self,
        at: At<'_>,
        slot: Slot,
        change: impl FnOnce(&mut C) -> (R, Option<Cause>),
    ) -> ChangeOutcome<R> {
        let db = at.db;
        let own_deadline = value::own_deadline(self.entries(db), slot);
        let mut of: C = self.unpack(db, slot);
        let (result, cause) = change(&mut of);
        let garbage = match cause {
            None => {
                self.keep_scratch(of);
                None
            }
            Some(cause) if of.is_gone() => {
                self.keep_scratch(of);
                self.remove_emptied(at, slot, cause)
            }
            Some(cause) => {
                self.write_back(at, slot, Owned { own_deadline, of }, cause);
                None
            }
        };
        ChangeOutcome { result, garbage }
    }

    fn edit_object<C: Collection, R>(
        &mut self,
        at: At<'_>,
        slot: Slot,
        change: impl FnOnce(&mut C) -> (R, Option<Cause>),
    ) -> ChangeOutcome<R> {
        let At { key, db, tick } = at;
        self.before(db, key.hash, Some(slot));
        let kept = self.kept_bytes(db, slot);
        let was_timed = value::is_timed(self.entries(db).tag(slot));
        let own_deadline = value::own_deadline(self.entries(db), slot);
        let database = self.database(db);
        let object = database.entries.object_mut(slot);
        let Some(owned) = object.and_then(C::of_object_mut) else {
            unreachable!("the caller has looked at the type");
        };
        let (before, len) = (owned.of.heap_bytes(), owned.of.len());
        let (result, cause) = change(&mut owned.of);
        if owned.of.len() < len {
            owned.of.maintain(TIDYING);
        }
        let after = owned.of.heap_bytes();
        let (next, is_empty) = (owned.of.next_deadline(), owned.of.is_gone());
        owned.own_deadline = own_deadline;
        database.object_bytes = database.object_bytes + after - before;
        self.count_kept(db, slot, kept);
        let Some(cause) = cause else {
            self.count_bytes(db);
            let garbage = None;
            return ChangeOutcome { result, garbage };
        };
        if is_empty {
            let garbage = self.remove_emptied(at, slot, cause);
            return ChangeOutcome { result, garbage };
        }
        if was_timed || next.is_some() {
            self.file_members::<C>(db, slot, own_deadline, next, tick);
        }
        self.count_bytes(db);
        self.state.changes += 1;
        self.tell(db, key.bytes, cause);
        let garbage = None;
        ChangeOutcome { result, garbage }
    }

    /// The last member has left, and the key leaves too.
    fn remove_emptied(&mut self, at: At<'_>, slot: Slot, cause: Cause) -> Option<Object> {
        let At { key, db, .. } = at;
        self.tell(db, key.bytes, cause);
        self.remove(at, slot, Cause::Del)
    }

    /// Files an entry at its own deadline or at its members' earliest.
    pub(super) fn file_members<C: Collection>(
        &mut self,
        db: u32,
        slot: Slot,
        own: Option<u64>,
        members: Option<u64>,
        tick: u64,
    ) {
        let tag = if members.is_some() {
            C::TIMED_TAG
        } else {
            C::TAG
        };
        let deadline = earlier(own, members);
        let database = self.database(db);
        let entries = &mut database.entries;
        let (was, is) = (value::is_timed(entries.tag(slot)), members.is_some());
        database.with_timed_members -= usize::from(was);
        database.with_timed_members += usize::from(is);
        if own.is_none() {
            database.members_only -= usize::from(was);
            database.members_only += usize::from(is);
        }
        entries.set_tag(slot, tag);
        let slot = entries.set_deadline(slot, deadline, tick);
        self.settle(db, slot, deadline);
    }

    fn store_new<C: Collection>(&mut self, at: At<'_>, of: C, access: u32, cause: Cause) {
        let own_deadline = None;
        self.insert_owned(at, Owned { own_deadline, of }, access, cause);
    }

    /// Adds a key that does not exist, with a collection and its own deadline.
    pub(crate) fn insert_owned<C: Collection>(
        &mut self,
        at: At<'_>,
        owned: Owned<C>,
        access: u32,
        cause: Cause,
    ) {
        let next = owned.of.next_deadline();
        self.with_stored(owned, next, |hold, stored| {
            hold.insert(at, stored, access, cause);
        });
    }

    fn write_back<C: Collection>(&mut self, at: At<'_>, slot: Slot, owned: Owned<C>, cause: Cause) {
        let next = owned.of.next_deadline();
        self.with_stored(owned, next, |hold, stored| {
            let old = hold.replace(at, slot, stored, cause);
            debug_assert!(old.is_none(), "it lay beside its key");
        });
    }

    /// Calls `store` with the stored form of a collection, whose members are due at `next`.
    pub(super) fn with_stored<C: Collection>(
        &mut self,
        owned: Owned<C>,
        next: Option<u64>,
        store: impl FnOnce(&mut Self, Stored<'_>),
    ) {
        let Owned { own_deadline, of } = owned;
        let deadline = earlier(own_deadline, next);
        let tag = if next.is_some() { C::TIMED_TAG } else { C::TAG };
        match of.pack() {
            Ok(mut bytes) if bytes.len() <= BESIDE_MAX => {
                if next.is_some() {
                    bytes.splice(0..0, prefix(own_deadline));
                }
                let value = NewValue::Inline(&bytes);
                let stored = Stored {
                    tag,
                    value,
                    deadline,
                };
                store(self, stored);
                self.keep_memory(bytes);
            }
            packed => {
                let of = packed.map_or_else(|large| large, C::unpack);
                let object = C::into_object(Box::new(Owned { own_deadline, of }));
                let value = NewValue::Object(object);
                let stored = Stored {
                    tag,
                    value,
                    deadline,
                };
                store(self, stored);
            }
        }
    }

    /// A copy of a packed collection that lies beside its key.
    pub(super) fn unpack<C: Collection>(&mut self, db: u32, slot: Slot) -> C {
        let mut bytes = self.take_scratch();
        if let (tag, Value::Inline(stored)) = self.entries(db).tagged(slot) {
            bytes.extend_from_slice(match value::is_timed(tag) {
                true => split(stored).1,
                false => stored,
            });
        }
        C::unpack(bytes)
    }

    fn take_scratch(&mut self) -> Vec<u8> {
        let mut scratch = std::mem::take(&mut self.state.scratch);
        scratch.clear();
        scratch
    }

    pub(super) fn keep_scratch(&mut self, of: impl Collection) {
        if let Ok(bytes) = of.pack() {
            self.keep_memory(bytes);
        }
    }

    fn keep_memory(&mut self, bytes: Vec<u8>) {
        if bytes.capacity() <= SCRATCH_KEPT {
            self.state.scratch = bytes;
        }
    }

    /// Gives a key its own deadline, or takes it away, while its members have deadlines.
    #[cold]
    pub(super) fn set_own_deadline(&mut self, db: u32, slot: Slot, own: Option<u64>, tick: u64) {
        let next = self.members_deadline(db, slot);
        let database = self.database(db);
        database.members_only -= usize::from(database.is_members_only(slot));
        database.members_only += usize::from(own.is_none());
        let entries = &mut database.entries;
        if let Some(bytes) = entries.inline_mut(slot) {
            bytes[..OWN_DEADLINE_BYTES].copy_from_slice(&prefix(own));
        } else if let Some(kept) = entries.object_mut(slot).and_then(Object::own_deadline_mut) {
            *kept = own;
        }
        let deadline = earlier(own, next);
        let slot = entries.set_deadline(slot, deadline, tick);
        self.settle(db, slot, deadline);
    }

    fn members_deadline(&self, db: u32, slot: Slot) -> Option<u64> {
        let (tag, value) = self.entries(db).tagged(slot);
        match (tag, value) {
            (TAG_HASH_TIMED, Value::Inline(bytes)) => Hash::read(split(bytes).1).next_deadline(),
            (TAG_SET_TIMED, Value::Inline(bytes)) => Set::read(split(bytes).1).next_deadline(),
            (TAG_ZSET_TIMED, Value::Inline(bytes)) => ZSet::read(split(bytes).1).next_deadline(),
            (_, Value::Object(Object::ZSet(zset))) => zset.of.next_deadline(),
            (_, Value::Object(Object::Hash(hash))) => hash.of.next_deadline(),
            (_, Value::Object(Object::Set(set))) => set.of.next_deadline(),
            _ => None,
        }
    }
}
