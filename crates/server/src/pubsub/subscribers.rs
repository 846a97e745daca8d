//! The subscribers of each name. A hash table that grows moves all its entries at once, and a
//! million take a second. So there are many small tables.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasher, RandomState};

use crate::pubsub::audience::Audience;

/// A table with this many times more room than names is made smaller. So each name that was removed
/// costs little.
const SPARSE: usize = 64;

/// Tables for fewer names, all together, are left as they are.
const KEEP: usize = 1 << 10;

/// Each name with its subscribers.
#[derive(Debug)]
pub(super) struct Subscribers {
    /// A name's hash chooses its table. The tables hash by other secrets.
    tables: Box<[HashMap<Box<[u8]>, Audience>]>,
    hasher: RandomState,
    len: usize,
}

impl Subscribers {
    /// Returns a registry without names, in so many tables: a power of two.
    pub(super) fn in_tables(count: usize) -> Self {
        Self {
            tables: (0..count).map(|_| HashMap::new()).collect(),
            hasher: RandomState::new(),
            len: 0,
        }
    }

    fn table_of(&self, name: &[u8]) -> usize {
        match self.tables.len() {
            1 => 0,
            count => self.hasher.hash_one(name) as usize & (count - 1),
        }
    }

    pub(super) fn get(&self, name: &[u8]) -> Option<&Audience> {
        self.tables[self.table_of(name)].get(name)
    }

    pub(super) fn get_mut(&mut self, name: &[u8]) -> Option<&mut Audience> {
        self.tables[self.table_of(name)].get_mut(name)
    }

    /// Returns the subscribers of a name, and whether the name is new.
    pub(super) fn get_or_insert(&mut self, name: &[u8]) -> (&mut Audience, bool) {
        let table = self.table_of(name);
        match self.tables[table].entry(name.into()) {
            Entry::Occupied(known) => (known.into_mut(), false),
            Entry::Vacant(vacant) => {
                self.len += 1;
                (vacant.insert(Audience::default()), true)
            }
        }
    }

    /// Removes a name.
    pub(super) fn remove(&mut self, name: &[u8]) {
        let (at, keep) = (self.table_of(name), KEEP / self.tables.len());
        let table = &mut self.tables[at];
        self.len -= usize::from(table.remove(name).is_some());
        if table.capacity() > keep.max(table.len() * SPARSE) {
            table.shrink_to(table.len() * 2);
        }
    }

    /// Returns the names of one table; `None`: there is no such table.
    pub(super) fn in_table(&self, table: usize) -> Option<impl Iterator<Item = &[u8]>> {
        let table = self.tables.get(table)?;
        Some(table.keys().map(|name| &**name))
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&[u8], &Audience)> {
        let tables = self.tables.iter();
        tables.flat_map(|table| table.iter().map(|(name, audience)| (&**name, audience)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn capacities(names: &Subscribers) -> impl Iterator<Item = usize> {
        names.tables.iter().map(HashMap::capacity)
    }

    /// One table for all names moved a million of them while everybody waited.
    #[test]
    fn no_table_grows_so_large_that_others_wait_while_it_moves() {
        let mut names = Subscribers::in_tables(1 << 10);
        for i in 0..200_000_u32 {
            assert!(names.get_or_insert(&i.to_le_bytes()).1);
        }
        assert_eq!((names.len(), names.iter().count()), (200_000, 200_000));
        let largest = capacities(&names).max();
        assert!(largest < Some(1_000), "{largest:?} of 200,000");
    }

    #[test]
    fn tables_without_names_give_their_memory_back() {
        for tables in [1, 1 << 10] {
            let mut names = Subscribers::in_tables(tables);
            names.get_or_insert(b"stays");
            for i in 0..20_000_u32 {
                names.get_or_insert(&i.to_le_bytes());
            }
            for i in 0..20_000_u32 {
                names.remove(&i.to_le_bytes());
                names.remove(&i.to_le_bytes());
            }
            assert!(capacities(&names).sum::<usize>() <= KEEP);
            assert!(names.get(b"stays").is_some() && names.get(b"0000").is_none());
            assert_eq!(names.len(), 1);
        }
    }
}
