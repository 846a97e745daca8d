//! Where a key belongs: which shard, and which place within it.

use std::hash::{BuildHasher, Hash};

use tidewheel_time::mix;

/// A key's hash, with its bits spread.
#[inline]
pub(crate) fn hash_of<Q: Hash + ?Sized>(hasher: &impl BuildHasher, key: &Q) -> u64 {
    mix(hasher.hash_one(key))
}

/// The place within a shard: what is left of the hash beside the bits that chose the shard.
#[inline]
pub(crate) fn place(hash: u64) -> u32 {
    hash as u32
}
