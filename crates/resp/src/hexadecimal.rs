//! Floats in hexadecimal notation, as C writes them: `0x1.8p3` is 12.

/// Bits of the digits that are kept. What is behind them only matters as being zero or not.
const KEPT_BITS: u32 = 60;

/// Exponents beyond this are as good as endless.
const EXPONENT_MAX: i64 = 1 << 20;

/// Reads a number of this notation, rounded to the nearest float; infinite if it does not fit.
pub(crate) fn parse(text: &[u8]) -> Option<f64> {
    let (negative, text) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    };
    let [b'0', b'x' | b'X', number @ ..] = text else {
        return None;
    };
    let exponent_at = number.iter().position(|byte| matches!(byte, b'p' | b'P'));
    let (digits, exponent) = match exponent_at {
        Some(at) => (&number[..at], exponent(&number[at + 1..])?),
        None => (number, 0),
    };
    let (bits, shift) = mantissa(digits)?;
    let value = scaled(bits, exponent.saturating_add(shift));
    Some(if negative { -value } else { value })
}

/// A decimal number, as far as it matters.
fn exponent(text: &[u8]) -> Option<i64> {
    let digits = text.strip_prefix(b"-").or(text.strip_prefix(b"+"));
    let digits = digits.unwrap_or(text);
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let value = digits.iter().fold(0_i64, |value, digit| {
        (value * 10 + i64::from(digit - b'0')).min(EXPONENT_MAX)
    });
    Some(if text[0] == b'-' { -value } else { value })
}

/// The digits as a whole number, and the power of two that it is to be multiplied by.
fn mantissa(digits: &[u8]) -> Option<(u64, i64)> {
    let (mut bits, mut shift, mut seen, mut seen_point) = (0_u64, 0_i64, false, false);
    for byte in digits {
        if *byte == b'.' && !seen_point {
            seen_point = true;
            continue;
        }
        let digit = char::from(*byte).to_digit(16)?;
        seen = true;
        if bits >> (KEPT_BITS - 4) == 0 {
            bits = bits << 4 | u64::from(digit);
            shift -= if seen_point { 4 } else { 0 };
        } else {
            bits |= u64::from(digit != 0);
            shift += if seen_point { 0 } else { 4 };
        }
    }
    seen.then_some((bits, shift))
}

/// `bits * 2^exponent`.
fn scaled(bits: u64, exponent: i64) -> f64 {
    let mut value = bits as f64;
    let mut left = exponent.clamp(-2_200, 2_200) as i32;
    while left != 0 && value != 0.0 && value.is_finite() {
        let step = left.clamp(-1_000, 1_000);
        value *= 2_f64.powi(step);
        left -= step;
    }
    value
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn hexadecimal_floats_are_read_as_c_reads_them() {
        for (text, value) in [
            ("0x0", 0.0),
            ("0x10", 16.0),
            ("-0X1.8p3", -12.0),
            ("+0x.8", 0.5),
            ("0x1.", 1.0),
            ("0xAbC", 2748.0),
            ("0x1p-1074", f64::from_bits(1)),
            ("0x1.fffffffffffffp1023", f64::MAX),
            ("0x7FFFFFFFFFFFFF", 36_028_797_018_963_968.0),
            ("0x100000000000000000000000000000000p-128", 1.0),
            ("0x1p2000", f64::INFINITY),
            ("0x1p99999999999999999999", f64::INFINITY),
            ("0x0p99999999999999999999", 0.0),
            ("0x1p-99999999999999999999", 0.0),
        ] {
            assert_eq!(parse(text.as_bytes()), Some(value), "{text}");
        }
    }

    #[test]
    fn what_is_no_number_is_refused() {
        for bad in [
            "", "0x", "0x.", "0xg", "x1", "0x1p", "0x1p+", "0x1.2.3", "0x1 ", "0x1p1.5", "0x-1",
        ] {
            assert_eq!(parse(bad.as_bytes()), None, "{bad}");
        }
    }
}
