//! Values of a file for those who look at them and store them nowhere.

use std::sync::atomic::Ordering::Relaxed;

use tidewheel_collections::{Change, Element, Limits, StreamId};
use tidewheel_resp::format_f64_short;
use tidewheel_store::KeyHasher;

use super::error::SnapshotError;
use super::reader::SnapshotKey;
use crate::dump::{self, ReadParameters, RestoredValue};
use crate::packing::{PackedLimit, Packing};
use crate::time::{Now, Time};
use crate::value::collection::Collection;

/// Reads values.
#[derive(Debug)]
pub struct SnapshotValues {
    hasher: KeyHasher,
    packing: Packing,
}

/// A value of a file, with all that it holds.
#[derive(Debug)]
pub struct SnapshotValue(RestoredValue);

/// A part of a value. A deadline is wall time in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SnapshotPart<'a> {
    /// A string.
    Text(&'a [u8]),
    /// An element of a list.
    Element(&'a [u8]),
    /// A member of a set, and its deadline.
    Member(&'a [u8], Option<u64>),
    /// A field of a hash, its value, and its deadline.
    Field(&'a [u8], &'a [u8], Option<u64>),
    /// A member of a sorted set, its score as text, and its deadline.
    Scored(&'a [u8], &'a str, Option<u64>),
    /// The id of a stream's entry, whose fields follow.
    Id(u64, u64),
    /// A field of a stream's entry, and its value.
    EntryField(&'a [u8], &'a [u8]),
    /// A group of a stream.
    Group(&'a [u8]),
}

impl SnapshotValues {
    /// Values are read into collections, whose members are hashed with this secret.
    #[must_use]
    pub fn new(seed: u128) -> Self {
        Self {
            hasher: KeyHasher::new(seed),
            packing: Packing::default(),
        }
    }

    /// Reads a key's value.
    ///
    /// # Errors
    ///
    /// If its type is not known, or its bytes make no sense.
    pub fn read(&self, key: &SnapshotKey<'_>) -> Result<SnapshotValue, SnapshotError> {
        let (kind, at) = (key.kind, key.at);
        let value = key.value.ok_or(SnapshotError::UnknownType { kind, at })?;
        // Engine time is wall time here, and it is 1970: nothing is dead.
        let now = Now::of_engine(Time {
            tick: 0,
            micros: 0,
            wall_offset_ms: 0,
        });
        let change = |limit: PackedLimit| Change {
            now: now.tick,
            limits: Limits {
                entries: limit.entries as usize,
                value: limit.value as usize,
                integers: self.packing.intset_entries.load(Relaxed) as usize,
            },
            hasher: &self.hasher,
        };
        let parameters = ReadParameters {
            now,
            hash: change(self.packing.hash.get()),
            set: change(self.packing.set.get()),
            zset: change(self.packing.zset.get()),
            list: self.packing.list(),
            members: &key.members,
            may_be_empty: true,
        };
        let value = dump::load_from_file(value, key.version, &parameters);
        value
            .map(SnapshotValue)
            .map_err(|_| SnapshotError::Malformed { at })
    }
}

impl SnapshotValue {
    /// The name of its type, as TYPE says it.
    #[must_use]
    pub fn type_name(&self) -> &'static str {
        match &self.0 {
            RestoredValue::String(_) => "string",
            RestoredValue::Hash(_) => "hash",
            RestoredValue::List(_) => "list",
            RestoredValue::Set(_) => "set",
            RestoredValue::ZSet(_) => "zset",
            RestoredValue::Stream(_) => "stream",
        }
    }

    /// Its length: bytes of a string, members, elements or entries of others.
    #[must_use]
    pub fn len(&self) -> usize {
        match &self.0 {
            RestoredValue::String(bytes) => bytes.len(),
            RestoredValue::Hash(hash) => Collection::len(hash),
            RestoredValue::List(list) => Collection::len(list),
            RestoredValue::Set(set) => Collection::len(set),
            RestoredValue::ZSet(zset) => Collection::len(zset),
            RestoredValue::Stream(stream) => Collection::len(stream),
        }
    }

    /// True if it is a collection without members, which is loaded nowhere.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_over()
    }

    /// True if some of its members have deadlines.
    #[must_use]
    pub fn has_member_deadlines(&self) -> bool {
        match &self.0 {
            RestoredValue::Hash(hash) => hash.get().is_timed(),
            RestoredValue::Set(set) => set.get().is_timed(),
            RestoredValue::ZSet(zset) => zset.get().is_timed(),
            RestoredValue::String(_) | RestoredValue::List(_) | RestoredValue::Stream(_) => false,
        }
    }

    /// Visits all its parts.
    pub fn for_each(&self, visit: &mut dyn FnMut(SnapshotPart<'_>)) {
        match &self.0 {
            RestoredValue::String(bytes) => visit(SnapshotPart::Text(bytes)),
            RestoredValue::Hash(hash) => hash.get().for_each(|entry| {
                visit(SnapshotPart::Field(entry.key, entry.value, entry.deadline));
            }),
            RestoredValue::List(list) => {
                (list.get().forward(0)).for_each(|element| visit(SnapshotPart::Element(element)));
            }
            RestoredValue::Set(set) => (set.get())
                .for_each(|member| visit(SnapshotPart::Member(member.key, member.deadline))),
            RestoredValue::ZSet(zset) => zset.get().forward(0).for_each(|scored| {
                let score = format_f64_short(scored.score);
                visit(SnapshotPart::Scored(scored.member, &score, scored.deadline));
            }),
            RestoredValue::Stream(stream) => {
                for entry in stream.log.range(StreamId::MIN, StreamId::MAX) {
                    visit(SnapshotPart::Id(entry.id.ms, entry.id.seq));
                    for (name, value) in entry.fields {
                        let mut memory = [itoa::Buffer::new(), itoa::Buffer::new()];
                        let [first, second] = &mut memory;
                        visit(SnapshotPart::EntryField(
                            text(name, first),
                            text(value, second),
                        ));
                    }
                }
                for group in stream.groups.iter() {
                    visit(SnapshotPart::Group(group.name()));
                }
            }
        }
    }
}

fn text<'a>(element: Element<'a>, memory: &'a mut itoa::Buffer) -> &'a [u8] {
    match element {
        Element::Bytes(bytes) => bytes,
        Element::Integer(number) => memory.format(number).as_bytes(),
    }
}
