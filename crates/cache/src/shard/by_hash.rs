//! A hash table whose callers compare the values themselves. Several values may have one hash.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasherDefault, Hasher};

/// A hasher for keys that are hashes already: it returns them as they are.
#[derive(Default)]
pub(crate) struct Mixed(u64);

impl Hasher for Mixed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _bytes: &[u8]) {
        unreachable!("keys are hashes");
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

/// A table from hashes to lists of values. The hashes are well mixed, so nearly every list has one
/// thing.
pub(crate) struct ByHash<T>(HashMap<u64, Vec<T>, BuildHasherDefault<Mixed>>);

impl<T> ByHash<T> {
    pub(crate) const fn new() -> Self {
        Self(HashMap::with_hasher(BuildHasherDefault::new()))
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The number of hashes that the table has memory for.
    pub(crate) fn capacity(&self) -> usize {
        self.0.capacity()
    }

    pub(crate) fn add(&mut self, hash: u64, thing: T) {
        match self.0.entry(hash) {
            Entry::Vacant(place) => {
                place.insert(vec![thing]);
            }
            Entry::Occupied(mut list) => list.get_mut().push(thing),
        }
    }

    pub(crate) fn find(&self, hash: u64, is: impl FnMut(&&T) -> bool) -> Option<&T> {
        self.0.get(&hash)?.iter().find(is)
    }

    /// Takes one out.
    pub(crate) fn take(&mut self, hash: u64, is: impl FnMut(&T) -> bool) -> Option<T> {
        let list = self.0.get_mut(&hash)?;
        let at = list.iter().position(is)?;
        let taken = list.swap_remove(at);
        if list.is_empty() {
            self.0.remove(&hash);
        }
        Some(taken)
    }

    /// Takes out those that `leaves` accepts.
    pub(crate) fn take_all(
        &mut self,
        mut leaves: impl FnMut(&mut T) -> bool,
        mut taken: impl FnMut(T),
    ) {
        self.0.retain(|_, list| {
            let mut at = 0;
            while at < list.len() {
                if leaves(&mut list[at]) {
                    taken(list.swap_remove(at));
                } else {
                    at += 1;
                }
            }
            !list.is_empty()
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn things_of_one_hash_are_told_apart() {
        let mut table = ByHash::new();
        for thing in [1, 2, 3] {
            table.add(7, thing);
        }
        table.add(8, 4);
        assert_eq!(table.find(7, |thing| **thing == 2), Some(&2));
        assert_eq!(table.find(8, |thing| **thing == 2), None);
        assert_eq!(table.take(7, |thing| *thing == 2), Some(2));
        assert_eq!(table.take(7, |thing| *thing == 2), None);
        let mut odd = Vec::new();
        table.take_all(|thing| *thing % 2 == 1, |thing| odd.push(thing));
        odd.sort_unstable();
        assert_eq!(odd, [1, 3]);
        assert_eq!(table.take(8, |_| true), Some(4));
        assert!(table.is_empty());
    }
}
