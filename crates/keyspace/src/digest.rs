//! Digests of data, for tests that compare what two keys or two servers hold.
//!
//! Equal values have equal digests, in every process. Nothing is promised between versions, nor
//! against somebody who looks for a collision.

use std::fmt;

use tidewheel_collections::{Hash, List, Set, ZSet};
use tidewheel_store::{KeyHasher, Slot};

use crate::time::Now;
use crate::value::collection::{is, read};
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

    /// Adds a member in no particular place, unless it is dead.
    fn add_living(&mut self, parts: &[&[u8]], deadline: Option<u64>, now: &Now) {
        if deadline.is_none_or(|deadline| !now.reached(deadline)) {
            self.add(&of_parts(parts, deadline));
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

/// The digest of a value and its type. Of deadlines it counts only whether there is one; dead
/// members do not count.
pub(crate) fn of_value(entries: &Entries, slot: Slot, now: &Now) -> Digest {
    let tag = entries.tag(slot);
    let mut digest = Digest::default();
    digest.mix(value::type_name(tag).as_bytes());
    let content = match () {
        () if is::<Hash>(tag) => of_hash(entries, slot, now),
        () if is::<Set>(tag) => of_set(entries, slot, now),
        () if is::<ZSet>(tag) => of_zset(entries, slot, now),
        () if is::<List>(tag) => of_list(entries, slot),
        () => of_parts(&[value::bytes(&entries.value(slot))], None),
    };
    digest.mix_digest(&content);
    if value::own_deadline(entries, slot).is_some() {
        digest.mix(EXPIRES);
    }
    digest
}

/// Stands for any deadline.
const EXPIRES: &[u8] = b"expires";

fn of_hash(entries: &Entries, slot: Slot, now: &Now) -> Digest {
    let mut sum = Digest::default();
    if let Ok(hash) = read::<Hash>(entries, slot) {
        hash.for_each(|field| {
            sum.add_living(&[field.key, field.value], field.deadline, now);
        });
    }
    sum
}

fn of_set(entries: &Entries, slot: Slot, now: &Now) -> Digest {
    let mut sum = Digest::default();
    if let Ok(set) = read::<Set>(entries, slot) {
        set.for_each(|member| sum.add_living(&[member.key], member.deadline, now));
    }
    sum
}

fn of_zset(entries: &Entries, slot: Slot, now: &Now) -> Digest {
    let mut sum = Digest::default();
    if let Ok(zset) = read::<ZSet>(entries, slot) {
        for member in zset.forward(0) {
            // Zero has two signs, which are equal.
            let score = (member.score + 0.0).to_le_bytes();
            sum.add_living(&[member.member, &score], member.deadline, now);
        }
    }
    sum
}

fn of_list(entries: &Entries, slot: Slot) -> Digest {
    let mut digest = Digest::default();
    if let Ok(list) = read::<List>(entries, slot) {
        list.forward(0).for_each(|element| digest.mix(element));
    }
    digest
}

fn of_parts(parts: &[&[u8]], deadline: Option<u64>) -> Digest {
    let mut digest = Digest::default();
    parts.iter().for_each(|part| digest.mix(part));
    if deadline.is_some() {
        digest.mix(EXPIRES);
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
