//! The hash that keys are found by: SipHash-1-3 under a secret key.
//!
//! Clients choose the keys. SCAN shows them in the order of their hashes, and its cursor is a part
//! of a hash. So clients know some of the hash's output. Still they must not be able to choose keys
//! that collide, unless they know the 128-bit secret. A function with this property is called
//! pseudorandom. Fast hashes that multiply and fold do not have it: a client can make one factor
//! zero, and then knows everything that comes after it.
//!
//! AES-128 as a CMAC (the `aes` crate) was tried too, with keys of 8, 16, 32 and 128 bytes:
//!
//! | | instructions | ns |
//! |---|---|---|
//! | SipHash-1-3 | 98, 118, 158, 398 | 7, 9, 14, 40 |
//! | AES-CMAC | 84, 62, 99, 291 | 19, 18, 47, 270 |
//!
//! Its rounds wait for each other, its key schedule takes 704 bytes, and without AES instructions
//! in the processor it is far slower.
//!
//! SipHash is written out here. The well-known crates use the trait `Hasher`, which takes a key in
//! parts of any length, and cost a quarter more.
//!
//! Source: Aumasson, Bernstein: "SipHash: a fast short-input PRF" (2012),
//! <https://www.aumasson.jp/siphash/>.

/// Hashes keys so that nobody can choose keys that collide without knowing the seed.
#[derive(Clone)]
pub struct KeyHasher {
    start: SipState,
}

#[derive(Clone, Copy)]
struct SipState {
    a: u64,
    b: u64,
    c: u64,
    d: u64,
}

impl KeyHasher {
    /// A hasher. Stores that share keys must share its seed. If strangers choose the keys, take the
    /// seed from the system's entropy, and keep it secret.
    #[must_use]
    pub const fn new(seed: u128) -> Self {
        let (low, high) = (seed as u64, (seed >> 64) as u64);
        let start = SipState {
            a: low ^ 0x736f_6d65_7073_6575,
            b: high ^ 0x646f_7261_6e64_6f6d,
            c: low ^ 0x6c79_6765_6e65_7261,
            d: high ^ 0x7465_6462_7974_6573,
        };
        Self { start }
    }

    /// 64 bits of a key. A store uses the low 32; the upper ones are free to choose a shard by.
    // A call would cost a tenth more.
    #[inline(always)]
    #[must_use]
    pub fn hash(&self, key: &[u8]) -> u64 {
        let mut state = self.start;
        let words = key.chunks_exact(8);
        let rest = words.remainder();
        for word in words {
            state.absorb(u64::from_le_bytes(word.try_into().expect("8 bytes")));
        }
        let tail = match key.last_chunk::<8>() {
            // The last bytes of this word are those that no word had; for none, two shifts leave
            // nothing.
            Some(last) => u64::from_le_bytes(*last) >> (56 - 8 * rest.len()) >> 8,
            None => short(rest),
        };
        state.absorb((key.len() as u64) << 56 | tail);
        state.finish()
    }
}

impl SipState {
    #[inline(always)]
    fn round(&mut self) {
        let Self { a, b, c, d } = self;
        *a = a.wrapping_add(*b);
        *c = c.wrapping_add(*d);
        *b = b.rotate_left(13) ^ *a;
        *d = d.rotate_left(16) ^ *c;
        *a = a.rotate_left(32).wrapping_add(*d);
        *c = c.wrapping_add(*b);
        *d = d.rotate_left(21) ^ *a;
        *b = b.rotate_left(17) ^ *c;
        *c = c.rotate_left(32);
    }

    #[inline(always)]
    fn absorb(&mut self, word: u64) {
        self.d ^= word;
        self.round();
        self.a ^= word;
    }

    #[inline(always)]
    fn finish(mut self) -> u64 {
        self.c ^= 0xff;
        self.round();
        self.round();
        self.round();
        self.a ^ self.b ^ self.c ^ self.d
    }
}

/// Fewer than eight bytes as a number: both halves may hold the middle bytes.
#[inline]
fn short(bytes: &[u8]) -> u64 {
    let len = bytes.len();
    if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        let (first, last) = (u32::from_le_bytes(*first), u32::from_le_bytes(*last));
        return u64::from(first) | u64::from(last) << (8 * (len - 4));
    }
    let byte = |i: usize| u64::from(bytes[i]) << (8 * i);
    match len {
        0 => 0,
        _ => byte(0) | byte(len / 2) | byte(len - 1),
    }
}

impl std::fmt::Debug for KeyHasher {
    /// Shows nothing: the seed is a secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeyHasher").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    /// The key and the messages are those of the paper's test vectors: bytes that count up from 0.
    #[test]
    fn siphash_agrees_with_the_reference_implementation() {
        let hasher = KeyHasher::new(0x0f0e_0d0c_0b0a_0908_0706_0504_0302_0100);
        let message: Vec<u8> = (0..64).collect();
        let hashes = VECTORS.map(|(len, _)| (len, hasher.hash(&message[..len])));
        assert_eq!(hashes, VECTORS);
    }

    /// From the crate `siphasher`.
    const VECTORS: [(usize, u64); 13] = [
        (0, 0xabac_0158_050f_c4dc),
        (1, 0xc9f4_9bf3_7d57_ca93),
        (2, 0x82cb_9b02_4dc7_d44d),
        (3, 0x8bf8_0ab8_e7dd_f7fb),
        (4, 0xcf75_5760_88d3_8328),
        (5, 0xdef9_d52f_4953_3b67),
        (7, 0xd392_7d98_9bb1_1140),
        (8, 0x3690_9511_8d29_9a8e),
        (9, 0x25a4_8eb3_6c06_3de4),
        (15, 0xd320_d86d_2a51_9956),
        (16, 0xcc4f_dd1a_7d90_8b66),
        (31, 0x2370_dd1f_8c21_d1bc),
        (63, 0x9d19_9062_b7bb_b3a8),
    ];

    /// An earlier hash had a constant that every seed shared. Keys of 16 bytes that end in its
    /// complement all hashed to 0.
    #[test]
    fn no_bytes_of_a_key_cancel_the_other_bytes() {
        let hasher = KeyHasher::new(1);
        let hashes: HashSet<u64> = (0..10_000_u64)
            .map(|i| {
                let mut key = [0x17, 0x09, 0x47, 0xb5, 0xb5, 0xd5, 0x84, 0x3f].repeat(2);
                key[..8].copy_from_slice(&i.to_le_bytes());
                hasher.hash(&key)
            })
            .collect();
        assert_eq!(hashes.len(), 10_000);
    }

    #[test]
    fn both_halves_of_the_seed_matter() {
        let hash = |seed| KeyHasher::new(seed).hash(b"key");
        assert_ne!(hash(0), hash(1));
        assert_ne!(hash(0), hash(1 << 127));
    }
}
