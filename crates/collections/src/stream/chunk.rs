//! A chunk: up to a hundred entries in one string of bytes, in the public form.
//!
//! ```text
//! number of fields · names … · 0 │ flags · ms · seq · values …          · elements   an entry
//!          the master             │ flags · ms · seq · n · name · value … · elements  another one
//! ```
//!
//! The names of the first entry are the *master*: an entry with the same names has values only.
//! Times and numbers are told as the distance from the chunk's first id. The public form has two
//! numbers more in front, of living and of deleted entries: here they lie beside the bytes.

use super::element::{self, Element};
use super::id::StreamId;
use crate::shared::Shared;

/// The entry is deleted.
const DELETED: u8 = 1;
/// The entry has the master's names.
const SAME_NAMES: u8 = 2;
/// Bytes of the public form around its elements.
const AROUND: usize = 7;
/// The number of elements that stands for more than its place has room for.
const MANY: u16 = u16::MAX;
/// The least bytes of a chunk that grows.
const ROOM_MIN: usize = 128;

/// The most that a chunk holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamLimits {
    /// Bytes in the public form; 0 is no limit. An entry that is longer is alone.
    pub bytes: usize,
    /// Entries; 0 is no limit.
    pub entries: usize,
}

impl Default for StreamLimits {
    /// The public server's.
    fn default() -> Self {
        Self {
            bytes: 4096,
            entries: 100,
        }
    }
}

/// The most bytes of a chunk, whatever the limits are.
const BYTES_MAX: usize = 1 << 30;

#[derive(Debug, Clone)]
pub(super) struct Chunk {
    first: StreamId,
    bytes: Shared<Vec<u8>>,
    live: u32,
    deleted: u32,
    /// Elements of the bytes.
    elements: u32,
    /// Where the first entry begins.
    entries: u32,
}

/// An entry within a chunk.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) at: usize,
    pub(super) end: usize,
    pub(super) is_deleted: bool,
    pub(super) entry: StreamEntry<'a>,
}

/// An entry: its id, and its fields.
#[derive(Debug, Clone, Copy)]
pub struct StreamEntry<'a> {
    /// Its id.
    pub id: StreamId,
    /// Its fields.
    pub fields: Fields<'a>,
}

/// The fields of an entry: names and values.
#[derive(Debug, Clone, Copy)]
pub struct Fields<'a> {
    /// The master's names from here on, if the entry has them.
    names: Option<&'a [u8]>,
    rest: &'a [u8],
    left: usize,
}

impl<'a> Iterator for Fields<'a> {
    type Item = (Element<'a>, Element<'a>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let (name, value);
        match &mut self.names {
            Some(names) => (name, *names) = element::read(names)?,
            None => (name, self.rest) = element::read(self.rest)?,
        }
        (value, self.rest) = element::read(self.rest)?;
        Some((name, value))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Fields<'_> {}

impl Chunk {
    /// A chunk without entries; these will be the names of its master.
    pub(super) fn new<'f>(
        first: StreamId,
        names: impl ExactSizeIterator<Item = &'f [u8]>,
        room: usize,
    ) -> Self {
        let mut bytes = Vec::with_capacity(room.clamp(ROOM_MIN, 1 << 16));
        let n = names.len();
        element::write_integer(&mut bytes, n as i64);
        names.for_each(|name| element::write(&mut bytes, name));
        element::write_integer(&mut bytes, 0);
        let entries = bytes.len() as u32;
        Self {
            first,
            bytes: Shared::Own(bytes),
            live: 0,
            deleted: 0,
            elements: n as u32 + 2,
            entries,
        }
    }

    /// A chunk with the same entries, which shares its bytes until one of the two is changed.
    pub(super) fn share(&mut self) -> Self {
        let bytes = self.bytes.share();
        Self { bytes, ..*self }
    }

    pub(super) fn first(&self) -> StreamId {
        self.first
    }

    pub(super) fn live(&self) -> usize {
        self.live as usize
    }

    pub(super) fn heap_bytes(&self) -> usize {
        self.bytes.capacity()
    }

    /// Bytes of the public form.
    pub(super) fn public_bytes(&self) -> usize {
        let counts =
            element::integer_size(self.live.into()) + element::integer_size(self.deleted.into());
        AROUND + counts + self.bytes.len()
    }

    /// True if an entry whose words have that many bytes may be added.
    #[inline]
    pub(super) fn admits(&self, words: usize, limits: &StreamLimits) -> bool {
        let most = match limits.bytes {
            0 => BYTES_MAX,
            bytes => bytes.min(BYTES_MAX),
        };
        self.public_bytes() + words < most
            && (limits.entries == 0 || ((self.live + self.deleted) as usize) < limits.entries)
    }

    /// Appends an entry. Its id is higher than all here, and `words` are names and values in turn.
    #[inline]
    pub(super) fn append<'f>(
        &mut self,
        id: StreamId,
        words: impl ExactSizeIterator<Item = &'f [u8]> + Clone,
        limits: &StreamLimits,
    ) {
        let n = words.len() / 2;
        let same = self.has_names(n, words.clone().step_by(2));
        self.make_room(
            words.clone().map(|word| word.len() + 11).sum::<usize>() + 40,
            limits,
        );
        let bytes = &mut self.bytes;
        element::write_integer(bytes, if same { SAME_NAMES } else { 0 }.into());
        element::write_integer(bytes, id.ms.wrapping_sub(self.first.ms) as i64);
        element::write_integer(bytes, id.seq.wrapping_sub(self.first.seq) as i64);
        let elements = if same {
            words
                .skip(1)
                .step_by(2)
                .for_each(|value| element::write(bytes, value));
            n + 3
        } else {
            element::write_integer(bytes, n as i64);
            words.for_each(|word| element::write(bytes, word));
            2 * n + 4
        };
        element::write_integer(bytes, elements as i64);
        self.elements = self.elements.saturating_add(elements as u32 + 1);
        self.live += 1;
    }

    fn make_room(&mut self, added: usize, limits: &StreamLimits) {
        let (held, needed) = (self.bytes.capacity(), self.bytes.len() + added);
        if needed > held {
            let most = match limits.bytes {
                0 => usize::MAX,
                bytes => bytes,
            };
            let room = (held * 2).min(most).max(needed);
            let more = room - self.bytes.len();
            self.bytes.reserve_exact(more);
        }
    }

    /// No more entries come: gives back the room for them.
    pub(super) fn close(&mut self) {
        self.bytes.shrink_to_fit();
    }

    fn has_names<'f>(&self, n: usize, names: impl Iterator<Item = &'f [u8]>) -> bool {
        let Some((Element::Integer(own), mut rest)) = element::read(&self.bytes) else {
            return false;
        };
        let mut same = own == n as i64;
        for name in names {
            if !same {
                return false;
            }
            let Some((own, behind)) = element::read(rest) else {
                return false;
            };
            (same, rest) = (own.is(name), behind);
        }
        same
    }

    /// The entry that begins at a place; `None` at the end.
    #[inline]
    pub(super) fn entry(&self, at: usize) -> Option<Place<'_>> {
        let entry = self.bytes.get(at..)?;
        let flags = *entry.first()?;
        let (ms, rest) = element::read(entry.get(2..)?)?;
        let (seq, mut rest) = element::read(rest)?;
        let id = StreamId {
            ms: self.first.ms.wrapping_add(ms.integer()? as u64),
            seq: self.first.seq.wrapping_add(seq.integer()? as u64),
        };
        let (names, left) = if flags & SAME_NAMES != 0 {
            let (n, names) = element::read(&self.bytes)?;
            (Some(names), n.integer()? as usize)
        } else {
            let n;
            (n, rest) = element::read(rest)?;
            (None, n.integer()? as usize)
        };
        let fields = Fields { names, rest, left };
        let elements = if names.is_some() { left } else { 2 * left };
        for _ in 0..elements {
            rest = rest.get(element::size(rest)?..)?;
        }
        let rest = rest.get(element::size(rest)?..)?;
        Some(Place {
            at,
            end: self.bytes.len() - rest.len(),
            is_deleted: flags & DELETED != 0,
            entry: StreamEntry { id, fields },
        })
    }

    /// The entry that ends at a place; `None` at the beginning.
    pub(super) fn entry_before(&self, end: usize) -> Option<Place<'_>> {
        if end <= self.start() {
            return None;
        }
        let mut at = element::before(&self.bytes, end)?;
        let (elements, _) = element::read(&self.bytes[at..])?;
        for _ in 0..elements.integer()? {
            at = element::before(&self.bytes, at)?;
        }
        self.entry(at)
    }

    /// Where the first entry begins.
    pub(super) fn start(&self) -> usize {
        self.entries as usize
    }

    /// Where the last entry ends.
    pub(super) fn end(&self) -> usize {
        self.bytes.len()
    }

    /// All entries, deleted ones too.
    pub(super) fn places(&self) -> impl Iterator<Item = Place<'_>> {
        let mut at = self.start();
        std::iter::from_fn(move || {
            let place = self.entry(at)?;
            at = place.end;
            Some(place)
        })
    }

    /// The living entry with the lowest id.
    pub(super) fn first_live(&self) -> Option<StreamId> {
        let mut live = self.places().filter(|place| !place.is_deleted);
        live.next().map(|place| place.entry.id)
    }

    /// The highest id, of a deleted entry too.
    pub(super) fn last(&self) -> Option<StreamId> {
        self.entry_before(self.end()).map(|place| place.entry.id)
    }

    /// Marks the living entry at a place as deleted.
    pub(super) fn mark_deleted(&mut self, at: usize) {
        debug_assert!(self.bytes[at] & DELETED == 0, "it lives");
        self.bytes[at] |= DELETED;
        self.live -= 1;
        self.deleted += 1;
    }

    /// Appends the public form.
    pub(super) fn write(&self, to: &mut Vec<u8>) {
        let elements = self.elements.saturating_add(2);
        let elements = u16::try_from(elements).unwrap_or(MANY);
        to.extend_from_slice(&(self.public_bytes() as u32).to_le_bytes());
        to.extend_from_slice(&elements.to_le_bytes());
        element::write_integer(to, self.live.into());
        element::write_integer(to, self.deleted.into());
        to.extend_from_slice(&self.bytes);
        to.push(0xff);
    }

    /// A chunk of bytes in the public form, which come from anywhere: all that they say is checked.
    pub(super) fn read(first: StreamId, public: &[u8]) -> Option<Self> {
        let (header, rest) = public.split_first_chunk::<6>()?;
        let rest = rest.strip_suffix(&[0xff])?;
        let total = u32::from_le_bytes(header[..4].try_into().ok()?);
        let number = u16::from_le_bytes(header[4..].try_into().ok()?);
        let (live, rest) = element::read_checked(rest)?;
        let (deleted, bytes) = element::read_checked(rest)?;
        if total as usize != public.len() {
            return None;
        }
        let mut chunk = Self {
            first,
            bytes: Shared::Own(bytes.to_vec()),
            live: u32::try_from(live.integer()?).ok()?,
            deleted: u32::try_from(deleted.integer()?).ok()?,
            elements: 0,
            entries: 0,
        };
        chunk.check()?;
        let elements = u16::try_from(chunk.elements + 2).unwrap_or(MANY);
        // The public form may not know a number that was too large once.
        (number == MANY || number == elements).then_some(chunk)
    }

    /// Counts elements and finds the first entry; `None` if an entry is none.
    fn check(&mut self) -> Option<()> {
        let (n, mut rest) = element::read_checked(&self.bytes)?;
        let n = usize::try_from(n.integer()?).ok()?;
        let mut elements = 1;
        for _ in 0..n {
            (_, rest) = element::read_checked(rest)?;
            elements += 1;
        }
        let (terminator, mut rest) = element::read_checked(rest)?;
        if terminator.integer()? != 0 {
            return None;
        }
        elements += 1;
        self.entries = (self.bytes.len() - rest.len()) as u32;
        let (mut live, mut deleted, mut above) = (0, 0, None);
        while !rest.is_empty() {
            let at = self.bytes.len() - rest.len();
            let flags = rest[0];
            if flags > DELETED | SAME_NAMES {
                return None;
            }
            (_, rest) = element::read_checked(rest)?;
            let ((ms, behind), same) = (element::read_checked(rest)?, flags & SAME_NAMES != 0);
            let (seq, mut behind) = element::read_checked(behind)?;
            let (ms, _) = (ms.integer()?, seq.integer()?);
            let mut more = n;
            let mut inner = 3;
            if !same {
                let own;
                (own, behind) = element::read_checked(behind)?;
                more = usize::try_from(own.integer()?).ok()?.checked_mul(2)?;
                inner += 1;
            }
            for _ in 0..more {
                (_, behind) = element::read_checked(behind)?;
                inner += 1;
            }
            let (count, behind) = element::read_checked(behind)?;
            let id = self.entry(at)?.entry.id;
            let grows = above.is_none_or(|above| id > above);
            if count.integer()? != i64::from(inner) || !grows || ms < 0 || id < self.first {
                return None;
            }
            above = Some(id);
            match flags & DELETED {
                0 => live += 1,
                _ => deleted += 1,
            }
            elements += inner as u32 + 1;
            rest = behind;
        }
        self.elements = elements;
        (live == self.live && deleted == self.deleted && live + deleted > 0).then_some(())
    }

    pub(super) fn validate(&self) {
        let mut again = self.clone();
        assert!(again.check().is_some(), "a chunk's bytes");
        assert_eq!(again.elements, self.elements, "elements");
        assert_eq!(again.entries, self.entries, "where entries begin");
    }
}
