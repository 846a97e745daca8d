//! Sorted sets. Deadlines of members, as wall time in milliseconds, are our own addition.

use tidewheel_collections::{ZSet, ZSetRef};
use tidewheel_resp::{format_f64_short, parse_f64};

use super::packed::Elements;
use super::packed::listpack::{Builder, Listpack};
use super::packed::ziplist::Ziplist;
use super::reader::PayloadReader;
use super::writer::Writer;
use super::{Malformed, ReadParameters, kind};
use crate::time::Now;

pub(super) fn read(
    kind: u8,
    reader: &mut PayloadReader<'_>,
    setting: &ReadParameters<'_>,
) -> Result<ZSet, Malformed> {
    let mut zset = ZSet::new();
    match kind {
        kind::ZSET => {
            for _ in 0..setting.count(reader, 2)? {
                let member = reader.string()?;
                let score = read_score(reader)?;
                add(&mut zset, &member, score, None, setting)?;
            }
        }
        kind::ZSET_2 => {
            for number in 0..setting.count(reader, 9)? {
                let member = reader.string()?;
                let score = f64::from_le_bytes(reader.array()?);
                let wall_ms = setting.of_member(number as usize);
                add(&mut zset, &member, score, wall_ms, setting)?;
            }
        }
        kind::ZSET_TIMED => {
            for _ in 0..setting.count(reader, 17)? {
                let member = reader.string()?;
                let score = f64::from_le_bytes(reader.array()?);
                let wall_ms = u64::from_le_bytes(reader.array()?);
                let wall_ms = (wall_ms > 0).then_some(wall_ms);
                add(&mut zset, &member, score, wall_ms, setting)?;
            }
            return Ok(zset);
        }
        kind::ZSET_ZIPLIST => add_pairs(&mut zset, Ziplist::new(&reader.string()?)?, setting)?,
        _ => add_pairs(&mut zset, Listpack::new(&reader.string()?)?, setting)?,
    }
    // The deadlines of all may have passed.
    if zset.get().is_empty() && setting.members.is_empty() && !setting.may_be_empty {
        Err(Malformed)
    } else {
        Ok(zset)
    }
}

/// A score as text behind its length, which may also say that it is infinite, or no number.
fn read_score(reader: &mut PayloadReader<'_>) -> Result<f64, Malformed> {
    match reader.byte()? {
        255 => Ok(f64::NEG_INFINITY),
        254 => Ok(f64::INFINITY),
        253 => Err(Malformed),
        len => parse_f64(reader.take(len.into())?).ok_or(Malformed),
    }
}

fn add_pairs<'e>(
    zset: &mut ZSet,
    mut elements: impl Elements<'e>,
    setting: &ReadParameters<'_>,
) -> Result<(), Malformed> {
    let mut memory = itoa::Buffer::new();
    while let Some(member) = elements.next() {
        let score = elements.next().ok_or(Malformed)??;
        let score = parse_f64(score.text(&mut memory)).ok_or(Malformed)?;
        add(zset, member?.text(&mut memory), score, None, setting)?;
    }
    Ok(())
}

fn add(
    zset: &mut ZSet,
    member: &[u8],
    score: f64,
    wall_ms: Option<u64>,
    setting: &ReadParameters<'_>,
) -> Result<(), Malformed> {
    if score.is_nan() {
        return Err(Malformed);
    }
    let Ok(deadline) = setting.deadline(wall_ms) else {
        return Ok(());
    };
    let old = zset.insert(member, score, deadline, &setting.zset);
    if old.is_none() {
        Ok(())
    } else {
        Err(Malformed)
    }
}

/// Writes a sorted set.
pub(super) fn write(zset: ZSetRef<'_>, now: &Now, writer: &mut Writer) {
    if zset.is_timed() {
        return write_binary(kind::ZSET_TIMED, zset, Some(now), writer);
    }
    match zset {
        ZSetRef::Packed(_) => write_packed(zset, writer),
        ZSetRef::Large(_) => write_plain(zset, writer),
    }
}

fn write_packed(zset: ZSetRef<'_>, writer: &mut Writer) {
    let mut listpack = Builder::new();
    for scored in zset.forward(0) {
        listpack.push(scored.member);
        listpack.push(format_f64_short(scored.score).as_bytes());
    }
    writer.kind(kind::ZSET_LISTPACK);
    writer.string(&listpack.finish());
}

/// Writes a sorted set without deadlines.
pub(super) fn write_plain(zset: ZSetRef<'_>, writer: &mut Writer) {
    write_binary(kind::ZSET_2, zset, None, writer);
}

fn write_binary(kind: u8, zset: ZSetRef<'_>, timed: Option<&Now>, writer: &mut Writer) {
    writer.kind(kind);
    writer.number(zset.len() as u64);
    zset.forward(0).for_each(|scored| {
        writer.string(scored.member);
        writer.bytes(&scored.score.to_le_bytes());
        if let Some(now) = timed {
            writer.deadline(scored.deadline, now);
        }
    });
}
