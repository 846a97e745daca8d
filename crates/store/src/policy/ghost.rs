//! The memory of keys that were evicted lately: 16 bits a key, oldest forgotten first.
//!
//! The ghosts are sets of eight, and a key's hash chooses its set. A set is one `u128`, eight
//! ghosts of 16 bits:
//!
//! ```text
//! remember(K):   [ H G F E D C B A ]  ──►  [ G F E D C B A K ]     H is forgotten
//! forget(C):     [ G F E D C B A K ]  ──►  [ 0 G F E D B A K ]     three were newer
//! missed(E):     [ 0 G F E D B A K ]  ──►  [ 0 G F E'D B A K ]     E was asked for, and got no place
//! remember(E):   [ 0 G F E'D B A K ]  ──►  [ 0 G F D B A K E']     that is not forgotten when E is evicted again
//! ```
//!
//! So a set is a queue without hands, time stamps or links. A ghost is a mark, which is 15 bits of
//! the key's hash, and one bit for keys that were missed. One lookup in 4,000 finds a mark of
//! another key. Then an entry gets a place in the main region that it did not earn, and nothing
//! worse happens.

use crate::prefetch::prefetch;

/// Ghosts of one set.
const WAYS: usize = 8;
const GHOST_BITS: usize = 16;
/// Set in the ghost of a key that was missed while it was remembered.
const MISSED: u16 = 1 << 15;

/// The facts that a ghost tells about its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Remembered {
    /// The number of keys of its set that were remembered after it: 0 to 7.
    pub(super) newer: usize,
    /// True if it was [missed](Ghost::missed) before.
    pub(super) was_missed: bool,
}

/// Fingerprints of evicted keys; empty until [`Ghost::resize`] is called.
#[derive(Debug, Default)]
pub(super) struct Ghost {
    sets: Box<[u128]>,
}

impl Ghost {
    /// Returns the number of keys that are remembered at most.
    #[inline]
    pub(super) fn capacity(&self) -> usize {
        self.sets.len() * WAYS
    }

    /// Makes room for `keys` keys, and forgets all: with another number of sets, keys belong to
    /// other sets.
    #[cold]
    #[inline(never)]
    pub(super) fn resize(&mut self, keys: usize) {
        self.sets = vec![0; keys.div_ceil(WAYS)].into_boxed_slice();
    }

    /// Remembers a key as the newest of its set. If it is remembered already, it is still known
    /// whether it was missed.
    #[inline]
    pub(super) fn remember(&mut self, fingerprint: u32) {
        let mut ghost = mark(fingerprint);
        if self.remembers(fingerprint) {
            ghost |= self.take(fingerprint);
        }
        let number = self.number(fingerprint);
        if let Some(set) = self.sets.get_mut(number) {
            *set = (*set << GHOST_BITS) | u128::from(ghost);
        }
    }

    /// Returns whether a key is remembered: all marks of its set are compared at once.
    #[inline]
    pub(super) fn remembers(&self, fingerprint: u32) -> bool {
        const LOW: u64 = 0x0001_0001_0001_0001;
        let Some(set) = self.sets.get(self.number(fingerprint)) else {
            return false;
        };
        // A mark that is equal becomes 0. One of these borrows from the bit above it, which no mark
        // has.
        const HIGH: u64 = LOW * MISSED as u64;
        let unequal = |half: u64| (half & !HIGH) ^ (u64::from(mark(fingerprint)) * LOW);
        let zeros = |marks: u64| marks.wrapping_sub(LOW) & !marks & HIGH;
        zeros(unequal(*set as u64)) | zeros(unequal((*set >> 64) as u64)) != 0
    }

    /// Returns what is remembered of a key.
    pub(super) fn recall(&self, fingerprint: u32) -> Option<Remembered> {
        let set = self.sets.get(self.number(fingerprint))?;
        (0..WAYS).find_map(|newer| {
            let ghost = (set >> (newer * GHOST_BITS)) as u16;
            (ghost & !MISSED == mark(fingerprint)).then_some(Remembered {
                newer,
                was_missed: ghost & MISSED != 0,
            })
        })
    }

    /// Forgets a key of which `remembered` was recalled just now.
    pub(super) fn forget(&mut self, fingerprint: u32, remembered: Remembered) {
        let number = self.number(fingerprint);
        if let Some(set) = self.sets.get_mut(number) {
            let shift = remembered.newer * GHOST_BITS;
            let newer = *set & ((1 << shift) - 1);
            let older = (*set >> shift) >> GHOST_BITS;
            *set = newer | (older << shift);
        }
    }

    /// A key of which `remembered` was recalled just now was asked for, and is not believed. It
    /// stays where it is.
    pub(super) fn missed(&mut self, fingerprint: u32, remembered: Remembered) {
        let number = self.number(fingerprint);
        if let Some(set) = self.sets.get_mut(number) {
            *set |= u128::from(MISSED) << (remembered.newer * GHOST_BITS);
        }
    }

    /// Forgets a key, and returns [`MISSED`] if it was missed before, else 0.
    #[inline(never)]
    fn take(&mut self, fingerprint: u32) -> u16 {
        let Some(remembered) = self.recall(fingerprint) else {
            return 0;
        };
        self.forget(fingerprint, remembered);
        if remembered.was_missed { MISSED } else { 0 }
    }

    /// About how many keys were remembered since one of which `newer` of the same set are newer: at
    /// most so many, if the sets are used evenly.
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

/// The low 15 bits of a fingerprint; never 0, which stands for no key.
#[inline]
fn mark(fingerprint: u32) -> u16 {
    (fingerprint as u16 & !MISSED).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns whether a key was remembered, and forgets it.
    fn recalls(ghost: &mut Ghost, key: u32) -> bool {
        let remembered = ghost.recall(key);
        assert_eq!(remembered.is_some(), ghost.remembers(key), "{key}");
        if let Some(remembered) = remembered {
            ghost.forget(key, remembered);
        }
        remembered.is_some()
    }

    #[test]
    fn a_ghost_is_forgotten_alone() {
        let mut ghost = Ghost::default();
        assert!(
            !recalls(&mut ghost, 7),
            "nothing is remembered before the first resize"
        );
        ghost.resize(8);
        for key in 1..=8 {
            ghost.remember(key);
        }
        for key in [8, 1, 4] {
            assert!(recalls(&mut ghost, key), "{key}");
            assert!(!recalls(&mut ghost, key), "{key} again");
        }
        for key in [2, 3, 5, 6, 7] {
            assert!(recalls(&mut ghost, key), "{key} stayed while others left");
        }
    }

    #[test]
    fn a_key_that_was_missed_is_still_known_when_it_is_evicted_again() {
        let mut ghost = Ghost::default();
        ghost.resize(8);
        for key in 1..=8 {
            ghost.remember(key);
        }
        let recalled = |newer, was_missed| Some(Remembered { newer, was_missed });
        for (key, newer) in [(8, 0), (1, 7), (4, 4)] {
            let remembered = ghost.recall(key).expect("remembered");
            ghost.missed(key, remembered);
            assert_eq!(ghost.recall(key), recalled(newer, true));
        }
        ghost.remember(1);
        assert_eq!(ghost.recall(1), recalled(0, true));
        ghost.remember(2);
        assert_eq!(ghost.recall(2), recalled(0, false), "it has one ghost");
        for (key, newer, was_missed) in [(1, 1, true), (8, 2, true), (7, 3, false), (3, 7, false)] {
            assert_eq!(ghost.recall(key), recalled(newer, was_missed), "{key}");
        }
    }

    #[test]
    fn the_oldest_ghost_of_a_set_is_forgotten_first() {
        let mut ghost = Ghost::default();
        ghost.resize(8);
        for key in 1..=9 {
            ghost.remember(key);
        }
        let newer = |key| ghost.recall(key).map(|remembered| remembered.newer);
        assert_eq!(newer(1), None);
        assert_eq!(newer(2), Some(7));
        assert_eq!(newer(9), Some(0));
    }
}
