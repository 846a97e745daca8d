//! The store: blocks hold the entries, the index finds them, the wheel says when they end.

use tidewheel_timer::{Forecast, HierarchicalWheel, Span, Timer, TimerQueue, Timers};

use super::blocks::Blocks;
use super::entry;
use super::objects::Objects;
use super::value::Value;
use crate::hasher::KeyHasher;
use crate::index::Index;
use crate::slot::Slot;

/// Bytes of the index for each entry, about.
const INDEX_BYTES: usize = 10;
/// Bytes of a timer record, about.
const TIMER_BYTES: usize = 5;

/// One shard of expiring data. See the [crate](crate) for a tour.
#[derive(Debug)]
pub struct Store<O> {
    pub(super) blocks: Blocks,
    pub(super) index: Index,
    pub(super) wheel: HierarchicalWheel,
    pub(super) objects: Objects<O>,
    pub(super) hasher: KeyHasher,
    pub(super) timed: usize,
    /// The number of times that a timer record was filed for a deadline. It wraps.
    pub(super) filed: u32,
    /// Where on the retired page the evacuation goes on.
    pub(super) evacuated_to: u32,
    /// A copy of an entry while it gets another layout.
    pub(super) scratch: Vec<u8>,
}

impl Timers for Blocks {
    const REGISTRATION_BITS: u32 = entry::REGISTRATION_BITS;

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
            filed: 0,
            evacuated_to: 0,
            scratch: Vec::new(),
        }
    }

    /// Returns the hasher of the callers' hashes.
    #[must_use]
    pub fn hasher(&self) -> &KeyHasher {
        &self.hasher
    }

    /// Entries stored, dead ones that are not yet removed included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// Returns whether nothing is stored.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.index.len() == 0
    }

    /// Entries that have a deadline.
    #[must_use]
    pub fn timed(&self) -> usize {
        self.timed
    }

    /// Bytes in use: blocks of entries, the index, timer records. Objects are the caller's to
    /// count.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.blocks.live_bytes() + self.index.bytes() + self.timed * TIMER_BYTES
    }

    /// Heap bytes held: what is in use and the gaps between. What objects hold is the caller's to
    /// count.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        let tables = self.blocks.held_bytes() + self.index.bytes() + self.wheel.bytes();
        tables + self.objects.bytes() + self.scratch.capacity()
    }

    /// Bytes that one entry takes, about: its block, its part of the index, its timer record. O(1).
    #[must_use]
    pub fn entry_bytes(&self, slot: Slot) -> usize {
        let block = Blocks::share(entry::extent(self.blocks.start(slot.0)));
        let timer = if self.deadline(slot).is_some() {
            TIMER_BYTES
        } else {
            0
        };
        block + INDEX_BYTES + timer
    }

    /// The entry's object; `None` for inline bytes.
    #[inline]
    #[must_use]
    pub fn object(&self, slot: Slot) -> Option<&O> {
        Some(self.objects.get(self.object_of(slot)?))
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

    /// Returns whether the value lies beside the key, in bytes.
    #[inline]
    #[must_use]
    pub fn is_inline(&self, slot: Slot) -> bool {
        !entry::is_object(self.blocks.start(slot.0))
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

    /// The caller's tag and the entry's deadline, in one look at it.
    #[inline]
    #[must_use]
    pub fn tag_and_deadline(&self, slot: Slot) -> (u8, Option<u64>) {
        let block = self.blocks.start(slot.0);
        (entry::tag(block), entry::deadline(block))
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

    /// A lower bound of the earliest deadline, never later than it; `None` when nothing has one.
    #[inline]
    #[must_use]
    pub fn next_deadline(&self) -> Option<u64> {
        self.wheel.next_deadline()
    }

    /// Returns how often a timer record was filed for a deadline, modulo 2^32. Only then, or by a
    /// pass of expiry, [`next_deadline`](Self::next_deadline) becomes earlier: a deadline that
    /// moves later files nothing.
    #[inline]
    #[must_use]
    pub fn filed(&self) -> u32 {
        self.filed
    }

    /// Shows the registered deadlines, seen from `now`; what lies around one of `edges` as exactly
    /// as is cheap.
    pub fn spans(&self, now: u64, edges: &[u64], show: impl FnMut(Span)) {
        self.wheel.spans(&self.blocks, now, edges, show);
    }

    /// Adds the registered deadlines to the windows of `forecast`: see [`Forecast`].
    pub fn forecast(&self, now: u64, forecast: &mut Forecast) {
        self.wheel.forecast(&self.blocks, now, forecast);
    }

    /// Visits entries in the order of their hashes, from `cursor` on: at least `count`, or all up
    /// to the end. Returns the cursor of the next call; `None` at the end. An entry that is there
    /// from the first call to the last is visited exactly once. Cost: the entries visited, and the
    /// buckets between them.
    pub fn scan(&self, cursor: u32, count: usize, mut visit: impl FnMut(Slot)) -> Option<u32> {
        self.index.scan(cursor, count, |id| visit(Slot(id)))
    }

    /// As [`scan`](Self::scan), until `visit` returns false. It still visits the few entries that a
    /// cursor cannot separate from the last one.
    pub fn scan_while(&self, cursor: u32, mut visit: impl FnMut(Slot) -> bool) -> Option<u32> {
        self.index.scan_while(cursor, |id| visit(Slot(id)))
    }

    /// An entry near a random place; `None` when the store is empty. `random` is 64 random bits.
    #[must_use]
    pub fn sample(&self, random: u64) -> Option<Slot> {
        self.index.sample(random).map(Slot)
    }

    /// Visits some of the entries that have a deadline, in no order, until `visit` returns false.
    /// They are those of at most 30 times `chunks` timer records, from chunk number `from` on.
    /// Behind the last chunk comes the first again: calls whose `from` grows by `chunks` visit
    /// every such entry that stays.
    pub fn sample_timed(&self, from: u32, chunks: u32, mut visit: impl FnMut(Slot) -> bool) {
        self.wheel
            .sample(&self.blocks, from, chunks, |id| visit(Slot(id)));
    }

    /// The chunks of timer records that there are, for [`scan_timed`](Self::scan_timed).
    #[must_use]
    pub fn timer_chunks(&self) -> u32 {
        self.wheel.chunks()
    }

    /// Shows the slots in `chunks` chunks of 30 timer records, from chunk number `from` on, each
    /// with the first tick that the record may stand for. A slot may be out of date
    /// ([`is_in_use`](Self::is_in_use)), or come twice. Returns where to go on; `None` at the end.
    /// Calls that go on until then show every entry with a deadline that stays where it is, with a
    /// tick that is not after the deadline at least once. No entry is looked at.
    pub fn scan_timed(
        &self,
        from: u32,
        chunks: u32,
        mut visit: impl FnMut(Slot, u64),
    ) -> Option<u32> {
        self.wheel
            .scan(from, chunks, |id, tick| visit(Slot(id), tick))
    }

    /// Returns whether there is an entry in a slot that may be out of date: any entry.
    #[must_use]
    pub fn is_in_use(&self, slot: Slot) -> bool {
        self.blocks.check(slot.0).is_some()
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

    pub(super) fn place(&self, key: &[u8]) -> u32 {
        self.hasher.hash(key) as u32
    }

    pub(super) fn object_of(&self, slot: Slot) -> Option<u32> {
        let block = self.blocks.start(slot.0);
        entry::is_object(block).then(|| object_number(&block[entry::layout(block).value_at()..]))
    }

    /// Starts the timer of an entry that has room for a deadline and none at present.
    pub(super) fn start_timer(&mut self, id: u32, deadline: u64, now: u64) {
        self.filed = self.filed.wrapping_add(1);
        self.wheel.insert(&mut self.blocks, id, deadline, now);
        entry::set_deadline(self.blocks.start_mut(id), Some(deadline));
    }

    pub(super) fn stop_timer(&mut self, id: u32) {
        if let Some(old) = entry::timer(self.blocks.start(id)) {
            self.wheel.cancel(&mut self.blocks, id, old);
            entry::set_deadline(self.blocks.start_mut(id), None);
            self.timed -= 1;
        }
    }
}

pub(super) fn object_number(bytes: &[u8]) -> u32 {
    u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}
