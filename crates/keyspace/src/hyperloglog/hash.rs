//! The hash of elements: MurmurHash64A by Austin Appleby, with the public encoding's seed.

const SEED: u64 = 0xadc8_3b19;
const M: u64 = 0xc6a4_a793_5bd1_e995;
const R: u32 = 47;

pub(super) fn murmur64(bytes: &[u8]) -> u64 {
    let mut hash = SEED ^ (bytes.len() as u64).wrapping_mul(M);
    let (words, rest) = bytes.as_chunks::<8>();
    for word in words {
        let mut word = u64::from_le_bytes(*word).wrapping_mul(M);
        word = (word ^ word >> R).wrapping_mul(M);
        hash = (hash ^ word).wrapping_mul(M);
    }
    if !rest.is_empty() {
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        hash = (hash ^ u64::from_le_bytes(last)).wrapping_mul(M);
    }
    hash = (hash ^ hash >> R).wrapping_mul(M);
    hash ^ hash >> R
}
