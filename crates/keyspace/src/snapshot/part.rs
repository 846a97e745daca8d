//! One database's part in a snapshot, in one shard: what was walked over, and what is kept of the
//! rest.

use std::collections::HashMap;
use std::io;
use std::mem;
use std::sync::Arc;

use tidewheel_collections::{CopiedMembers, Course, Walked};
use tidewheel_store::Slot;

use super::batch::Batch;
use super::channel::{Emptied, Item, Shared, SnapshotFailure};
use super::output::{Head, Opened};
use crate::planted::forgets_before;
use crate::value::{Entries, Object};

/// Bytes of copies that are handed over at once.
const PORTION: usize = 64 << 10;

/// Members that are walked over at once.
const MEMBERS: usize = 64;

/// Says whether a part has more to show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stays {
    /// It goes on at once.
    More,
    /// Another one shows members now, or the thread that writes is behind.
    Waits,
    /// All is shown.
    Done,
}

/// A database's part in a snapshot.
#[derive(Debug)]
pub(crate) struct Part {
    /// The database's number at the first instant.
    db: u32,
    /// The tick of the first instant.
    tick: u64,
    course: Course,
    /// Copies that are not handed over yet.
    batch: Batch,
    /// The collections whose members are shown at the end, by the keys that they have now.
    opened: HashMap<Box<[u8]>, Opened>,
    /// The one of them whose members are being shown.
    shown: Option<Box<[u8]>>,
    /// Its members that are not handed over yet.
    members: CopiedMembers,
    shared: Arc<Shared>,
}

/// The walk over a collection that moves to another key.
#[derive(Debug)]
pub(crate) struct MovedWalk {
    /// With the key and the database that it had at the first instant.
    opened: Opened,
    is_shown: bool,
    /// Its members that are not handed over yet.
    members: CopiedMembers,
    shared: Arc<Shared>,
}

impl Part {
    pub(super) fn new(db: u32, tick: u64, shared: &Arc<Shared>) -> Self {
        Self {
            db,
            tick,
            course: Course::default(),
            batch: Batch::default(),
            opened: HashMap::new(),
            shown: None,
            members: CopiedMembers::default(),
            shared: Arc::clone(shared),
        }
    }

    /// Something with that hash is about to come, to change or to go.
    pub(crate) fn before(&mut self, hash: u64, entries: &mut Entries, slot: Option<Slot>) {
        if !self.shared.may_keep() || forgets_before() {
            return;
        }
        let before = self.course.bytes();
        if !self.course.claim(hash) {
            return;
        }
        self.shared.count_kept(before, self.course.bytes());
        if let Some(slot) = slot {
            self.copy(entries, slot, true);
            self.hand_over_portion();
        }
    }

    /// Copies an entry, or opens its collection. If it `changes`, what is shared with it counts as
    /// kept.
    fn copy(&mut self, entries: &mut Entries, slot: Slot, changes: bool) {
        if let Some(object) = entries.object_mut(slot)
            && object.members() >= self.shared.limits.members_at_once
            && let Some(members) = object.walked()
        {
            members.begin_walk();
            let (len, earliest) = (object.members() as u64, object.next_deadline());
            let key: Box<[u8]> = entries.key(slot).into();
            let opened = Opened {
                db: self.db,
                key: Box::clone(&key),
                head: Head::of(entries, slot),
                len,
                earliest,
            };
            self.opened.insert(key, opened);
            return;
        }
        self.batch.push(entries, slot, self.tick, changes);
    }

    fn hand_over_portion(&mut self) {
        if self.batch.bytes() >= PORTION {
            self.hand_over();
        }
    }

    fn hand_over(&mut self) {
        if !self.batch.is_empty() {
            let batch = mem::take(&mut self.batch);
            self.shared.send(Item::Entries(self.db, batch));
        }
    }

    fn hand_over_members(&mut self) {
        if self.members.count() > 0 {
            let members = mem::take(&mut self.members);
            self.shared.send(Item::Members(members));
        }
    }

    /// True if it is of the same snapshot as a walk. One that has failed may not have seen that
    /// yet.
    pub(crate) fn is_of(&self, walk: &MovedWalk) -> bool {
        Arc::ptr_eq(&self.shared, &walk.shared)
    }

    /// True if a key's collection is shown member by member.
    pub(crate) fn has_opened(&self, key: &[u8]) -> bool {
        self.opened.contains_key(key)
    }

    /// A collection that was opened leaves its key for good.
    pub(crate) fn left(&mut self, key: &[u8], mut object: Object) {
        if let Some(walked) = object.walked() {
            self.shared.count_kept(walked.walk_bytes(), 0);
        }
        self.end(key, object);
    }

    /// A collection that was opened is about to move to another key. Its walk goes with it.
    pub(crate) fn let_go(&mut self, key: &[u8]) -> Option<MovedWalk> {
        let opened = self.opened.remove(key)?;
        let is_shown = self.shown.as_deref() == Some(key);
        let mut members = CopiedMembers::default();
        if is_shown {
            self.shown = None;
            members = mem::take(&mut self.members);
        }
        Some(MovedWalk {
            opened,
            is_shown,
            members,
            shared: Arc::clone(&self.shared),
        })
    }

    /// A collection that was opened elsewhere has come to a key. `part` is that of its database, if
    /// there is one; if all is shown there, one comes for this collection alone.
    pub(crate) fn take_in(part: &mut Option<Box<Self>>, key: &[u8], walk: MovedWalk) {
        let MovedWalk {
            opened,
            is_shown,
            members,
            shared,
        } = walk;
        let part = part.get_or_insert_with(|| {
            shared.add_part();
            let mut part = Self::new(opened.db, shared.tick, &shared);
            part.course.go_to(None);
            Box::new(part)
        });
        part.opened.insert(key.into(), opened);
        if is_shown {
            part.shown = Some(key.into());
            part.members = members;
        }
    }

    fn end(&mut self, key: &[u8], rest: Object) {
        let Some(opened) = self.opened.remove(key) else {
            return;
        };
        let has_begun = self.shown.as_deref() == Some(key);
        if has_begun {
            self.hand_over_members();
        }
        self.shared.send(Item::Left {
            opened,
            has_begun,
            rest,
        });
        if has_begun {
            self.shown = None;
            self.shared.end_turn();
        }
    }

    /// The database is emptied: the thread goes on with its entries.
    pub(crate) fn emptied(mut self, entries: Entries) {
        self.hand_over();
        self.hand_over_members();
        let shared = Arc::clone(&self.shared);
        let has_turn = self.shown.is_some();
        if self.course.cursor().is_some() {
            // They come as a whole, and are no copies.
            shared.end_entries();
        }
        let part = self;
        shared.send(Item::Emptied(Box::new(EmptiedDatabase { part, entries })));
        if has_turn {
            shared.end_turn();
        }
        shared.end_part();
    }

    /// Walks on over about `count` entries, or some members of a collection.
    pub(crate) fn walk(&mut self, entries: &mut Entries, count: usize) -> Stays {
        if self.shared.failure().is_some() {
            self.give_up(entries);
            return Stays::Done;
        }
        if self.shared.is_full() {
            return Stays::Waits;
        }
        if let Some(cursor) = self.course.cursor() {
            self.walk_entries(entries, cursor, count);
            self.hand_over_portion();
            if self.course.cursor().is_none() {
                self.shared.end_entries();
            }
            return Stays::More;
        }
        self.hand_over();
        if self.opened.is_empty() {
            self.shared.end_part();
            return Stays::Done;
        }
        if self.shown.is_none() {
            if !self.shared.take_turn() {
                return Stays::Waits;
            }
            self.begin_members();
        }
        self.walk_members(entries);
        Stays::More
    }

    fn walk_entries(&mut self, entries: &mut Entries, cursor: u32, count: usize) {
        let mut slots = Vec::with_capacity(count + 8);
        let free = self.course.is_free();
        let mut walked = 0;
        let next = entries.scan(cursor, count, |slot| {
            walked += 1;
            slots.push(slot);
        });
        slots.iter().for_each(|slot| entries.warm(*slot));
        for slot in slots {
            if free || !self.course.passes_over(entries.hash(slot)) {
                self.copy(entries, slot, false);
            }
        }
        let before = self.course.bytes();
        self.course.go_to(next);
        self.shared.count_kept(before, self.course.bytes());
        self.shared.count_walked(walked);
    }

    fn begin_members(&mut self) {
        if let Some((key, opened)) = self.opened.iter().next() {
            self.shown = Some(Box::clone(key));
            self.shared.send(Item::Begin(opened.clone()));
        }
    }

    fn walk_members(&mut self, entries: &mut Entries) {
        let Some(key) = self.shown.take() else {
            return;
        };
        let hash = entries.hasher().hash(&key);
        let slot = entries.find(hash, &key);
        let object = slot.and_then(|slot| entries.object_mut(slot));
        let Some(walked) = object.and_then(Object::walked) else {
            debug_assert!(false, "it would have left");
            return self.shared.fail(SnapshotFailure::Confused);
        };
        let before = walked.walk_bytes();
        self.members.append(&walked.take_kept());
        let more = walked.walk_on(MEMBERS, &mut self.members);
        self.shared.count_kept(before, walked.walk_bytes());
        if more {
            self.shown = Some(key);
            if self.members.bytes() >= PORTION {
                self.hand_over_members();
            }
            return;
        }
        walked.end_walk();
        self.hand_over_members();
        self.shared.send(Item::End);
        self.opened.remove(&key);
        self.shared.end_turn();
    }

    /// Counts what an opened collection keeps for its walk.
    pub(crate) fn count_kept(&self, before: usize, after: usize) {
        self.shared.count_kept(before, after);
    }

    /// There will be no file: nothing of the walk stays.
    pub(crate) fn give_up(&mut self, entries: &mut Entries) {
        for key in self.opened.keys() {
            let slot = entries.find(entries.hasher().hash(key), key);
            let object = slot.and_then(|slot| entries.object_mut(slot));
            if let Some(walked) = object.and_then(Object::walked) {
                walked.end_walk();
            }
        }
        if self.shown.take().is_some() {
            self.shared.end_turn();
        }
    }

    /// Shows all that is left of a database that was emptied, to the thread that writes.
    fn show_rest(
        &mut self,
        entries: &mut Entries,
        show: &mut dyn FnMut(Item) -> io::Result<()>,
    ) -> io::Result<()> {
        if let Some(key) = self.shown.take()
            && let Some(opened) = self.opened.remove(&key)
        {
            show(Item::Left {
                opened,
                has_begun: true,
                rest: take_rest(entries, &key)?,
            })?;
        }
        while let Some(cursor) = self.course.cursor() {
            self.walk_entries(entries, cursor, 1 << 10);
            let batch = mem::take(&mut self.batch);
            show(Item::Entries(self.db, batch))?;
        }
        for (key, opened) in mem::take(&mut self.opened) {
            show(Item::Left {
                opened,
                has_begun: false,
                rest: take_rest(entries, &key)?,
            })?;
        }
        Ok(())
    }
}

/// A database that was emptied, and its part.
#[derive(Debug)]
struct EmptiedDatabase {
    part: Part,
    entries: Entries,
}

impl Emptied for EmptiedDatabase {
    fn shows_members(&self) -> bool {
        self.part.shown.is_some()
    }

    fn show(mut self: Box<Self>, to: &mut dyn FnMut(Item) -> io::Result<()>) -> io::Result<()> {
        let Self { part, entries } = &mut *self;
        part.show_rest(entries, to)
    }
}

fn take_rest(entries: &mut Entries, key: &[u8]) -> io::Result<Object> {
    let slot = entries.find(entries.hasher().hash(key), key);
    let object = slot.and_then(|slot| entries.remove(slot));
    object.ok_or_else(|| io::Error::other("an opened collection is not there"))
}

impl Object {
    /// The members of a large collection, for a walk.
    pub(crate) fn walked(&mut self) -> Option<&mut dyn Walked> {
        match self {
            Self::Hash(owned) => owned.of.walked(),
            Self::Set(owned) => owned.of.walked(),
            Self::ZSet(owned) => owned.of.walked(),
            Self::Bytes(_) | Self::List(_) | Self::Stream(_) => None,
        }
    }
}
