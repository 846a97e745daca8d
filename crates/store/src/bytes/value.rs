//! The values that a store of bytes takes and returns.

use super::entry::{self, NO_END};
use crate::slot::Slot;

/// The most value bytes that are kept beside the key.
pub const INLINE_MAX: usize = 2048;

/// The facts about an entry that a look-up reads anyway. All but the slot is out of date when the
/// entry changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// Where it is.
    pub slot: Slot,
    /// The caller's 24 bits of access history.
    pub access: u32,
    /// The caller's tag (0–15).
    pub tag: u8,
    /// Its deadline, or [`NO_END`].
    pub(super) end: u64,
    /// Where in its block the value's bytes lie; 0 for an object.
    pub(super) value_at: u32,
    /// The number of these bytes.
    pub(super) value_len: u32,
}

impl Seen {
    /// Its deadline in ticks (ms); `None` when it has none.
    #[inline(always)]
    #[must_use]
    pub fn deadline(&self) -> Option<u64> {
        (self.end != NO_END).then_some(self.end)
    }

    /// Returns whether it has a deadline.
    #[inline(always)]
    #[must_use]
    pub fn has_deadline(&self) -> bool {
        self.end != NO_END
    }

    /// Returns whether it has a deadline that is reached at `now`.
    #[inline(always)]
    #[must_use]
    pub fn is_due(&self, now: u64) -> bool {
        self.end <= now && self.end != NO_END
    }
}

/// A stored value.
#[derive(Debug)]
pub enum Value<'a, O> {
    /// Bytes stored beside the key.
    Inline(&'a [u8]),
    /// The caller's object.
    Object(&'a O),
}

/// A value to store.
#[derive(Debug)]
pub enum NewValue<'a, O> {
    /// At most [`INLINE_MAX`] bytes, copied beside the key.
    Inline(&'a [u8]),
    /// An object, kept outside the block.
    Object(O),
}

/// An entry that its deadline removed.
#[derive(Debug)]
pub struct Expired<'a, O> {
    /// Its key.
    pub key: &'a [u8],
    /// Its deadline, in ticks (milliseconds).
    pub deadline: u64,
    /// The caller's tag.
    pub tag: u8,
    /// Its object, for the caller to drop.
    pub object: Option<O>,
    pub(super) block: &'a [u8],
}

impl<O> Expired<'_, O> {
    /// Its inline bytes; `None` for an object.
    #[must_use]
    pub fn inline(&self) -> Option<&[u8]> {
        if entry::is_object(self.block) {
            return None;
        }
        let layout = entry::layout(self.block);
        Some(&self.block[layout.value_at()..layout.value_at() + layout.value_len])
    }
}

/// An entry whose deadline was reached, and which is still there. See
/// [`Store::expire_or_hand_back`].
///
/// [`Store::expire_or_hand_back`]: super::Store::expire_or_hand_back
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HandedBack {
    /// Where it is.
    pub slot: Slot,
    /// The deadline that it had, in ticks (milliseconds).
    pub deadline: u64,
}
