//! Digests of data, for tests that compare what two keys or two servers hold.
//!
//! Equal values have equal digests, in every process. Nothing is promised between versions, nor
//! against somebody who looks for a collision.

use std::fmt;

use tidewheel_collections::{Element, Hash, List, Set, Stream, StreamId, ZSet};
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
        () if is::<Stream>(tag) => of_stream(entries, slot),
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

/// The entries, the ids that are known beside them, and what the groups were given.
fn of_stream(entries: &Entries, slot: Slot) -> Digest {
    let mut digest = Digest::default();
    let Ok(stream) = read::<Stream>(entries, slot) else {
        return digest;
    };
    let log = &stream.log;
    for entry in log.range(StreamId::MIN, StreamId::MAX) {
        digest.mix(&entry.id.to_bytes());
        for element in entry.fields.flat_map(|(name, value)| [name, value]) {
            match element {
                Element::Bytes(bytes) => digest.mix(bytes),
                Element::Integer(number) => digest.mix(number.to_string().as_bytes()),
            }
        }
    }
    digest.mix(&log.last_id().to_bytes());
    digest.mix(&log.max_deleted_id().to_bytes());
    digest.mix(&log.entries_added().to_le_bytes());
    for group in stream.groups.iter() {
        digest.mix(group.name());
        digest.mix(&group.last.to_bytes());
        digest.mix(format!("{:?}", group.entries_read).as_bytes());
        for consumer in group.consumers() {
            digest.mix(consumer.name());
            for id in consumer.pending_from(StreamId::MIN) {
                digest.mix(&id.to_bytes());
            }
        }
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
