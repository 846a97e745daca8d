//! A walk over the members of a large collection that shows each as it was when the walk began,
//! while the collection goes on changing. A snapshot walks so.
//!
//! ```text
//!             places of hashes, ascending
//!   ┌──────────────────────┬───────────────────────────────┐
//!   │ shown                │ ahead                         │
//!   └──────────────────────┴───────────────────────────────┘
//!                        cursor
//! ```
//!
//! The walk goes in the order of the hashes, so a member's hash says whether it was shown. Before a
//! member ahead is changed for the first time, it is *kept*: copied as it is. A new one ahead is
//! *claimed*, which means that there is nothing to show of it. The walk passes over both, and shows
//! what was kept when it comes to take it.
//!
//! Hashes stand for members here. They have 64 bits, and nobody can choose members whose hashes are
//! equal.

use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};

use tidewheel_store::{Slot, Store};

/// About the bytes that one claimed hash takes.
const CLAIM_BYTES: usize = 16;

/// Hashes ahead of a walk that it passes over.
type Claims = HashSet<u64, BuildHasherDefault<IsHash>>;

/// What is hashed is a hash.
#[derive(Debug, Default)]
struct IsHash(u64);

impl Hasher for IsHash {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

/// How far a walk in the order of hashes has come, and what it passes over.
#[derive(Debug)]
pub struct Course {
    /// The place that is next; `None` at the end.
    cursor: Option<u32>,
    claims: Claims,
}

impl Default for Course {
    fn default() -> Self {
        Self {
            cursor: Some(0),
            claims: Claims::default(),
        }
    }
}

impl Course {
    /// The place that is next; `None` at the end.
    #[must_use]
    pub fn cursor(&self) -> Option<u32> {
        self.cursor
    }

    /// The walk has come to a place.
    pub fn go_to(&mut self, cursor: Option<u32>) {
        self.cursor = cursor;
        if cursor.is_none() {
            self.claims = Claims::default();
        }
    }

    /// Notes that something with that hash is about to change, to come or to go. True, once, if it
    /// is ahead.
    pub fn claim(&mut self, hash: u64) -> bool {
        let is_ahead = self.cursor.is_some_and(|cursor| hash as u32 >= cursor);
        is_ahead && self.claims.insert(hash)
    }

    /// True if the walk passes over what has that hash.
    #[must_use]
    pub fn passes_over(&self, hash: u64) -> bool {
        self.claims.contains(&hash)
    }

    /// True if it passes over nothing.
    #[must_use]
    pub fn is_free(&self) -> bool {
        self.claims.is_empty()
    }

    /// Bytes that the claims take, about.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.claims.len() * CLAIM_BYTES
    }
}

/// Members as bytes, one after another.
#[derive(Debug, Default)]
pub struct CopiedMembers {
    bytes: Vec<u8>,
    count: u64,
}

/// No deadline.
const NO_DEADLINE: u64 = u64::MAX;

impl CopiedMembers {
    /// Appends a member: a field and its value, a member of a set and nothing, one of a sorted set
    /// and the eight bytes of its score.
    pub fn push(&mut self, member: &[u8], value: &[u8], deadline: Option<u64>) {
        for len in [member.len(), value.len()] {
            self.bytes.extend_from_slice(&(len as u64).to_le_bytes());
        }
        let deadline = deadline.unwrap_or(NO_DEADLINE);
        self.bytes.extend_from_slice(&deadline.to_le_bytes());
        self.bytes.extend_from_slice(member);
        self.bytes.extend_from_slice(value);
        self.count += 1;
    }

    /// Appends all of others.
    pub fn append(&mut self, others: &Self) {
        self.bytes.extend_from_slice(&others.bytes);
        self.count += others.count;
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Bytes held.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes.capacity()
    }

    /// Shows each: member, value, deadline.
    pub fn for_each(&self, mut show: impl FnMut(&[u8], &[u8], Option<u64>)) {
        let mut rest = &self.bytes[..];
        while let Some((head, behind)) = rest.split_first_chunk::<24>() {
            let (numbers, _) = head.as_chunks();
            let [member, value, deadline] = [0, 1, 2].map(|i| u64::from_le_bytes(numbers[i]));
            let (member, behind) = behind.split_at(member as usize);
            let (value, behind) = behind.split_at(value as usize);
            show(member, value, (deadline != NO_DEADLINE).then_some(deadline));
            rest = behind;
        }
    }
}

/// A collection whose members a walk can show.
pub trait Walked {
    /// Begins a walk that shows each member as it is now.
    fn begin_walk(&mut self);

    /// Goes on over about `count` members, and appends them. False at the end.
    fn walk_on(&mut self, count: usize, into: &mut CopiedMembers) -> bool;

    /// Takes the members that have changed, as they were.
    fn take_kept(&mut self) -> CopiedMembers;

    /// Bytes that the walk holds.
    fn walk_bytes(&self) -> usize;

    /// Ends the walk.
    fn end_walk(&mut self);
}

/// The walk over a collection, while there is one.
#[derive(Debug, Default)]
pub(crate) struct Walk(Option<Box<Walking>>);

#[derive(Debug, Default)]
struct Walking {
    course: Course,
    /// Members that have changed, as they were.
    kept: CopiedMembers,
}

impl Walk {
    pub(crate) fn begin(&mut self) {
        self.0 = Some(Box::default());
    }

    pub(crate) fn end(&mut self) {
        self.0 = None;
    }

    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.0.is_some()
    }

    pub(crate) fn bytes(&self) -> usize {
        let of = |walking: &Walking| walking.course.bytes() + walking.kept.bytes();
        self.0.as_deref().map_or(0, of)
    }

    pub(crate) fn take_kept(&mut self) -> CopiedMembers {
        let kept = self.0.as_mut().map(|walking| &mut walking.kept);
        kept.map(std::mem::take).unwrap_or_default()
    }

    /// A member with that hash comes.
    #[inline]
    pub(crate) fn claim(&mut self, hash: u64) {
        if let Some(walking) = &mut self.0 {
            walking.course.claim(hash);
        }
    }

    /// Keeps a member before it changes.
    #[cold]
    pub(crate) fn keep(&mut self, hash: u64, member: &[u8], value: &[u8], deadline: Option<u64>) {
        if let Some(walking) = &mut self.0
            && walking.course.claim(hash)
        {
            walking.kept.push(member, value, deadline);
        }
    }

    /// Goes on over the members of a store, whose values `value` finds.
    pub(crate) fn go_on<O, V: AsRef<[u8]>>(
        &mut self,
        members: &Store<O>,
        count: usize,
        value: impl Fn(Slot) -> V,
        into: &mut CopiedMembers,
    ) -> bool {
        let Some(Walking { course, .. }) = self.0.as_deref_mut() else {
            return false;
        };
        let Some(cursor) = course.cursor() else {
            return false;
        };
        let free = course.is_free();
        let mut slots = Vec::with_capacity(members.len().min(count) + 8);
        let next = members.scan(cursor, count, |slot| slots.push(slot));
        slots.iter().for_each(|slot| members.warm(*slot));
        for slot in slots {
            if free || !course.passes_over(members.hash(slot)) {
                let value = value(slot);
                into.push(members.key(slot), value.as_ref(), members.deadline(slot));
            }
        }
        course.go_to(next);
        next.is_some()
    }
}
