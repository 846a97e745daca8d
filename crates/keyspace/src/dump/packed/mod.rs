//! The public servers' packed forms: many elements in one string. Each is read element by element.

pub(super) mod intset;
pub(super) mod listpack;
pub(super) mod ziplist;
pub(super) mod zipmap;

use super::Malformed;

/// An element of a packed form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Element<'a> {
    Bytes(&'a [u8]),
    Integer(i64),
}

impl Element<'_> {
    /// Its text. A number is written into `memory`.
    pub(super) fn text<'b>(&'b self, memory: &'b mut itoa::Buffer) -> &'b [u8] {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Integer(number) => memory.format(*number).as_bytes(),
        }
    }

    /// Its number, if it is one.
    pub(super) fn integer(&self) -> Option<i64> {
        match self {
            Self::Bytes(bytes) => tidewheel_resp::parse_i64(bytes),
            Self::Integer(number) => Some(*number),
        }
    }
}

/// Elements, the last of which may be an error.
pub(super) trait Elements<'a>: Iterator<Item = Result<Element<'a>, Malformed>> {}

impl<'a, T: Iterator<Item = Result<Element<'a>, Malformed>>> Elements<'a> for T {}

/// Reads the elements of a ziplist or a listpack, and compares their number with the header's at
/// the end.
#[derive(Debug)]
struct CountedElements<'a> {
    rest: &'a [u8],
    /// The number that the header names, unless it is too large for its place.
    expected: Option<usize>,
    met: usize,
}

impl<'a> CountedElements<'a> {
    /// A list whose header names a number of elements; `unknown` says that it had no room for it.
    fn new(rest: &'a [u8], number: u16, unknown: u16) -> Self {
        Self {
            rest,
            expected: (number != unknown).then_some(number.into()),
            met: 0,
        }
    }

    /// Reads an element. `read` returns it with the bytes behind it.
    fn next(
        &mut self,
        read: impl FnOnce(&'a [u8]) -> Result<(Element<'a>, &'a [u8]), Malformed>,
    ) -> Option<Result<Element<'a>, Malformed>> {
        if self.rest.is_empty() {
            let wrong = self
                .expected
                .take()
                .is_some_and(|number| number != self.met);
            return wrong.then_some(Err(Malformed));
        }
        self.met += 1;
        match read(self.rest) {
            Ok((element, rest)) => {
                self.rest = rest;
                Some(Ok(element))
            }
            Err(Malformed) => {
                (self.rest, self.expected) = (&[], None);
                Some(Err(Malformed))
            }
        }
    }
}

/// A signed number of up to eight bytes, the lowest first.
fn signed(bytes: &[u8]) -> i64 {
    let mut all = [0; 8];
    all[..bytes.len()].copy_from_slice(bytes);
    let unused = 64 - 8 * bytes.len() as u32;
    i64::from_le_bytes(all) << unused >> unused
}
