//! The memory of keys that were evicted lately: 16 bits a key, oldest forgotten first.
//!
//! The ghosts are sets of eight, and a key's hash chooses its set. A set is one `u128`, eight marks of 16 bits:
//!
//! ```text
//! remember(K):   [ H G F E D C B A ]  ──►  [ G F E D C B A K ]     H is forgotten
//! recall(C):     [ G F E D C B A K ]  ──►  [ 0 G F E D B A K ]     three were newer
//! ```
//!
//! So a set is a queue without hands, time stamps or links. One lookup in 8,000 finds a mark of another key. Then an
//! entry gets a place in the main region that it did not earn, and nothing worse happens.

use crate::prefetch::prefetch;

/// Marks of one set.
const WAYS: usize = 8;
const MARK_BITS: usize = 16;

/// Fingerprints of evicted keys; empty until [`Ghost::resize`] is called.
#[derive(Debug, Default)]
pub(super) struct Ghost {
    sets: Box<[u128]>,
}

impl Ghost {
    /// How many keys are remembered at most.
    #[inline]
    pub(super) fn capacity(&self) -> usize {
        self.sets.len() * WAYS
    }

    /// Makes room for `keys` keys, and forgets all: with another number of sets, keys belong to other sets.
    #[cold]
    #[inline(never)]
    pub(super) fn resize(&mut self, keys: usize) {
        self.sets = vec![0; keys.div_ceil(WAYS)].into_boxed_slice();
    }

    /// Remembers a key as the newest of its set.
    #[inline]
    pub(super) fn remember(&mut self, fingerprint: u32) {
        let number = self.number(fingerprint);
        if let Some(set) = self.sets.get_mut(number) {
            *set = (*set << MARK_BITS) | u128::from(mark(fingerprint));
        }
    }

    /// Whether a key is remembered: all marks of its set are compared at once.
    #[inline]
    pub(super) fn remembers(&self, fingerprint: u32) -> bool {
        const LOW: u64 = 0x0001_0001_0001_0001;
        let Some(set) = self.sets.get(self.number(fingerprint)) else {
            return false;
        };
        // A mark that is equal becomes 0. One of these borrows from the bit above it, unless that is set.
        let unequal = |half: u64| half ^ (u64::from(mark(fingerprint)) * LOW);
        let zeros = |marks: u64| marks.wrapping_sub(LOW) & !marks & (LOW << (MARK_BITS - 1));
        zeros(unequal(*set as u64)) | zeros(unequal((*set >> 64) as u64)) != 0
    }

    /// Forgets a key. If it was remembered, returns how many of its set were remembered after it: 0 to 7.
    pub(super) fn recall(&mut self, fingerprint: u32) -> Option<usize> {
        let number = self.number(fingerprint);
        let set = self.sets.get_mut(number)?;
        let wanted = mark(fingerprint);
        for way in 0..WAYS {
            let shift = way * MARK_BITS;
            if (*set >> shift) as u16 == wanted {
                let newer = *set & ((1 << shift) - 1);
                let older = (*set >> shift) >> MARK_BITS;
                *set = newer | (older << shift);
                return Some(way);
            }
        }
        None
    }

    /// About how many keys were remembered since one of which `newer` of the same set are newer: at most so many, if
    /// the sets are used evenly.
    pub(super) fn age(&self, newer: usize) -> usize {
        self.sets.len() * (newer + 1)
    }

    /// Asks for a key's set, and does not wait for it.
    #[inline]
    pub(super) fn prefetch(&self, fingerprint: u32) {
        if let Some(set) = self.sets.get(self.number(fingerprint)) {
            prefetch(set);
        }
    }

    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.sets)
    }

    /// The number of a fingerprint's set: its high bits, scaled (the mark is its low bits).
    #[inline]
    fn number(&self, fingerprint: u32) -> usize {
        ((u64::from(fingerprint) * self.sets.len() as u64) >> 32) as usize
    }
}

/// The low half of a fingerprint; never 0, which stands for no key.
#[inline]
fn mark(fingerprint: u32) -> u16 {
    (fingerprint as u16).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ghost_is_recalled_once() {
        let mut ghost = Ghost::default();
        assert!(
            ghost.recall(7).is_none(),
            "nothing is remembered before the first resize"
        );
        ghost.resize(8);
        for key in 1..=8 {
            ghost.remember(key);
        }
        for key in [8, 1, 4] {
            assert!(ghost.recall(key).is_some(), "{key}");
            assert!(ghost.recall(key).is_none(), "{key} again");
        }
        for key in [2, 3, 5, 6, 7] {
            assert!(
                ghost.recall(key).is_some(),
                "{key} stayed while others left"
            );
        }
    }

    #[test]
    fn the_oldest_ghost_of_a_set_is_forgotten_first() {
        let mut ghost = Ghost::default();
        ghost.resize(8);
        for key in 1..=9 {
            ghost.remember(key);
        }
        assert_eq!(ghost.recall(1), None);
        assert_eq!(ghost.recall(2), Some(7));
        assert_eq!(ghost.recall(9), Some(0));
    }
}
