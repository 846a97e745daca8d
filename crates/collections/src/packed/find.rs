//! Finding a member of a packed collection: one pass over the lengths.
//!
//! Members of one collection often have the same length and begin alike: `user:1001`, `user:1002`. So an element of
//! the right length is compared by its last bytes first, in one word, and only then as a whole.

use super::{PackedRef, Place, span};

impl PackedRef<'_> {
    /// The place of the member whose first element this is. O(members).
    #[must_use]
    pub fn find(self, first: &[u8]) -> Option<Place> {
        match first.last_chunk::<8>() {
            Some(tail) => self.find_by(first.len(), |element| {
                element.last_chunk() == Some(tail) && element == first
            }),
            None => self.find_by(first.len(), |element| {
                element.last() == first.last() && element == first
            }),
        }
    }

    #[inline(always)]
    fn find_by(self, len: usize, is: impl Fn(&[u8]) -> bool) -> Option<Place> {
        if self.is_pairs() {
            self.find_in::<true>(len, is)
        } else {
            self.find_in::<false>(len, is)
        }
    }

    #[inline(always)]
    fn find_in<const PAIRS: bool>(self, len: usize, is: impl Fn(&[u8]) -> bool) -> Option<Place> {
        let bytes = self.bytes();
        let (count, mut at) = self.header();
        for index in 0..count {
            let (from, to) = span(bytes, at);
            if to - from == len && is(&bytes[from..to]) {
                return Some(Place { at, index });
            }
            at = if PAIRS { span(bytes, to).1 } else { to };
        }
        None
    }
}
