//! How a value takes the place of another one of the same key, in one look.

use super::store::TypedStore;

/// What has become of a value that was to be stored in the place of another one.
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
    /// Gives a key's entry another value and deadline, if it has no other attributes and its deadline is after `until`.
    /// Counts as a hit. The old value is dropped. O(1).
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
        let Some(slot) = self.find(place, is) else {
            return Overwritten::Nowhere(value);
        };
        match self.replace_plainly(slot, value, deadline, until, now) {
            Ok(_) => Overwritten::Done,
            Err(value) => Overwritten::Not(value),
        }
    }
}
