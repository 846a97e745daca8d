//! Values in the public format, which DUMP writes and RESTORE reads.
//!
//! A payload is a byte for the type, the value, two bytes for the format's version, and a checksum
//! (CRC-64) of all that. Payloads come from anywhere, so a reader trusts nothing: each length is
//! held against the bytes that are there, each count against what could be in them, and no member
//! may come twice.
//!
//! Servers from 7.0 on read what is written here. Fields with deadlines are read from 7.4 on.
//! Members of sets and sorted sets have deadlines nowhere else, so their types are our own.
//!
//! | file | idea |
//! |---|---|
//! | `envelope.rs` | type, version and checksum around a value |
//! | `crc64.rs` | the checksum |
//! | `reader.rs`, `writer.rs` | lengths and strings |
//! | `lzf.rs` | the compression of strings |
//! | `packed/` | strings that hold many elements |
//! | `functions.rs` | libraries of functions |
//! | `file.rs` | values as they stand in a snapshot |
//! | `hash.rs`, `list.rs`, `set.rs`, `zset.rs`, `stream.rs` | collections, in all forms that there ever were |

mod crc64;
mod envelope;
mod file;
mod functions;
mod hash;
mod list;
mod lzf;
mod packed;
mod reader;
mod set;
mod stream;
mod writer;
mod zset;

use tidewheel_collections::{
    Change, DEADLINE_MAX, Hash, List, ListLimits, NewDeadline, Set, Stream, ZSet,
};
use tidewheel_store::Value;

pub(crate) use self::crc64::Crc64;
use self::envelope::VERSION;
pub(crate) use self::envelope::{OpenedPayload, SkippedChecks, open};
pub(crate) use self::file::{load_from_file, read_string, write_for_file};
pub use self::functions::{read_functions, write_functions};
pub(crate) use self::hash::{FieldDeadlines, wall_of};
use self::reader::PayloadReader;
pub(crate) use self::writer::Writer;
use crate::format::FileFormat;
use crate::time::{Now, TimeOrigin, Unit};
use crate::value::collection::view;
use crate::value::{self, Object};

/// The bytes are no value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Malformed;

/// The types.
pub(crate) mod kind {
    pub(crate) const STRING: u8 = 0;
    pub(crate) const LIST: u8 = 1;
    pub(crate) const SET: u8 = 2;
    /// Scores are text.
    pub(crate) const ZSET: u8 = 3;
    pub(crate) const HASH: u8 = 4;
    /// Scores are binary.
    pub(crate) const ZSET_2: u8 = 5;
    pub(crate) const HASH_ZIPMAP: u8 = 9;
    pub(crate) const LIST_ZIPLIST: u8 = 10;
    pub(crate) const SET_INTSET: u8 = 11;
    pub(crate) const ZSET_ZIPLIST: u8 = 12;
    pub(crate) const HASH_ZIPLIST: u8 = 13;
    /// Of ziplists.
    pub(crate) const LIST_QUICKLIST: u8 = 14;
    /// Without ids and numbers that are known of the past.
    pub(crate) const STREAM: u8 = 15;
    pub(crate) const HASH_LISTPACK: u8 = 16;
    pub(crate) const ZSET_LISTPACK: u8 = 17;
    /// Of listpacks and of long elements.
    pub(crate) const LIST_QUICKLIST_2: u8 = 18;
    pub(crate) const STREAM_2: u8 = 19;
    pub(crate) const SET_LISTPACK: u8 = 20;
    /// With the times at which consumers were active.
    pub(crate) const STREAM_3: u8 = 21;
    /// Fields with deadlines; Valkey's, and of a Redis that was never released.
    pub(crate) const HASH_2: u8 = 22;
    pub(crate) const HASH_LISTPACK_EX_EARLY: u8 = 23;
    /// Fields with deadlines.
    pub(crate) const HASH_METADATA: u8 = 24;
    pub(crate) const HASH_LISTPACK_EX: u8 = 25;
    /// Members with deadlines: our own. The public format's types grow upwards, from below 40, and
    /// the marks of its files downwards, from above 240.
    pub(crate) const SET_TIMED: u8 = 140;
    pub(crate) const ZSET_TIMED: u8 = 141;
}

/// A value that was read from a payload. A collection is empty if, and only if, the deadlines of
/// all members have passed, or it had none and may be empty.
#[derive(Debug)]
pub(crate) enum RestoredValue {
    String(Vec<u8>),
    Hash(Hash),
    List(List),
    Set(Set),
    ZSet(ZSet),
    /// It may have no entries.
    Stream(Stream),
}

/// The time and the limits with which collections are read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReadParameters<'a> {
    pub(crate) now: Now,
    pub(crate) hash: Change<'a>,
    pub(crate) set: Change<'a>,
    pub(crate) zset: Change<'a>,
    pub(crate) list: ListLimits,
    /// The deadlines of the members, in their order, if the value's type has none: in eight bytes
    /// each, 0 for none.
    pub(crate) members: &'a [u8],
    /// A collection without members is read, and not refused.
    pub(crate) may_be_empty: bool,
}

impl ReadParameters<'_> {
    /// A number of members that follow, each of which takes some bytes at least.
    fn count(&self, reader: &mut PayloadReader<'_>, least_bytes: u64) -> Result<u64, Malformed> {
        let number = few(reader, least_bytes)?;
        match number > 0 || self.may_be_empty {
            true => Ok(number),
            false => Err(Malformed),
        }
    }

    /// The deadline of a member, as wall time, by its number.
    fn of_member(&self, number: usize) -> Option<u64> {
        let (deadlines, _) = self.members.as_chunks();
        let wall_ms = deadlines.get(number).copied().map(u64::from_le_bytes);
        wall_ms.filter(|wall_ms| *wall_ms > 0)
    }

    /// The deadline that a wall time means; `Err` if it was reached.
    fn deadline(&self, wall_ms: Option<u64>) -> Result<NewDeadline, DeadlinePassed> {
        let Some(wall_ms) = wall_ms else {
            return Ok(NewDeadline::None);
        };
        let wall_ms = i64::try_from(wall_ms).unwrap_or(i64::MAX);
        let deadline = self
            .now
            .deadline(wall_ms, Unit::Milliseconds, TimeOrigin::Epoch);
        match deadline {
            Some(deadline) if self.now.reached(deadline) => Err(DeadlinePassed),
            Some(deadline) => Ok(NewDeadline::At(deadline.min(DEADLINE_MAX))),
            None => Ok(NewDeadline::None),
        }
    }
}

/// The deadline has passed.
struct DeadlinePassed;

/// Reads the value of a payload.
pub(crate) fn load(
    opened: OpenedPayload<'_>,
    setting: &ReadParameters<'_>,
) -> Result<RestoredValue, Malformed> {
    let mut reader = PayloadReader::new(opened.value);
    let kind = reader.byte()?;
    let value = match kind {
        kind::STRING => RestoredValue::String(reader.string()?.into_owned()),
        kind::LIST | kind::LIST_ZIPLIST | kind::LIST_QUICKLIST | kind::LIST_QUICKLIST_2 => {
            RestoredValue::List(list::read(kind, &mut reader, setting)?)
        }
        kind::SET | kind::SET_INTSET | kind::SET_LISTPACK | kind::SET_TIMED => {
            RestoredValue::Set(set::read(kind, &mut reader, setting)?)
        }
        kind::ZSET | kind::ZSET_2 | kind::ZSET_ZIPLIST | kind::ZSET_LISTPACK | kind::ZSET_TIMED => {
            RestoredValue::ZSet(zset::read(kind, &mut reader, setting)?)
        }
        kind::STREAM | kind::STREAM_2 | kind::STREAM_3 => {
            RestoredValue::Stream(stream::read(kind, &mut reader)?)
        }
        _ => RestoredValue::Hash(hash::read(kind, &mut reader, opened.version, setting)?),
    };
    if reader.is_empty() {
        Ok(value)
    } else {
        Err(Malformed)
    }
}

/// The payload of a string.
pub(crate) fn of_string(bytes: &[u8]) -> Vec<u8> {
    let mut writer = Writer::empty();
    write_string(bytes, &mut writer);
    writer.seal(VERSION)
}

/// The payload of a value with that tag.
pub(crate) fn of_value(tag: u8, value: &Value<'_, Object>, now: &Now) -> Vec<u8> {
    let mut writer = Writer::empty();
    let version = write(tag, value, now, &mut writer);
    writer.seal(version)
}

/// As [`of_value`], for the servers that know no deadlines of members.
pub(crate) fn of_value_without_deadlines(tag: u8, value: &Value<'_, Object>, now: &Now) -> Vec<u8> {
    let (mut writer, mut members) = (Writer::empty(), Writer::empty());
    let format = FileFormat::default();
    write_for_file(tag, value, (now, format), (&mut writer, &mut members));
    writer.seal(VERSION)
}

/// Writes a value. Returns the version of the format that has the form.
fn write(tag: u8, value: &Value<'_, Object>, now: &Now, writer: &mut Writer) -> u16 {
    if let Some(hash) = view::<Hash>(tag, value) {
        return hash::write(hash, now, writer);
    } else if let Some(list) = view::<List>(tag, value) {
        list::write(list, writer);
    } else if let Some(set) = view::<Set>(tag, value) {
        set::write(set, now, writer);
    } else if let Some(zset) = view::<ZSet>(tag, value) {
        zset::write(zset, now, writer);
    } else if let Some(stream) = view::<Stream>(tag, value) {
        return stream::write(stream, writer);
    } else {
        write_string(value::bytes(value), writer);
    }
    VERSION
}

fn write_string(bytes: &[u8], writer: &mut Writer) {
    writer.reserve(bytes.len());
    writer.kind(kind::STRING);
    writer.string(bytes);
}

/// Bytes that the strings of a payload have, about. Whether it is sound is seen later.
pub(crate) fn measure(payload: &[u8]) -> usize {
    let mut reader = PayloadReader::new(payload);
    let declared = match reader.byte() {
        Ok(kind::LIST_QUICKLIST | kind::LIST_QUICKLIST_2) => list::measure(payload[0], reader),
        Ok(_) => reader.string_len().unwrap_or(0),
        Err(Malformed) => 0,
    };
    payload.len().max(declared)
}

/// A number of things that follow, which may be none. Each takes some bytes at least.
fn few(reader: &mut PayloadReader<'_>, least_bytes: u64) -> Result<u64, Malformed> {
    let number = reader.number()?;
    let least = number.checked_mul(least_bytes).ok_or(Malformed)?;
    match least > reader.rest().len() as u64 {
        true => Err(Malformed),
        false => Ok(number),
    }
}

#[cfg(test)]
mod tests;
