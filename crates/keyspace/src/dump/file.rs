//! Values as they stand in a snapshot: without an envelope. Deadlines of members stand apart.

use tidewheel_collections::{Hash, Set, Stream, ZSet};
use tidewheel_store::Slot;

use super::envelope::{OpenedPayload, unseal};
use super::reader::PayloadReader;
use super::{Malformed, ReadParameters, RestoredValue, Writer, hash, load, set, stream, zset};
use crate::time::Now;
use crate::value::collection::read;
use crate::value::{Entries, TAG_HASH_TIMED, TAG_SET_TIMED, TAG_STREAM, TAG_ZSET_TIMED};

/// The type and the value of an entry, and the deadlines of its members if they have any.
pub(crate) fn for_file(
    entries: &Entries,
    slot: Slot,
    now: &Now,
    payload: impl FnOnce() -> Vec<u8>,
) -> (Vec<u8>, Vec<u8>) {
    let mut members = Writer::empty();
    let mut note = |deadline| members.deadline(deadline, now);
    let value = match entries.tag(slot) {
        TAG_HASH_TIMED => read::<Hash>(entries, slot).ok().map(|of| {
            of.for_each(|field| note(field.deadline));
            hash::write_plain(of)
        }),
        TAG_SET_TIMED => read::<Set>(entries, slot).ok().map(|of| {
            of.for_each(|member| note(member.deadline));
            set::write_plain(of)
        }),
        TAG_ZSET_TIMED => read::<ZSet>(entries, slot).ok().map(|of| {
            of.forward(0).for_each(|scored| note(scored.deadline));
            zset::write_plain(of)
        }),
        // Redis 7.0 reads no active times.
        TAG_STREAM => read::<Stream>(entries, slot).ok().map(stream::write_plain),
        _ => None,
    };
    let value = value.map_or_else(|| unseal(payload()), |mut value| value.take());
    (value, members.take())
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
pub(crate) fn read_string(bytes: &[u8]) -> Result<Vec<u8>, Malformed> {
    let mut reader = PayloadReader::new(bytes);
    let string = reader.string()?.into_owned();
    reader.is_empty().then_some(string).ok_or(Malformed)
}
