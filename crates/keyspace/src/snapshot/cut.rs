//! Where a value ends: its type says which numbers, strings and fixed bytes follow each other. A
//! value is cut out of the file whole, and read by the readers of DUMP, which trust nothing.

use super::error::SnapshotError;
use super::input::Input;
use crate::dump::kind;

type Outcome<T = ()> = Result<T, SnapshotError>;

/// Cuts a value of some type, which stands at `at`. What follows the type is appended to `into`.
pub(super) fn value(
    (kind, at): (u8, u64),
    is_valkey: bool,
    input: &mut Input<'_>,
    into: &mut Vec<u8>,
) -> Outcome {
    let mut cut = Cut { input, into };
    match kind {
        kind::STRING
        | kind::HASH_ZIPMAP
        | kind::LIST_ZIPLIST
        | kind::SET_INTSET
        | kind::ZSET_ZIPLIST
        | kind::HASH_ZIPLIST
        | kind::HASH_LISTPACK
        | kind::ZSET_LISTPACK
        | kind::SET_LISTPACK
        | kind::HASH_LISTPACK_EX_EARLY => cut.string(),
        kind::LIST | kind::SET | kind::LIST_QUICKLIST => cut.many(Cut::string),
        kind::ZSET => cut.many(|cut| {
            cut.string()?;
            cut.score()
        }),
        kind::ZSET_2 => cut.many(|cut| {
            cut.string()?;
            cut.fixed(8)
        }),
        kind::HASH => cut.many(|cut| {
            cut.string()?;
            cut.string()
        }),
        kind::LIST_QUICKLIST_2 => cut.many(|cut| {
            cut.number()?;
            cut.string()
        }),
        kind::HASH_2 if is_valkey => cut.many(|cut| {
            cut.string()?;
            cut.string()?;
            cut.fixed(8)
        }),
        kind::HASH_2 => cut.many(Cut::timed_field),
        kind::HASH_METADATA => {
            cut.fixed(8)?;
            cut.many(Cut::timed_field)
        }
        kind::HASH_LISTPACK_EX => {
            cut.fixed(8)?;
            cut.string()
        }
        kind::STREAM | kind::STREAM_2 | kind::STREAM_3 => cut.stream(kind),
        _ => Err(SnapshotError::UnknownType { kind, at }),
    }
}

/// Cuts a string, and returns nothing of it but what is appended.
pub(super) fn string(input: &mut Input<'_>, into: &mut Vec<u8>) -> Outcome {
    Cut { input, into }.string()
}

/// Reads a number.
pub(super) fn number(input: &mut Input<'_>) -> Outcome<u64> {
    let mut digits = Vec::new();
    let into = &mut digits;
    Cut { input, into }.number()
}

struct Cut<'c, 'r> {
    input: &'c mut Input<'r>,
    into: &'c mut Vec<u8>,
}

impl Cut<'_, '_> {
    fn many(&mut self, each: fn(&mut Self) -> Outcome) -> Outcome {
        for _ in 0..self.number()? {
            each(self)?;
        }
        Ok(())
    }

    fn fixed(&mut self, len: u64) -> Outcome {
        self.input.append(len, self.into)
    }

    fn byte(&mut self) -> Outcome<u8> {
        let byte = self.input.byte()?;
        self.into.push(byte);
        Ok(byte)
    }

    fn array<const N: usize>(&mut self) -> Outcome<[u8; N]> {
        let array = self.input.array()?;
        self.into.extend_from_slice(&array);
        Ok(array)
    }

    /// A number that is no string's special form.
    fn number(&mut self) -> Outcome<u64> {
        let first = self.byte()?;
        self.number_from(first)
    }

    fn string(&mut self) -> Outcome {
        match self.byte()? {
            mark @ 0xc0..=0xc2 => self.fixed(1 << (mark & 0x3f)),
            0xc3 => {
                let packed = self.number()?;
                self.number()?;
                self.fixed(packed)
            }
            first => {
                let len = self.number_from(first)?;
                self.fixed(len)
            }
        }
    }

    /// A number whose first byte was read.
    fn number_from(&mut self, first: u8) -> Outcome<u64> {
        let at = self.input.at() - 1;
        Ok(match (first >> 6, first) {
            (0, _) => (first & 0x3f).into(),
            (1, _) => u16::from_be_bytes([first & 0x3f, self.byte()?]).into(),
            (2, 0x80) => u32::from_be_bytes(self.array()?).into(),
            (2, 0x81) => u64::from_be_bytes(self.array()?),
            _ => return Err(SnapshotError::Malformed { at }),
        })
    }

    /// A score as text behind its length; 253 and more say what has no text.
    fn score(&mut self) -> Outcome {
        match self.byte()? {
            253..=255 => Ok(()),
            len => self.fixed(len.into()),
        }
    }

    fn timed_field(&mut self) -> Outcome {
        self.number()?;
        self.string()?;
        self.string()
    }

    fn id(&mut self) -> Outcome {
        self.number()?;
        self.number()?;
        Ok(())
    }

    /// See the picture in `dump/stream.rs`.
    fn stream(&mut self, kind: u8) -> Outcome {
        self.many(|cut| {
            cut.string()?;
            cut.string()
        })?;
        self.number()?;
        self.id()?;
        if kind != kind::STREAM {
            self.id()?;
            self.id()?;
            self.number()?;
        }
        for _ in 0..self.number()? {
            self.string()?;
            self.id()?;
            if kind != kind::STREAM {
                self.number()?;
            }
            self.many(|cut| {
                cut.fixed(24)?;
                cut.number().map(|_| ())
            })?;
            for _ in 0..self.number()? {
                self.string()?;
                self.fixed(if kind == kind::STREAM_3 { 16 } else { 8 })?;
                self.many(|cut| cut.fixed(16))?;
            }
        }
        Ok(())
    }
}
