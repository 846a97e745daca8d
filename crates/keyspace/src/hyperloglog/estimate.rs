//! The estimator: O. Ertl, [New cardinality estimation algorithms for HyperLogLog
//! sketches](https://arxiv.org/abs/1702.01284), 2017, algorithm 6. It needs no tables of
//! corrections.

use super::{RANK_BITS, REGISTERS};

/// The limit of the constant α for many registers: 1 / (2 ln 2).
const ALPHA: f64 = 0.721_347_520_444_481_7;

/// The estimate from how many registers have each rank.
pub(super) fn estimate(histogram: &[u32; 64]) -> u64 {
    let m = REGISTERS as f64;
    let share = |rank: usize| f64::from(histogram[rank]) / m;
    let highest = RANK_BITS as usize + 1;
    let mut z = m * tau(1.0 - share(highest));
    for rank in (1..highest).rev() {
        z = (z + f64::from(histogram[rank])) * 0.5;
    }
    z += m * sigma(share(0));
    // Registers that nobody filled may all have the highest rank: without end. The sign bit is not
    // the estimate's.
    (ALPHA * m * m / z).round() as i64 as u64
}

/// The contribution of the registers of the highest rank: τ of the paper.
fn tau(mut x: f64) -> f64 {
    if x == 0.0 || x == 1.0 {
        return 0.0;
    }
    let (mut y, mut z) = (1.0, 1.0 - x);
    loop {
        x = x.sqrt();
        let before = z;
        y *= 0.5;
        z -= (1.0 - x) * (1.0 - x) * y;
        if z == before {
            return z / 3.0;
        }
    }
}

/// The contribution of the registers that are zero: σ of the paper.
fn sigma(mut x: f64) -> f64 {
    if x == 1.0 {
        return f64::INFINITY;
    }
    let (mut y, mut z) = (1.0, x);
    loop {
        x *= x;
        let before = z;
        z += x * y;
        y += y;
        if z == before {
            return z;
        }
    }
}
