//! The parameters of a change besides the member.

use tidewheel_store::KeyHasher;

/// When a collection is packed: all three are settings of the server. [`PACKED_ENTRIES_MAX`] and
/// [`PACKED_BYTES_MAX`] bound them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The most members.
    pub entries: usize,
    /// The most bytes of an element.
    pub value: usize,
    /// The most members of a set of integers, in place of `entries`. Other collections ignore it.
    pub integers: usize,
}

/// The most members of a packed collection, whatever the limits say. An insertion looks at each of
/// them, and the one that makes the collection large moves each: about 0.5 ms for so many.
pub const PACKED_ENTRIES_MAX: usize = 4_096;

/// The most bytes of a packed collection, whatever the limits say, for the same reason.
pub const PACKED_BYTES_MAX: usize = 1 << 20;

impl Limits {
    /// Returns whether a collection of so many members and bytes may be packed.
    pub(crate) fn hold(&self, entries: usize, bytes: usize) -> bool {
        entries <= self.entries.min(PACKED_ENTRIES_MAX) && bytes <= PACKED_BYTES_MAX
    }

    /// Returns whether a set of so many integers may be packed.
    pub(crate) fn hold_integers(&self, entries: usize) -> bool {
        entries <= self.integers.min(PACKED_ENTRIES_MAX)
    }
}

/// The circumstances of a change that may let a collection grow.
#[derive(Debug, Clone, Copy)]
pub struct Change<'a> {
    /// The present tick (ms).
    pub now: u64,
    /// When the collection stays packed.
    pub limits: Limits,
    /// The hasher with which a large collection hashes its members, for as long as it lives.
    pub hasher: &'a KeyHasher,
}

/// The deadline of a member that is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NewDeadline {
    /// It has none from now on.
    None,
    /// It keeps its own; a new member has none.
    Keep,
    /// This one, in ticks (ms).
    At(u64),
}

impl NewDeadline {
    /// The deadline of a member whose present one is `old`.
    #[must_use]
    pub fn over(self, old: Option<u64>) -> Option<u64> {
        match self {
            Self::None => None,
            Self::Keep => old,
            Self::At(deadline) => Some(deadline),
        }
    }
}
