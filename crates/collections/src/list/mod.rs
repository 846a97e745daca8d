//! Lists: packed, or a deque of packed chunks.
//!
//! A list stays packed while it has at most as many bytes, or elements, as [`ListLimits`] says.
//! Then it becomes a deque of chunks of at most that size. An element longer than a chunk has one
//! of its own. Neighbours that have become small are joined.
//!
//! | operation | cost |
//! |---|---|
//! | push, drop and read at the ends | O(1), where the chunk must be laid out anew O(chunk) |
//! | read, insert, set and remove at an index | O(chunk), and a pass over the table of chunks from the nearer end |
//! | remove by value | O(n) |
//! | from packed to large, and back | O(chunk) |
//!
//! The table has 40 bytes for each chunk of 8 KiB. It doubles as it grows, so now and then a push
//! moves the whole table: about a megabyte for ten million elements of 16 bytes.

mod chunk;
mod large;
mod limits;
mod packed;
mod read;
mod run;

pub use large::LargeList;
pub use limits::ListLimits;
pub use packed::{PackedList, PackedListRef};
pub use read::{ListRef, Occurrences};
use run::RunSize;

/// A list, for changes. What it holds is read through [`List::get`].
#[derive(Debug, Clone)]
pub enum List {
    /// In one string of bytes.
    Packed(PackedList),
    /// In chunks.
    Large(Box<LargeList>),
}

impl List {
    /// No elements.
    #[must_use]
    pub fn new() -> Self {
        Self::Packed(PackedList::new())
    }

    /// A list with the same elements. A large one shares their bytes until one of the two is
    /// changed: a step for each chunk.
    #[must_use]
    pub fn share(&mut self) -> Self {
        match self {
            Self::Packed(list) => Self::Packed(list.clone()),
            Self::Large(list) => Self::Large(Box::new(list.share())),
        }
    }

    /// For reading.
    #[inline]
    #[must_use]
    pub fn get(&self) -> ListRef<'_> {
        match self {
            Self::Packed(list) => ListRef::Packed(list.get()),
            Self::Large(list) => ListRef::Large(list),
        }
    }

    /// Heap bytes held. O(1).
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        match self {
            Self::Packed(list) => list.heap_bytes(),
            Self::Large(list) => list.bytes(),
        }
    }

    /// Adds a first element.
    pub fn push_front(&mut self, element: &[u8], limits: &ListLimits) {
        self.insert(0, element, limits);
    }

    /// Adds a last element.
    pub fn push_back(&mut self, element: &[u8], limits: &ListLimits) {
        self.insert(self.get().len(), element, limits);
    }

    /// Adds an element in front of the one at `index`; behind the last one if `index` is the length
    /// or more.
    pub fn insert(&mut self, index: usize, element: &[u8], limits: &ListLimits) {
        let index = index.min(self.get().len());
        if let Self::Packed(list) = self {
            let run = list.get().run();
            if limits.packs(run.size(), RunSize::of(element)) {
                return list.insert(run.spot(index), element);
            }
        }
        self.large().insert(index, element, limits);
    }

    /// Exchanges the element at `index`; returns false if there is none.
    pub fn set(&mut self, index: usize, element: &[u8], limits: &ListLimits) -> bool {
        if index >= self.get().len() {
            return false;
        }
        if let Self::Packed(list) = self {
            let run = list.get().run();
            let spot = run.spot(index);
            let (old, new) = (run.size_at(spot), RunSize::of(element));
            let rest = RunSize {
                data: run.size().data - old.data,
                lens: run.size().lens - old.lens,
                count: run.len() - 1,
            };
            if limits.packs(rest, new) {
                list.remove(spot, old);
                list.insert(spot, element);
                return true;
            }
        }
        self.large().set(index, element, limits);
        true
    }

    /// Removes up to `count` elements from `index` on. The form stays: see [`pack`](Self::pack).
    pub fn remove(&mut self, index: usize, count: usize, limits: &ListLimits) {
        let count = count.min(self.get().len().saturating_sub(index));
        if count == 0 {
            return;
        }
        match self {
            Self::Packed(list) => {
                let run = list.get().run();
                let (spot, end) = (run.spot(index), run.spot(index + count));
                let gone = run.between(spot, end, count).size();
                list.remove(spot, gone);
            }
            Self::Large(list) => list.remove(index, count, limits),
        }
    }

    /// Removes the first `count` elements.
    pub fn drop_front(&mut self, count: usize, limits: &ListLimits) {
        self.remove(0, count, limits);
    }

    /// Removes the last `count` elements.
    pub fn drop_back(&mut self, count: usize, limits: &ListLimits) {
        let len = self.get().len();
        let count = count.min(len);
        self.remove(len - count, count, limits);
    }

    /// Keeps `count` elements from `start` on, and removes the others.
    pub fn trim(&mut self, start: usize, count: usize, limits: &ListLimits) {
        let end = start.saturating_add(count);
        let behind = self.get().len().saturating_sub(end);
        self.drop_back(behind, limits);
        self.drop_front(start, limits);
    }

    /// Removes the occurrences of an element: the first `max` from the front, or from the back.
    /// Returns how many.
    pub fn remove_value(
        &mut self,
        element: &[u8],
        max: usize,
        from_back: bool,
        limits: &ListLimits,
    ) -> usize {
        match self {
            Self::Large(list) => {
                list.remove_matches(|other| other == element, max, from_back, limits)
            }
            Self::Packed(list) => remove_packed(list, element, max, from_back),
        }
    }

    /// Makes a large list packed again if it has become small: half of the limits, in one chunk.
    /// For the end of a command that removed elements. Returns whether it did.
    pub fn pack(&mut self, limits: &ListLimits) -> bool {
        let Self::Large(list) = self else {
            return false;
        };
        let run = match list.only_run() {
            Some(run) if limits.packs_again(run.size()) => run,
            None if list.is_empty() => run::Run::default(),
            _ => return false,
        };
        *self = Self::Packed(PackedList::of_run(run));
        true
    }

    /// Gives back memory that a packed list does not use. A large one does so by itself.
    pub fn tighten(&mut self) {
        if let Self::Packed(list) = self {
            list.tighten();
        }
    }

    /// Panics if the structure is broken. O(n).
    pub fn validate(&self, limits: &ListLimits) {
        match self {
            Self::Packed(list) => list.get().run().validate(),
            Self::Large(list) => list.validate(limits),
        }
    }

    /// The list as chunks, which it becomes if it was packed.
    fn large(&mut self) -> &mut LargeList {
        if let Self::Packed(list) = self {
            *self = Self::Large(Box::new(LargeList::of_packed(list.get())));
        }
        match self {
            Self::Large(list) => list,
            Self::Packed(_) => unreachable!("it has just become large"),
        }
    }
}

impl Default for List {
    fn default() -> Self {
        Self::new()
    }
}

/// Writes the elements that stay into a new string.
fn remove_packed(list: &mut PackedList, element: &[u8], max: usize, from_back: bool) -> usize {
    let run = list.get().run();
    let matches = run.filter(|other| *other == element).count();
    let removed = matches.min(max);
    if removed == 0 {
        return 0;
    }
    let stay = if from_back { matches - removed } else { 0 };
    let mut kept = PackedList::new();
    let mut met = 0;
    for other in run {
        if other == element {
            met += 1;
            if met > stay && met <= stay + removed {
                continue;
            }
        }
        kept.insert(kept.get().run().end(), other);
    }
    *list = kept;
    removed
}
