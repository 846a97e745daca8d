//! The large form of hashes and sets: the members are the keys of a small store.
//!
//! The store brings all that a large collection needs: an index that grows in steps, a scan that
//! meets each member that stays, a wheel for the deadlines, pages that go back. A hash keeps a
//! value with each key; a set keeps none.

use tidewheel_store::{Expired, INLINE_MAX, KeyHasher, NewValue, Progress, Slot, Store, Value};

use crate::change::NewDeadline;
use crate::packed::{DEADLINE_MAX, PackedRef};
use crate::random::Selection;
use crate::walk::{CopiedMembers, Walk, Walked};

/// Entries that a walk asks the memory for ahead of its visits.
const AHEAD: usize = 16;

/// The members of a large hash or set.
#[derive(Debug)]
pub struct Table {
    entries: Store<Box<[u8]>>,
    /// Bytes of the values that are too long for a block.
    long_values: usize,
    /// The latest deadline that a member was ever given.
    latest: u64,
    /// The walk of a snapshot, while there is one.
    walk: Walk,
}

/// A member of a hash or a set, and what belongs to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry<'a> {
    /// The member: the field of a hash.
    pub key: &'a [u8],
    /// The value of a hash's field; empty in a set.
    pub value: &'a [u8],
    /// The member's deadline in ticks (ms).
    pub deadline: Option<u64>,
}

impl Table {
    pub(crate) fn new(hasher: &KeyHasher) -> Self {
        Self {
            entries: Store::new(hasher.clone()),
            long_values: 0,
            latest: 0,
            walk: Walk::default(),
        }
    }

    /// The members of a packed collection, with their deadlines.
    pub(crate) fn unpack(packed: PackedRef<'_>, hasher: &KeyHasher, now: u64) -> Self {
        let mut table = Self::new(hasher);
        for member in packed.iter() {
            let hash = hasher.hash(member.first);
            table.add(hash, member.first, member.second, member.deadline, now);
        }
        table
    }

    /// A table with the same members, deadlines included. O(members).
    pub(crate) fn copy(&self, now: u64) -> Self {
        self.copy_of(self.slots_by_place(), now)
    }

    fn copy_of(&self, slots: Vec<Slot>, now: u64) -> Self {
        let mut copy = Self::new(self.entries.hasher());
        for entry in slots.into_iter().map(|slot| self.entry(slot)) {
            let hash = self.entries.hasher().hash(entry.key);
            copy.add(hash, entry.key, entry.value, entry.deadline, now);
        }
        copy
    }

    /// All slots in the order in which the entries lie in memory.
    fn slots_by_place(&self) -> Vec<Slot> {
        let mut slots = Vec::with_capacity(self.len());
        let end = self.entries.scan(0, usize::MAX, |slot| slots.push(slot));
        debug_assert!(end.is_none(), "a scan of everything ends");
        slots.sort_unstable_by_key(|slot| slot.to_bits());
        slots
    }

    /// Visits all members in an order that their hashes do not make: so they may go into another
    /// table. In the order of their hashes each would search its place behind all those before it,
    /// as long as the table there is small.
    pub(crate) fn for_each_by_place<'a>(&'a self, visit: impl FnMut(Entry<'a>)) {
        let slots = self.slots_by_place().into_iter();
        slots.map(|slot| self.entry(slot)).for_each(visit);
    }

    /// Removes so many random members, and shows each to `look` before. `bits` gives 64 random bits
    /// at each call. The others move to memory of their own: O(members), so it is for a count that
    /// is most of them.
    pub(crate) fn keep_few(
        &mut self,
        gone: usize,
        now: u64,
        mut bits: impl FnMut() -> u64,
        mut look: impl FnMut(Entry<'_>),
    ) {
        let mut kept = Vec::with_capacity(self.len().saturating_sub(gone));
        let (walks, mut left) = (self.walk.is_on(), Vec::new());
        let mut selection = Selection {
            left: self.len(),
            wanted: gone,
        };
        self.for_each_slot(|slot| {
            if selection.takes(&mut bits) {
                look(self.entry(slot));
                left.extend(walks.then_some(slot));
            } else {
                kept.push(slot);
            }
        });
        left.into_iter().for_each(|slot| self.keep(slot));
        kept.sort_unstable_by_key(|slot| slot.to_bits());
        let walk = std::mem::take(&mut self.walk);
        *self = Self {
            walk,
            ..self.copy_of(kept, now)
        };
    }

    /// Keeps a member for the walk before it changes.
    #[inline]
    fn keep(&mut self, slot: Slot) {
        if self.walk.is_on() {
            let Self { entries, walk, .. } = self;
            let (key, deadline) = (entries.key(slot), entries.deadline(slot));
            walk.keep(entries.hash(slot), key, value_of(entries, slot), deadline);
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Members that have a deadline.
    pub(crate) fn timed(&self) -> usize {
        self.entries.timed()
    }

    /// Returns whether the deadlines of all members are known to be at or before `now`. O(1).
    pub(crate) fn is_over(&self, now: u64) -> bool {
        self.len() == 0 || self.timed() == self.len() && self.latest <= now
    }

    /// Heap bytes, those of the table itself included. O(1).
    pub(crate) fn bytes(&self) -> usize {
        size_of::<Self>() + self.entries.held_bytes() + self.long_values
    }

    fn find_hashed(&self, hash: u64, key: &[u8]) -> Option<Slot> {
        self.entries.find(hash, key)
    }

    #[inline]
    pub(crate) fn find(&self, key: &[u8]) -> Option<Slot> {
        self.find_hashed(self.entries.hasher().hash(key), key)
    }

    pub(crate) fn key(&self, slot: Slot) -> &[u8] {
        self.entries.key(slot)
    }

    pub(crate) fn value(&self, slot: Slot) -> &[u8] {
        value_of(&self.entries, slot)
    }

    pub(crate) fn deadline(&self, slot: Slot) -> Option<u64> {
        self.entries.deadline(slot)
    }

    pub(crate) fn entry(&self, slot: Slot) -> Entry<'_> {
        Entry {
            key: self.key(slot),
            value: self.value(slot),
            deadline: self.deadline(slot),
        }
    }

    pub(crate) fn next_deadline(&self) -> Option<u64> {
        self.entries.next_deadline()
    }

    pub(crate) fn for_each_slot(&self, mut visit: impl FnMut(Slot)) {
        // The entries lie scattered: each is asked for while those before it are visited.
        let (mut ahead, mut at) = ([None; AHEAD], 0);
        let end = self.entries.scan(0, usize::MAX, |slot| {
            self.entries.warm(slot);
            ahead[at].replace(slot).into_iter().for_each(&mut visit);
            at = (at + 1) % AHEAD;
        });
        debug_assert!(end.is_none(), "a scan of everything ends");
        let (last, first) = ahead.split_at(at);
        first.iter().chain(last).flatten().copied().for_each(visit);
    }

    pub(crate) fn for_each<'a>(&'a self, mut visit: impl FnMut(Entry<'a>)) {
        self.for_each_slot(|slot| visit(self.entry(slot)));
    }

    /// Visits at least `count` members from `cursor` on; returns the next cursor, or 0 at the end.
    pub(crate) fn scan<'a>(
        &'a self,
        cursor: u64,
        count: usize,
        mut visit: impl FnMut(Entry<'a>),
    ) -> u64 {
        // A cursor of somebody's invention is at the end.
        let Ok(cursor) = u32::try_from(cursor) else {
            return 0;
        };
        let next = self
            .entries
            .scan(cursor, count.max(1), |slot| visit(self.entry(slot)));
        next.map_or(0, u64::from)
    }

    pub(crate) fn random(&self, bits: u64) -> Option<Slot> {
        self.entries.sample(bits)
    }

    /// Writes a member; returns whether it is new.
    pub(crate) fn insert(
        &mut self,
        key: &[u8],
        value: &[u8],
        deadline: NewDeadline,
        now: u64,
    ) -> bool {
        let hash = self.entries.hasher().hash(key);
        match self.find_hashed(hash, key) {
            Some(slot) => {
                let deadline = deadline.over(self.deadline(slot));
                self.overwrite(slot, value, deadline, now);
                false
            }
            None => {
                self.add(hash, key, value, deadline.over(None), now);
                true
            }
        }
    }

    fn add(&mut self, hash: u64, key: &[u8], value: &[u8], deadline: Option<u64>, now: u64) {
        let value = self.stored(value);
        let deadline = self.noted(deadline);
        self.walk.claim(hash);
        self.entries.insert(hash, key, 0, value, deadline, now);
    }

    fn overwrite(&mut self, slot: Slot, value: &[u8], deadline: Option<u64>, now: u64) {
        self.keep(slot);
        let value = self.stored(value);
        let deadline = self.noted(deadline);
        let (_, old) = self.entries.replace(slot, 0, value, deadline, now);
        self.long_values -= old.map_or(0, |old| old.len());
    }

    /// A deadline as the store takes it.
    fn noted(&mut self, deadline: Option<u64>) -> Option<u64> {
        let deadline = deadline.map(representable);
        self.latest = self.latest.max(deadline.unwrap_or(0));
        deadline
    }

    /// A value as the store takes it.
    fn stored<'v>(&mut self, value: &'v [u8]) -> NewValue<'v, Box<[u8]>> {
        if value.len() <= INLINE_MAX {
            return NewValue::Inline(value);
        }
        self.long_values += value.len();
        NewValue::Object(value.into())
    }

    pub(crate) fn set_deadline(&mut self, slot: Slot, deadline: Option<u64>, now: u64) {
        self.keep(slot);
        let deadline = self.noted(deadline);
        self.entries.set_deadline(slot, deadline, now);
    }

    pub(crate) fn remove(&mut self, slot: Slot) {
        self.keep(slot);
        let old = self.entries.remove(slot);
        self.long_values -= old.map_or(0, |old| old.len());
    }

    pub(crate) fn expire(
        &mut self,
        now: u64,
        budget: u32,
        mut sink: impl FnMut(Entry<'_>),
    ) -> Progress {
        let Self {
            entries,
            long_values,
            walk,
            ..
        } = self;
        let hasher = walk.is_on().then(|| entries.hasher().clone());
        entries.expire(now, budget, |gone: Expired<'_, Box<[u8]>>| {
            let long = gone.object.as_deref();
            *long_values -= long.map_or(0, <[u8]>::len);
            let entry = Entry {
                key: gone.key,
                value: long.or(gone.inline()).unwrap_or_default(),
                deadline: Some(gone.deadline),
            };
            // It is among those that the walk has counted.
            if let Some(hasher) = &hasher {
                let hash = hasher.hash(entry.key);
                walk.keep(hash, entry.key, entry.value, entry.deadline);
            }
            sink(entry);
        })
    }

    pub(crate) fn maintain(&mut self, budget: u32) -> bool {
        self.entries.maintain(budget)
    }

    pub(crate) fn validate(&self) {
        self.entries.validate();
        let mut long = 0;
        self.for_each(|entry| {
            long += Some(entry.value.len())
                .filter(|len| *len > INLINE_MAX)
                .unwrap_or(0);
        });
        assert_eq!(long, self.long_values, "bytes of long values");
        self.for_each(|entry| assert!(entry.deadline.unwrap_or(0) <= self.latest));
    }
}

impl Walked for Table {
    fn begin_walk(&mut self) {
        self.walk.begin();
    }

    fn walk_on(&mut self, count: usize, into: &mut CopiedMembers) -> bool {
        let Self { entries, walk, .. } = self;
        walk.go_on(entries, count, |slot| value_of(entries, slot), into)
    }

    fn take_kept(&mut self) -> CopiedMembers {
        self.walk.take_kept()
    }

    fn walk_bytes(&self) -> usize {
        self.walk.bytes()
    }

    fn end_walk(&mut self) {
        self.walk.end();
    }
}

fn value_of(entries: &Store<Box<[u8]>>, slot: Slot) -> &[u8] {
    match entries.value(slot) {
        Value::Inline(value) => value,
        Value::Object(value) => value,
    }
}

/// Both forms end at the same tick.
fn representable(deadline: u64) -> u64 {
    deadline.min(DEADLINE_MAX)
}
