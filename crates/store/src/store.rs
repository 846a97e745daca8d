//! One shard of bytes: blocks hold the entries, the index finds them, the wheel says when they end.

use tidewheel_timer::{Forecast, HierarchicalWheel, Progress, Timer, TimerQueue, Timers};

use crate::blocks::Blocks;
use crate::entry::{self, Form};
use crate::hasher::KeyHasher;
use crate::index::{Elsewhere, Index};
use crate::objects::Objects;

/// The most value bytes that are kept beside the key.
pub const INLINE_MAX: usize = 2048;

/// Where an entry is. Valid until the next call that takes `&mut self`. Some of those calls return the entry's new
/// slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot(pub(crate) u32);

/// What a look-up reads of an entry anyway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// Where it is.
    pub slot: Slot,
    /// Its deadline in ticks (ms); `None` when it has none.
    pub deadline: Option<u64>,
    /// The caller's 24 bits of access history.
    pub access: u32,
}

impl Seen {
    #[inline(always)]
    fn of(id: u32, block: &[u8]) -> Self {
        Self {
            slot: Slot(id),
            deadline: entry::deadline(block),
            access: entry::access(block),
        }
    }
}

/// A stored value.
#[derive(Debug)]
pub enum Value<'a, O> {
    /// Bytes stored beside the key.
    Inline(&'a [u8]),
    /// The caller's object.
    Object(&'a O),
}

/// A value to store.
#[derive(Debug)]
pub enum NewValue<'a, O> {
    /// At most [`INLINE_MAX`] bytes, copied beside the key.
    Inline(&'a [u8]),
    /// An object, kept outside the block.
    Object(O),
}

/// An entry that its deadline removed.
#[derive(Debug)]
pub struct Expired<'a, O> {
    /// Its key.
    pub key: &'a [u8],
    /// Its deadline, in ticks (milliseconds).
    pub deadline: u64,
    /// The caller's tag.
    pub tag: u8,
    /// Its object, for the caller to drop.
    pub object: Option<O>,
}

/// One shard of expiring data. See the [crate](crate) for a tour.
#[derive(Debug)]
pub struct Store<O> {
    blocks: Blocks,
    index: Index,
    wheel: HierarchicalWheel,
    objects: Objects<O>,
    hasher: KeyHasher,
    timed: usize,
    /// Where on the retired page the evacuation goes on.
    evacuated_to: u32,
    /// A copy of an entry while it gets another layout.
    scratch: Vec<u8>,
}

impl Timers for Blocks {
    #[inline]
    fn timer(&self, id: u32) -> Option<Timer> {
        entry::timer(self.check(id)?)
    }

    #[inline]
    fn set_registration(&mut self, id: u32, registration: u32) {
        entry::set_registration(self.start_mut(id), registration);
    }
}

impl<O> Store<O> {
    /// An empty store. `hasher` must be the one that the callers' hashes come from.
    #[must_use]
    pub fn new(hasher: KeyHasher) -> Self {
        Self {
            blocks: Blocks::new(),
            index: Index::new(),
            wheel: HierarchicalWheel::new(0),
            objects: Objects::new(),
            hasher,
            timed: 0,
            evacuated_to: 0,
            scratch: Vec::new(),
        }
    }

    /// Entries stored, dead ones that are not yet removed included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// Whether nothing is stored.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.index.len() == 0
    }

    /// Entries that have a deadline.
    #[must_use]
    pub fn timed(&self) -> usize {
        self.timed
    }

    /// Bytes in use: blocks of entries, the index, timer records. Objects are the caller's to count.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.blocks.live_bytes() + self.index.bytes() + self.timed * 9
    }

    /// Heap bytes held: what is in use and the gaps between.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.blocks.held_bytes() + self.index.bytes() + self.wheel.bytes()
    }

    /// Finds a key, dead or alive. `hash` is the hasher's hash of the key. O(1).
    #[inline]
    #[must_use]
    pub fn find(&self, hash: u64, key: &[u8]) -> Option<Slot> {
        self.look(hash, key).map(|seen| seen.slot)
    }

    /// As [`find`](Self::find), with what most callers read next.
    #[inline]
    #[must_use]
    pub fn look(&self, hash: u64, key: &[u8]) -> Option<Seen> {
        let mut found: &[u8] = &[];
        let holds = |id| {
            let block = self.holding(id, key);
            found = block.unwrap_or_default();
            block.is_some()
        };
        match self.index.find(hash as u32, holds) {
            Ok(id) => Some(Seen::of(id, found)),
            Err(Elsewhere::Nowhere) => None,
            Err(Elsewhere::Crowd) => self.look_crowded(hash, key),
        }
    }

    #[cold]
    fn look_crowded(&self, hash: u64, key: &[u8]) -> Option<Seen> {
        let holds = |id| self.holding(id, key).is_some();
        let id = self.index.find_crowded(hash as u32, holds)?;
        Some(Seen::of(id, self.blocks.start(id)))
    }

    /// The bytes of an entry if it has this key.
    #[inline(always)]
    fn holding(&self, id: u32, key: &[u8]) -> Option<&[u8]> {
        let block = self.blocks.start(id);
        let layout = entry::layout(block);
        let is = layout.key_len == key.len() && &block[layout.key_at..layout.value_at()] == key;
        is.then_some(block)
    }

    /// The entry's key.
    #[inline]
    #[must_use]
    pub fn key(&self, slot: Slot) -> &[u8] {
        let block = self.blocks.start(slot.0);
        let layout = entry::layout(block);
        &block[layout.key_at..layout.value_at()]
    }

    /// The hash of the entry's key.
    #[must_use]
    pub fn hash(&self, slot: Slot) -> u64 {
        self.hasher.hash(self.key(slot))
    }

    /// The entry's value.
    #[inline]
    #[must_use]
    pub fn value(&self, slot: Slot) -> Value<'_, O> {
        self.tagged(slot).1
    }

    /// The caller's tag and the entry's value.
    #[inline]
    #[must_use]
    pub fn tagged(&self, slot: Slot) -> (u8, Value<'_, O>) {
        let block = self.blocks.start(slot.0);
        let layout = entry::layout(block);
        let bytes = &block[layout.value_at()..layout.value_at() + layout.value_len];
        let value = if entry::is_object(block) {
            Value::Object(self.objects.get(object_number(bytes)))
        } else {
            Value::Inline(bytes)
        };
        (entry::tag(block), value)
    }

    /// The entry's inline bytes for change in place (the length stays); `None` for an object.
    pub fn inline_mut(&mut self, slot: Slot) -> Option<&mut [u8]> {
        let block = self.blocks.start_mut(slot.0);
        if entry::is_object(block) {
            return None;
        }
        let layout = entry::layout(block);
        Some(&mut block[layout.value_at()..layout.value_at() + layout.value_len])
    }

    /// The entry's object for change in place; `None` for inline bytes.
    pub fn object_mut(&mut self, slot: Slot) -> Option<&mut O> {
        let number = self.object_of(slot)?;
        Some(self.objects.get_mut(number))
    }

    /// The caller's tag (0–15).
    #[inline]
    #[must_use]
    pub fn tag(&self, slot: Slot) -> u8 {
        entry::tag(self.blocks.start(slot.0))
    }

    /// The entry's deadline in ticks (ms); `None` when it has none.
    #[inline]
    #[must_use]
    pub fn deadline(&self, slot: Slot) -> Option<u64> {
        entry::deadline(self.blocks.start(slot.0))
    }

    /// The caller's 24 bits of access history.
    #[inline]
    #[must_use]
    pub fn access(&self, slot: Slot) -> u32 {
        entry::access(self.blocks.start(slot.0))
    }

    /// Sets the 24 bits of access history.
    #[inline]
    pub fn set_access(&mut self, slot: Slot, access: u32) {
        entry::set_access(self.blocks.start_mut(slot.0), access);
    }

    /// Adds a key that [`find`](Self::find) does not find, with an access history of 0. O(1).
    ///
    /// # Panics
    ///
    /// When inline bytes are longer than [`INLINE_MAX`], or the tag is above 15.
    pub fn insert(
        &mut self,
        hash: u64,
        key: &[u8],
        tag: u8,
        value: NewValue<'_, O>,
        deadline: Option<u64>,
        now: u64,
    ) -> Slot {
        let form = Form::of(deadline);
        let id = self.write_new(key, tag, 0, form, value);
        self.index.insert(hash as u32, id);
        if let Some(deadline) = deadline {
            self.timed += 1;
            self.start_timer(id, deadline, now);
        }
        Slot(id)
    }

    /// Replaces tag, value and deadline; keeps key and access history. The entry may move: use the
    /// slot that comes back. Returns the old object, if there was one. O(1).
    ///
    /// # Panics
    ///
    /// As [`insert`](Self::insert).
    pub fn replace(
        &mut self,
        slot: Slot,
        tag: u8,
        value: NewValue<'_, O>,
        deadline: Option<u64>,
        now: u64,
    ) -> (Slot, Option<O>) {
        let id = slot.0;
        if let NewValue::Inline(bytes) = &value
            && self.overwrite(slot, tag, bytes, deadline)
        {
            return (self.set_deadline(slot, deadline, now), None);
        }
        let old_object = self
            .object_of(slot)
            .map(|number| self.objects.remove(number));
        let block = self.blocks.block_mut(id);
        // Nearly the same length: the new bytes go where the old ones were.
        if let (NewValue::Inline(bytes), None) = (&value, &old_object)
            && entry::form(block).holds(deadline)
        {
            let layout = entry::layout(block);
            if entry::resize_value(block, &layout, bytes.len()) {
                let at = layout.value_at();
                // If the block has become twice as large as needed, the entry gets another one, below.
                let fits = Blocks::rounded(at + bytes.len()) * 2 > block.len();
                if fits {
                    block[at..at + bytes.len()].copy_from_slice(bytes);
                    entry::set_tag(block, tag);
                    return (self.set_deadline(slot, deadline, now), None);
                }
                entry::resize_value(block, &entry::layout(block), layout.value_len);
            }
        }
        let mut key = std::mem::take(&mut self.scratch);
        key.clear();
        key.extend_from_slice(self.key(slot));
        let access = self.access(slot);
        self.stop_timer(id);
        let place = self.place(&key);
        self.blocks.release(id);
        let new = self.write_new(&key, tag, access, Form::of(deadline), value);
        self.index.replace(place, id, new);
        key.shrink_to(4096);
        self.scratch = key;
        if let Some(deadline) = deadline {
            self.timed += 1;
            self.start_timer(new, deadline, now);
        }
        (Slot(new), old_object)
    }

    /// Overwrites the value with one of the same length, if the entry has room for the deadline too.
    #[inline]
    fn overwrite(&mut self, slot: Slot, tag: u8, bytes: &[u8], deadline: Option<u64>) -> bool {
        let block = self.blocks.start_mut(slot.0);
        if entry::is_object(block) || !entry::form(block).holds(deadline) {
            return false;
        }
        let layout = entry::layout(block);
        if layout.value_len != bytes.len() {
            return false;
        }
        block[layout.value_at()..layout.value_at() + bytes.len()].copy_from_slice(bytes);
        entry::set_tag(block, tag);
        true
    }

    /// Gives the entry a deadline, moves it, or takes it away. The entry may move. O(1).
    pub fn set_deadline(&mut self, slot: Slot, deadline: Option<u64>, now: u64) -> Slot {
        let id = slot.0;
        let block = self.blocks.start(id);
        let old = entry::timer(block);
        if !entry::form(block).holds(deadline) {
            return self.widen(slot, deadline, now);
        }
        match (old, deadline) {
            (Some(old), Some(deadline)) => {
                if old.deadline != deadline {
                    self.wheel
                        .reschedule(&mut self.blocks, id, old, deadline, now);
                    entry::set_deadline(self.blocks.start_mut(id), Some(deadline));
                }
            }
            (Some(_), None) => self.stop_timer(id),
            (None, Some(deadline)) => {
                self.timed += 1;
                self.start_timer(id, deadline, now);
            }
            (None, None) => {}
        }
        slot
    }

    /// Removes an entry; its object, if it had one, is the caller's to drop. O(1).
    pub fn remove(&mut self, slot: Slot) -> Option<O> {
        self.remove_hashed(slot, self.hash(slot))
    }

    /// As [`remove`](Self::remove), if the hash of the entry's key is known.
    pub fn remove_hashed(&mut self, slot: Slot, hash: u64) -> Option<O> {
        let object = self
            .object_of(slot)
            .map(|number| self.objects.remove(number));
        self.stop_timer(slot.0);
        let found = self.index.remove(hash as u32, slot.0);
        debug_assert!(found, "an entry is in the index");
        self.blocks.release(slot.0);
        object
    }

    /// Removes the entries whose deadline is at or before `now`, and shows each to `sink`, in the order of their
    /// deadlines. Touches at most `budget` timer records.
    pub fn expire(
        &mut self,
        now: u64,
        budget: u32,
        mut sink: impl FnMut(Expired<'_, O>),
    ) -> Progress {
        let Self {
            blocks,
            index,
            wheel,
            objects,
            hasher,
            timed,
            ..
        } = self;
        wheel.advance(blocks, now, budget, |blocks, due| {
            // Where each is in the index, and where its key begins and ends.
            let mut places = [(0, 0, 0); 16];
            // First find all buckets, so that their cache misses overlap; then remove.
            let mut warmth = 0;
            for (place, &id) in places.iter_mut().zip(due) {
                let block = blocks.start(id);
                let layout = entry::layout(block);
                let (from, to) = (layout.key_at, layout.value_at());
                *place = (hasher.hash(&block[from..to]) as u32, from, to);
                warmth ^= index.touch(place.0);
            }
            std::hint::black_box(warmth);
            for (&(place, from, to), &id) in places.iter().zip(due) {
                let found = index.remove(place, id);
                debug_assert!(found, "an entry is in the index");
                let block = blocks.start(id);
                let object =
                    entry::is_object(block).then(|| objects.remove(object_number(&block[to..])));
                sink(Expired {
                    key: &block[from..to],
                    deadline: entry::deadline(block).unwrap_or(now),
                    tag: entry::tag(block),
                    object,
                });
                *timed -= 1;
                blocks.release(id);
            }
        })
    }

    /// A lower bound of the earliest deadline, never later than it; `None` when nothing has one.
    #[inline]
    #[must_use]
    pub fn next_deadline(&self) -> Option<u64> {
        self.wheel.next_deadline()
    }

    /// Adds the registered deadlines to the windows of `forecast`: see [`Forecast`].
    pub fn forecast(&self, now: u64, forecast: &mut Forecast) {
        self.wheel.forecast(now, forecast);
    }

    /// Visits entries in the order of their hashes, from `cursor` on: at least `count`, or all up to the end. Returns
    /// the cursor of the next call; `None` at the end. An entry that is there from the first call to the last is
    /// visited exactly once. Cost: the entries visited, and the buckets between them.
    pub fn scan(&self, cursor: u32, count: usize, mut visit: impl FnMut(Slot)) -> Option<u32> {
        self.index.scan(cursor, count, |id| visit(Slot(id)))
    }

    /// As [`scan`](Self::scan), until `visit` returns false. It still visits the few entries that a cursor cannot
    /// separate from the last one.
    pub fn scan_while(&self, cursor: u32, mut visit: impl FnMut(Slot) -> bool) -> Option<u32> {
        self.index.scan_while(cursor, |id| visit(Slot(id)))
    }

    /// An entry near a random place; `None` when the store is empty. `random` is 64 random bits.
    #[must_use]
    pub fn sample(&self, random: u64) -> Option<Slot> {
        self.index.sample(random).map(Slot)
    }

    /// Visits some of the entries that have a deadline, in no order, until `visit` returns false. They are those of at
    /// most 15 times `chunks` timer records, from chunk number `from` on. Behind the last chunk comes the first again:
    /// calls whose `from` grows by `chunks` visit every such entry that stays.
    pub fn sample_timed(&self, from: u32, chunks: u32, mut visit: impl FnMut(Slot) -> bool) {
        self.wheel
            .sample(&self.blocks, from, chunks, |id| visit(Slot(id)));
    }

    /// Tidies: moves entries off sparse pages and drops dead timer records. Does about `budget` units of work at most,
    /// and returns whether more is worth doing.
    pub fn maintain(&mut self, budget: u32) -> bool {
        let records = self.wheel.maintain(&mut self.blocks, budget / 8 + 1);
        for _ in 0..budget {
            let page = match self.blocks.retired() {
                Some(page) => page,
                None => {
                    self.evacuated_to = 0;
                    match self.blocks.sparse_page() {
                        Some(page) => page,
                        None => return records,
                    }
                }
            };
            let Some(id) = self.blocks.live_on(page, self.evacuated_to) else {
                // All entries have left the page, or the page was freed with its last one.
                return true;
            };
            self.evacuated_to = Blocks::offset(id);
            self.move_block(id);
        }
        true
    }

    /// Frees the memory that an empty store keeps for its next entries. Returns false, and does nothing, if there is an
    /// entry, or no such memory.
    pub fn give_back(&mut self) -> bool {
        let gives = self.is_empty() && self.bytes() > 0;
        if gives {
            *self = Self::new(self.hasher.clone());
        }
        gives
    }

    /// Panics if the structure is broken. O(n).
    pub fn validate(&self) {
        self.blocks.validate();
        self.index.validate();
        self.wheel.validate(&self.blocks);
        let mut timed = 0;
        let mut objects = 0;
        let mut len = 0;
        let end = self.scan(0, usize::MAX, |slot| {
            len += 1;
            timed += usize::from(self.deadline(slot).is_some());
            objects += usize::from(entry::is_object(self.blocks.block(slot.0)));
            let hash = self.hasher.hash(self.key(slot));
            assert_eq!(
                self.find(hash, self.key(slot)),
                Some(slot),
                "an entry is not found"
            );
        });
        assert!(
            end.is_none() && len == self.len(),
            "a scan of everything visits everything"
        );
        assert_eq!(timed, self.timed, "entries with a deadline");
        assert_eq!(self.wheel.len(), timed, "a timer has outlived its entry");
        assert_eq!(objects, self.objects.len(), "objects");
    }

    fn place(&self, key: &[u8]) -> u32 {
        self.hasher.hash(key) as u32
    }

    fn object_of(&self, slot: Slot) -> Option<u32> {
        let block = self.blocks.start(slot.0);
        entry::is_object(block).then(|| object_number(&block[entry::layout(block).value_at()..]))
    }

    fn write_new(
        &mut self,
        key: &[u8],
        tag: u8,
        access: u32,
        form: Form,
        value: NewValue<'_, O>,
    ) -> u32 {
        assert!(tag < 16, "a tag has four bits");
        let value_len = match &value {
            NewValue::Inline(bytes) => Some(bytes.len()),
            NewValue::Object(_) => None,
        };
        assert!(
            value_len.is_none_or(|len| len <= INLINE_MAX),
            "a long value must be an object"
        );
        let id = self
            .blocks
            .allocate(entry::bytes(form, key.len(), value_len));
        let block = self.blocks.block_mut(id);
        let at = entry::write(block, tag, access, form, key, value_len);
        match value {
            NewValue::Inline(bytes) => block[at..at + bytes.len()].copy_from_slice(bytes),
            NewValue::Object(object) => {
                let number = self.objects.insert(object);
                block[at..at + 4].copy_from_slice(&number.to_le_bytes());
            }
        }
        id
    }

    /// Starts the timer of an entry that has room for a deadline and none at present.
    fn start_timer(&mut self, id: u32, deadline: u64, now: u64) {
        self.wheel.insert(&mut self.blocks, id, deadline, now);
        entry::set_deadline(self.blocks.start_mut(id), Some(deadline));
    }

    fn stop_timer(&mut self, id: u32) {
        if let Some(old) = entry::timer(self.blocks.start(id)) {
            self.wheel.cancel(&mut self.blocks, id, old);
            entry::set_deadline(self.blocks.start_mut(id), None);
            self.timed -= 1;
        }
    }

    /// Copies an entry into a block with room for the deadline.
    fn widen(&mut self, slot: Slot, deadline: Option<u64>, now: u64) -> Slot {
        let id = slot.0;
        self.stop_timer(id);
        let mut old = std::mem::take(&mut self.scratch);
        old.clear();
        old.extend_from_slice(self.blocks.block(id));
        self.blocks.release(id);

        let layout = entry::layout(&old);
        let key = &old[layout.key_at..layout.value_at()];
        let value = &old[layout.value_at()..layout.value_at() + layout.value_len];
        let value_len = (!entry::is_object(&old)).then_some(value.len());
        let form = Form::of(deadline);
        let new = self
            .blocks
            .allocate(entry::bytes(form, key.len(), value_len));
        let block = self.blocks.block_mut(new);
        let at = entry::write(
            block,
            entry::tag(&old),
            entry::access(&old),
            form,
            key,
            value_len,
        );
        block[at..at + value.len()].copy_from_slice(value);
        self.index.replace(self.place(key), id, new);
        old.shrink_to(4096);
        self.scratch = old;
        if let Some(deadline) = deadline {
            self.timed += 1;
            self.start_timer(new, deadline, now);
        }
        Slot(new)
    }

    /// Copies a block as it is to another page.
    fn move_block(&mut self, id: u32) {
        let mut old = std::mem::take(&mut self.scratch);
        old.clear();
        old.extend_from_slice(self.blocks.block(id));
        let new = self.blocks.allocate(old.len());
        self.blocks.block_mut(new)[..old.len()].copy_from_slice(&old);
        let layout = entry::layout(&old);
        let place = self.place(&old[layout.key_at..layout.value_at()]);
        self.index.replace(place, id, new);
        if let Some(timer) = entry::timer(&old) {
            // The timer's record names the old block. It is dead from now on, and another one is filed.
            self.wheel.cancel(&mut self.blocks, id, timer);
            let now = self.wheel.elapsed();
            self.blocks.release(id);
            self.wheel
                .insert(&mut self.blocks, new, timer.deadline, now);
        } else {
            self.blocks.release(id);
        }
        self.scratch = old;
    }
}

fn object_number(bytes: &[u8]) -> u32 {
    u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}
