//! Overwrites the value of a key in one look.

use tidewheel_timer::HierarchicalWheel;

use super::slots::{Slots, timer_of};
use super::store::TypedStore;
use super::view::hit;
use crate::index::First;
use crate::shared::{DEADLINE_MAX, Own};
use crate::slot::Slot;

/// The result of storing a value in the place of another one.
#[derive(Debug)]
pub enum Overwritten<V> {
    /// It is stored.
    Done,
    /// It is not: no entry has the key.
    Nowhere(V),
    /// It is not: this takes more than a look.
    Not(V),
}

impl<K, V> TypedStore<K, V> {
    /// Gives a key's entry another value and deadline, if it has no other attributes and its
    /// deadline is after `until`. Counts as a hit. The old value is dropped. O(1).
    #[inline(always)]
    pub fn overwrite(
        &mut self,
        place: u32,
        is: impl Fn(&K) -> bool,
        value: V,
        deadline: Option<u64>,
        until: u64,
        now: u64,
    ) -> Overwritten<V> {
        match self.index.first(place) {
            First::Nowhere => return Overwritten::Nowhere(value),
            First::Elsewhere => {}
            First::Likely(id) => match self.slots.own(id) {
                Some((entry, false)) if is(entry.key()) && entry.lasts_past(until) => {
                    let (_, is_timed) = put(&self.wheel, entry, value, deadline);
                    if !is_timed {
                        self.set_deadline(Slot(id), deadline, now);
                    }
                    return Overwritten::Done;
                }
                _ => {}
            },
        }
        self.overwrite_elsewhere(place, is, value, deadline, until, now)
    }

    /// As [`overwrite`](Self::overwrite), of an entry that is not where nearly all are.
    #[inline(never)]
    fn overwrite_elsewhere(
        &mut self,
        place: u32,
        is: impl Fn(&K) -> bool,
        value: V,
        deadline: Option<u64>,
        until: u64,
        now: u64,
    ) -> Overwritten<V> {
        let Some(slot) = self.find(place, is) else {
            return Overwritten::Nowhere(value);
        };
        match self.replace_plainly(slot, value, deadline, until, now) {
            Ok(_) => Overwritten::Done,
            Err(value) => Overwritten::Not(value),
        }
    }

    /// As [`replace`](Self::replace), of an entry that has no attributes but a deadline, and gets
    /// no others. O(1).
    ///
    /// # Errors
    ///
    /// Gives the new value back if the entry may have others, or if its deadline is not after
    /// `until`.
    #[inline]
    pub fn replace_plainly(
        &mut self,
        slot: Slot,
        value: V,
        deadline: Option<u64>,
        until: u64,
        now: u64,
    ) -> Result<V, V> {
        let entry = match self.slots.own(slot.0) {
            Some((entry, false)) if entry.lasts_past(until) => entry,
            _ => return Err(value),
        };
        let (old, is_timed) = put(&self.wheel, entry, value, deadline);
        if !is_timed {
            self.set_deadline(slot, deadline, now);
        }
        Ok(old)
    }
}

/// Another value for an entry, which counts as a hit. Returns the old one, and whether the entry
/// has its deadline: as long as its timer's record comes before that, the wheel is not told.
/// (Whether it is earlier or later than the old one would be hard to foresee.)
#[inline(always)]
fn put<K, V>(
    wheel: &HierarchicalWheel,
    mut entry: Own<'_, K, V>,
    value: V,
    deadline: Option<u64>,
) -> (V, bool) {
    hit(&entry);
    let is_timed = match (timer_of(&entry), deadline) {
        (None, None) => true,
        (Some(old), Some(deadline)) => {
            let deadline = deadline.min(DEADLINE_MAX);
            let is_in_time = !wheel.must_hear::<Slots<K, V>>(old, deadline);
            if is_in_time {
                entry.set_deadline(Some(deadline));
            }
            is_in_time
        }
        _ => false,
    };
    (entry.replace(value), is_timed)
}
