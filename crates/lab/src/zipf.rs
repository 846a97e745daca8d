//! Draws keys by popularity: Zipf's law by inversion of its cumulated weights.

use crate::rng::Rng;

/// Ranks from 0 on; rank `r` has the weight `1 / (r + 1)^exponent`.
#[derive(Debug)]
pub(crate) struct Zipf {
    cumulated: Vec<f64>,
}

impl Zipf {
    /// Makes a distribution of `ranks` keys, at least one.
    pub(crate) fn new(ranks: u64, exponent: f64) -> Self {
        let mut sum = 0.0;
        let cumulated = (1..=ranks.max(1))
            .map(|rank| {
                sum += (rank as f64).powf(-exponent);
                sum
            })
            .collect();
        Self { cumulated }
    }

    pub(crate) fn draw(&self, rng: &mut Rng) -> u64 {
        let total = self.cumulated.last().copied().unwrap_or(0.0);
        let at = rng.uniform() * total;
        let rank = self.cumulated.partition_point(|&sum| sum <= at);
        rank.min(self.cumulated.len() - 1) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_ranks_have_the_shares_that_the_law_gives_them() {
        let zipf = Zipf::new(1_000, 0.99);
        let harmonic: f64 = (1..=1_000).map(|r| f64::from(r).powf(-0.99)).sum();
        let mut rng = Rng::new(5);
        let draws = 200_000;
        let mut seen = vec![0_u32; 1_000];
        for _ in 0..draws {
            seen[zipf.draw(&mut rng) as usize] += 1;
        }
        for rank in [0_usize, 1, 9] {
            let expected = (rank as f64 + 1.0).powf(-0.99) / harmonic * f64::from(draws);
            let found = f64::from(seen[rank]);
            let error = (found / expected - 1.0).abs();
            assert!(error < 0.1, "{rank}: {found} for {expected}");
        }
        assert!(seen.iter().all(|&count| count < draws / 5));
    }
}
