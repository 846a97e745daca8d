//! The funnel: all changes of data go through here. No other file can change entries.
//!
//! Each function does three things beside the change, so that no caller can forget them:
//!
//! 1. it counts the bytes,
//! 2. it lowers the published deadline,
//! 3. it tells the observers of the shard. Keyspace events are one. The observers are the bits of
//!    one number, which lies on a cache line that the change needs anyway: without observers the
//!    cost is one test.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use tidewheel_store::{Expired, KeyHasher, NewValue, Progress, Seen, Slot};

use super::{CHANGED, Database, Hold, NEVER};
use crate::events::{Cause, Event, NotifyClass, NotifyFlags};
use crate::key::{At, Key};
use crate::time::Now;
use crate::value::{self, Entries, Object};
use crate::waiters::Change;

mod awaited;
mod collections;
mod expired;
mod members;
mod prefetch;
mod snapshot;
mod tracking;

pub(crate) use self::members::{MemberExpiry, MemberExpiryOutcome, PendingEvent};

/// The observer that queues keyspace events, while any are configured.
const EVENTS: u16 = 1;
/// The observer that marks clients who watch a key, while any do.
const WATCHED: u16 = 1 << 1;
/// The observer that notes keys for which clients wait, while any do.
const AWAITED: u16 = 1 << 2;
/// The observer that finds out who has read a key, while tracking clients have.
const TRACKED: u16 = 1 << 3;
/// The observer that notes every key for clients that want to know, while there are any.
const BROADCASTS: u16 = 1 << 4;
/// The observer that has commands recorded.
const RECORDS: u16 = 1 << 5;
/// The observer that queues expired keys for a stream, while any is configured.
const EXPIRED: u16 = 1 << 6;
/// The observer that copies what changes, while a snapshot is taken.
const SNAPSHOT: u16 = 1 << 7;
/// The observer of tests.
#[cfg(test)]
const TEST_OBSERVER: u16 = 1 << 8;

/// A value as an entry stores it, and its deadline.
#[derive(Debug)]
pub(crate) struct Stored<'v> {
    pub(crate) tag: u8,
    pub(crate) value: NewValue<'v, Object>,
    pub(crate) deadline: Option<u64>,
}

impl Hold<'_> {
    /// Adds a key that does not exist, with its access history.
    #[inline]
    pub(crate) fn insert(&mut self, at: At<'_>, stored: Stored<'_>, access: u32, cause: Cause) {
        let At { key, db, tick } = at;
        let Stored {
            tag,
            value,
            deadline,
        } = stored;
        self.before(db, key.hash, None);
        let database = self.database(db);
        database.add_object(&value);
        let entries = &mut database.entries;
        let slot = entries.insert(key.hash, key.bytes, tag, value, deadline, tick);
        entries.set_access(slot, access);
        database.note_members_only(slot, tag);
        self.settle(db, slot, deadline);
        self.state.changes += 1;
        if self.state.observers != 0 {
            self.tell_new(db, key.bytes, cause);
        }
    }

    /// Replaces a key's type, value and deadline, if the entry need not move for that. False, and
    /// nothing is done, if it must.
    #[inline(always)]
    pub(crate) fn replace_in_place(
        &mut self,
        at: At<'_>,
        seen: &Seen,
        stored: &Stored<'_>,
        cause: Cause,
    ) -> bool {
        let At { key, db, tick } = at;
        let NewValue::Inline(bytes) = &stored.value else {
            return false;
        };
        // Deadlines of members count otherwise.
        if value::is_timed(seen.tag) || value::is_timed(stored.tag) {
            return false;
        }
        let (tag, deadline) = (stored.tag, stored.deadline);
        self.before(db, key.hash, Some(seen.slot));
        let entries = &mut self.database(db).entries;
        if !entries.overwrite(seen, tag, bytes, deadline, tick) {
            return false;
        }
        // It takes as many bytes as before, but for its timer.
        if seen.has_deadline() != deadline.is_some() {
            self.count_bytes(db);
        }
        if let Some(deadline) = deadline {
            self.note_deadline(db, seen.slot, deadline);
        }
        self.state.changes += 1;
        self.tell(db, key.bytes, cause);
        true
    }

    /// Replaces a key's type, value and deadline. Returns the old object.
    #[must_use]
    pub(crate) fn replace(
        &mut self,
        at: At<'_>,
        slot: Slot,
        stored: Stored<'_>,
        cause: Cause,
    ) -> Option<Object> {
        let At { key, db, tick } = at;
        let Stored {
            tag,
            value,
            deadline,
        } = stored;
        self.before(db, key.hash, Some(slot));
        let opened = self.opened_key(db, slot);
        let database = self.database(db);
        database.add_object(&value);
        database.forget_members_only(slot);
        let (slot, old) = database.entries.replace(slot, tag, value, deadline, tick);
        database.note_members_only(slot, tag);
        if let Some(old) = &old {
            database.object_bytes -= old.bytes();
        }
        let old = self.left(db, opened, old);
        self.settle(db, slot, deadline);
        self.state.changes += 1;
        self.tell(db, key.bytes, cause);
        old
    }

    /// Overwrites the bytes of a value that lies beside its key. False, and nothing is done, if the
    /// new value has another length or the old one lies elsewhere.
    #[inline]
    pub(crate) fn overwrite(
        &mut self,
        at: At<'_>,
        seen: &Seen,
        bytes: &[u8],
        cause: Cause,
    ) -> bool {
        let At { key, db, .. } = at;
        self.before(db, key.hash, Some(seen.slot));
        match self.database(db).entries.seen_bytes_mut(seen) {
            Some(old) if old.len() == bytes.len() => old.copy_from_slice(bytes),
            _ => return false,
        }
        self.state.changes += 1;
        self.tell(db, key.bytes, cause);
        true
    }

    /// Changes the bytes of a string object in place. `None` if the value is none.
    pub(crate) fn change_bytes<R>(
        &mut self,
        at: At<'_>,
        slot: Slot,
        cause: Cause,
        change: impl FnOnce(&mut Arc<Vec<u8>>) -> R,
    ) -> Option<R> {
        let At { key, db, .. } = at;
        self.before(db, key.hash, Some(slot));
        let database = self.database(db);
        let Object::Bytes(bytes) = database.entries.object_mut(slot)? else {
            return None;
        };
        let before = bytes.capacity();
        let result = change(bytes);
        let after = bytes.capacity();
        database.object_bytes = database.object_bytes + after - before;
        self.count_bytes(db);
        self.state.changes += 1;
        self.tell(db, key.bytes, cause);
        Some(result)
    }

    /// Gives a key a deadline, or takes it away.
    #[inline]
    pub(crate) fn set_deadline(
        &mut self,
        at: At<'_>,
        slot: Slot,
        deadline: Option<u64>,
        cause: Cause,
    ) {
        let At { key, db, tick } = at;
        self.before(db, key.hash, Some(slot));
        if value::is_timed(self.entries(db).tag(slot)) {
            self.set_own_deadline(db, slot, deadline, tick);
        } else {
            let entries = &mut self.database(db).entries;
            let slot = entries.set_deadline(slot, deadline, tick);
            self.settle(db, slot, deadline);
        }
        self.state.changes += 1;
        self.tell(db, key.bytes, cause);
    }

    /// Removes a key. Returns its object.
    #[must_use]
    pub(crate) fn remove(&mut self, at: At<'_>, slot: Slot, cause: Cause) -> Option<Object> {
        let At { key, db, .. } = at;
        let object = self.take_out(db, slot, key.hash);
        self.tell(db, key.bytes, cause);
        object
    }

    /// Removes a key whose deadline was reached, found by a command before a pass of expiry came to
    /// it.
    #[must_use]
    pub(crate) fn remove_dead(&mut self, at: At<'_>, slot: Slot) -> Option<Object> {
        self.state.counters.expired += 1;
        self.note_expired(at.db, slot, at.tick);
        self.remove(at, slot, Cause::Expired)
    }

    /// Removes an entry to free memory, and records that. Returns its object. One that is dead has
    /// expired.
    pub(crate) fn evict(&mut self, db: u32, slot: Slot, now: &Now) -> Option<Object> {
        let deadline = value::own_deadline(self.entries(db), slot);
        if deadline.is_some_and(|deadline| deadline <= now.tick) {
            return self.evict_dead(db, slot, now.tick);
        }
        self.state.counters.evicted += 1;
        let key = match self.state.observers {
            0 => Vec::new(),
            _ => self.entries(db).key(slot).to_vec(),
        };
        let hash = self.entries(db).hash(slot);
        let object = self.take_out(db, slot, hash);
        if self.state.observers & RECORDS != 0 {
            let words = [&b"DEL"[..], &key].into_iter();
            self.shard.shared.records.push(now, db, words);
        }
        self.tell(db, &key, Cause::Evicted);
        object
    }

    /// Removes what is due from a database, keys and members, at most about `budget` units of work;
    /// `sink` gets each deadline, and each object. Leaves publishing the shard's bound to the
    /// caller.
    pub(crate) fn expire(
        &mut self,
        db: u32,
        now: &Now,
        budget: u32,
        mut sink: impl FnMut(Option<u64>, Option<Object>),
    ) -> Progress {
        self.tell_pending();
        let observed = self.observes(Cause::Expired);
        let mut gone: Vec<Box<[u8]>> = Vec::new();
        let mut notes = self.expired_notes(db, now.tick);
        let mut freed = 0;
        let mut handed = Vec::new();
        let database = self.database(db);
        let (entries, snapshot) = (&mut database.entries, &mut database.snapshot);
        let remove = |expired: Expired<'_, Object>| {
            freed += expired.object.as_ref().map_or(0, Object::bytes);
            if let Some(notes) = &mut notes {
                notes.add(&expired);
            }
            let object = match (snapshot.as_mut(), expired.object) {
                (Some(part), Some(object)) if part.has_opened(expired.key) => {
                    part.left(expired.key, object);
                    None
                }
                (_, object) => object,
            };
            sink(Some(expired.deadline), object);
            if observed {
                gone.push(expired.key.into());
            }
        };
        let mut progress =
            entries.expire_or_hand_back(now.tick, budget, value::is_timed, remove, &mut handed);
        database.object_bytes -= freed;
        let due = &mut self.state.due[db as usize];
        *due = if progress.backlog {
            // Work is left: due at once.
            (*due).min(now.tick)
        } else {
            progress.next_deadline.unwrap_or(NEVER)
        };
        let keys = progress.fired - handed.len() as u32;
        self.state.counters.expired += u64::from(keys);
        self.state.changes += u64::from(keys);
        self.count_bytes(db);
        if observed {
            self.tell_expired(db, gone);
        }
        if let Some(notes) = notes {
            self.queue_expired(db, notes);
        }
        if !handed.is_empty() {
            let left = budget.saturating_sub(keys).max(1);
            let (members, backlog) = self.expire_handed(db, &handed, now, left, &mut sink);
            progress.fired = keys + members;
            progress.backlog |= backlog;
        }
        progress
    }

    /// True if a database's bound has been reached.
    #[inline]
    pub(crate) fn is_due(&self, db: u32, now: &Now) -> bool {
        now.reached(self.state.due[db as usize])
    }

    /// Takes all entries out of a database, with their bytes; `None` if it holds nothing. Leaves
    /// publishing the shard's bound to the caller.
    pub(crate) fn flush(&mut self, db: u32, hasher: &KeyHasher) -> Option<(Entries, usize)> {
        self.tell_pending();
        self.forget_tracked();
        let database = self.database(db);
        // A database without keys may still hold the memory that it had grown to.
        if database.bytes() == 0 {
            return None;
        }
        if self.state.observers & WATCHED != 0 {
            self.mark_watched_in(db, &[db]);
        }
        let database = self.database(db);
        let (counted_bytes, bytes) = (database.counted_bytes, database.bytes());
        let fresh = Database {
            counted_bytes,
            ..Database::new(hasher)
        };
        let Database {
            entries, snapshot, ..
        } = std::mem::replace(database, fresh);
        self.state.due[db as usize] = NEVER;
        self.state.changes += entries.len() as u64;
        self.count_bytes(db);
        self.note_changed();
        if self.state.observers & AWAITED != 0 {
            self.note_all_awaited(db);
        }
        #[cfg(test)]
        self.record_flush(db, &entries);
        Self::emptied(snapshot, entries).map(|entries| (entries, bytes))
    }

    /// Swaps two databases.
    pub(crate) fn swap(&mut self, first: u32, second: u32) {
        // What has happened is told under the numbers that the databases had then.
        self.tell_pending();
        self.forget_tracked();
        if self.state.observers & WATCHED != 0 {
            self.mark_watched_in(first, &[first, second]);
            self.mark_watched_in(second, &[first, second]);
        }
        let (first_at, second_at) = (first as usize, second as usize);
        self.state.databases.swap(first_at, second_at);
        self.state.due.swap(first_at, second_at);
        self.note_changed();
        if self.state.observers & AWAITED != 0 {
            self.note_all_awaited(first);
            self.note_all_awaited(second);
        }
        #[cfg(test)]
        self.record_swap(first, second);
    }

    /// Queues an event that is no change by itself, if it is wanted.
    #[inline]
    pub(crate) fn announce(&mut self, key: Key<'_>, db: u32, cause: Cause) {
        if self.state.observers & EVENTS != 0 {
            self.queue_event(db, key.bytes, cause);
        }
    }

    /// Follows a change of the keyspace events that are wanted.
    pub(crate) fn observe_events(&mut self) {
        if self.shard.shared.notify_flags() == NotifyFlags::NONE {
            self.state.observers &= !EVENTS;
        } else {
            self.state.observers |= EVENTS;
        }
    }

    /// Marks `changed` when a key changes.
    pub(crate) fn watch(&mut self, db: u32, key: Key<'_>, since: u64, changed: &Arc<AtomicBool>) {
        self.state
            .watched
            .get_or_insert_default()
            .add(db, key, since, changed);
        self.state.observers |= WATCHED;
    }

    /// Undoes a [`watch`](Self::watch).
    pub(crate) fn unwatch(&mut self, db: u32, key: &[u8], changed: &Arc<AtomicBool>) {
        let Some(watched) = &mut self.state.watched else {
            return;
        };
        if watched.remove(db, key, changed) {
            self.state.watched = None;
            self.state.observers &= !WATCHED;
        }
    }

    /// The watched keys of a database that are in one of these databases have changed. One that was
    /// dead already when it was watched is in none.
    #[cold]
    fn mark_watched_in(&self, db: u32, databases: &[u32]) {
        let Some(watched) = &self.state.watched else {
            return;
        };
        watched.mark_where(db, |hash, key, since| {
            let is_in = |db: &u32| {
                let seen = self.entries(*db).look(hash, key);
                seen.is_some_and(|seen| !seen.is_due(since))
            };
            databases.iter().any(is_in)
        });
    }

    #[inline(always)]
    fn database(&mut self, db: u32) -> &mut Database {
        &mut self.state.databases[db as usize]
    }

    fn take_out(&mut self, db: u32, slot: Slot, hash: u64) -> Option<Object> {
        self.before(db, hash, Some(slot));
        let opened = self.opened_key(db, slot);
        let database = self.database(db);
        database.forget_members_only(slot);
        let object = database.entries.remove_hashed(slot, hash);
        if let Some(object) = &object {
            database.object_bytes -= object.bytes();
        }
        self.state.changes += 1;
        self.count_bytes(db);
        self.left(db, opened, object)
    }

    /// Publishes what a change did to the shard: its bytes and its earliest deadline.
    #[inline]
    fn settle(&mut self, db: u32, slot: Slot, deadline: Option<u64>) {
        self.count_bytes(db);
        if let Some(deadline) = deadline {
            self.note_deadline(db, slot, deadline);
        }
    }

    /// Without observers, a change costs this one test.
    #[inline]
    fn tell(&mut self, db: u32, key: &[u8], cause: Cause) {
        if self.state.observers != 0 {
            self.tell_observers(db, key, cause);
        }
    }

    #[cold]
    fn tell_new(&mut self, db: u32, key: &[u8], cause: Cause) {
        if self.state.observers & EVENTS != 0 {
            self.shard.shared.records.promise();
            self.queue_event(db, key, Cause::New);
        }
        self.tell_observers(db, key, cause);
    }

    #[cold]
    fn tell_observers(&mut self, db: u32, key: &[u8], cause: Cause) {
        if self.state.observers & EVENTS != 0 {
            if !cause.is_by_itself() {
                self.shard.shared.records.promise();
            }
            self.queue_event(db, key, cause);
        }
        if let Some(watched) = &self.state.watched {
            watched.mark(db, key);
        }
        if self.state.observers & AWAITED != 0 {
            self.note_awaited(db, key, cause.change());
        }
        if self.state.observers & (TRACKED | BROADCASTS) != 0 {
            self.note_invalid(key, cause.is_by_itself());
        }
        if !cause.is_by_itself() {
            self.note_changed();
        }
        #[cfg(test)]
        self.record_key(db, key);
    }

    /// A command has changed something, which it records before it unlocks.
    fn note_changed(&mut self) {
        if self.state.observers & RECORDS != 0 {
            self.state.after |= CHANGED;
        }
    }

    /// Has changes recorded from now on, or no longer.
    pub(crate) fn observe_records(&mut self, on: bool) {
        match on {
            true => self.state.observers |= RECORDS,
            false => self.state.observers &= !RECORDS,
        }
    }

    /// Says whether records are replayed here, each at its own time.
    pub(crate) fn set_replays(&mut self, replays: bool) {
        self.state.replays = replays;
    }

    /// True if an observer wants to be told of a change with that cause.
    fn observes(&self, cause: Cause) -> bool {
        let others = self.state.observers & !(EVENTS | EXPIRED | RECORDS | SNAPSHOT) != 0;
        others || self.state.observers & EVENTS != 0 && self.wants(cause).is_some()
    }

    /// Locks the queue once for all keys.
    #[cold]
    fn tell_expired(&mut self, db: u32, keys: Vec<Box<[u8]>>) {
        #[cfg(test)]
        keys.iter().for_each(|key| self.record_key(db, key));
        if let Some(watched) = &self.state.watched {
            keys.iter().for_each(|key| watched.mark(db, key));
        }
        if self.state.observers & AWAITED != 0 {
            (keys.iter()).for_each(|key| self.note_awaited(db, key, Change::Any));
        }
        if self.state.observers & (TRACKED | BROADCASTS) != 0 {
            keys.iter().for_each(|key| self.note_invalid(key, true));
        }
        if self.state.observers & EVENTS != 0
            && let Some((class, name)) = self.wants(Cause::Expired)
        {
            let events = keys.into_iter().map(|key| Event {
                db,
                class,
                name,
                key,
            });
            self.shard.shared.events.push(events);
        }
    }

    #[cold]
    fn queue_event(&mut self, db: u32, key: &[u8], cause: Cause) {
        if let Some((class, name)) = self.wants(cause) {
            let key = key.into();
            let event = Event {
                db,
                class,
                name,
                key,
            };
            self.shard.shared.events.push([event]);
        }
    }

    /// The event's class and name, if it goes anywhere.
    fn wants(&self, cause: Cause) -> Option<(NotifyClass, &'static str)> {
        let flags = self.shard.shared.notify_flags();
        cause.event().filter(|(class, _)| flags.wants(*class))
    }
}

impl Database {
    fn add_object(&mut self, value: &NewValue<'_, Object>) {
        if let NewValue::Object(object) = value {
            self.object_bytes += object.bytes();
        }
    }
}

/// The observer of tests records the keys of all changes.
#[cfg(test)]
#[derive(Debug, Default)]
pub(super) struct TestObserver(std::collections::BTreeSet<(u32, Vec<u8>)>);

#[cfg(test)]
mod tests;
