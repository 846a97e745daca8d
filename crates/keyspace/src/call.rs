//! A resolved call: its row, and the hashes of its keys if they are known.

use crate::rows::Command;

/// A call with as many keys prefetches their data itself, when it has locked their shards. Locking
/// them twice more would cost more than the longer time to come is worth.
pub(crate) const MANY_KEYS: usize = 4;

/// A resolved call.
#[derive(Debug, Clone, Copy)]
pub struct Call<'h> {
    /// Its row.
    pub row: &'static Command,
    /// The hashes of all its keys, in their order; empty if they are not known.
    pub(crate) hashes: &'h [u64],
}

impl From<&'static Command> for Call<'_> {
    fn from(row: &'static Command) -> Self {
        Self { row, hashes: &[] }
    }
}
