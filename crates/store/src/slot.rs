//! Where an entry is.

/// Where an entry is in a store. Valid until the next call that takes `&mut self`. Some of those calls return the entry's new
/// slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Slot(pub(crate) u32);
