//! A key's hash as the cache uses it.

/// A hash, and what follows from it.
#[derive(Clone, Copy)]
pub(crate) struct Hashed(pub(crate) u64);

impl Hashed {
    /// Returns the entry's place within its shard.
    #[inline]
    pub(crate) fn place(self) -> u32 {
        self.0 as u32
    }
}
