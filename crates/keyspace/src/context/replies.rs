//! Writes stored values into replies. Large values are copied and dropped without the lock.

use std::ops::Range;
use std::sync::Arc;

use tidewheel_resp::Writer;
use tidewheel_store::{Seen, Slot, Value};

use super::locks::place_of;
use super::{Context, Key, Lookup};
use crate::claims::Blocked;
use crate::error::CommandError;
use crate::garbage::Garbage;
use crate::value::{self, Entries, LARGE, Object};

/// Large values: work before locking and after unlocking.
#[derive(Debug, Default)]
pub(crate) struct LargeValues {
    /// Arguments that were copied before locking: (argument, object).
    pub(super) prepared: Vec<(usize, Object)>,
    /// Places in the reply that are filled after unlocking.
    holes: Vec<Hole>,
    /// The number of holes that earlier commands of the transaction left.
    carried: usize,
    /// The bytes that the holes will add to the reply.
    hole_bytes: usize,
    /// Objects to drop after unlocking.
    pub(super) garbage: Vec<Object>,
    /// Stores to drop when others may go on, and whether the client waits for that.
    stores: Option<(Garbage, bool)>,
}

/// Bytes that a value takes in the reply beside its own.
const HEAD: usize = 16;

/// A large value's place in the reply.
#[derive(Debug)]
struct Hole {
    mark: usize,
    bytes: Arc<Vec<u8>>,
    range: Range<usize>,
}

impl LargeValues {
    /// Leaves a place in the reply, unless the reply would exceed its limit.
    fn dig(&mut self, out: &mut Writer, bytes: Arc<Vec<u8>>, range: Range<usize>) {
        let hole_bytes = self.hole_bytes.saturating_add(range.len() + HEAD);
        if out.admits(hole_bytes) {
            self.hole_bytes = hole_bytes;
            let mark = out.mark();
            self.holes.push(Hole { mark, bytes, range });
        }
    }

    /// Forgets the places that the running command has left. Those of earlier commands stay: the
    /// last of them may be where this command's reply began.
    fn forget_new_holes(&mut self) {
        self.holes.truncate(self.carried);
        let bytes = |hole: &Hole| hole.range.len() + HEAD;
        self.hole_bytes = self.holes.iter().map(bytes).sum();
    }
}

impl Context<'_, '_> {
    /// Replies with a part of a stored string. A large part is copied after unlocking.
    #[inline]
    pub(crate) fn reply_bytes(
        &mut self,
        key: Key<'_>,
        slot: Slot,
        range: Option<Range<usize>>,
    ) -> Result<(), CommandError> {
        let db = self.session.db;
        // Field by field, so that the store and the reply are borrowed at once.
        let hold = match &self.one {
            Some(guard) => guard,
            None => place_of(&mut self.many, &mut self.last, key.shard),
        };
        match value::string(hold.entries(db), slot)? {
            Value::Inline(bytes) => match range {
                None => self.out.bulk(bytes),
                Some(range) => self.out.bulk(&bytes[range]),
            },
            Value::Object(Object::Bytes(bytes)) => {
                let range = range.unwrap_or(0..bytes.len());
                if range.len() <= LARGE {
                    self.out.bulk(&bytes[range]);
                } else {
                    let large = self.large.get_or_insert_default();
                    large.dig(self.out, Arc::clone(bytes), range);
                }
            }
            Value::Object(_) => unreachable!("its type was looked at"),
        }
        Ok(())
    }

    /// Replies with a key's string, or nil. Returns whether there is one.
    ///
    /// Nearly all strings lie beside their key: they are written to the reply while the look-up has
    /// them at hand.
    #[inline(always)]
    pub(crate) fn reply_string(&mut self, key: Key<'_>) -> Result<bool, CommandError> {
        let (tick, db) = (self.now.tick, self.session.db);
        // Field by field, so that the store and the reply are borrowed at once.
        let hold = match &self.one {
            Some(guard) => guard,
            None => place_of(&mut self.many, &mut self.last, key.shard),
        };
        let entries = hold.entries(db);
        let Some(seen) = entries.look(key.hash, key.bytes) else {
            self.missed(key, Lookup::Read);
            self.out.null();
            return Ok(false);
        };
        match entries.seen_bytes(&seen) {
            Some(bytes) if value::is_string(seen.tag) && !seen.is_due(tick) => self.out.bulk(bytes),
            _ => return self.reply_seen(key, seen),
        }
        self.note_found(key, Lookup::Read, seen);
        Ok(true)
    }

    /// As [`reply_string`](Self::reply_string), of an entry that is something else than a short
    /// string that lives.
    #[inline(never)]
    fn reply_seen(&mut self, key: Key<'_>, seen: Seen) -> Result<bool, CommandError> {
        let seen = if seen.is_due(self.now.tick) {
            self.look_at_due(key, Lookup::Read, seen)
        } else {
            self.note_found(key, Lookup::Read, seen);
            Some(seen)
        };
        match seen {
            Some(seen) => self.reply_bytes(key, seen.slot, None)?,
            None => self.out.null(),
        }
        Ok(seen.is_some())
    }

    /// Releases a shared string after unlocking. If its key is gone, that frees it.
    pub(crate) fn let_go(&mut self, bytes: Arc<Vec<u8>>) {
        self.large().garbage.push(Object::Bytes(bytes));
    }

    /// Has whole stores dropped when others may go on; right here if `at_once`.
    pub(crate) fn drop_stores(&mut self, stores: Garbage, at_once: bool) {
        if stores.parts() > 0 {
            self.large().stores = Some((stores, at_once));
        }
    }

    /// Replies with an error, in place of what the handler has written since `mark`.
    #[cold]
    pub(crate) fn refuse(&mut self, mark: usize, error: &CommandError) {
        if let Some(large) = &mut self.large {
            large.forget_new_holes();
        }
        self.out.truncate(mark);
        error.write(self.out);
    }

    /// Ends a command that could not run, as if it had not begun.
    #[cold]
    pub(crate) fn give_up(&mut self, mark: usize, blocked: Blocked) -> Blocked {
        if let Some(large) = &mut self.large {
            large.forget_new_holes();
        }
        self.out.truncate(mark);
        self.finish();
        blocked
    }

    /// Unlocks. Then copies large replies and drops large values, which must not happen under a
    /// lock.
    #[inline(always)]
    pub(crate) fn finish(&mut self) {
        self.unlock();
        if let Some(large) = self.large.take() {
            self.finish_large(*large);
        }
    }

    /// Takes over the work for after unlocking of earlier commands of the transaction.
    pub(crate) fn carry(&mut self, mut large: Option<Box<LargeValues>>) {
        if let Some(large) = &mut large {
            large.carried = large.holes.len();
        }
        self.large = large;
    }

    /// Hands over the work for after unlocking. Arguments that were copied and not stored are
    /// garbage.
    pub(crate) fn carry_on(&mut self) -> Option<Box<LargeValues>> {
        let mut large = self.large.take()?;
        let copied = std::mem::take(&mut large.prepared);
        large
            .garbage
            .extend(copied.into_iter().map(|(_, object)| object));
        Some(large)
    }

    /// True if nothing is left that would have to be dropped.
    pub(crate) fn is_finished(&self) -> bool {
        self.one.is_none() && self.many.capacity() == 0 && self.large.is_none()
    }

    #[cold]
    fn finish_large(&mut self, large: LargeValues) {
        let mut garbage = large.garbage;
        if !large.holes.is_empty() {
            self.fill_holes(large.holes, large.hole_bytes, &mut garbage);
        }
        // A value that was copied and not stored (SET NX) is as large.
        garbage.extend(large.prepared.into_iter().map(|(_, object)| object));
        self.keyspace.discard(garbage);
        match large.stores {
            Some((stores, true)) => drop(stores),
            Some((stores, false)) => self.keyspace.hooks.reclaim(stores),
            None => {}
        }
    }

    /// Copies large replies now, under the locks of a script that reads them.
    #[cold]
    pub(crate) fn answer_large(&mut self) {
        if let Some(mut large) = self.large.take() {
            let holes = std::mem::take(&mut large.holes);
            let bytes = std::mem::take(&mut large.hole_bytes);
            self.fill_holes(holes, bytes, &mut large.garbage);
            large.carried = 0;
            self.large = Some(large);
        }
    }

    fn fill_holes(&mut self, holes: Vec<Hole>, bytes: usize, garbage: &mut Vec<Object>) {
        let Some(first) = holes.first().map(|hole| hole.mark) else {
            return;
        };
        if !self.out.reserve(bytes) {
            garbage.extend(holes.into_iter().map(|hole| Object::Bytes(hole.bytes)));
            return;
        }
        let rest = self.out.as_bytes()[first..].to_vec();
        self.out.truncate(first);
        let mut written = first;
        for hole in holes {
            self.out.raw(&rest[written - first..hole.mark - first]);
            written = hole.mark;
            self.out.bulk(&hole.bytes[hole.range]);
            // If the key is gone by now, this is the last owner.
            garbage.push(Object::Bytes(hole.bytes));
        }
        self.out.raw(&rest[written - first..]);
    }

    /// Visits the entries of the session's database in the one shard that is locked, as long as
    /// `visit` returns true.
    pub(crate) fn visit_entries(
        &mut self,
        cursor: u32,
        mut visit: impl FnMut(&mut Writer, &Entries, Slot) -> bool,
    ) -> Option<u32> {
        let Some(guard) = &self.one else {
            unreachable!("the caller has locked one shard")
        };
        let entries = guard.entries(self.session.db);
        let out = &mut *self.out;
        entries.scan_while(cursor, |slot| visit(out, entries, slot))
    }

    pub(super) fn large(&mut self) -> &mut LargeValues {
        self.large.get_or_insert_default()
    }
}
