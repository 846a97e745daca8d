//! The keys of one shard that clients may have cached, and the readers of each.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use crate::random::Random;
use crate::session::Waiter;

/// Readers of one key below which nobody looks for those that are gone.
const READERS_KEPT: usize = 16;

/// Bytes of a key beside its name, and of each reader but the first. They were estimated from the
/// sizes of the parts.
const KEY_BYTES: usize = 120;
const READER_BYTES: usize = 40;

/// The tracked keys of one shard.
#[derive(Debug, Default)]
pub(crate) struct Tracked {
    places: HashMap<Arc<[u8]>, usize>,
    keys: Vec<TrackedKey>,
}

#[derive(Debug)]
struct TrackedKey {
    key: Arc<[u8]>,
    readers: Readers,
}

/// The clients that have read a key since it last changed.
#[derive(Debug)]
pub(crate) enum Readers {
    One(Waiter),
    Many {
        all: BTreeSet<Waiter>,
        /// As many readers as this, and those that are gone are looked for.
        purge_at: usize,
    },
}

/// By how much the table has grown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct TableSize {
    pub(crate) keys: isize,
    pub(crate) items: isize,
    pub(crate) bytes: isize,
}

impl Readers {
    fn len(&self) -> usize {
        match self {
            Self::One(_) => 1,
            Self::Many { all, .. } => all.len(),
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Waiter> {
        let (one, many) = match self {
            Self::One(reader) => (Some(*reader), None),
            Self::Many { all, .. } => (None, Some(all)),
        };
        one.into_iter().chain(many.into_iter().flatten().copied())
    }

    fn add(&mut self, reader: Waiter, is_gone: impl Fn(&Waiter) -> bool) {
        match self {
            Self::One(first) if *first == reader => {}
            Self::One(first) => {
                let all = BTreeSet::from([*first, reader]);
                let purge_at = READERS_KEPT;
                *self = Self::Many { all, purge_at };
            }
            Self::Many { all, purge_at } => {
                all.insert(reader);
                if all.len() >= *purge_at {
                    all.retain(|reader| !is_gone(reader));
                    *purge_at = READERS_KEPT.max(2 * all.len());
                }
            }
        }
    }
}

impl Tracked {
    /// Notes that a client has read a key. Of many readers those that are gone are forgotten.
    pub(crate) fn add(
        &mut self,
        key: &[u8],
        reader: Waiter,
        is_gone: impl Fn(&Waiter) -> bool,
    ) -> TableSize {
        if let Some(&at) = self.places.get(key) {
            let readers = &mut self.keys[at].readers;
            let before = readers.len();
            readers.add(reader, is_gone);
            let items = readers.len() as isize - before as isize;
            return TableSize {
                keys: 0,
                items,
                bytes: items * READER_BYTES as isize,
            };
        }
        let key: Arc<[u8]> = key.into();
        self.places.insert(Arc::clone(&key), self.keys.len());
        let bytes = (KEY_BYTES + key.len()) as isize;
        let readers = Readers::One(reader);
        self.keys.push(TrackedKey { key, readers });
        TableSize {
            keys: 1,
            items: 1,
            bytes,
        }
    }

    /// Forgets a key. Returns who has read it.
    pub(crate) fn take(&mut self, key: &[u8]) -> Option<(Readers, TableSize)> {
        let at = self.places.remove(key)?;
        let gone = self.keys.swap_remove(at);
        if let Some(moved) = self.keys.get(at)
            && let Some(place) = self.places.get_mut(&moved.key)
        {
            *place = at;
        }
        // What has become sparse is made smaller, at a cost that each removal has paid for.
        if self.places.capacity() > 1024.max(8 * self.places.len()) {
            self.places.shrink_to(2 * self.places.len());
            self.keys.shrink_to(2 * self.keys.len());
        }
        let items = gone.readers.len() as isize;
        let size = TableSize {
            keys: -1,
            items: -items,
            bytes: -((KEY_BYTES + key.len()) as isize) - (items - 1) * READER_BYTES as isize,
        };
        Some((gone.readers, size))
    }

    /// One of the keys, at random.
    pub(crate) fn any(&self, random: &mut Random) -> Option<Arc<[u8]>> {
        self.any_of(self.keys.len(), random)
    }

    /// One of the keys, at random, but not the last that was added.
    pub(crate) fn any_but_last(&self, random: &mut Random) -> Option<Arc<[u8]>> {
        self.any_of(self.keys.len().saturating_sub(1), random)
    }

    fn any_of(&self, first: usize, random: &mut Random) -> Option<Arc<[u8]>> {
        let at = random.next().checked_rem(first as u64)? as usize;
        Some(Arc::clone(&self.keys[at].key))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// The size of all of it, with the sign of what leaves.
    pub(crate) fn leaving(&self) -> TableSize {
        let mut size = TableSize::default();
        for TrackedKey { key, readers } in &self.keys {
            let items = readers.len() as isize;
            size.keys -= 1;
            size.items -= items;
            size.bytes -= (KEY_BYTES + key.len()) as isize + (items - 1) * READER_BYTES as isize;
        }
        size
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reader(id: u64) -> Waiter {
        Waiter {
            owner: 0,
            slot: id as u32,
            id,
        }
    }

    #[test]
    fn sizes_of_what_comes_and_what_leaves_add_up_to_nothing() {
        let (mut tracked, mut random) = (Tracked::default(), Random::new(7));
        let mut size = TableSize::default();
        let mut add = |more: TableSize| {
            size.keys += more.keys;
            size.items += more.items;
            size.bytes += more.bytes;
            size
        };
        for i in 0..5_000_u64 {
            let key = (i * 7 % 1_000).to_string();
            add(tracked.add(key.as_bytes(), reader(i % 13), |_| false));
        }
        let leaving = tracked.leaving();
        let now = add(TableSize::default());
        assert_eq!((now.keys, now.items), (-leaving.keys, -leaving.items));
        assert_eq!(now.bytes, -leaving.bytes);
        while let Some(key) = tracked.any_but_last(&mut random) {
            add(tracked.take(&key).expect("it is there").1);
        }
        assert_eq!(tracked.keys.len(), 1, "the last one stays");
        let last = tracked.any(&mut random).expect("the last one");
        let left = add(tracked.take(&last).expect("it is there").1);
        assert_eq!(left, TableSize::default());
        assert!(tracked.is_empty() && tracked.places.capacity() <= 2_048);
    }

    #[test]
    fn readers_that_are_gone_do_not_pile_up_at_a_key_that_never_changes() {
        let mut tracked = Tracked::default();
        for id in 0..100_000 {
            let is_gone = |reader: &Waiter| reader.id + 10 < id;
            tracked.add(b"k", reader(id), is_gone);
            assert!(tracked.keys[0].readers.len() <= 2 * READERS_KEPT);
        }
    }
}
