//! Reading a list, whatever its form.

use super::large::LargeList;
use super::packed::PackedListRef;
use super::run::Run;

/// A list, for reading.
#[derive(Debug, Clone, Copy)]
pub enum ListRef<'a> {
    /// In one string of bytes.
    Packed(PackedListRef<'a>),
    /// In chunks.
    Large(&'a LargeList),
}

/// The occurrences of an element that are sought: see [`ListRef::positions`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Occurrences {
    /// Occurrences that are passed over.
    pub skip: usize,
    /// The most that are shown.
    pub count: usize,
    /// The most elements that are looked at.
    pub elements: usize,
    /// True if the search begins with the last element.
    pub from_back: bool,
}

impl<'a> ListRef<'a> {
    /// Returns the number of elements. O(1).
    #[must_use]
    pub fn len(self) -> usize {
        match self {
            Self::Packed(list) => list.len(),
            Self::Large(list) => list.len(),
        }
    }

    /// Returns whether there are no elements.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Heap bytes of a large list, bytes of a packed one. O(1).
    #[must_use]
    pub fn bytes(self) -> usize {
        match self {
            Self::Packed(list) => list.bytes().len(),
            Self::Large(list) => list.bytes(),
        }
    }

    /// The element at `index`. O(1) at the ends; elsewhere a pass over the table of chunks, and
    /// O(chunk).
    #[must_use]
    pub fn get(self, index: usize) -> Option<&'a [u8]> {
        match self {
            Self::Packed(list) => list.run().get(index),
            Self::Large(list) => list.get(index),
        }
    }

    /// The elements from `index` to the last.
    pub fn forward(self, index: usize) -> impl Iterator<Item = &'a [u8]> + Clone {
        let (run, behind) = match self {
            _ if index >= self.len() => (Run::default(), None),
            Self::Packed(list) => (list.run().from(index), None),
            Self::Large(list) => {
                let (chunk, index) = list.locate(index);
                let run = list.runs(chunk).next().unwrap_or_default();
                (run.from(index), Some(list.runs(chunk + 1)))
            }
        };
        run.chain(behind.into_iter().flatten().flatten())
    }

    /// The elements from `index` to the first.
    pub fn backward(self, index: usize) -> impl Iterator<Item = &'a [u8]> + Clone {
        let (run, before) = match self {
            _ if index >= self.len() => (Run::default(), None),
            Self::Packed(list) => (list.run().first(index + 1), None),
            Self::Large(list) => {
                let (chunk, index) = list.locate(index);
                let run = list.runs(chunk).next().unwrap_or_default();
                (run.first(index + 1), Some(list.runs_before(chunk)))
            }
        };
        let before = before.into_iter().flatten();
        run.rev().chain(before.flat_map(Iterator::rev))
    }

    /// Shows the indices at which an element occurs, until `visit` returns false. The indices count
    /// from the front, wherever the search begins.
    pub fn positions(
        self,
        element: &[u8],
        sought: Occurrences,
        mut visit: impl FnMut(usize) -> bool,
    ) {
        let Occurrences {
            skip,
            count,
            elements,
            from_back,
        } = sought;
        let len = self.len();
        let mut found = |index: usize| visit(index);
        if from_back {
            let all = self
                .backward(len.saturating_sub(1))
                .take(elements)
                .enumerate();
            let at = all
                .filter(|(_, other)| *other == element)
                .map(|(i, _)| len - 1 - i);
            at.skip(skip).take(count).all(&mut found);
        } else {
            let all = self.forward(0).take(elements).enumerate();
            let at = all.filter(|(_, other)| *other == element).map(|(i, _)| i);
            at.skip(skip).take(count).all(&mut found);
        }
    }
}
