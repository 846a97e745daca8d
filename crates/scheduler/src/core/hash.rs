//! A key's hash chooses its shard, and its place within it.

use std::hash::{BuildHasher, Hash};

use tidewheel_time::mix;

/// A key's hash, with its bits spread.
#[inline]
pub(crate) fn hash_of<Q: Hash + ?Sized>(hasher: &impl BuildHasher, key: &Q) -> u64 {
    mix(hasher.hash_one(key))
}

/// The place within a shard: the bits of the hash without those that chose the shard.
#[inline]
pub(crate) fn place(hash: u64) -> u32 {
    hash as u32
}
