//! Parses scores.

use tidewheel_resp::{parse_f64, parse_i64};

use crate::error::CommandError;

/// Digits of an integer that a float holds exactly, whatever they are.
const EXACT_DIGITS: usize = 15;

/// Reads a score. NaN is none, and −0 is 0.
pub(super) fn parse_score(text: &[u8]) -> Result<f64, CommandError> {
    let integer = (text.len() <= EXACT_DIGITS).then(|| parse_i64(text));
    match integer.flatten() {
        Some(integer) => Ok(integer as f64),
        // The sum of −0 and 0 is 0.
        None => parse_f64(text)
            .map(|score| score + 0.0)
            .ok_or(CommandError::NOT_A_FLOAT),
    }
}
