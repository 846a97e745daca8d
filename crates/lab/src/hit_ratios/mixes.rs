//! Made-up accesses, for when no recorded ones are at hand: each shows one habit of real ones.

use crate::rng::{self, Rng};

/// The number of requests of a made-up trace.
pub(super) const REQUESTS: u64 = 500_000;
/// The first of the keys that nobody asks for twice.
const STRANGERS: u64 = 1 << 40;

/// A made-up trace and the sizes at which it is replayed.
pub(super) const MIXES: [super::Sizes; 7] = [
    ("zipf", &[500, 2_000]),
    ("zipf+scan", &[500, 2_000]),
    ("zipf+loop", &[1_000, 2_000]),
    ("loop", &[250, 750]),
    ("phases", &[500, 2_000]),
    ("drift", &[500, 2_000]),
    ("rise", &[500, 2_000]),
];

/// The trace of that name; empty for a name that is not in [`MIXES`].
pub(super) fn make(name: &str, requests: u64, seed: u64) -> Vec<u64> {
    let mut rng = Rng::new(seed);
    let mut key = |at: u64| -> u64 {
        match name {
            "zipf" => skewed(&mut rng, 100_000),
            // Bursts of 2,000 strangers between bursts of 2,000 of the usual.
            "zipf+scan" if (at / 2_000).is_multiple_of(2) => skewed(&mut rng, 20_000),
            "zipf+scan" => STRANGERS + at,
            "zipf+loop" if at.is_multiple_of(2) => skewed(&mut rng, 20_000),
            "zipf+loop" => STRANGERS + at / 2 % 1_500,
            "loop" => at % 1_000,
            // All favourites are new every 50,000 requests.
            "phases" => at / 50_000 * STRANGERS + skewed(&mut rng, 20_000),
            // Favourites grow old: a key becomes ever more popular, then nobody wants it.
            "drift" => at / 10 + skewed(&mut rng, 4_000),
            // News: a key is most popular when it is new.
            "rise" => STRANGERS + at / 10 - skewed(&mut rng, 20_000),
            _ => 0,
        }
    };
    let known = MIXES.iter().any(|(mix, _)| *mix == name);
    let requests = if known { requests } else { 0 };
    (0..requests).map(|at| rng::mix(key(at))).collect()
}

/// A rank below `ranks` by Zipf's law with exponent 1: the inverse of its continuous form.
fn skewed(rng: &mut Rng, ranks: u64) -> u64 {
    (ranks as f64).powf(rng.uniform()) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mix_is_made_and_replayable() {
        for (name, _) in MIXES {
            let trace = make(name, 20_000, 1);
            assert_eq!(trace.len(), 20_000, "{name}");
            assert_eq!(trace, make(name, 20_000, 1), "{name}");
            assert!(trace.iter().any(|key| *key != trace[0]), "{name}");
        }
        assert!(make("unheard of", 7, 1).is_empty());
    }
}
