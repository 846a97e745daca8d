//! The hash that keys are found by.

use std::hash::BuildHasher;

use foldhash::quality::FixedState;

/// Hashes keys with a seed, so that nobody can choose keys that collide.
#[derive(Debug, Clone)]
pub struct KeyHasher(FixedState);

impl KeyHasher {
    /// A hasher; stores that share keys must share its seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(FixedState::with_seed(seed))
    }

    /// 64 bits of a key. A store uses the low 32; the upper ones are free to choose a shard by.
    #[inline]
    #[must_use]
    pub fn hash(&self, key: &[u8]) -> u64 {
        // Not through `Hash for [u8]`, which would hash the length as well.
        use std::hash::Hasher;
        let mut hasher = self.0.build_hasher();
        hasher.write(key);
        hasher.finish()
    }
}
