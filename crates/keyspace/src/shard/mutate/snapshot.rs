//! The funnel's part in snapshots: what changes is copied before.

use tidewheel_store::Slot;

use super::{Database, Hold, SNAPSHOT};
use crate::key::At;
use crate::snapshot::{MovedWalk, Part, Stays};
use crate::value::{Entries, Object};

impl Hold<'_> {
    /// Begins a snapshot of a database.
    pub(crate) fn begin_part(&mut self, db: u32, part: Part) {
        let database = self.database(db);
        if let Some(mut last) = database.snapshot.replace(Box::new(part)) {
            // It has failed, and not every loop has seen that.
            last.give_up(&mut database.entries);
        }
        self.state.observers |= SNAPSHOT;
    }

    /// Goes on with it. `None` if nothing of the shard is to be shown.
    pub(crate) fn walk_part(&mut self, count: usize) -> Option<Stays> {
        let mut stays = None;
        for database in &mut self.state.databases {
            let Some(part) = &mut database.snapshot else {
                continue;
            };
            match part.walk(&mut database.entries, count) {
                // It may wait for another database.
                Stays::Waits => stays = Some(Stays::Waits),
                Stays::More => return Some(Stays::More),
                Stays::Done => {
                    database.snapshot = None;
                    // There may be another database.
                    return Some(Stays::More);
                }
            }
        }
        if stays.is_none() {
            self.state.observers &= !SNAPSHOT;
        }
        stays
    }

    /// An entry is about to come, to change, or to go.
    #[inline(always)]
    pub(super) fn before(&mut self, db: u32, hash: u64, slot: Option<Slot>) {
        if self.state.observers & SNAPSHOT != 0 {
            self.keep(db, hash, slot);
        }
    }

    #[cold]
    fn keep(&mut self, db: u32, hash: u64, slot: Option<Slot>) {
        let database = self.database(db);
        if let Some(part) = &mut database.snapshot {
            part.before(hash, &mut database.entries, slot);
        }
    }

    /// Bytes that an entry's collection keeps for the snapshot.
    #[inline(always)]
    pub(super) fn kept_bytes(&mut self, db: u32, slot: Slot) -> usize {
        match self.state.observers & SNAPSHOT {
            0 => 0,
            _ => self.walk_bytes(db, slot),
        }
    }

    /// Counts them again; `before`: they were so many.
    #[inline(always)]
    pub(super) fn count_kept(&mut self, db: u32, slot: Slot, before: usize) {
        if self.state.observers & SNAPSHOT != 0 {
            let after = self.walk_bytes(db, slot);
            if let Some(part) = &self.database(db).snapshot {
                part.count_kept(before, after);
            }
        }
    }

    #[cold]
    fn walk_bytes(&mut self, db: u32, slot: Slot) -> usize {
        let object = self.database(db).entries.object_mut(slot);
        let walked = object.and_then(Object::walked);
        walked.map_or(0, |walked| walked.walk_bytes())
    }

    /// The key of an entry that is about to leave, if its collection is shown member by member.
    #[inline(always)]
    pub(super) fn opened_key(&self, db: u32, slot: Slot) -> Option<Box<[u8]>> {
        match self.state.observers & SNAPSHOT {
            0 => None,
            _ => self.find_opened_key(db, slot),
        }
    }

    #[cold]
    fn find_opened_key(&self, db: u32, slot: Slot) -> Option<Box<[u8]>> {
        let database = &self.state.databases[db as usize];
        let (part, key) = (database.snapshot.as_ref()?, database.entries.key(slot));
        part.has_opened(key).then(|| key.into())
    }

    /// The object of an entry that has left, unless the snapshot has it from now on.
    #[inline(always)]
    pub(super) fn left(
        &mut self,
        db: u32,
        opened: Option<Box<[u8]>>,
        object: Option<Object>,
    ) -> Option<Object> {
        match opened {
            None => object,
            Some(key) => self.hand_to_snapshot(db, &key, object),
        }
    }

    #[cold]
    fn hand_to_snapshot(&mut self, db: u32, key: &[u8], object: Option<Object>) -> Option<Object> {
        match (&mut self.database(db).snapshot, object) {
            (Some(part), Some(object)) => {
                part.left(key, object);
                None
            }
            (_, object) => object,
        }
    }

    /// An entry is about to move to another key or database, with its object. Returns the walk over
    /// its members, if they are shown one by one.
    pub(crate) fn before_move(&mut self, at: At<'_>, slot: Slot) -> Option<MovedWalk> {
        self.before(at.db, at.key.hash, Some(slot));
        let key = self.opened_key(at.db, slot)?;
        self.database(at.db).snapshot.as_mut()?.let_go(&key)
    }

    /// An entry has come to its new key: the walk goes on there.
    pub(crate) fn after_move(&mut self, at: At<'_>, walk: MovedWalk) {
        self.state.observers |= SNAPSHOT;
        let Database {
            entries, snapshot, ..
        } = self.database(at.db);
        if let Some(mut last) = snapshot.take_if(|part| !part.is_of(&walk)) {
            last.give_up(entries);
        }
        Part::take_in(snapshot, at.key.bytes, walk);
    }

    /// The entries of a database that is emptied, unless the snapshot has them from now on.
    pub(super) fn emptied(part: Option<Box<Part>>, entries: Entries) -> Option<Entries> {
        match part {
            None => Some(entries),
            Some(part) => {
                part.emptied(entries);
                None
            }
        }
    }
}
