//! Digests of data, for tests that compare what two keys or two servers hold.
//!
//! Equal values have equal digests, in every process. Nothing is promised between versions, nor against somebody who
//! looks for a collision.

use std::fmt;

use tidewheel_store::{KeyHasher, Slot};

use crate::value::{self, Entries};

/// Bytes of a digest, as in the public protocol.
const BYTES: usize = 20;

/// Words that a digest is made of.
const WORDS: usize = 3;

/// A digest. That of nothing is zero.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Digest([u64; WORDS]);

impl Digest {
    /// Adds bytes behind those before them.
    pub(crate) fn mix(&mut self, bytes: &[u8]) {
        for (i, word) in self.0.iter_mut().enumerate() {
            let hasher = KeyHasher::new(i as u128 + 1);
            let mut pair = [0; 16];
            pair[..8].copy_from_slice(&word.to_le_bytes());
            pair[8..].copy_from_slice(&hasher.hash(bytes).to_le_bytes());
            *word = hasher.hash(&pair);
        }
    }

    /// Adds another digest behind what came before.
    pub(crate) fn mix_digest(&mut self, other: &Self) {
        for word in other.0 {
            self.mix(&word.to_le_bytes());
        }
    }

    /// Adds another digest in no particular place: the sum does not depend on the order.
    pub(crate) fn add(&mut self, other: &Self) {
        for (word, more) in self.0.iter_mut().zip(other.0) {
            *word = word.wrapping_add(more);
        }
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.0.iter().flat_map(|word| word.to_be_bytes());
        bytes
            .take(BYTES)
            .try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// The digest of a value and its type. Its deadline does not count, only whether it has one.
pub(crate) fn of_value(entries: &Entries, slot: Slot) -> Digest {
    let mut digest = Digest::default();
    digest.mix(value::type_name(entries.tag(slot)).as_bytes());
    match value::string(entries, slot) {
        Ok(string) => digest.mix(value::bytes(&string)),
        Err(_) => debug_assert!(false, "a type without a digest"),
    }
    if entries.deadline(slot).is_some() {
        digest.mix(b"expires");
    }
    digest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(parts: &[&[u8]]) -> Digest {
        let mut digest = Digest::default();
        parts.iter().for_each(|part| digest.mix(part));
        digest
    }

    #[test]
    fn a_digest_knows_where_its_parts_end_and_in_which_order_they_came() {
        assert_eq!(Digest::default().to_string(), "0".repeat(40));
        let (ab, ba, whole) = (of(&[b"a", b"b"]), of(&[b"b", b"a"]), of(&[b"ab"]));
        assert!(ab != ba && ab != whole && ab != of(&[b"a", b"", b"b"]));
        assert_eq!(ab, of(&[b"a", b"b"]));
        assert_eq!(ab.to_string().len(), 40);
    }

    #[test]
    fn a_sum_is_the_same_in_any_order_and_two_equal_parts_do_not_cancel() {
        let (a, b) = (of(&[b"a"]), of(&[b"b"]));
        let sum = |parts: &[Digest]| {
            let mut sum = Digest::default();
            parts.iter().for_each(|part| sum.add(part));
            sum
        };
        assert_eq!(sum(&[a, b]), sum(&[b, a]));
        assert_ne!(sum(&[a, a]), Digest::default());
        let mut behind = a;
        behind.mix_digest(&b);
        assert_ne!(behind, sum(&[a, b]));
    }
}
