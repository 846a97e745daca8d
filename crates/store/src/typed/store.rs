//! The store: slots hold the entries, the index finds them, the wheel says when they end, and the
//! policy says whom to evict.

use tidewheel_timer::{Forecast, HierarchicalWheel, TimerQueue};

use super::attributes::{Attributes, FirstLook, Found, Freed};
use super::published::Published;
use super::slots::Slots;
use super::view::{View, hashed, hit, label_of, weight_of};
use crate::index::{Elsewhere, First, Index};
use crate::policy::{Admitted, Policy, QueuedEntry};
use crate::shared::{DEADLINE_MAX, Entry, Loose};
use crate::slot::Slot;

/// From so many entries on it is worth asking for memory ahead.
const LARGE: usize = 2048;

/// One shard of expiring, evictable entries of type `(K, V)`.
///
/// The order of calls, from a caller that has the store's lock and knows the time:
///
/// 1. [`find`](Self::find) or [`look`](Self::look) says whether a key is there, and in which
///    [`Slot`]. It finds dead entries too: compare the deadline with the time. A slot is valid
///    until the next call that takes `&mut self`.
/// 2. If the key is not there, [`insert`](Self::insert). ([`expect`](Self::expect) some time before
///    it makes it faster.) If it is there, [`hit`](Self::hit), [`replace`](Self::replace),
///    [`set_deadline`](Self::set_deadline), [`remove`](Self::remove).
/// 3. After an insertion: while [`weight`](Self::weight) is above the capacity,
///    [`evict`](Self::evict). The store evicts nothing by itself.
/// 4. After any change: publish [`next_deadline`](Self::next_deadline). When that time has come,
///    [`expire`](Self::expire).
/// 5. In quiet times: [`maintain`](Self::maintain), until it returns false.
/// 6. After unlocking: drop what [`take_freed`](Self::take_freed) returned under the lock, if
///    [`defer_frees`](Self::defer_frees) was called at the beginning.
///
/// Keys are given as *places*, 32 well-mixed bits of a key's hash, together with a closure that
/// tells whether a stored key is the same. Methods that remove or move entries of their own choice
/// take `place_of`, which hashes a key. If it panics, they find the entry by a walk instead.
#[derive(Debug)]
#[repr(C)]
pub struct TypedStore<K, V> {
    // Dropped before the memory that it leads readers to.
    pub(super) published: Option<Published>,
    // Then the fields that a look-up reads, so that they share two cache lines.
    pub(super) index: Index,
    pub(super) slots: Slots<K, V>,
    pub(super) wheel: HierarchicalWheel,
    pub(super) policy: Policy,
    pub(super) weight: u64,
    pub(super) timed: usize,
    /// The latest version that was given to an entry.
    pub(super) version: u64,
}

impl<K, V> Default for TypedStore<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K, V> TypedStore<K, V> {
    /// An empty store. Allocates nothing.
    #[must_use]
    pub fn new() -> Self {
        Self {
            published: None,
            slots: Slots::new(),
            index: Index::new(),
            wheel: HierarchicalWheel::new(0),
            policy: Policy::new(),
            weight: 0,
            timed: 0,
            version: 0,
        }
    }

    /// From now on the store keeps the memory that it no longer needs, until
    /// [`take_freed`](Self::take_freed) is called. A caller that holds a lock can so free it after
    /// unlocking: an allocator may take its time.
    pub fn defer_frees(&mut self) {
        self.slots.defer_frees();
        self.index.defer_frees();
        self.wheel.defer_frees();
    }

    /// Returns whether there is memory for [`take_freed`](Self::take_freed).
    #[inline]
    #[must_use]
    pub fn has_freed(&self) -> bool {
        self.slots.has_freed() || self.index.has_freed() || self.wheel.has_freed()
    }

    /// Memory that the store no longer needs, to be dropped. `None` when there is none, or frees
    /// are not deferred.
    #[inline]
    pub fn take_freed(&mut self) -> Option<Freed<K, V>> {
        let slots = self.slots.take_freed();
        let buckets = self.index.take_freed();
        let records = self.wheel.take_freed();
        // Nearly always there is nothing. Then the caller has nothing to drop.
        if slots.is_none() && buckets.is_none() && records.is_none() {
            return None;
        }
        self.withdraw_if_full();
        Some(Freed {
            slots,
            buckets,
            records,
        })
    }

    /// Entries stored, dead ones that are not yet removed included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Returns whether nothing is stored.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The entries' weight in all.
    #[inline]
    #[must_use]
    pub fn weight(&self) -> u64 {
        self.weight
    }

    /// Heap bytes held, without what keys and values point to.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.slots.bytes() + self.index.bytes() + self.wheel.bytes() + self.policy.bytes()
    }

    /// Finds an entry, dead or alive. O(1).
    #[inline]
    #[must_use]
    pub fn find(&self, place: u32, mut is: impl FnMut(&K) -> bool) -> Option<Slot> {
        match self.index.find(place, |id| self.holds(id, &mut is)) {
            Ok(id) => Some(Slot(id)),
            Err(Elsewhere::Nowhere) => None,
            Err(Elsewhere::Crowd) => self.find_crowded(place, is),
        }
    }

    // It takes the closure by value. A borrowed closure would have to be in memory during the whole
    // look-up.
    #[cold]
    fn find_crowded(&self, place: u32, mut is: impl FnMut(&K) -> bool) -> Option<Slot> {
        let found = self.index.find_crowded(place, |id| self.holds(id, &mut is));
        found.map(Slot)
    }

    #[inline(always)]
    fn holds(&self, id: u32, is: impl FnOnce(&K) -> bool) -> bool {
        self.slots.get(id).is_some_and(|entry| is(entry.key()))
    }

    /// Finds an entry, dead or alive, for reading. O(1).
    #[inline(always)]
    #[must_use]
    pub fn look(&self, place: u32, is: impl Fn(&K) -> bool) -> Option<Found<'_, K, V>> {
        match self.look_first(place, || (), &is) {
            FirstLook::Found(found, ()) => Some(found),
            FirstLook::Nowhere => None,
            FirstLook::Elsewhere => self.look_further(place, is),
        }
    }

    /// As [`look`](Self::look), but only where nearly all look-ups end: at the first entry of the
    /// home bucket that may be the key's. `before` is called when a slot is found, before that is
    /// looked at.
    #[inline(always)]
    #[must_use]
    pub fn look_first<T>(
        &self,
        place: u32,
        before: impl FnOnce() -> T,
        is: impl FnOnce(&K) -> bool,
    ) -> FirstLook<'_, K, V, T> {
        let id = match self.index.first(place) {
            First::Likely(id) => id,
            First::Nowhere => return FirstLook::Nowhere,
            First::Elsewhere => return FirstLook::Elsewhere,
        };
        let before = before();
        let Some((entry, has_attributes)) = self.slots.look(id) else {
            return FirstLook::Elsewhere;
        };
        if !is(entry.key()) {
            return FirstLook::Elsewhere;
        }
        let slot = Slot(id);
        let found = Found {
            slot,
            entry,
            has_attributes,
        };
        FirstLook::Found(found, before)
    }

    /// The look-up of any key, from the beginning.
    #[inline(never)]
    fn look_further(&self, place: u32, is: impl FnMut(&K) -> bool) -> Option<Found<'_, K, V>> {
        self.find(place, is).map(|slot| self.found(slot))
    }

    /// The entry, for reading.
    #[must_use]
    pub fn found(&self, slot: Slot) -> Found<'_, K, V> {
        let (entry, has_attributes) = self.slots.look(slot.0).expect("a slot names an entry");
        Found {
            slot,
            entry,
            has_attributes,
        }
    }

    /// Asks for the memory that an insertion at `place` reads, and does not wait for it. A small
    /// store is likely to be in the processor's caches.
    #[inline]
    pub fn expect(&self, place: u32) {
        if self.slots.len() >= LARGE {
            self.index.prefetch_run(place);
            self.policy.prefetch(place);
        }
    }

    /// Asks for the memory that the next eviction is likely to read. It comes while the caller does
    /// something else.
    #[inline(always)]
    pub(super) fn expect_eviction(&self) {
        if self.slots.len() < LARGE {
            return;
        }
        if let Some((id, place)) = self.policy.next() {
            self.index.prefetch_run(place);
            self.policy.prefetch(place);
            self.slots.prefetch(id);
        }
    }

    /// Asks for the memory that says where the entry of a place is, and does not wait for it.
    #[inline]
    pub fn prefetch_place(&self, place: u32) {
        self.index.prefetch(place);
    }

    /// Asks for the memory of the entry that is likely to be that of a place, and does not wait for
    /// it. [`prefetch_place`](Self::prefetch_place) some time before it makes it faster.
    #[inline]
    pub fn prefetch_entry(&self, place: u32) {
        if let First::Likely(id) = self.index.first(place) {
            self.slots.prefetch(id);
        }
    }

    #[inline]
    pub(super) fn entry(&self, slot: Slot) -> &Entry<K, V> {
        self.slots.get(slot.0).expect("a slot names an entry")
    }

    /// The entry's key.
    #[inline]
    #[must_use]
    pub fn key(&self, slot: Slot) -> &K {
        self.entry(slot).key()
    }

    /// The entry's place; `None` if there is no such entry. If hashing its key panics, the place is
    /// found by a walk.
    #[must_use]
    pub fn place(&self, slot: Slot, place_of: &impl Fn(&K) -> u32) -> Option<u32> {
        let entry = self.slots.get(slot.0)?;
        hashed(place_of, entry.key()).or_else(|| self.index.place_of(slot.0))
    }

    /// The entry's value.
    #[inline]
    #[must_use]
    pub fn value(&self, slot: Slot) -> &V {
        self.entry(slot).value()
    }

    /// The entry's deadline in ticks.
    #[inline]
    #[must_use]
    pub fn deadline(&self, slot: Slot) -> Option<u64> {
        self.entry(slot).deadline()
    }

    /// Returns the weight that the entry counts against the capacity.
    #[must_use]
    pub fn weight_of(&self, slot: Slot) -> u32 {
        weight_of(&self.slots, slot.0)
    }

    /// The caller's label.
    #[inline]
    #[must_use]
    pub fn label_of(&self, slot: Slot) -> u64 {
        label_of(&self.slots, slot.0)
    }

    /// Returns whether an entry may have attributes other than the default. If false, it has none.
    #[inline]
    #[must_use]
    pub fn has_attributes(&self, slot: Slot) -> bool {
        self.slots.has_columns(slot.0)
    }

    /// Counts a hit for the eviction policy. Writes nothing once the count is saturated.
    #[inline]
    pub fn hit(&self, slot: Slot) {
        hit(self.entry(slot));
    }

    /// Moves the deadline later under a shared borrow. The wheel finds the new deadline when the
    /// old one comes. Returns `false` if nothing was done, and only
    /// [`set_deadline`](Self::set_deadline) can do it. The caller sees to it that the entry's limit
    /// is not passed.
    #[inline]
    pub fn slide(&self, slot: Slot, deadline: u64) -> bool {
        self.entry(slot).slide(deadline.min(DEADLINE_MAX))
    }

    /// Adds an entry, whose key must not be in the store. `capacity` is the weight that the caller
    /// will keep the store within; the policy sizes its queues by it. O(1).
    #[allow(
        clippy::too_many_arguments,
        reason = "each is a different kind of fact, and the one caller has them all at hand"
    )]
    pub fn insert(
        &mut self,
        place: u32,
        key: K,
        value: V,
        attributes: Attributes,
        now: u64,
        capacity: u64,
        place_of: &impl Fn(&K) -> u32,
    ) -> Slot {
        let total = self.weight + u64::from(attributes.weight);
        let admitted = self.policy.admit(place, attributes.weight, total, capacity);
        let slot = self.add(place, key, value, attributes, now, place_of, admitted);
        if total <= capacity {
            let mut view = View {
                slots: &mut self.slots,
                place_of,
                kept: 0,
            };
            self.policy.make_way(&mut view);
        }
        slot
    }

    /// Stores an entry that was admitted in a slot of its own.
    #[allow(clippy::too_many_arguments, reason = "as of its callers")]
    #[inline(always)]
    pub(super) fn add(
        &mut self,
        place: u32,
        key: K,
        value: V,
        attributes: Attributes,
        now: u64,
        place_of: &impl Fn(&K) -> u32,
        admitted: Admitted,
    ) -> Slot {
        let entry = Loose::new(key, value, admitted.state());
        let id = self.slots.allocate(entry);
        self.write_columns(id, &attributes);
        self.weight += u64::from(attributes.weight);
        self.index.insert(place, id);
        if let Some(deadline) = attributes.deadline {
            self.start_timer(id, deadline, now);
        }
        self.settle(id, place, place_of, admitted);
        Slot(id)
    }

    /// Puts an entry that was admitted, and has its slot, in its queue.
    #[inline(always)]
    pub(super) fn settle(
        &mut self,
        id: u32,
        fingerprint: u32,
        place_of: &impl Fn(&K) -> u32,
        admitted: Admitted,
    ) {
        let view = View {
            slots: &mut self.slots,
            place_of,
            kept: 0,
        };
        let place = QueuedEntry { id, fingerprint };
        self.policy.settle(&view, place, admitted);
    }

    /// Replaces value and attributes; returns the old value. Counts as a hit. O(1).
    pub fn replace(&mut self, slot: Slot, value: V, attributes: Attributes, now: u64) -> V {
        self.hit(slot);
        let old_weight = self.weight_of(slot);
        if old_weight != attributes.weight {
            self.weight = self.weight - u64::from(old_weight) + u64::from(attributes.weight);
            let state = self.entry(slot).policy();
            self.policy.reweighed(state, old_weight, attributes.weight);
        }
        self.write_columns(slot.0, &attributes);
        self.set_deadline(slot, attributes.deadline, now);
        self.changed(slot);
        let (mut entry, _) = self.slots.own(slot.0).expect("a slot names an entry");
        entry.replace(value)
    }

    /// Replaces all attributes but the weight: value and version stay. Counts as a hit. O(1).
    pub fn renew(&mut self, slot: Slot, attributes: Attributes, now: u64) {
        self.hit(slot);
        let weight = self.weight_of(slot);
        let attributes = Attributes {
            weight,
            ..attributes
        };
        self.write_columns(slot.0, &attributes);
        self.set_deadline(slot, attributes.deadline, now);
    }

    /// Gives the entry a deadline, moves it, or takes it away. O(1).
    pub fn set_deadline(&mut self, slot: Slot, deadline: Option<u64>, now: u64) {
        let deadline = deadline.map(|deadline| deadline.min(DEADLINE_MAX));
        if deadline.is_some_and(|deadline| self.entry(slot).prolong(deadline)) {
            // The wheel finds the new deadline when the old one comes.
            return;
        }
        let old = tidewheel_timer::Timers::timer(&self.slots, slot.0);
        match (old, deadline) {
            (Some(old), Some(deadline)) => {
                self.wheel
                    .reschedule(&mut self.slots, slot.0, old, deadline, now);
                self.entry(slot).set_deadline(Some(deadline));
            }
            (Some(_), None) => self.stop_timer(slot.0),
            (None, Some(deadline)) => self.start_timer(slot.0, deadline, now),
            (None, None) => {}
        }
    }

    /// The entry's version, if one was ever asked for. Every change of the value gives it another
    /// one.
    #[must_use]
    pub fn version(&self, slot: Slot) -> Option<u64> {
        let (columns, at) = self.slots.columns(slot.0)?;
        Some(columns.version.get(at)).filter(|version| *version != 0)
    }

    /// A version that no entry has, had, or will have.
    pub fn spend_version(&mut self) -> u64 {
        // At a version a nanosecond the numbers last for 584 years.
        self.version = self.version.wrapping_add(1).max(1);
        self.version
    }

    pub(super) fn next_version(&mut self, slot: Slot) -> u64 {
        let version = self.spend_version();
        let (columns, at, len) = self.slots.columns_mut(slot.0);
        columns.set_version(at, version, len);
        version
    }

    fn changed(&mut self, slot: Slot) {
        if self.version(slot).is_some() {
            self.next_version(slot);
        }
    }

    /// A lower bound of the earliest deadline, never later than it; `None` when nothing has one.
    #[inline]
    #[must_use]
    pub fn next_deadline(&self) -> Option<u64> {
        self.wheel.next_deadline()
    }

    /// Adds the registered deadlines to the windows of `forecast`: see [`Forecast`].
    pub fn forecast(&self, now: u64, forecast: &mut Forecast) {
        self.wheel.forecast(&self.slots, now, forecast);
    }

    /// Visits entries in the order of their places, from `cursor` on: at least `count`, or all up
    /// to the end. Returns the cursor of the next call; `None` at the end. An entry that is there
    /// from the first call to the last is visited exactly once.
    pub fn scan(&self, cursor: u32, count: usize, mut visit: impl FnMut(Slot)) -> Option<u32> {
        self.index.scan(cursor, count, |id| visit(Slot(id)))
    }

    /// Panics if the structure is broken. O(n).
    pub fn validate(&self, place_of: &impl Fn(&K) -> u32) {
        self.slots.validate();
        self.index.validate();
        self.wheel.validate(&self.slots);
        assert_eq!(self.index.len(), self.slots.len(), "index and slots");
        let mut timed = 0;
        let mut weight = 0;
        for id in self.slots.ids() {
            let entry = self.entry(Slot(id));
            timed += usize::from(entry.deadline().is_some());
            weight += u64::from(self.weight_of(Slot(id)));
            let place = place_of(entry.key());
            let found = self.index.find(place, |found| found == id);
            let crowded = || self.index.find_crowded(place, |found| found == id);
            assert_eq!(
                found.ok().or_else(crowded),
                Some(id),
                "an entry is not found"
            );
        }
        assert_eq!(timed, self.timed, "entries with a deadline");
        assert_eq!(self.wheel.len(), timed, "a timer has outlived its entry");
        assert_eq!(weight, self.weight, "weight");
    }

    fn start_timer(&mut self, id: u32, deadline: u64, now: u64) {
        let deadline = deadline.min(DEADLINE_MAX);
        self.wheel.insert(&mut self.slots, id, deadline, now);
        if let Some(entry) = self.slots.get(id) {
            entry.set_deadline(Some(deadline));
        }
        self.timed += 1;
    }

    pub(super) fn stop_timer(&mut self, id: u32) {
        if let Some(old) = tidewheel_timer::Timers::timer(&self.slots, id) {
            self.wheel.cancel(&mut self.slots, id, old);
            if let Some(entry) = self.slots.get(id) {
                entry.set_deadline(None);
            }
            self.timed -= 1;
        }
    }

    #[inline(always)]
    pub(super) fn write_columns(&mut self, id: u32, attributes: &Attributes) {
        if !attributes.is_plain() || self.slots.has_columns(id) {
            self.fill_columns(id, *attributes);
        }
    }

    #[inline(never)]
    pub(super) fn fill_columns(&mut self, id: u32, attributes: Attributes) {
        let (columns, at, len) = self.slots.columns_mut(id);
        columns.write(at, &attributes, len);
    }
}
