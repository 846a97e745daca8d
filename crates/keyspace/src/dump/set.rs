//! Sets. Deadlines of members, as wall time in milliseconds, are our own addition.

use tidewheel_collections::{Set, SetForm, SetRef};
use tidewheel_resp::parse_i64;

use super::packed::listpack::Listpack;
use super::packed::{Elements, intset};
use super::reader::PayloadReader;
use super::writer::Writer;
use super::{Malformed, ReadParameters, kind};
use crate::time::Now;

pub(super) fn read(
    kind: u8,
    reader: &mut PayloadReader<'_>,
    setting: &ReadParameters<'_>,
) -> Result<Set, Malformed> {
    let mut set = Set::new();
    match kind {
        kind::SET => {
            for number in 0..setting.count(reader, 1)? {
                let wall_ms = setting.of_member(number as usize);
                add(&mut set, &reader.string()?, wall_ms, setting)?;
            }
        }
        kind::SET_TIMED => {
            for _ in 0..setting.count(reader, 9)? {
                let member = reader.string()?;
                let wall_ms = u64::from_le_bytes(reader.array()?);
                add(&mut set, &member, (wall_ms > 0).then_some(wall_ms), setting)?;
            }
            return Ok(set);
        }
        kind::SET_INTSET => add_all(&mut set, intset::read(&reader.string()?)?, setting)?,
        _ => add_all(&mut set, Listpack::new(&reader.string()?)?, setting)?,
    }
    // The deadlines of all may have passed.
    if set.get().is_empty() && setting.members.is_empty() && !setting.may_be_empty {
        Err(Malformed)
    } else {
        Ok(set)
    }
}

fn add_all<'e>(
    set: &mut Set,
    elements: impl Elements<'e>,
    setting: &ReadParameters<'_>,
) -> Result<(), Malformed> {
    let mut memory = itoa::Buffer::new();
    for element in elements {
        add(set, element?.text(&mut memory), None, setting)?;
    }
    Ok(())
}

fn add(
    set: &mut Set,
    member: &[u8],
    wall_ms: Option<u64>,
    setting: &ReadParameters<'_>,
) -> Result<(), Malformed> {
    let Ok(deadline) = setting.deadline(wall_ms) else {
        return Ok(());
    };
    let new = set.insert(member, deadline, &setting.set);
    if new { Ok(()) } else { Err(Malformed) }
}

/// Writes a set.
pub(super) fn write(set: SetRef<'_>, now: &Now, writer: &mut Writer) {
    if set.is_timed() {
        write_timed(set, now, writer);
    } else if set.form() == SetForm::Integers {
        write_integers(set, writer);
    } else {
        write_plain(set, writer);
    }
}

/// Writes a set without deadlines.
pub(super) fn write_plain(set: SetRef<'_>, writer: &mut Writer) {
    writer.kind(kind::SET);
    writer.number(set.len() as u64);
    set.for_each(|entry| writer.string(entry.key));
}

fn write_integers(set: SetRef<'_>, writer: &mut Writer) {
    let mut numbers = Vec::with_capacity(set.len());
    set.for_each(|entry| numbers.extend(parse_i64(entry.key)));
    numbers.sort_unstable();
    writer.kind(kind::SET_INTSET);
    writer.string(&intset::write(&numbers));
}

fn write_timed(set: SetRef<'_>, now: &Now, writer: &mut Writer) {
    writer.kind(kind::SET_TIMED);
    writer.number(set.len() as u64);
    set.for_each(|entry| {
        writer.string(entry.key);
        writer.deadline(entry.deadline, now);
    });
}
