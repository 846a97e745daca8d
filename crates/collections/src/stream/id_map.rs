//! Values by id, in order: sorted blocks of up to 128 of them.
//!
//! Ids mostly come in order and leave from the front. So a new highest id goes to the end of the
//! last block, and a block that is empty leaves. A look-up is two binary searches, and a change in
//! the middle moves one block's rest.

use std::collections::VecDeque;

use super::id::StreamId;

/// The most ids of a block.
const BLOCK: usize = 128;
/// The room of a new block.
const ROOM_MIN: usize = 4;

#[derive(Debug, Clone)]
pub(super) struct IdMap<V> {
    blocks: VecDeque<Vec<(StreamId, V)>>,
    len: usize,
    /// Bytes of all blocks.
    held: usize,
}

impl<V> Default for IdMap<V> {
    fn default() -> Self {
        Self {
            blocks: VecDeque::new(),
            len: 0,
            held: 0,
        }
    }
}

impl<V: Copy> IdMap<V> {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Heap bytes held. O(1).
    pub(super) fn heap_bytes(&self) -> usize {
        self.held + self.blocks.capacity() * size_of::<Vec<(StreamId, V)>>()
    }

    fn bytes_of(block: &Vec<(StreamId, V)>) -> usize {
        block.capacity() * size_of::<(StreamId, V)>()
    }

    /// The block in which an id is or would be, and its place there.
    fn find(&self, id: StreamId) -> (usize, Result<usize, usize>) {
        let behind = self.blocks.partition_point(|block| block[0].0 <= id);
        let number = behind.saturating_sub(1);
        let place = self.blocks.get(number).map_or(Err(0), |block| {
            block.binary_search_by_key(&id, |(id, _)| *id)
        });
        (number, place)
    }

    pub(super) fn get(&self, id: StreamId) -> Option<V> {
        let (block, place) = self.find(id);
        place.ok().map(|at| self.blocks[block][at].1)
    }

    pub(super) fn get_mut(&mut self, id: StreamId) -> Option<&mut V> {
        let (block, place) = self.find(id);
        place.ok().map(|at| &mut self.blocks[block][at].1)
    }

    /// Adds a value; returns the one that it takes the place of.
    pub(super) fn insert(&mut self, id: StreamId, value: V) -> Option<V> {
        let (number, place) = self.find(id);
        let at = match place {
            Ok(at) => return Some(std::mem::replace(&mut self.blocks[number][at].1, value)),
            Err(at) => at,
        };
        self.len += 1;
        let is_last = number + 1 >= self.blocks.len();
        match self.blocks.get_mut(number) {
            Some(block) if block.len() < BLOCK => {
                let before = Self::bytes_of(block);
                if block.len() == block.capacity() {
                    let room = (2 * block.len()).min(BLOCK);
                    block.reserve_exact(room - block.len());
                }
                block.insert(at, (id, value));
                self.held += Self::bytes_of(block) - before;
            }
            Some(block) if at < BLOCK || !is_last => {
                let before = Self::bytes_of(block);
                let mut right = block.split_off(BLOCK / 2);
                match at.checked_sub(BLOCK / 2) {
                    Some(at) => right.insert(at, (id, value)),
                    None => block.insert(at, (id, value)),
                }
                self.held += Self::bytes_of(block) + Self::bytes_of(&right) - before;
                self.blocks.insert(number + 1, right);
            }
            full => {
                let room = if full.is_some() { BLOCK } else { ROOM_MIN };
                let mut block = Vec::with_capacity(room);
                block.push((id, value));
                self.held += Self::bytes_of(&block);
                self.blocks.push_back(block);
            }
        }
        None
    }

    pub(super) fn remove(&mut self, id: StreamId) -> Option<V> {
        let (number, place) = self.find(id);
        let at = place.ok()?;
        let block = &mut self.blocks[number];
        let (_, value) = block.remove(at);
        self.len -= 1;
        if block.is_empty() {
            self.held -= Self::bytes_of(block);
            self.blocks.remove(number);
        } else if block.len() < BLOCK / 4 {
            self.join(number);
        }
        if self.blocks.len() < self.blocks.capacity() / 4 {
            self.blocks.shrink_to(self.blocks.len() * 2);
        }
        Some(value)
    }

    /// Joins a block that has become small with the one behind it, if that is small too.
    fn join(&mut self, number: usize) {
        let len = |at: usize| self.blocks.get(at).map_or(BLOCK, Vec::len);
        if len(number) + len(number + 1) > BLOCK / 2 {
            return;
        }
        if let Some(right) = self.blocks.remove(number + 1) {
            let left = &mut self.blocks[number];
            let before = Self::bytes_of(left) + Self::bytes_of(&right);
            left.extend_from_slice(&right);
            left.shrink_to(BLOCK / 2);
            self.held = self.held + Self::bytes_of(left) - before;
        }
    }

    /// The ids from one on, in order.
    pub(super) fn from(&self, start: StreamId) -> impl Iterator<Item = (StreamId, V)> {
        let (block, place) = self.find(start);
        let (Ok(at) | Err(at)) = place;
        let first = self.blocks.get(block).map_or(&[][..], |block| &block[at..]);
        let rest = self.blocks.range((block + 1).min(self.blocks.len())..);
        first.iter().chain(rest.flatten()).copied()
    }

    /// The highest id.
    pub(super) fn last(&self) -> Option<StreamId> {
        self.blocks.back()?.last().map(|(id, _)| *id)
    }

    pub(super) fn validate(&self) {
        let all: Vec<_> = self.from(StreamId::MIN).map(|(id, _)| id).collect();
        assert_eq!(all.len(), self.len, "ids");
        assert!(all.is_sorted_by(|a, b| a < b), "the order of ids");
        assert!(
            self.blocks.iter().all(|block| !block.is_empty()),
            "an empty block"
        );
        let held: usize = self.blocks.iter().map(Self::bytes_of).sum();
        assert_eq!(held, self.held, "bytes of blocks");
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn ids_come_and_go_in_any_order() {
        let (mut map, mut model) = (IdMap::default(), BTreeMap::new());
        let mut state = 7_u64;
        for step in 0..60_000_u64 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(step | 1);
            let id = StreamId::new((state >> 33) % 3, (state >> 40) % 700);
            if (step / 3_000).is_multiple_of(2) == (state >> 20).is_multiple_of(4) {
                assert_eq!(map.remove(id), model.remove(&id));
            } else {
                assert_eq!(map.insert(id, step), model.insert(id, step));
            }
            assert_eq!(map.get(id), model.get(&id).copied());
            if step.is_multiple_of(97) {
                map.validate();
                let some: Vec<_> = map.from(id).take(9).collect();
                let expected: Vec<_> = model.range(id..).map(|(id, v)| (*id, *v)).take(9).collect();
                assert_eq!(some, expected);
                assert_eq!(map.last(), model.keys().next_back().copied());
            }
        }
    }
}
