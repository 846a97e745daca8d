//! Ziplists, the predecessors of listpacks. Each element begins with the length of the one before
//! it.
//!
//! Ten bytes in front: the length in bytes, where the last element begins, the number of elements.
//! The end is a byte of ones.

use super::{CountedElements, Element, Malformed, signed};
use crate::dump::reader::PayloadReader;

const HEADER: usize = 10;
const END: u8 = 0xff;

/// From this length of the element before on, it takes five bytes.
const LONG: usize = 0xfe;

pub(in crate::dump) struct Ziplist<'a> {
    elements: CountedElements<'a>,
    /// Bytes of the element before.
    previous: usize,
    /// The start of the next element.
    at: usize,
    /// The start of the last element, as the header says.
    tail: usize,
}

impl<'a> Ziplist<'a> {
    pub(in crate::dump) fn new(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut reader = PayloadReader::new(bytes);
        let len = u32::from_le_bytes(reader.array()?);
        let tail = u32::from_le_bytes(reader.array()?) as usize;
        let number = u16::from_le_bytes(reader.array()?);
        let elements = bytes[HEADER..].strip_suffix(&[END]).ok_or(Malformed)?;
        if len as usize != bytes.len() || elements.is_empty() && tail != HEADER {
            return Err(Malformed);
        }
        Ok(Self {
            elements: CountedElements::new(elements, number, u16::MAX),
            previous: 0,
            at: HEADER,
            tail,
        })
    }
}

impl<'a> Iterator for Ziplist<'a> {
    type Item = Result<Element<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        let (previous, at, tail) = (self.previous, self.at, self.tail);
        let before = self.elements.rest.len();
        let element = self.elements.next(|bytes| {
            let (element, rest) = read(bytes, previous)?;
            if rest.is_empty() && at != tail {
                return Err(Malformed);
            }
            Ok((element, rest))
        });
        self.previous = before - self.elements.rest.len();
        self.at += self.previous;
        element
    }
}

fn read(bytes: &[u8], previous: usize) -> Result<(Element<'_>, &[u8]), Malformed> {
    let mut reader = PayloadReader::new(bytes);
    let said = match reader.byte()? {
        0xfe => u32::from_le_bytes(reader.array()?) as usize,
        short if usize::from(short) < LONG => short.into(),
        _ => return Err(Malformed),
    };
    if said != previous {
        return Err(Malformed);
    }
    let first = reader.byte()?;
    let low = usize::from(first);
    let element = match first {
        0..=0x3f => Element::Bytes(reader.take(low)?),
        0x40..=0x7f => {
            let len = (low & 0x3f) << 8 | usize::from(reader.byte()?);
            Element::Bytes(reader.take(len)?)
        }
        0x80 => {
            let len = u32::from_be_bytes(reader.array()?);
            Element::Bytes(reader.take(len as usize)?)
        }
        0xc0 => Element::Integer(signed(reader.take(2)?)),
        0xd0 => Element::Integer(signed(reader.take(4)?)),
        0xe0 => Element::Integer(signed(reader.take(8)?)),
        0xf0 => Element::Integer(signed(reader.take(3)?)),
        0xfe => Element::Integer(signed(reader.take(1)?)),
        0xf1..=0xfd => Element::Integer(i64::from(first) - 0xf1),
        _ => return Err(Malformed),
    };
    Ok((element, reader.rest()))
}
