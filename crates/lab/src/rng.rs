//! A small seeded random source, so that every experiment can be replayed.

/// SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014).
#[derive(Clone, Debug)]
pub(crate) struct Rng {
    state: u64,
}

impl Rng {
    pub(crate) fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    pub(crate) fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.state)
    }

    /// Uniform in `0..bound`; 0 when `bound` is 0. The bias (below 2^-32 for bounds up to 2^32) is
    /// far under what any experiment here can see.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        let wide = u128::from(self.next_u64()) * u128::from(bound);
        (wide >> 64) as u64
    }

    /// Uniform in `[0, 1)`.
    pub(crate) fn uniform(&mut self) -> f64 {
        uniform(self.next_u64())
    }

    /// Uniform in `low..=high`.
    pub(crate) fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high.saturating_sub(low).saturating_add(1))
    }

    /// Fisher–Yates.
    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            let j = self.below(i as u64 + 1) as usize;
            items.swap(i, j);
        }
    }
}

/// A number in `[0, 1)`, of 64 random bits.
pub(crate) fn uniform(random: u64) -> f64 {
    (random >> 11) as f64 / (1_u64 << 53) as f64
}

/// SplitMix64's finaliser: a bijection on 64 bits that leaves no pattern of its input.
pub(crate) fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn between_reaches_both_ends_and_nothing_beyond() {
        let mut rng = Rng::new(1);
        let mut seen = [false; 5];
        for _ in 0..1_000 {
            let value = rng.between(10, 14);
            assert!((10..=14).contains(&value));
            seen[(value - 10) as usize] = true;
        }
        assert_eq!(seen, [true; 5]);
    }

    #[test]
    fn shuffle_keeps_every_item() {
        let mut items: Vec<u32> = (0..1_000).collect();
        Rng::new(3).shuffle(&mut items);
        assert_ne!(items, (0..1_000).collect::<Vec<_>>());
        items.sort_unstable();
        assert_eq!(items, (0..1_000).collect::<Vec<_>>());
    }
}
