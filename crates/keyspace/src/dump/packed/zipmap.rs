//! Zipmaps, the small hashes of servers before 2.6: the number of fields, then fields and values in
//! turn, each behind its length. A value may have unused bytes behind it.

use super::{Element, Malformed};
use crate::dump::reader::PayloadReader;

const END: u8 = 0xff;

/// From this length on, it takes five bytes.
const LONG: u8 = 0xfe;

pub(in crate::dump) struct Zipmap<'a> {
    rest: PayloadReader<'a>,
    /// The number of fields, if it has room for it.
    expected: Option<usize>,
    met: usize,
}

impl<'a> Zipmap<'a> {
    pub(in crate::dump) fn new(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let (number, rest) = bytes.split_first().ok_or(Malformed)?;
        let rest = rest.strip_suffix(&[END]).ok_or(Malformed)?;
        Ok(Self {
            rest: PayloadReader::new(rest),
            expected: (*number < LONG).then_some(usize::from(*number) * 2),
            met: 0,
        })
    }

    fn read(&mut self) -> Result<Element<'a>, Malformed> {
        let is_value = self.met % 2 == 1;
        let len = match self.rest.byte()? {
            END => return Err(Malformed),
            LONG => match u32::from_le_bytes(self.rest.array()?) {
                0..0xfe => return Err(Malformed),
                long => long as usize,
            },
            short => short.into(),
        };
        let unused = if is_value { self.rest.byte()? } else { 0 };
        let bytes = self.rest.take(len)?;
        self.rest.take(unused.into())?;
        Ok(Element::Bytes(bytes))
    }
}

impl<'a> Iterator for Zipmap<'a> {
    type Item = Result<Element<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            let wrong = self
                .expected
                .take()
                .is_some_and(|number| number != self.met);
            return wrong.then_some(Err(Malformed));
        }
        let element = self.read();
        self.met += 1;
        if element.is_err() {
            (self.rest, self.expected) = (PayloadReader::new(&[]), None);
        }
        Some(element)
    }
}
