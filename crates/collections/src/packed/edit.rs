//! Changes a packed collection in place.

use super::varint::{put_varint, varint_len};
use super::{DEADLINE, DEADLINE_MAX, MARK, NONE, PAIRS, PackedPosition, PackedRef, TIMED, span};

/// A packed collection, for changes.
///
/// A change moves the bytes behind it: O(bytes). It allocates only when the string grows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packed(Vec<u8>);

impl Packed {
    /// No members, of one element each.
    #[must_use]
    pub fn of_singles() -> Self {
        Self::reuse_for_singles(Vec::new())
    }

    /// No members, of two elements each.
    #[must_use]
    pub fn of_pairs() -> Self {
        Self::reuse_for_pairs(Vec::new())
    }

    /// As [`of_singles`](Self::of_singles), in memory at hand.
    #[must_use]
    pub fn reuse_for_singles(mut bytes: Vec<u8>) -> Self {
        bytes.clear();
        bytes.extend([0, 0]);
        Self(bytes)
    }

    /// As [`of_pairs`](Self::of_pairs), in memory at hand.
    #[must_use]
    pub fn reuse_for_pairs(mut bytes: Vec<u8>) -> Self {
        bytes.clear();
        bytes.extend([PAIRS, 0]);
        Self(bytes)
    }

    /// The collection that these bytes are: those of a [`Packed`].
    #[must_use]
    pub fn from_bytes(bytes: Vec<u8>) -> Self {
        debug_assert!(bytes.len() >= 2, "no collection is as short");
        debug_assert!(PackedRef(&bytes).is_sound(), "broken bytes");
        Self(bytes)
    }

    /// Its bytes.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    /// Heap bytes held.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        self.0.capacity()
    }

    /// For reading.
    #[inline]
    #[must_use]
    pub fn get(&self) -> PackedRef<'_> {
        PackedRef(&self.0)
    }

    /// Sets the owner's mark, or takes it away.
    pub fn set_mark(&mut self, marked: bool) {
        self.0[0] = self.0[0] & !MARK | if marked { MARK } else { 0 };
    }

    /// Adds a member at the end; see [`insert`](Self::insert).
    pub fn push(&mut self, first: &[u8], second: &[u8]) -> PackedPosition {
        self.insert(self.get().back(), first, second)
    }

    /// Adds a member without a deadline in front of the one at `place`. Where members have one
    /// element, `second` must be empty. Returns where the new member is.
    pub fn insert(&mut self, place: PackedPosition, first: &[u8], second: &[u8]) -> PackedPosition {
        debug_assert!(self.get().is_pairs() || second.is_empty());
        let len = self.get().len();
        if self.get().is_timed() {
            let at = self.get().end() + place.index * DEADLINE;
            self.resize(at, 0, DEADLINE);
            self.write_deadline(at, NONE);
        }
        let size = encoded_len(first) + self.encoded_second(second);
        self.resize(place.at, 0, size);
        let at = put_element(&mut self.0, place.at, first);
        if self.get().is_pairs() {
            put_element(&mut self.0, at, second);
        }
        self.set_len(place, len, len + 1)
    }

    /// Removes a member.
    pub fn remove(&mut self, place: PackedPosition) {
        self.cut(&[place]);
        self.drop_empty_column();
    }

    /// Takes members out, which are in their order, and their deadlines. What lies between two of
    /// them moves to the front, once.
    pub(super) fn cut(&mut self, gone: &[PackedPosition]) {
        let Some(&first) = gone.first() else {
            return;
        };
        let (len, column) = (self.get().len(), self.get().end());
        let nexts = gone.iter().skip(1).map(|next| next.at).chain([column]);
        let mut to = first.at;
        for (gone, next) in gone.iter().zip(nexts) {
            let from = self.get().after(gone.at);
            self.0.copy_within(from..next, to);
            to += next - from;
        }
        if self.get().is_timed() {
            to = self.cut_column(gone, column, len, to);
        }
        self.0.truncate(to);
        self.set_len(first, len, len - gone.len());
    }

    /// Moves the deadlines of those that stay from `column` to `to`. Returns where they end.
    fn cut_column(
        &mut self,
        gone: &[PackedPosition],
        column: usize,
        len: usize,
        to: usize,
    ) -> usize {
        let at = |index: usize| column + index * DEADLINE;
        let nexts = gone.iter().map(|gone| gone.index).chain([len]);
        let (mut from, mut to) = (0, to);
        for next in nexts {
            self.0.copy_within(at(from)..at(next), to);
            to += at(next) - at(from);
            from = next + 1;
        }
        to
    }

    /// Exchanges a member's second element. Its place stays.
    pub fn set_second(&mut self, place: PackedPosition, second: &[u8]) {
        debug_assert!(self.get().is_pairs());
        let at = span(&self.0, place.at).1;
        self.set_element(at, second);
    }

    /// Exchanges a member's first element. Its place stays.
    pub fn set_first(&mut self, place: PackedPosition, first: &[u8]) {
        self.set_element(place.at, first);
    }

    fn set_element(&mut self, at: usize, element: &[u8]) {
        let (from, to) = span(&self.0, at);
        if to - from == element.len() {
            self.0[from..to].copy_from_slice(element);
            return;
        }
        self.resize(at, to - at, encoded_len(element));
        put_element(&mut self.0, at, element);
    }

    /// Moves a member, with its deadline, in front of the one at `target`. Returns where it is now.
    /// It moves only the bytes between.
    pub(crate) fn shift(
        &mut self,
        place: PackedPosition,
        target: PackedPosition,
    ) -> PackedPosition {
        let (end, column) = (self.get().after(place.at), self.get().end());
        let is_timed = self.get().is_timed();
        let deadline_at = |index| column + index * DEADLINE;
        if target.index > place.index {
            self.0[place.at..target.at].rotate_left(end - place.at);
            if is_timed {
                let between = deadline_at(place.index)..deadline_at(target.index);
                self.0[between].rotate_left(DEADLINE);
            }
            return PackedPosition {
                at: target.at - (end - place.at),
                index: target.index - 1,
            };
        }
        self.0[target.at..end].rotate_right(end - place.at);
        if is_timed {
            let between = deadline_at(target.index)..deadline_at(place.index + 1);
            self.0[between].rotate_right(DEADLINE);
        }
        target
    }

    /// Gives a member a deadline, moves it, or takes it away. Places stay.
    pub fn set_deadline(&mut self, place: PackedPosition, deadline: Option<u64>) {
        if !self.get().is_timed() {
            if deadline.is_none() {
                return;
            }
            let column = self.get().len() * DEADLINE;
            self.0[0] |= TIMED;
            self.0.resize(self.0.len() + column, u8::MAX);
        }
        let at = self.get().end() + place.index * DEADLINE;
        self.write_deadline(at, deadline.map_or(NONE, |at| at.min(DEADLINE_MAX)));
        if deadline.is_none() {
            self.drop_empty_column();
        }
    }

    /// Drops the column if it says nothing any more.
    fn drop_empty_column(&mut self) {
        let packed = self.get();
        if packed.is_timed() && packed.deadlines().all(|deadline| deadline == NONE) {
            self.drop_column();
        }
    }

    /// Drops the column, which says nothing any more.
    pub(super) fn drop_column(&mut self) {
        let end = self.get().end();
        self.0.truncate(end);
        self.0[0] &= !TIMED;
    }

    fn write_deadline(&mut self, at: usize, deadline: u64) {
        self.0[at..at + DEADLINE].copy_from_slice(&deadline.to_le_bytes()[..DEADLINE]);
    }

    fn encoded_second(&self, second: &[u8]) -> usize {
        if self.get().is_pairs() {
            encoded_len(second)
        } else {
            0
        }
    }

    /// Makes room: `old` bytes at `at` become `new` ones.
    fn resize(&mut self, at: usize, old: usize, new: usize) {
        let end = self.0.len();
        if new > old {
            // An eighth more than needed: twice as much, as vectors grow by themselves, is too much
            // to hold for long.
            if end + new - old > self.0.capacity() {
                self.0.reserve_exact((new - old).max(end / 8));
            }
            self.0.resize(end + new - old, 0);
        }
        self.0.copy_within(at + old..end, at + new);
        self.0.truncate(end + new - old);
    }

    /// Writes the number of members. Returns where the member at `place` is now, since a longer
    /// number moves it.
    fn set_len(&mut self, place: PackedPosition, old: usize, new: usize) -> PackedPosition {
        let (old, room) = (varint_len(old), varint_len(new));
        if room != old {
            self.resize(1, old, room);
        }
        put_varint(&mut self.0, 1, new);
        PackedPosition {
            at: place.at + room - old,
            index: place.index,
        }
    }
}

/// Exchanges the second element of a member of the collection that these bytes are, if it has the
/// same length. Returns whether it did. For bytes that cannot grow where they lie.
pub fn overwrite(bytes: &mut [u8], place: PackedPosition, second: &[u8]) -> bool {
    debug_assert!(PackedRef(bytes).is_pairs());
    let (from, to) = span(bytes, span(bytes, place.at).1);
    if to - from != second.len() {
        return false;
    }
    bytes[from..to].copy_from_slice(second);
    true
}

fn encoded_len(element: &[u8]) -> usize {
    varint_len(element.len()) + element.len()
}

fn put_element(bytes: &mut [u8], at: usize, element: &[u8]) -> usize {
    let from = put_varint(bytes, at, element.len());
    let to = from + element.len();
    bytes[from..to].copy_from_slice(element);
    to
}
