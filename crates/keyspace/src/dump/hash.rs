//! Hashes. A field may have a deadline, as wall time in milliseconds.

use tidewheel_collections::{Hash, HashRef};

use super::envelope::{VERSION, VERSION_OF_FIELD_DEADLINES, is_valkey};
use super::packed::listpack::{Builder, Listpack};
use super::packed::ziplist::Ziplist;
use super::packed::zipmap::Zipmap;
use super::packed::{Element, Elements};
use super::reader::PayloadReader;
use super::writer::Writer;
use super::{Malformed, ReadParameters, kind};
use crate::format::FileFormat;
use crate::time::Now;

pub(super) fn read(
    kind: u8,
    reader: &mut PayloadReader<'_>,
    version: u16,
    setting: &ReadParameters<'_>,
) -> Result<Hash, Malformed> {
    let mut build = Build::new(setting);
    match kind {
        kind::HASH => build.read_plain(reader)?,
        kind::HASH_2 if is_valkey(version) => build.read_valkey(reader)?,
        kind::HASH_2 => build.read_timed(reader, 1)?,
        kind::HASH_METADATA => {
            let earliest = u64::from_le_bytes(reader.array()?);
            build.read_timed(reader, earliest)?;
        }
        kind::HASH_ZIPMAP => build.read_pairs(Zipmap::new(&reader.string()?)?)?,
        kind::HASH_ZIPLIST => build.read_pairs(Ziplist::new(&reader.string()?)?)?,
        kind::HASH_LISTPACK => build.read_pairs(Listpack::new(&reader.string()?)?)?,
        kind::HASH_LISTPACK_EX_EARLY => build.read_triples(Listpack::new(&reader.string()?)?)?,
        kind::HASH_LISTPACK_EX => {
            reader.array::<8>()?;
            build.read_triples(Listpack::new(&reader.string()?)?)?;
        }
        _ => return Err(Malformed),
    }
    build.finish()
}

/// A hash that is being read.
struct Build<'a> {
    hash: Hash,
    setting: &'a ReadParameters<'a>,
    /// Fields so far, those included whose deadline has passed.
    met: u64,
}

impl<'a> Build<'a> {
    fn new(setting: &'a ReadParameters<'a>) -> Self {
        Self {
            hash: Hash::new(),
            setting,
            met: 0,
        }
    }

    fn finish(self) -> Result<Hash, Malformed> {
        if self.met > 0 || self.setting.may_be_empty {
            Ok(self.hash)
        } else {
            Err(Malformed)
        }
    }

    fn add(&mut self, field: &[u8], value: &[u8], wall_ms: Option<u64>) -> Result<(), Malformed> {
        self.met += 1;
        let Ok(deadline) = self.setting.deadline(wall_ms) else {
            return Ok(());
        };
        let new = self.hash.insert(field, value, deadline, &self.setting.hash);
        if new { Ok(()) } else { Err(Malformed) }
    }

    fn read_plain(&mut self, reader: &mut PayloadReader<'_>) -> Result<(), Malformed> {
        for number in 0..self.setting.count(reader, 2)? {
            let (field, value) = (reader.string()?, reader.string()?);
            let wall_ms = self.setting.of_member(number as usize);
            self.add(&field, &value, wall_ms)?;
        }
        Ok(())
    }

    /// Each deadline is counted from just before the earliest one; 0 is none.
    fn read_timed(
        &mut self,
        reader: &mut PayloadReader<'_>,
        earliest: u64,
    ) -> Result<(), Malformed> {
        for _ in 0..self.setting.count(reader, 3)? {
            let wall_ms = match reader.number()? {
                0 => None,
                later => Some(earliest.checked_add(later - 1).ok_or(Malformed)?),
            };
            let (field, value) = (reader.string()?, reader.string()?);
            self.add(&field, &value, wall_ms)?;
        }
        Ok(())
    }

    /// The deadline is behind the value; -1 is none.
    fn read_valkey(&mut self, reader: &mut PayloadReader<'_>) -> Result<(), Malformed> {
        for _ in 0..self.setting.count(reader, 10)? {
            let (field, value) = (reader.string()?, reader.string()?);
            let wall_ms = i64::from_le_bytes(reader.array()?);
            self.add(&field, &value, u64::try_from(wall_ms).ok())?;
        }
        Ok(())
    }

    fn read_pairs<'e>(&mut self, mut elements: impl Elements<'e>) -> Result<(), Malformed> {
        while let Some(field) = elements.next() {
            let value = elements.next().ok_or(Malformed)??;
            self.add_elements(field?, value, None)?;
        }
        Ok(())
    }

    /// A field, its value, its deadline; 0 is none.
    fn read_triples<'e>(&mut self, mut elements: impl Elements<'e>) -> Result<(), Malformed> {
        while let Some(field) = elements.next() {
            let value = elements.next().ok_or(Malformed)??;
            let wall_ms = elements
                .next()
                .ok_or(Malformed)??
                .integer()
                .ok_or(Malformed)?;
            let wall_ms = u64::try_from(wall_ms).map_err(|_| Malformed)?;
            self.add_elements(field?, value, (wall_ms > 0).then_some(wall_ms))?;
        }
        Ok(())
    }

    fn add_elements(
        &mut self,
        field: Element<'_>,
        value: Element<'_>,
        wall_ms: Option<u64>,
    ) -> Result<(), Malformed> {
        let mut memory = [itoa::Buffer::new(), itoa::Buffer::new()];
        let [first, second] = &mut memory;
        self.add(field.text(first), value.text(second), wall_ms)
    }
}

/// Writes a hash. Returns the version of the format that has the form.
pub(super) fn write(hash: HashRef<'_>, now: &Now, writer: &mut Writer) -> u16 {
    if hash.is_timed() {
        let earliest = earliest(hash, now);
        let deadlines = FieldDeadlines::InFront { earliest };
        writer.kind(deadlines.kind());
        write_as(hash, deadlines, now, writer);
        return VERSION_OF_FIELD_DEADLINES;
    }
    match hash {
        HashRef::Packed(_) => {
            let mut listpack = Builder::new();
            hash.for_each(|entry| {
                listpack.push(entry.key);
                listpack.push(entry.value);
            });
            writer.kind(kind::HASH_LISTPACK);
            writer.string(&listpack.finish());
        }
        HashRef::Large(_) => {
            writer.kind(kind::HASH);
            write_as(hash, FieldDeadlines::Apart, now, writer);
        }
    }
    VERSION
}

/// Where the deadlines of a hash's fields stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FieldDeadlines {
    /// Not with the fields.
    Apart,
    /// In front of each field, counted from just before the earliest one. It may be said to be
    /// earlier.
    InFront { earliest: i64 },
    /// Behind each value: Valkey's way.
    Behind,
}

impl FieldDeadlines {
    /// The way that files of a format have, of a hash whose earliest deadline is this one, or not
    /// before.
    pub(crate) fn of(format: FileFormat, earliest: impl FnOnce() -> i64) -> Self {
        match format {
            FileFormat::Redis10 | FileFormat::Redis11 => Self::Apart,
            FileFormat::Redis12 => Self::InFront {
                earliest: earliest(),
            },
            FileFormat::Valkey80 => Self::Behind,
        }
    }

    /// The type of such a hash.
    pub(crate) fn kind(self) -> u8 {
        match self {
            Self::Apart => kind::HASH,
            Self::InFront { .. } => kind::HASH_METADATA,
            Self::Behind => kind::HASH_2,
        }
    }

    /// Writes what stands in front of the first of `len` fields.
    pub(crate) fn begin(self, len: u64, writer: &mut Writer) {
        if let Self::InFront { earliest } = self {
            writer.bytes(&earliest.to_le_bytes());
        }
        writer.number(len);
    }

    /// Writes a field and its value, with its deadline as wall time.
    pub(crate) fn field(self, (field, value): (&[u8], &[u8]), at: Option<i64>, to: &mut Writer) {
        if let Self::InFront { earliest } = self {
            let later = at.map_or(0, |wall_ms| wall_ms.saturating_sub(earliest).max(0) + 1);
            to.number(later as u64);
        }
        to.string(field);
        to.string(value);
        if self == Self::Behind {
            to.bytes(&at.unwrap_or(-1).to_le_bytes());
        }
    }
}

/// A field's deadline as wall time.
pub(crate) fn wall_of(deadline: Option<u64>, now: &Now) -> Option<i64> {
    deadline.map(|deadline| now.wall_of(deadline).max(1))
}

/// The earliest deadline of a hash's fields, as wall time.
pub(super) fn earliest(hash: HashRef<'_>, now: &Now) -> i64 {
    let mut earliest = i64::MAX;
    hash.for_each(|entry| {
        earliest = wall_of(entry.deadline, now).map_or(earliest, |wall| wall.min(earliest));
    });
    earliest
}

/// Writes a hash behind its type.
pub(super) fn write_as(
    hash: HashRef<'_>,
    deadlines: FieldDeadlines,
    now: &Now,
    writer: &mut Writer,
) {
    deadlines.begin(hash.len() as u64, writer);
    hash.for_each(|entry| {
        let at = wall_of(entry.deadline, now);
        deadlines.field((entry.key, entry.value), at, writer);
    });
}
