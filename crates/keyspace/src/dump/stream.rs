//! Streams.
//!
//! ```text
//! chunks: how many, and for each its first id and a listpack
//! entries · last id · [first id · highest deleted id · entries added]        from 7.0 on
//! groups: how many, and for each
//!     name · last id · [entries read]
//!     pending entries: how many, and for each id · when it was given · how often
//!     consumers: how many, and for each name · when seen · [when active] and its ids    from 7.2 on
//! ```

use tidewheel_collections::{Group, Pending, Stream, StreamId};

use super::envelope::{VERSION, VERSION_OF_ACTIVE_TIMES};
use super::reader::PayloadReader;
use super::writer::Writer;
use super::{Malformed, few, kind};

/// The number of entries read that means that nobody knows.
const UNKNOWN: u64 = u64::MAX;
/// The time of a consumer that was never given anything.
const NEVER: i64 = -1;

pub(super) fn read(kind: u8, reader: &mut PayloadReader<'_>) -> Result<Stream, Malformed> {
    let mut stream = Stream::new();
    let log = &mut stream.log;
    for _ in 0..few(reader, 18)? {
        let first = <[u8; 16]>::try_from(&*reader.string()?).map_err(|_| Malformed)?;
        let first = StreamId::from_bytes(first);
        log.push_public(first, &reader.string()?).ok_or(Malformed)?;
    }
    let len = reader.number()?;
    let last = id(reader)?;
    if len != log.len() || last < log.last_id() {
        return Err(Malformed);
    }
    log.set_last_id(last);
    log.set_entries_added(len);
    if kind != kind::STREAM {
        // The first id follows from the entries.
        id(reader)?;
        let max_deleted = id(reader)?;
        let added = reader.number()?;
        if max_deleted > last || added < len {
            return Err(Malformed);
        }
        log.set_max_deleted_id(max_deleted);
        log.set_entries_added(added);
    }
    for _ in 0..few(reader, 5)? {
        let name = reader.string()?;
        let last = id(reader)?;
        let read = match kind {
            kind::STREAM => stream.log.read_until(last).unwrap_or(UNKNOWN),
            _ => reader.number()?,
        };
        let read = (read != UNKNOWN).then_some(read);
        if !stream.groups.create(&name, last, read) {
            return Err(Malformed);
        }
        let group = |group: &mut Group| read_group(kind, reader, group);
        stream.groups.edit(&name, group).ok_or(Malformed)??;
    }
    Ok(stream)
}

/// Reads what a group's consumers were given.
fn read_group(
    kind: u8,
    reader: &mut PayloadReader<'_>,
    group: &mut Group,
) -> Result<(), Malformed> {
    let mut given = Vec::new();
    for _ in 0..few(reader, 25)? {
        let id = StreamId::from_bytes(reader.array()?);
        let delivered_ms = i64::from_le_bytes(reader.array()?);
        given.push((id, delivered_ms, reader.number()?));
    }
    if !given.is_sorted_by_key(|(id, ..)| *id) {
        return Err(Malformed);
    }
    for _ in 0..few(reader, 10)? {
        let name = reader.string()?;
        let seen_ms = i64::from_le_bytes(reader.array()?);
        let active_ms = match kind {
            kind::STREAM_3 => i64::from_le_bytes(reader.array()?),
            _ => seen_ms,
        };
        let (consumer, true) = group.consumer_or_new(&name, seen_ms) else {
            return Err(Malformed);
        };
        group.consumer_mut(consumer).active_ms = (active_ms != NEVER).then_some(active_ms);
        for _ in 0..few(reader, 16)? {
            let id = StreamId::from_bytes(reader.array()?);
            let place = given.binary_search_by_key(&id, |(id, ..)| *id);
            let (_, delivered_ms, deliveries) = given[place.map_err(|_| Malformed)?];
            if group.pending(id).is_some() {
                return Err(Malformed);
            }
            group.assign(
                id,
                Pending {
                    consumer,
                    delivered_ms,
                    deliveries,
                },
            );
        }
    }
    // Each has a consumer, and none comes twice.
    if group.pending_len() == given.len() {
        Ok(())
    } else {
        Err(Malformed)
    }
}

fn id(reader: &mut PayloadReader<'_>) -> Result<StreamId, Malformed> {
    Ok(StreamId::new(reader.number()?, reader.number()?))
}

/// Writes a stream. Returns the version of the format that has the form. Servers before 7.2 have no
/// active times: where none differs from the time when the consumer was seen, the form is one that
/// they read.
pub(super) fn write(stream: &Stream, writer: &mut Writer) -> u16 {
    let mut consumers = stream.groups.iter().flat_map(Group::consumers);
    let has_active = consumers.any(|consumer| consumer.active_ms != Some(consumer.seen_ms));
    write_as(stream, has_active, writer);
    match has_active {
        true => VERSION_OF_ACTIVE_TIMES,
        false => VERSION,
    }
}

/// Writes a stream, with the times at which consumers were active or without.
pub(super) fn write_as(stream: &Stream, has_active: bool, writer: &mut Writer) {
    let kind = if has_active {
        kind::STREAM_3
    } else {
        kind::STREAM_2
    };
    let log = &stream.log;
    writer.reserve(stream.heap_bytes());
    writer.kind(kind);
    writer.number(log.chunks() as u64);
    log.for_each_public(|first, public| {
        writer.string(&first.to_bytes());
        writer.string(public);
    });
    writer.number(log.len());
    for id in [log.last_id(), log.first_id(), log.max_deleted_id()] {
        write_id(writer, id);
    }
    writer.number(log.entries_added());
    writer.number(stream.groups.iter().len() as u64);
    for group in stream.groups.iter() {
        write_group(writer, group, has_active);
    }
}

fn write_group(writer: &mut Writer, group: &Group, has_active: bool) {
    writer.string(group.name());
    write_id(writer, group.last);
    writer.number(group.entries_read.unwrap_or(UNKNOWN));
    writer.number(group.pending_len() as u64);
    for (id, pending) in group.pending_from(StreamId::MIN) {
        writer.bytes(&id.to_bytes());
        writer.bytes(&pending.delivered_ms.to_le_bytes());
        writer.number(pending.deliveries);
    }
    writer.number(group.consumers().len() as u64);
    for consumer in group.consumers() {
        writer.string(consumer.name());
        writer.bytes(&consumer.seen_ms.to_le_bytes());
        if has_active {
            writer.bytes(&consumer.active_ms.unwrap_or(NEVER).to_le_bytes());
        }
        writer.number(consumer.pending() as u64);
        for id in consumer.pending_from(StreamId::MIN) {
            writer.bytes(&id.to_bytes());
        }
    }
}

fn write_id(writer: &mut Writer, id: StreamId) {
    writer.number(id.ms);
    writer.number(id.seq);
}
