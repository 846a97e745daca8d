//! Values as they stand in a snapshot: without an envelope. Deadlines of members stand apart.

use std::borrow::Cow;

use tidewheel_collections::{Hash, Set, Stream, ZSet};
use tidewheel_store::Value;

use super::envelope::OpenedPayload;
use super::hash::FieldDeadlines;
use super::reader::PayloadReader;
use super::{Malformed, ReadParameters, RestoredValue, Writer, hash, load, set, stream, zset};
use crate::format::FileFormat;
use crate::time::Now;
use crate::value::collection::view;
use crate::value::{Object, TAG_HASH_TIMED, TAG_SET_TIMED, TAG_ZSET_TIMED};

/// Writes a value, its type first. Deadlines of its members for which the format has no word are
/// written apart.
pub(crate) fn write_for_file(
    tag: u8,
    value: &Value<'_, Object>,
    (now, format): (&Now, FileFormat),
    (writer, members): (&mut Writer, &mut Writer),
) {
    let mut note = |deadline| members.deadline(deadline, now);
    if tag == TAG_HASH_TIMED
        && let Some(hash) = view::<Hash>(tag, value)
    {
        let deadlines = FieldDeadlines::of(format, || hash::earliest(hash, now));
        if deadlines == FieldDeadlines::Apart {
            hash.for_each(|field| note(field.deadline));
        }
        writer.kind(deadlines.kind());
        hash::write_as(hash, deadlines, now, writer);
    } else if tag == TAG_SET_TIMED
        && let Some(set) = view::<Set>(tag, value)
    {
        set.for_each(|member| note(member.deadline));
        set::write_plain(set, writer);
    } else if tag == TAG_ZSET_TIMED
        && let Some(zset) = view::<ZSet>(tag, value)
    {
        zset.forward(0).for_each(|scored| note(scored.deadline));
        zset::write_plain(zset, writer);
    } else if let Some(stream) = view::<Stream>(tag, value) {
        stream::write_as(stream, format.has_active_times(), writer);
    } else {
        super::write(tag, value, now, writer);
    }
}

/// Reads a type and a value that a file of this version holds.
pub(crate) fn load_from_file(
    value: &[u8],
    version: u16,
    setting: &ReadParameters<'_>,
) -> Result<RestoredValue, Malformed> {
    load(OpenedPayload { version, value }, setting)
}

/// Reads a string of a file.
pub(crate) fn read_string(bytes: &[u8]) -> Result<Cow<'_, [u8]>, Malformed> {
    let mut reader = PayloadReader::new(bytes);
    let string = reader.string()?;
    reader.is_empty().then_some(string).ok_or(Malformed)
}
