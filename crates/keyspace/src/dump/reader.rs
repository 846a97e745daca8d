//! Reads lengths and strings of a payload, and never beyond its end.

use std::borrow::Cow;

use super::{Malformed, lzf};

/// Reads a payload; has the bytes that are left.
#[derive(Debug, Clone, Copy)]
pub(super) struct PayloadReader<'a>(&'a [u8]);

/// A length, or the form of a string without one.
enum Length {
    Plain(u64),
    /// A whole number, and the bytes that it takes.
    Integer(usize),
    Compressed,
}

impl<'a> PayloadReader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn rest(&self) -> &'a [u8] {
        self.0
    }

    pub(super) fn byte(&mut self) -> Result<u8, Malformed> {
        self.array().map(|[byte]| byte)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (array, rest) = self.0.split_first_chunk().ok_or(Malformed)?;
        self.0 = rest;
        Ok(*array)
    }

    pub(super) fn take(&mut self, len: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.0.split_at_checked(len).ok_or(Malformed)?;
        self.0 = rest;
        Ok(taken)
    }

    /// A number that is no string's special form.
    pub(super) fn number(&mut self) -> Result<u64, Malformed> {
        match self.length()? {
            Length::Plain(number) => Ok(number),
            Length::Integer(_) | Length::Compressed => Err(Malformed),
        }
    }

    /// A string. It borrows what it can.
    pub(super) fn string(&mut self) -> Result<Cow<'a, [u8]>, Malformed> {
        Ok(match self.length()? {
            Length::Plain(len) => Cow::Borrowed(self.take(to_usize(len)?)?),
            Length::Integer(bytes) => Cow::Owned(self.integer(bytes)?.to_string().into_bytes()),
            Length::Compressed => {
                let (packed, len) = self.compressed()?;
                Cow::Owned(lzf::expand(packed, len)?)
            }
        })
    }

    /// Passes over a string. Returns how long it is, or is said to be.
    pub(super) fn string_len(&mut self) -> Result<usize, Malformed> {
        Ok(match self.length()? {
            Length::Plain(len) => self.take(to_usize(len)?)?.len(),
            Length::Integer(bytes) => self.take(bytes)?.len(),
            Length::Compressed => {
                let (packed, len) = self.compressed()?;
                len.min(lzf::longest(packed.len()))
            }
        })
    }

    /// The compressed bytes of a string, and its length.
    fn compressed(&mut self) -> Result<(&'a [u8], usize), Malformed> {
        let packed = to_usize(self.number()?)?;
        let len = to_usize(self.number()?)?;
        Ok((self.take(packed)?, len))
    }

    fn integer(&mut self, bytes: usize) -> Result<i64, Malformed> {
        Ok(match bytes {
            1 => i8::from_le_bytes(self.array()?).into(),
            2 => i16::from_le_bytes(self.array()?).into(),
            _ => i32::from_le_bytes(self.array()?).into(),
        })
    }

    fn length(&mut self) -> Result<Length, Malformed> {
        let first = self.byte()?;
        let low = first & 0x3f;
        Ok(match (first >> 6, first) {
            (0, _) => Length::Plain(low.into()),
            (1, _) => Length::Plain(u16::from_be_bytes([low, self.byte()?]).into()),
            (2, 0x80) => Length::Plain(u32::from_be_bytes(self.array()?).into()),
            (2, 0x81) => Length::Plain(u64::from_be_bytes(self.array()?)),
            (3, 0xc0..=0xc2) => Length::Integer(1 << low),
            (3, 0xc3) => Length::Compressed,
            _ => return Err(Malformed),
        })
    }
}

pub(super) fn to_usize(number: u64) -> Result<usize, Malformed> {
    usize::try_from(number).map_err(|_| Malformed)
}
