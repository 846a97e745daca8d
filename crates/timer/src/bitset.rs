//! A set of small numbers whose least member is found at once: which pages have room, for example.

use alloc::vec::Vec;

/// A set of small numbers. Bit `i` of `words` says whether `i` is a member, and bit `w` of
/// `summary` says whether word `w` has any member. So [`first`](Self::first) reads one word for
/// every 4,096 numbers: O(n / 4096).
#[derive(Debug, Default)]
pub struct BitSet {
    words: Vec<u64>,
    summary: Vec<u64>,
}

impl BitSet {
    /// An empty set. Allocates nothing.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            words: Vec::new(),
            summary: Vec::new(),
        }
    }

    /// Adds a number.
    pub fn insert(&mut self, at: u32) {
        let word = (at / 64) as usize;
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
            self.summary.resize(word / 64 + 1, 0);
        }
        self.words[word] |= 1 << (at % 64);
        self.summary[word / 64] |= 1 << (word % 64);
    }

    /// Takes a number out, if it is a member.
    pub fn remove(&mut self, at: u32) {
        let word = (at / 64) as usize;
        if word < self.words.len() {
            self.words[word] &= !(1 << (at % 64));
            if self.words[word] == 0 {
                self.summary[word / 64] &= !(1 << (word % 64));
            }
        }
    }

    /// The least member.
    #[must_use]
    pub fn first(&self) -> Option<u32> {
        let (i, summary) = self.summary.iter().enumerate().find(|(_, s)| **s != 0)?;
        let word = i * 64 + summary.trailing_zeros() as usize;
        Some((word * 64) as u32 + self.words[word].trailing_zeros())
    }

    /// Heap bytes held.
    #[must_use]
    pub fn bytes(&self) -> usize {
        (self.words.capacity() + self.summary.capacity()) * 8
    }
}
