//! Scores as bytes: integers in as few as they need, others in eight.
//!
//! Scores are counts and times mostly, so a packed set keeps 100 as one byte, and 1,700,000,000 as
//! four.

use std::ops::Range;

/// The integers that are kept as such have a magnitude below 2^53: there all of them are floats.
const INTEGER_END: f64 = (1u64 << 53) as f64;

/// A score's bytes.
pub(super) struct ScoreBytes {
    bytes: [u8; 8],
    len: u8,
}

impl ScoreBytes {
    pub(super) fn of(score: f64) -> Self {
        let integer = score as i64;
        // −0 is no integer: it would come back as 0.
        let exact = score.abs() < INTEGER_END && (integer as f64).to_bits() == score.to_bits();
        if !exact {
            return Self {
                bytes: score.to_le_bytes(),
                len: 8,
            };
        }
        Self {
            bytes: integer.to_le_bytes(),
            len: integer_len(integer),
        }
    }

    pub(super) fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.len as usize]
    }
}

/// Bytes of a two's complement; none for 0.
fn integer_len(integer: i64) -> u8 {
    if integer == 0 {
        return 0;
    }
    let significant = 65 - (integer ^ (integer >> 63)).leading_zeros();
    significant.div_ceil(8) as u8
}

/// The score of these bytes.
#[inline]
pub(super) fn score_of(bytes: &[u8]) -> f64 {
    if let Ok(bytes) = bytes.try_into() {
        return f64::from_le_bytes(bytes);
    }
    let mut word = [0; 8];
    word[8 - bytes.len()..].copy_from_slice(bytes);
    let shift = 64 - 8 * bytes.len() as u32;
    // The sign of the top byte fills what is above it.
    i64::from_le_bytes(word).checked_shr(shift).unwrap_or(0) as f64
}

/// The score that lies here in a longer string. Faster than [`score_of`]: it reads one word, and
/// shifts out what is in front.
#[inline(always)]
pub(super) fn score_in(bytes: &[u8], at: Range<usize>) -> f64 {
    let len = at.len();
    let Some(word) = bytes[..at.end].last_chunk() else {
        return score_of(&bytes[at]);
    };
    if len == 8 {
        return f64::from_le_bytes(*word);
    }
    let shift = 64 - 8 * len as u32;
    i64::from_le_bytes(*word).checked_shr(shift).unwrap_or(0) as f64
}

#[cfg(test)]
mod tests {
    use super::{ScoreBytes, score_in, score_of};

    #[test]
    fn every_score_comes_back_with_its_sign() {
        let few = [
            (0.0, 0),
            (1.0, 1),
            (-1.0, 1),
            (127.0, 1),
            (-128.0, 1),
            (128.0, 2),
            (-129.0, 2),
            (32_767.0, 2),
            (32_768.0, 3),
            (1_700_000_000.0, 4),
            (1_700_000_000_000.0, 6),
            (9_007_199_254_740_991.0, 7),
            (9_007_199_254_740_992.0, 8),
            (-0.0, 8),
            (0.5, 8),
            (f64::INFINITY, 8),
            (f64::NEG_INFINITY, 8),
            (f64::MAX, 8),
            (f64::MIN_POSITIVE, 8),
        ];
        for (score, len) in few {
            let bytes = ScoreBytes::of(score);
            assert_eq!(bytes.as_slice().len(), len, "{score}");
            assert_eq!(score_of(bytes.as_slice()).to_bits(), f64::to_bits(score));
            for in_front in [0, 1, 9] {
                let mut longer = vec![0xa5; in_front];
                longer.extend(bytes.as_slice());
                let read = score_in(&longer, in_front..longer.len());
                assert_eq!(read.to_bits(), f64::to_bits(score));
            }
        }
    }
}
