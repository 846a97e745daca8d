//! What the benchmarks are given: counts, delays and orders, the same in every run.

use std::time::Duration;

/// Operations that each benchmark runs, and entries that it runs them on. `.ci/instructions` reads
/// this line.
pub(crate) const OPERATIONS: usize = 100_000;

/// When the structures come to be, in ticks of a millisecond.
pub(crate) const START: u64 = 1 << 40;

/// Times to live are uniform between this and [`LONGEST_TTL`].
const SHORTEST_TTL: Duration = Duration::from_secs(30);
pub(crate) const LONGEST_TTL: Duration = Duration::from_secs(60);

/// By how much deadlines are moved: less than the shortest time to live.
pub(crate) const MOVE_MS: u64 = 29_000;

/// SplitMix64 (Steele, Lea, Flood 2014).
struct Rng(u64);

impl Rng {
    fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        scatter(self.0)
    }

    fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }
}

/// A bijection that leaves no pattern of its input: keys from numbers.
pub(crate) fn scatter(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// One time to live for each entry.
pub(crate) fn ttls_ms() -> Vec<u64> {
    let mut rng = Rng::new(1);
    let shortest = SHORTEST_TTL.as_millis() as u64;
    let spread = (LONGEST_TTL - SHORTEST_TTL).as_millis() as u64;
    (0..OPERATIONS)
        .map(|_| shortest + rng.below(spread))
        .collect()
}

/// Every entry's number once, shuffled.
pub(crate) fn order() -> Vec<u64> {
    let mut rng = Rng::new(3);
    let mut order: Vec<u64> = (0..OPERATIONS as u64).collect();
    for i in (1..order.len()).rev() {
        order.swap(i, rng.below(i as u64 + 1) as usize);
    }
    order
}
