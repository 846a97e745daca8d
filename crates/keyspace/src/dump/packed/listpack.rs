//! Listpacks: elements that can be read from both ends.
//!
//! Six bytes in front: the length in bytes, the number of elements. Each element has its length
//! behind it, in groups of seven bits, the highest first; all groups but the first have their
//! highest bit set. The end is a byte of ones.

use super::{CountedElements, Element, Malformed, signed};
use crate::dump::reader::PayloadReader;

const HEADER: usize = 6;
const END: u8 = 0xff;

/// The most bytes of a length behind an element.
const BACK_MAX: usize = 5;

pub(in crate::dump) struct Listpack<'a>(CountedElements<'a>);

impl<'a> Listpack<'a> {
    pub(in crate::dump) fn new(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut reader = PayloadReader::new(bytes);
        let len = u32::from_le_bytes(reader.array()?);
        let number = u16::from_le_bytes(reader.array()?);
        let elements = bytes[HEADER..].strip_suffix(&[END]).ok_or(Malformed)?;
        if len as usize != bytes.len() {
            return Err(Malformed);
        }
        Ok(Self(CountedElements::new(elements, number, u16::MAX)))
    }
}

impl<'a> Iterator for Listpack<'a> {
    type Item = Result<Element<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next(read)
    }
}

fn read(bytes: &[u8]) -> Result<(Element<'_>, &[u8]), Malformed> {
    let mut reader = PayloadReader::new(bytes);
    let first = reader.byte()?;
    let low = usize::from(first);
    let element = match first {
        0..=0x7f => Element::Integer(first.into()),
        0x80..=0xbf => Element::Bytes(reader.take(low & 0x3f)?),
        0xc0..=0xdf => {
            let number = u16::from_be_bytes([first & 0x1f, reader.byte()?]);
            Element::Integer(i64::from(number << 3) << 48 >> 51)
        }
        0xe0..=0xef => {
            let len = (low & 0xf) << 8 | usize::from(reader.byte()?);
            Element::Bytes(reader.take(len)?)
        }
        0xf0 => {
            let len = u32::from_le_bytes(reader.array()?);
            Element::Bytes(reader.take(len as usize)?)
        }
        0xf1 => Element::Integer(signed(reader.take(2)?)),
        0xf2 => Element::Integer(signed(reader.take(3)?)),
        0xf3 => Element::Integer(signed(reader.take(4)?)),
        0xf4 => Element::Integer(signed(reader.take(8)?)),
        0xf5..=0xff => return Err(Malformed),
    };
    let len = bytes.len() - reader.rest().len();
    let mut memory = [0; BACK_MAX];
    let rest = reader.rest().strip_prefix(back(len, &mut memory));
    Ok((element, rest.ok_or(Malformed)?))
}

/// The length that is written behind an element.
fn back(len: usize, memory: &mut [u8; BACK_MAX]) -> &[u8] {
    let groups = [0x7f, 0x3fff, 0x1f_ffff, 0xfff_ffff];
    let n = 1 + groups.iter().filter(|most| len > **most).count();
    for (i, byte) in memory[..n].iter_mut().enumerate() {
        let group = (len >> (7 * (n - 1 - i))) as u8 & 0x7f;
        *byte = if i == 0 { group } else { group | 0x80 };
    }
    &memory[..n]
}

/// A listpack that is being written.
pub(in crate::dump) struct Builder {
    bytes: Vec<u8>,
    number: usize,
}

impl Builder {
    pub(in crate::dump) fn new() -> Self {
        Self {
            bytes: vec![0; HEADER],
            number: 0,
        }
    }

    pub(in crate::dump) fn is_empty(&self) -> bool {
        self.number == 0
    }

    /// Bytes so far.
    pub(in crate::dump) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Appends an element; a whole number as such.
    pub(in crate::dump) fn push(&mut self, element: &[u8]) {
        let start = self.bytes.len();
        match tidewheel_resp::parse_i64(element) {
            Some(number) => self.integer(number),
            None => self.string(element),
        }
        let mut memory = [0; BACK_MAX];
        let len = back(self.bytes.len() - start, &mut memory);
        self.bytes.extend_from_slice(len);
        self.number += 1;
    }

    /// The whole listpack.
    pub(in crate::dump) fn finish(mut self) -> Vec<u8> {
        self.bytes.push(END);
        let len = self.bytes.len() as u32;
        let number = u16::try_from(self.number).unwrap_or(u16::MAX);
        self.bytes[..4].copy_from_slice(&len.to_le_bytes());
        self.bytes[4..HEADER].copy_from_slice(&number.to_le_bytes());
        self.bytes
    }

    fn string(&mut self, element: &[u8]) {
        let len = element.len();
        match len {
            0..0x40 => self.bytes.push(0x80 | len as u8),
            0x40..0x1000 => self
                .bytes
                .extend_from_slice(&(0xe000 | len as u16).to_be_bytes()),
            _ => {
                self.bytes.push(0xf0);
                self.bytes.extend_from_slice(&(len as u32).to_le_bytes());
            }
        }
        self.bytes.extend_from_slice(element);
    }

    fn integer(&mut self, number: i64) {
        let (mark, len) = match number {
            0..0x80 => return self.bytes.push(number as u8),
            -0x1000..0x1000 => {
                let short = 0xc000 | number as u16 & 0x1fff;
                return self.bytes.extend_from_slice(&short.to_be_bytes());
            }
            -0x8000..0x8000 => (0xf1, 2),
            -0x80_0000..0x80_0000 => (0xf2, 3),
            -0x8000_0000..0x8000_0000 => (0xf3, 4),
            _ => (0xf4, 8),
        };
        self.bytes.push(mark);
        self.bytes.extend_from_slice(&number.to_le_bytes()[..len]);
    }
}
