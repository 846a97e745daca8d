//! Elements side by side, and their lengths in a column behind them: walked from both ends.
//!
//! ```text
//! elements  a, bcd, ef      data   a b c d e f      column   2 3 1
//! ```
//!
//! The column runs backwards: the last element's length comes first. So a new last element and its
//! length go to one place, between data and column. A length below 128 is one byte. A longer one is
//! several, seven bits each; all but the first of them have their top bit set, so that its ends can
//! be told from both sides.

/// Elements in order.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Run<'a> {
    data: &'a [u8],
    lens: &'a [u8],
    count: usize,
}

/// Between two elements: how much data, and how many bytes of lengths, the elements before it have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct RunSpot {
    pub(super) data: usize,
    pub(super) lens: usize,
}

/// The number and the bytes of some elements.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct RunSize {
    pub(super) data: usize,
    pub(super) lens: usize,
    pub(super) count: usize,
}

impl RunSize {
    pub(super) fn of(element: &[u8]) -> Self {
        Self {
            data: element.len(),
            lens: len_bytes(element.len()),
            count: 1,
        }
    }

    pub(super) fn bytes(self) -> usize {
        self.data + self.lens
    }
}

impl std::ops::Add for RunSize {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            data: self.data + other.data,
            lens: self.lens + other.lens,
            count: self.count + other.count,
        }
    }
}

impl<'a> Run<'a> {
    pub(super) fn new(data: &'a [u8], lens: &'a [u8], count: usize) -> Self {
        Self { data, lens, count }
    }

    pub(super) fn len(self) -> usize {
        self.count
    }

    pub(super) fn size(self) -> RunSize {
        RunSize {
            data: self.data.len(),
            lens: self.lens.len(),
            count: self.count,
        }
    }

    pub(super) fn data(self) -> &'a [u8] {
        self.data
    }

    pub(super) fn lens(self) -> &'a [u8] {
        self.lens
    }

    /// The spot in front of an element, or behind the last. Walks from the nearer end.
    pub(super) fn spot(self, index: usize) -> RunSpot {
        let behind = self.count - index;
        if self.lens.len() == self.count {
            return self.short_spot(index, behind);
        }
        let mut rest = self;
        if index <= behind {
            rest.by_ref().take(index).for_each(drop);
            RunSpot {
                data: self.data.len() - rest.data.len(),
                lens: self.lens.len() - rest.lens.len(),
            }
        } else {
            rest.by_ref().rev().take(behind).for_each(drop);
            RunSpot {
                data: rest.data.len(),
                lens: rest.lens.len(),
            }
        }
    }

    /// As [`spot`](Self::spot), where each length is one byte.
    fn short_spot(self, index: usize, behind: usize) -> RunSpot {
        let sum = |lens: &[u8]| lens.iter().map(|len| u32::from(*len)).sum::<u32>() as usize;
        let data = if index <= behind {
            sum(&self.lens[behind..])
        } else {
            self.data.len() - sum(&self.lens[..behind])
        };
        RunSpot { data, lens: index }
    }

    /// The elements from one spot to another.
    pub(super) fn between(self, from: RunSpot, to: RunSpot, count: usize) -> Self {
        let end = self.lens.len();
        Self {
            data: &self.data[from.data..to.data],
            lens: &self.lens[end - to.lens..end - from.lens],
            count,
        }
    }

    /// The elements from `index` on.
    pub(super) fn from(self, index: usize) -> Self {
        self.between(self.spot(index), self.end(), self.count - index)
    }

    /// The first `count` elements.
    pub(super) fn first(self, count: usize) -> Self {
        self.between(RunSpot::default(), self.spot(count), count)
    }

    /// The spot behind the last element.
    pub(super) fn end(self) -> RunSpot {
        RunSpot {
            data: self.data.len(),
            lens: self.lens.len(),
        }
    }

    pub(super) fn get(self, index: usize) -> Option<&'a [u8]> {
        if index >= self.count {
            return None;
        }
        // The ends are asked for most.
        if index + 1 == self.count {
            return self.last();
        }
        let spot = self.spot(index);
        let (len, _) = front_len(&self.lens[..self.lens.len() - spot.lens]);
        Some(&self.data[spot.data..spot.data + len])
    }

    /// Returns the size of the element behind a spot.
    pub(super) fn size_at(self, spot: RunSpot) -> RunSize {
        let (data, lens) = front_len(&self.lens[..self.lens.len() - spot.lens]);
        RunSize {
            data,
            lens,
            count: 1,
        }
    }

    fn last(mut self) -> Option<&'a [u8]> {
        self.next_back()
    }

    /// Panics if the lengths do not make up the data.
    pub(super) fn validate(self) {
        let mut rest = self;
        let count = rest.by_ref().count();
        assert_eq!(count, self.count, "the number of elements");
        assert!(
            rest.data.is_empty() && rest.lens.is_empty(),
            "lengths and data"
        );
    }
}

impl<'a> Iterator for Run<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        if self.lens.is_empty() {
            return None;
        }
        let (len, bytes) = front_len(self.lens);
        self.lens = &self.lens[..self.lens.len() - bytes];
        self.count -= 1;
        let element;
        (element, self.data) = self.data.split_at(len);
        Some(element)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.count, Some(self.count))
    }
}

impl DoubleEndedIterator for Run<'_> {
    #[inline]
    fn next_back(&mut self) -> Option<Self::Item> {
        if self.lens.is_empty() {
            return None;
        }
        let (len, bytes) = back_len(self.lens);
        self.lens = &self.lens[bytes..];
        self.count -= 1;
        let element;
        (self.data, element) = self.data.split_at(self.data.len() - len);
        Some(element)
    }
}

impl ExactSizeIterator for Run<'_> {}

/// The first element's length, which the column ends with, and its bytes.
#[inline]
fn front_len(lens: &[u8]) -> (usize, usize) {
    let (mut len, mut bytes) = (0, 0);
    for byte in lens.iter().rev() {
        len |= usize::from(byte & 0x7f) << (7 * bytes);
        bytes += 1;
        if *byte < 0x80 {
            break;
        }
    }
    (len, bytes)
}

/// The last element's length, which the column begins with, and its bytes.
#[inline]
fn back_len(lens: &[u8]) -> (usize, usize) {
    let (mut len, mut bytes) = (usize::from(lens[0]), 1);
    for byte in lens[1..].iter().take_while(|byte| **byte >= 0x80) {
        len = len << 7 | usize::from(byte & 0x7f);
        bytes += 1;
    }
    (len, bytes)
}

pub(super) fn len_bytes(len: usize) -> usize {
    ((usize::BITS - (len | 1).leading_zeros()).div_ceil(7)) as usize
}

/// Writes a length into exactly [`len_bytes`] bytes.
pub(super) fn put_len(to: &mut [u8], len: usize) {
    let mut rest = len;
    for byte in to.iter_mut().rev() {
        *byte = rest as u8 | 0x80;
        rest >>= 7;
    }
    to[0] &= 0x7f;
}
