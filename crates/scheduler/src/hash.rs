//! Where a key belongs: which shard, and which place within it.

use std::hash::{BuildHasher, Hash};

/// Spreads the bits of hashers that leave some of them poor: a multiplication whose halves are folded.
#[inline]
pub(crate) fn hash_of<Q: Hash + ?Sized>(hasher: &impl BuildHasher, key: &Q) -> u64 {
    let hash = hasher.hash_one(key) ^ 0x9E37_79B9_7F4A_7C15;
    let wide = u128::from(hash) * 0xD6E8_FEB8_6659_FD93;
    (wide as u64) ^ (wide >> 64) as u64
}

/// The place within a shard: what is left of the hash beside the bits that chose the shard.
#[inline]
pub(crate) fn place(hash: u64) -> u32 {
    hash as u32
}
