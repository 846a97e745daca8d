//! Reads and changes a key's collection.

use tidewheel_collections::{Change, Limits};
use tidewheel_resp::Writer;
use tidewheel_store::Slot;

use super::locks::place_of;
use super::{Context, Key, Lookup};
use crate::error::CommandError;
use crate::events::Cause;
use crate::key::At;
use crate::packing::PackedLimit;
use crate::random::Random;
use crate::value::collection::{self, Collection};

impl<'a> Context<'a, '_> {
    /// Finds a living key in the session's database, which holds a collection of that type.
    #[inline]
    pub(crate) fn find_of<C: Collection>(
        &mut self,
        key: Key<'_>,
        lookup: Lookup,
    ) -> Result<Option<Slot>, CommandError> {
        match self.see(key, lookup) {
            None => Ok(None),
            Some(seen) if collection::is::<C>(seen.tag) => Ok(Some(seen.slot)),
            Some(_) => Err(CommandError::WRONG_TYPE),
        }
    }

    /// Calls `read` with a key's collection, if there is one, and the reply.
    #[inline]
    pub(crate) fn read<C: Collection, R>(
        &mut self,
        key: Key<'_>,
        lookup: Lookup,
        read: impl FnOnce(Option<C::Ref<'_>>, &mut Writer) -> R,
    ) -> Result<R, CommandError> {
        let seen = self.see(key, lookup);
        let db = self.session.db;
        // Field by field, so that the store and the reply are borrowed at once.
        let hold = match &self.one {
            Some(guard) => guard,
            None => place_of(&mut self.many, &mut self.last, key.shard),
        };
        let found = match &seen {
            Some(seen) => Some(collection::read_seen::<C>(hold.entries(db), seen)?),
            None => None,
        };
        Ok(read(found, self.out))
    }

    /// Changes a key's collection, or a new one if there is none: `slot` is what
    /// [`find_of`](Self::find_of) has found. `change` returns the event of what it has done; `None`
    /// if it has changed nothing. It gets the reply too. A collection without members leaves with
    /// its key.
    #[inline]
    pub(crate) fn edit<C: Collection, R>(
        &mut self,
        key: Key<'_>,
        slot: Option<Slot>,
        change: impl FnOnce(&mut C, &mut Writer) -> (R, Option<Cause>),
    ) -> R {
        let (db, tick) = (self.session.db, self.now.tick);
        let at = At { key, db, tick };
        let access = self.recency().of_new(self.now.time.tick);
        let hold = match &mut self.one {
            Some(guard) => guard,
            None => place_of(&mut self.many, &mut self.last, key.shard),
        };
        let out = &mut *self.out;
        let changed = hold.edit(at, slot, access, |of: &mut C| change(of, out));
        if let Some(garbage) = changed.garbage {
            self.drop_object(garbage);
        }
        changed.result
    }

    /// Puts a collection under a key in the session's database, in place of the old value. An empty
    /// one removes the key. Returns how many members it has.
    pub(crate) fn put<C: Collection>(&mut self, key: Key<'_>, result: C, cause: Cause) -> usize {
        let len = result.len();
        if let Some(slot) = self.find_at(key, self.session.db) {
            let why = if len == 0 { Cause::Del } else { Cause::Silent };
            self.remove(key, slot, why);
        }
        if len > 0 {
            self.edit(key, None, |of: &mut C, _| {
                *of = result;
                ((), Some(cause))
            });
        }
        len
    }

    /// The parameters of a change of a collection with such limits.
    pub(crate) fn change(&self, limit: PackedLimit) -> Change<'a> {
        let integers = &self.keyspace.rules().packing.intset_entries;
        let integers = integers.load(std::sync::atomic::Ordering::Relaxed);
        Change {
            now: self.now.tick,
            limits: Limits {
                entries: limit.entries as usize,
                value: limit.value as usize,
                integers: usize::try_from(integers).unwrap_or(usize::MAX),
            },
            hasher: &self.keyspace.hasher,
        }
    }

    /// Random numbers for one command.
    pub(crate) fn random(&mut self, key: Key<'_>) -> Random {
        Random::new(self.hold(key.shard).random.next())
    }

    /// The key's own deadline, in the session's database.
    #[inline]
    pub(crate) fn deadline(&mut self, key: Key<'_>, slot: Slot) -> Option<u64> {
        crate::value::own_deadline(self.entries(key), slot)
    }
}
