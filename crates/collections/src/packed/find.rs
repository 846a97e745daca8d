//! Finding a member of a packed collection: one pass over the lengths.
//!
//! Members of one collection often have the same length and begin alike: `user:1001`, `user:1002`.
//! So an element of the right length is compared by its last bytes first, in one word, and only
//! then as a whole.

use std::ops::Range;

use super::{PackedPosition, PackedRef, span};

impl PackedRef<'_> {
    /// The place of the member whose first element this is. O(members).
    #[must_use]
    pub fn find(self, first: &[u8]) -> Option<PackedPosition> {
        match first.last_chunk::<8>() {
            Some(tail) => self.find_by(first.len(), |element| {
                element.last_chunk() == Some(tail) && element == first
            }),
            None => self.find_by(first.len(), |element| {
                element.last() == first.last() && element == first
            }),
        }
    }

    /// The first member, from the one at `place` on, of which `is` says so, or the place behind the
    /// last. `is` is told where the second element lies in the bytes. Members have two elements.
    /// O(members).
    #[inline]
    pub(crate) fn seek_pair(
        self,
        place: PackedPosition,
        is: impl Fn(&[u8], Range<usize>) -> bool,
    ) -> PackedPosition {
        debug_assert!(self.is_pairs());
        let (count, bytes) = (self.len(), self.bytes());
        let PackedPosition { mut at, mut index } = place;
        while index < count {
            let (from, to) = span(bytes, at);
            let second = span(bytes, to);
            if is(&bytes[from..to], second.0..second.1) {
                break;
            }
            at = second.1;
            index += 1;
        }
        PackedPosition { at, index }
    }

    /// The place of the first member.
    pub(crate) fn front(self) -> PackedPosition {
        let (_, at) = self.header();
        PackedPosition { at, index: 0 }
    }

    #[inline(always)]
    fn find_by(self, len: usize, is: impl Fn(&[u8]) -> bool) -> Option<PackedPosition> {
        if self.is_pairs() {
            self.find_in::<true>(len, is)
        } else {
            self.find_in::<false>(len, is)
        }
    }

    #[inline(always)]
    fn find_in<const PAIRS: bool>(
        self,
        len: usize,
        is: impl Fn(&[u8]) -> bool,
    ) -> Option<PackedPosition> {
        let bytes = self.bytes();
        let (count, mut at) = self.header();
        for index in 0..count {
            let (from, to) = span(bytes, at);
            if to - from == len && is(&bytes[from..to]) {
                return Some(PackedPosition { at, index });
            }
            at = if PAIRS { span(bytes, to).1 } else { to };
        }
        None
    }
}
