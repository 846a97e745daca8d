//! Spreading the bits of a hash.

/// Spreads the bits of a hash over all 64, for hashers that leave some of them poor: one
/// multiplication whose halves are folded. The top bits may then choose a shard, and the low ones a
/// place within it.
#[inline]
#[must_use]
pub const fn mix(hash: u64) -> u64 {
    let product = hash as u128 * 0x9e37_79b9_7f4a_7c15;
    (product >> 64) as u64 ^ product as u64
}
