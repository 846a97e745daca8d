//! Reads a file, and hands out what stands in it, one thing after the other.

use std::borrow::Cow;
use std::io::Read;
use std::ops::Range;

use super::error::SnapshotError;
use super::input::Input;
use super::{MEMBERS, cut, mark};
use crate::commands::dump::RestoredAccess;
use crate::dump;

type Outcome<T = ()> = Result<T, SnapshotError>;

/// The newest versions that are read: of Redis 8.10, and of Valkey 9.2.
const REDIS_MAX: u16 = 15;
const VALKEY: std::ops::RangeInclusive<u16> = 80..=81;

/// The first version whose files end with a checksum.
const SUMMED_FROM: u16 = 5;

/// The types from this one on are no values' that anybody writes into files, but marks.
const FIRST_UNKNOWN: u8 = dump::kind::HASH_LISTPACK_EX + 1;

/// The type of a module's value. Only the module can read it, but where it ends is known.
const MODULE: u8 = 7;

/// What stands in a file.
#[derive(Debug)]
pub(super) enum Item {
    /// A name and a value that the file says of itself.
    Field(Vec<u8>, Vec<u8>),
    /// The code of a library of functions.
    Function(Vec<u8>),
    /// The database of the keys that follow, and where it stands.
    Database {
        number: u64,
        at: u64,
    },
    Entry(Entry),
    /// The end.
    End(Checksum),
}

/// What is known of a file's checksum at its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Checksum {
    /// It is that of the bytes.
    Right,
    /// It was switched off where the file was written, or the version has none.
    None,
}

/// A key, and what stands with it. Its bytes were appended to a buffer.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) at: u64,
    pub(super) db: u64,
    /// Its deadline, as wall time in milliseconds.
    pub(super) wall_ms: Option<i64>,
    pub(super) access: Option<RestoredAccess>,
    /// The deadlines of its members, if its type has none.
    pub(super) members: Vec<u8>,
    kind: u8,
    key: Range<usize>,
    /// The type and the value. Nothing, if the type is a module's.
    value: Range<usize>,
}

impl Entry {
    pub(super) fn key<'b>(&self, bytes: &'b [u8]) -> Outcome<Cow<'b, [u8]>> {
        let key = dump::read_string(&bytes[self.key.clone()]);
        key.map_err(|_| SnapshotError::Malformed { at: self.at })
    }

    /// The type and the value.
    pub(super) fn value<'b>(&self, bytes: &'b [u8]) -> Outcome<&'b [u8]> {
        let (kind, at) = (self.kind, self.at);
        match self.is_known() {
            true => Ok(&bytes[self.value.clone()]),
            false => Err(SnapshotError::UnknownType { kind, at }),
        }
    }

    /// False if its value was passed over, because nobody here can read it.
    pub(super) fn is_known(&self) -> bool {
        !self.value.is_empty()
    }
}

/// What is known of the next key.
#[derive(Debug, Default)]
struct Ahead {
    wall_ms: Option<i64>,
    access: Option<RestoredAccess>,
}

/// Reads a file from its start to its end. It has one key and its value in memory at a time.
#[derive(Debug)]
pub struct SnapshotReader<'r> {
    input: Input<'r>,
    version: u16,
    db: u64,
    ahead: Ahead,
    /// A field that was read behind a key.
    field: Option<(Vec<u8>, Vec<u8>)>,
    has_ended: bool,
    /// The bytes of the key that was handed out last.
    bytes: Vec<u8>,
}

/// A thing that stands in a file.
#[derive(Debug)]
pub enum SnapshotItem<'a> {
    /// A name and a value that the file says of itself.
    Field(Vec<u8>, Vec<u8>),
    /// The code of a library of functions.
    Function(Vec<u8>),
    /// A key with its value.
    Key(SnapshotKey<'a>),
    /// The end of the file.
    End(Checksum),
}

/// A key of a file.
#[derive(Debug)]
pub struct SnapshotKey<'a> {
    /// The position of its type in the file.
    pub at: u64,
    /// Its database.
    pub db: u64,
    /// The key.
    pub key: Cow<'a, [u8]>,
    /// Its deadline, as wall time in milliseconds since the epoch.
    pub wall_ms: Option<i64>,
    /// The number of its value's type.
    pub kind: u8,
    pub(super) version: u16,
    pub(super) members: Vec<u8>,
    /// The type and the value; `None` if it was passed over.
    pub(super) value: Option<&'a [u8]>,
}

impl SnapshotKey<'_> {
    /// False if its value was passed over, because only a module can read it.
    #[must_use]
    pub fn is_known(&self) -> bool {
        self.value.is_some()
    }
}

impl<'r> SnapshotReader<'r> {
    /// Begins to read a file.
    ///
    /// # Errors
    ///
    /// If it does not begin as a snapshot of a known version does.
    pub fn new(from: &'r mut dyn Read) -> Result<Self, SnapshotError> {
        let mut input = Input::new(from);
        let version = version(&mut input)?;
        Ok(Self {
            input,
            version,
            db: 0,
            ahead: Ahead::default(),
            field: None,
            has_ended: false,
            bytes: Vec::new(),
        })
    }

    /// The version of the format. Those from 80 on are Valkey's.
    #[must_use]
    pub fn version(&self) -> u16 {
        self.version
    }

    /// The position of the next byte.
    #[must_use]
    pub fn at(&self) -> u64 {
        self.input.at()
    }

    /// Reads what stands next; `None` behind the end.
    ///
    /// # Errors
    ///
    /// If the file ends too early, or has what is not known, or its checksum is wrong. Then nothing
    /// more can be read.
    pub fn read_next(&mut self) -> Result<Option<SnapshotItem<'_>>, SnapshotError> {
        let mut bytes = std::mem::take(&mut self.bytes);
        bytes.clear();
        let item = loop {
            if self.has_ended {
                return Ok(None);
            }
            match self.next_into(&mut bytes)? {
                Item::Database { .. } => {}
                item => break item,
            }
        };
        self.bytes = bytes;
        Ok(Some(match item {
            Item::Field(name, value) => SnapshotItem::Field(name, value),
            Item::Function(code) => SnapshotItem::Function(code),
            Item::End(checksum) => SnapshotItem::End(checksum),
            Item::Entry(entry) => SnapshotItem::Key(SnapshotKey {
                at: entry.at,
                db: entry.db,
                key: entry.key(&self.bytes)?,
                wall_ms: entry.wall_ms,
                kind: entry.kind,
                version: self.version,
                value: entry.value(&self.bytes).ok(),
                members: entry.members,
            }),
            Item::Database { .. } => unreachable!("it was passed over"),
        }))
    }

    /// Reads what stands next. The bytes of a key and its value are appended to a buffer.
    pub(super) fn next_into(&mut self, bytes: &mut Vec<u8>) -> Outcome<Item> {
        if let Some((name, value)) = self.field.take() {
            return Ok(Item::Field(name, value));
        }
        loop {
            let at = self.input.at();
            match self.input.byte()? {
                mark::AUX => {
                    let (name, value) = (self.string()?, self.string()?);
                    match name == MEMBERS {
                        true => return Err(SnapshotError::Malformed { at }),
                        false => return Ok(Item::Field(name, value)),
                    }
                }
                mark::SIZES => {
                    self.number()?;
                    self.number()?;
                }
                mark::SLOT_INFO => {
                    for _ in 0..3 {
                        self.number()?;
                    }
                }
                mark::DATABASE => {
                    let number = self.number()?;
                    self.db = number;
                    return Ok(Item::Database { number, at });
                }
                mark::DEADLINE_MS => {
                    self.ahead.wall_ms = Some(i64::from_le_bytes(self.input.array()?));
                }
                mark::DEADLINE_S => {
                    let seconds = i32::from_le_bytes(self.input.array()?);
                    self.ahead.wall_ms = Some(i64::from(seconds) * 1000);
                }
                mark::IDLE => {
                    let seconds = self.number()?;
                    self.ahead.access = Some(RestoredAccess::IdleSeconds(seconds));
                }
                mark::FREQUENCY => {
                    let frequency = self.input.byte()?;
                    self.ahead.access = Some(RestoredAccess::Frequency(frequency));
                }
                mark::FUNCTION => return self.string().map(Item::Function),
                mark::MODULE_AUX => self.skip_module()?,
                mark::END => return self.end().map(Item::End),
                kind @ (FIRST_UNKNOWN..) => {
                    return Err(SnapshotError::UnknownType { kind, at });
                }
                kind => return self.entry(kind, at, bytes).map(Item::Entry),
            }
        }
    }

    fn entry(&mut self, kind: u8, at: u64, bytes: &mut Vec<u8>) -> Outcome<Entry> {
        let key_at = bytes.len();
        cut::string(&mut self.input, bytes)?;
        let value_at = bytes.len();
        if kind == MODULE {
            self.skip_module()?;
        } else {
            bytes.push(kind);
            let is_valkey = VALKEY.contains(&self.version);
            cut::value((kind, at), is_valkey, &mut self.input, bytes)?;
        }
        let range = value_at..bytes.len();
        let members = self.members()?;
        let ahead = std::mem::take(&mut self.ahead);
        Ok(Entry {
            at,
            db: self.db,
            wall_ms: ahead.wall_ms,
            access: ahead.access,
            members,
            kind,
            key: key_at..value_at,
            value: range,
        })
    }

    /// The deadlines of members, if they stand next. Another field is kept for later.
    fn members(&mut self) -> Outcome<Vec<u8>> {
        // If the file ends here, whoever reads on is told.
        if !matches!(self.input.peek(), Ok(mark::AUX)) {
            return Ok(Vec::new());
        }
        self.input.byte()?;
        let (name, value) = (self.string()?, self.string()?);
        if name == MEMBERS {
            return Ok(value);
        }
        self.field = Some((name, value));
        Ok(Vec::new())
    }

    fn end(&mut self) -> Outcome<Checksum> {
        self.has_ended = true;
        if self.version < SUMMED_FROM {
            return Ok(Checksum::None);
        }
        let (computed, at) = (self.input.checksum(), self.input.at());
        match u64::from_le_bytes(self.input.array()?) {
            0 => Ok(Checksum::None),
            written if written == computed => Ok(Checksum::Right),
            _ => Err(SnapshotError::Checksum { at }),
        }
    }

    /// Passes over what a module has stored: its own number, and parts each of which says what it
    /// is.
    fn skip_module(&mut self) -> Outcome {
        let mut skipped = Vec::new();
        self.number()?;
        loop {
            let at = self.input.at();
            match self.number()? {
                0 => return Ok(()),
                1 | 2 => drop(self.number()?),
                3 => drop(self.input.array::<4>()?),
                4 => drop(self.input.array::<8>()?),
                5 => cut::string(&mut self.input, &mut skipped)?,
                _ => return Err(SnapshotError::Malformed { at }),
            }
            skipped.clear();
        }
    }

    fn number(&mut self) -> Outcome<u64> {
        cut::number(&mut self.input)
    }

    fn string(&mut self) -> Outcome<Vec<u8>> {
        let at = self.input.at();
        let mut bytes = Vec::new();
        cut::string(&mut self.input, &mut bytes)?;
        let string = dump::read_string(&bytes);
        Ok(string
            .map_err(|_| SnapshotError::Malformed { at })?
            .into_owned())
    }
}

/// Reads the magic bytes and the version.
fn version(input: &mut Input<'_>) -> Outcome<u16> {
    let header: [u8; 9] = input.array()?;
    let (digits, is_valkey) = match &header {
        [b'R', b'E', b'D', b'I', b'S', digits @ ..] => (&digits[..], false),
        [b'V', b'A', b'L', b'K', b'E', b'Y', digits @ ..] => (&digits[..], true),
        _ => return Err(SnapshotError::NoSnapshot),
    };
    let digits = String::from_utf8_lossy(digits).into_owned();
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
    let version = digits.parse().ok().filter(|_| is_number).unwrap_or(0);
    let known = match is_valkey {
        true => VALKEY.contains(&version),
        false => (1..=REDIS_MAX).contains(&version),
    };
    match known {
        true => Ok(version),
        false => Err(SnapshotError::UnknownVersion(digits)),
    }
}
