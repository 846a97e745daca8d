//! A page of slots: each holds an entry, or is vacant.
//!
//! ```text
//! bytes 0–4   the deadline: 40 bits, 34 years of milliseconds; the next vacant slot, if it is vacant
//! byte  5     bits 8 to 15 of the wheel's registration
//! byte  6     the eviction policy's state
//! byte  7     whether it is vacant, lives, or is pinned
//! then        the key and the value
//! ```
//!
//! All but key and value is atomic. So a hit, under a shared borrow, can move the deadline later
//! and be counted. Key and value are written word by word if readers without a lock may copy them
//! meanwhile.

use std::cell::UnsafeCell;
use std::fmt;
use std::marker::PhantomData;
use std::mem::{MaybeUninit, needs_drop, offset_of};
use std::ops::Deref;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU8, AtomicU32};

use super::block::{Block, Purpose, Zeroed};
use super::plain::{self, is_listed, may_be_told};

/// "No deadline" in 40 bits.
const NEVER: u64 = (1 << 40) - 1;

/// The latest deadline that can be kept.
pub(crate) const DEADLINE_MAX: u64 = NEVER - 1;

const VACANT: u8 = 0;
const LIVE: u8 = 1;
const PINNED: u8 = 2;

/// An entry in its slot. Nobody gets a reference to one of a vacant slot.
pub(crate) struct Entry<K, V> {
    low: AtomicU32,
    high: AtomicU8,
    registration: AtomicU8,
    policy: AtomicU8,
    state: AtomicU8,
    key: UnsafeCell<MaybeUninit<K>>,
    value: UnsafeCell<MaybeUninit<V>>,
}

// SAFETY:
// - Whoever has a shared reference gets shared references to key and value, and changes nothing
//   else than atomics.
// - `Cells` changes key and value, with an exclusive reference to itself. Readers without a lock
//   look at them atomically.
unsafe impl<K: Sync, V: Sync> Sync for Entry<K, V> {}

// SAFETY: zeroed memory is a vacant slot.
unsafe impl<K, V> Zeroed for Entry<K, V> {}

/// An entry that is in no slot.
#[derive(Debug)]
pub(crate) struct Loose<K, V> {
    pub(crate) key: K,
    pub(crate) value: V,
    raw_deadline: u64,
    pub(crate) policy: u8,
    state: u8,
}

impl<K, V> Loose<K, V> {
    pub(crate) fn new(key: K, value: V, policy: u8) -> Self {
        Self {
            key,
            value,
            raw_deadline: NEVER,
            policy,
            state: LIVE,
        }
    }

    #[inline]
    pub(crate) fn deadline(&self) -> Option<u64> {
        (self.raw_deadline != NEVER).then_some(self.raw_deadline)
    }

    pub(crate) fn forget_deadline(&mut self) {
        self.raw_deadline = NEVER;
    }
}

impl<K, V> Entry<K, V> {
    const KEY_WORD: usize =
        plain::word_size(size_of::<K>(), offset_of!(Self, key), align_of::<Self>());

    const VALUE_WORD: usize =
        plain::word_size(size_of::<V>(), offset_of!(Self, value), align_of::<Self>());

    #[inline(always)]
    pub(crate) fn key(&self) -> &K {
        // SAFETY:
        // - The slot is not vacant, so its key was written.
        // - While this reference lives, so does one to the cells, and nobody changes the key.
        unsafe { (*self.key.get()).assume_init_ref() }
    }

    #[inline(always)]
    pub(crate) fn value(&self) -> &V {
        // SAFETY: as for the key.
        unsafe { (*self.value.get()).assume_init_ref() }
    }

    /// Returns whether the deadline is after this tick, or there is none.
    #[inline(always)]
    pub(crate) fn lasts_past(&self, tick: u64) -> bool {
        self.lasts(|deadline| deadline > tick)
    }

    /// Returns whether the deadline `is_ahead`, or there is none. Of two deadlines the later one is
    /// ahead if the earlier one is.
    #[inline(always)]
    pub(crate) fn lasts(&self, is_ahead: impl Fn(u64) -> bool) -> bool {
        // In the first 49 days of engine time the lower half tells it, of nearly all entries.
        is_ahead(u64::from(self.low.load(Relaxed))) || is_ahead(self.raw_deadline())
    }

    #[inline]
    fn raw_deadline(&self) -> u64 {
        u64::from(self.high.load(Relaxed)) << 32 | u64::from(self.low.load(Relaxed))
    }

    #[inline]
    pub(crate) fn deadline(&self) -> Option<u64> {
        let deadline = self.raw_deadline();
        (deadline != NEVER).then_some(deadline)
    }

    /// Only for whoever has the store to itself: two halves are written.
    #[inline]
    pub(crate) fn set_deadline(&self, deadline: Option<u64>) {
        self.set_raw_deadline(deadline.map_or(NEVER, |deadline| deadline.min(DEADLINE_MAX)));
    }

    #[inline]
    fn set_raw_deadline(&self, raw: u64) {
        self.low.store(raw as u32, Relaxed);
        self.high.store((raw >> 32) as u8, Relaxed);
    }

    /// Moves a deadline later. Returns false, and does nothing, if it would be earlier, or there is
    /// none. Only for whoever has the store to itself.
    #[inline]
    pub(crate) fn prolong(&self, deadline: u64) -> bool {
        let is_later = self.deadline().is_some_and(|old| deadline >= old);
        if is_later {
            self.set_deadline(Some(deadline));
        }
        is_later
    }

    /// Moves a deadline later while others read the store. Returns false when that takes the store
    /// for oneself: when the deadline's upper 8 bits change (every 2^32 ticks), or when there is no
    /// deadline.
    #[inline]
    pub(crate) fn slide(&self, deadline: u64) -> bool {
        let high = u64::from(self.high.load(Relaxed)) << 32;
        if deadline >> 32 << 32 != high || self.raw_deadline() == NEVER || deadline >= NEVER {
            return false;
        }
        // If two threads slide it at once, the later deadline stays.
        self.low.fetch_max(deadline as u32, Relaxed);
        true
    }

    #[inline]
    pub(crate) fn registration(&self) -> u8 {
        self.registration.load(Relaxed)
    }

    #[inline]
    pub(crate) fn set_registration(&self, registration: u8) {
        self.registration.store(registration, Relaxed);
    }

    #[inline]
    pub(crate) fn policy(&self) -> u8 {
        self.policy.load(Relaxed)
    }

    #[inline]
    pub(crate) fn set_policy(&self, policy: u8) {
        self.policy.store(policy, Relaxed);
    }

    #[inline]
    pub(crate) fn is_pinned(&self) -> bool {
        self.state.load(Relaxed) == PINNED
    }

    #[inline]
    pub(crate) fn set_pinned(&self, is_pinned: bool) {
        self.state
            .store(if is_pinned { PINNED } else { LIVE }, Relaxed);
    }

    /// Writes a key or a value.
    ///
    /// # Safety
    ///
    /// The slot is this thread's alone, but for readers without a lock, of which there are none
    /// unless it `is_shared`.
    #[inline(always)]
    unsafe fn write<T>(
        to: &UnsafeCell<MaybeUninit<T>>,
        value: T,
        word_size: usize,
        is_shared: bool,
    ) {
        let to = to.get().cast::<T>();
        if is_listed::<T>() || may_be_told::<K, V>() && is_shared {
            // SAFETY: it is a plain type, since it is listed or shared, and only this thread writes
            // it.
            unsafe { plain::store(to, value, word_size) }
        } else {
            // SAFETY: no reader without a lock looks at it.
            unsafe { to.write(value) }
        }
    }

    /// Writes the key.
    ///
    /// # Safety
    ///
    /// As of `write`.
    #[inline(always)]
    unsafe fn write_key(&self, key: K, is_shared: bool) {
        // SAFETY: as demanded.
        unsafe { Self::write(&self.key, key, Self::KEY_WORD, is_shared) }
    }

    /// Writes the value.
    ///
    /// # Safety
    ///
    /// As of `write`.
    #[inline(always)]
    unsafe fn write_value(&self, value: V, is_shared: bool) {
        // SAFETY: as demanded.
        unsafe { Self::write(&self.value, value, Self::VALUE_WORD, is_shared) }
    }

    /// Copies of key and value, for a reader without a lock. They are a key and a value only if
    /// nothing was written meanwhile, and the slot has an entry.
    ///
    /// # Safety
    ///
    /// Both types are plain. (The slot may be vacant, or written meanwhile.)
    #[inline(always)]
    pub(super) unsafe fn copy_out(&self) -> (MaybeUninit<K>, MaybeUninit<V>) {
        // SAFETY:
        // - The memory was initialised: with zeros, if nothing else.
        // - `write` writes plain types by words.
        unsafe {
            let key = plain::load(self.key.get().cast::<K>(), Self::KEY_WORD);
            let value = plain::load(self.value.get().cast::<V>(), Self::VALUE_WORD);
            (key, value)
        }
    }

    /// Counts a hit, if the policy still has this state of the slot. If the slot has meanwhile got
    /// another entry of the same state, that counts for it.
    #[inline]
    pub(super) fn hit(&self, state: u8, next: u8) {
        let _ = self.policy.compare_exchange(state, next, Relaxed, Relaxed);
    }
}

impl<K: fmt::Debug, V: fmt::Debug> fmt::Debug for Entry<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry")
            .field("key", self.key())
            .field("value", self.value())
            .field("deadline", &self.deadline())
            .finish_non_exhaustive()
    }
}

/// A page of slots; none while it has no memory.
#[derive(Debug)]
pub(crate) struct Cells<K, V>(Block<Entry<K, V>>);

impl<K, V> Cells<K, V> {
    pub(crate) const fn none() -> Self {
        Self(Block::empty())
    }

    /// Vacant slots. Each names the next one, and the last one names `end`. Only plain types are
    /// shared.
    pub(crate) fn vacant(count: u16, end: u16, purpose: Purpose) -> Self {
        let cells = Self(Block::zeroed(usize::from(count), purpose));
        for (cell, at) in cells.0.iter().zip(1..) {
            cell.low.store(at, Relaxed);
        }
        if let Some(last) = cells.0.last() {
            last.low.store(u32::from(end), Relaxed);
        }
        cells
    }

    /// Sets aside a vacant slot that no entry will have. Its deadline is 0, which is after no tick:
    /// readers without a lock take it for an entry whose time is over.
    pub(crate) fn set_aside(&mut self, at: usize) {
        self.0[at].low.store(0, Relaxed);
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// From now on readers may be led to it.
    pub(crate) fn share(&mut self) {
        self.0.share();
    }

    /// Where readers find it.
    pub(super) fn start(&self) -> *mut u8 {
        self.0.start().cast()
    }

    #[inline(always)]
    pub(crate) fn get(&self, at: usize) -> Option<&Entry<K, V>> {
        self.0.get(at).filter(|cell| cell.is_live())
    }

    /// The slot itself, to be asked for ahead.
    pub(crate) fn address(&self, at: usize) -> Option<&impl Sized> {
        self.0.get(at)
    }

    /// The next vacant slot after this one, which is vacant.
    #[inline]
    pub(crate) fn next_vacant(&self, at: usize) -> u16 {
        let cell = &self.0[at];
        debug_assert!(!cell.is_live(), "a free slot is vacant");
        cell.low.load(Relaxed) as u16
    }

    /// Puts an entry into a vacant slot.
    #[inline]
    pub(crate) fn put(&mut self, at: usize, entry: Loose<K, V>) {
        let cell = &self.0[at];
        debug_assert!(!cell.is_live(), "a free slot is vacant");
        cell.set_raw_deadline(entry.raw_deadline);
        cell.set_registration(0);
        cell.set_policy(entry.policy);
        // SAFETY: nobody else has the slot, since `self` is exclusive.
        unsafe {
            cell.write_key(entry.key, self.0.is_shared());
            cell.write_value(entry.value, self.0.is_shared());
        }
        cell.state.store(entry.state, Relaxed);
    }

    /// Takes an entry out; its slot names `next` then. `None` if it is vacant.
    #[inline]
    pub(crate) fn take(&mut self, at: usize, next: u16) -> Option<Loose<K, V>> {
        let cell = self.get(at)?;
        let entry = Loose {
            // SAFETY: the slot is not vacant, but will be. So key and value are taken once.
            key: unsafe { (*cell.key.get()).assume_init_read() },
            // SAFETY: as for the key.
            value: unsafe { (*cell.value.get()).assume_init_read() },
            raw_deadline: cell.raw_deadline(),
            policy: cell.policy(),
            state: cell.state.load(Relaxed),
        };
        cell.state.store(VACANT, Relaxed);
        cell.low.store(u32::from(next), Relaxed);
        Some(entry)
    }

    /// An entry that is to be changed.
    #[inline(always)]
    pub(crate) fn own(&mut self, at: usize) -> Option<Own<'_, K, V>> {
        let entry = self.get(at)?;
        Some(Own {
            entry,
            is_shared: self.0.is_shared(),
            exclusive: PhantomData,
        })
    }
}

/// An entry in its slot, which nobody else may look at but readers without a lock.
pub(crate) struct Own<'a, K, V> {
    entry: &'a Entry<K, V>,
    /// True if such readers may be looking.
    is_shared: bool,
    /// It stands for an exclusive reference.
    exclusive: PhantomData<&'a mut (K, V)>,
}

impl<K, V> Deref for Own<'_, K, V> {
    type Target = Entry<K, V>;

    #[inline(always)]
    fn deref(&self) -> &Entry<K, V> {
        self.entry
    }
}

impl<K, V> Own<'_, K, V> {
    /// Another key and value, with the timer of those that were there: deadline and registration.
    /// Returns the two.
    #[inline(always)]
    pub(crate) fn exchange(&mut self, key: K, value: V) -> (K, V) {
        // SAFETY: the slot is not vacant. The key is overwritten, without a drop.
        let old = unsafe { (*self.entry.key.get()).assume_init_read() };
        // SAFETY: nobody else has the slot: whoever made this has its cells to themselves.
        unsafe { self.entry.write_key(key, self.is_shared) };
        (old, self.replace(value))
    }

    /// Another value; returns the old one.
    #[inline(always)]
    pub(crate) fn replace(&mut self, value: V) -> V {
        // SAFETY: the slot is not vacant. The value is overwritten, without a drop.
        let old = unsafe { (*self.entry.value.get()).assume_init_read() };
        // SAFETY: as for the key.
        unsafe { self.entry.write_value(value, self.is_shared) };
        old
    }
}

impl<K, V> Entry<K, V> {
    #[inline(always)]
    pub(super) fn is_live(&self) -> bool {
        self.state.load(Relaxed) != VACANT
    }
}

impl<K, V> Drop for Cells<K, V> {
    fn drop(&mut self) {
        if needs_drop::<(K, V)>() {
            Rest { cells: self, at: 0 }.leave();
        }
    }
}

/// The entries from a slot on. If the drop of one panics, the others are dropped nevertheless.
struct Rest<'a, K, V> {
    cells: &'a mut Cells<K, V>,
    at: usize,
}

impl<K, V> Rest<'_, K, V> {
    fn leave(&mut self) {
        while self.at < self.cells.len() {
            self.at += 1;
            drop(self.cells.take(self.at - 1, 0));
        }
    }
}

impl<K, V> Drop for Rest<'_, K, V> {
    fn drop(&mut self) {
        self.leave();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_takes_eight_bytes_beside_key_and_value() {
        assert_eq!(size_of::<Entry<u64, u64>>(), 24);
        let pair = size_of::<(String, Box<[u8]>)>();
        assert_eq!(size_of::<Entry<String, Box<[u8]>>>(), 8 + pair);
    }

    fn one<K, V>(key: K, value: V) -> Cells<K, V> {
        let mut cells = Cells::vacant(8, u16::MAX, Purpose::OWN);
        cells.put(0, Loose::new(key, value, 0));
        cells
    }

    #[test]
    fn a_deadline_is_past_a_tick_in_whatever_half_of_it_they_differ() {
        let cells = one(0_u8, 0_u8);
        let entry = cells.get(0).unwrap();
        let ticks = [0, 1, 7, 1 << 20, u64::from(u32::MAX) - 1, 1 << 32];
        let ticks = ticks
            .into_iter()
            .flat_map(|tick| [tick, tick + (1 << 32), tick + (5 << 32)]);
        for deadline in ticks.clone() {
            entry.set_deadline(Some(deadline));
            for tick in ticks.clone() {
                assert_eq!(
                    entry.lasts_past(tick),
                    deadline > tick,
                    "{deadline} > {tick}"
                );
            }
        }
        entry.set_deadline(None);
        assert!(ticks.into_iter().all(|tick| entry.lasts_past(tick)));
    }

    #[test]
    fn deadlines_slide_while_others_read_within_their_high_byte() {
        let cells = one(0_u8, 0_u8);
        let entry = cells.get(0).unwrap();
        assert!(!entry.slide(5), "there is no deadline to slide");
        entry.set_deadline(Some(7));
        assert!(entry.slide(9));
        assert!(entry.slide(8), "an earlier one changes nothing");
        assert_eq!(entry.deadline(), Some(9));
        assert!(!entry.slide(1 << 32));
        entry.set_deadline(Some(u64::MAX));
        assert_eq!(entry.deadline(), Some(DEADLINE_MAX));
    }

    #[test]
    fn keys_and_values_are_dropped_once() {
        use std::sync::Arc;
        let (a, b, c) = (Arc::new(1), Arc::new(2), Arc::new(3));
        let mut cells = one(Arc::clone(&a), Arc::clone(&a));
        drop(cells.own(0).unwrap().replace(Arc::clone(&b)));
        assert_eq!(Arc::strong_count(&a), 2);
        let mut entry = cells.own(0).unwrap();
        let old = entry.exchange(Arc::clone(&c), Arc::clone(&c));
        assert_eq!((Arc::strong_count(&a), Arc::strong_count(&b)), (2, 2));
        drop(old);
        cells.put(3, Loose::new(Arc::clone(&b), Arc::clone(&b), 0));
        assert!(cells.take(3, 0).is_some() && cells.take(3, 0).is_none());
        drop(cells);
        let left = [a, b, c].map(|value| Arc::strong_count(&value));
        assert_eq!(left, [1, 1, 1]);
    }
}
