//! Numbers as the protocol writes them.

/// The digits after the decimal point that INCRBYFLOAT keeps.
const FIXED_DECIMALS: usize = 17;

/// Reads a signed integer as strictly as Redis does: an optional `-`, no `+`, no blanks, no leading
/// zeros, no `-0`.
#[inline]
pub fn parse_i64(text: &[u8]) -> Option<i64> {
    match text {
        [b'-', digits @ ..] => match parse_u64(digits)? {
            0 => None,
            magnitude => 0_i64.checked_sub_unsigned(magnitude),
        },
        digits => i64::try_from(parse_u64(digits)?).ok(),
    }
}

/// Reads an unsigned integer: digits only, no leading zeros.
#[inline]
pub fn parse_u64(digits: &[u8]) -> Option<u64> {
    match digits {
        [] => return None,
        [b'0'] => return Some(0),
        [b'0', ..] => return None,
        _ => {}
    }
    // Nineteen digits cannot overflow, so that only longer numbers pay for checked arithmetic.
    if digits.len() > 19 {
        return digits.iter().try_fold(0_u64, |value, byte| {
            value.checked_mul(10)?.checked_add(u64::from(digit(*byte)?))
        });
    }
    digits.iter().try_fold(0_u64, |value, byte| {
        Some(value * 10 + u64::from(digit(*byte)?))
    })
}

#[inline]
fn digit(byte: u8) -> Option<u8> {
    let digit = byte.wrapping_sub(b'0');
    (digit <= 9).then_some(digit)
}

/// Reads a float as INCRBYFLOAT takes it: decimal or scientific notation or `inf`, with no blanks
/// around it. NaN is refused, and so is a finite number that does not fit.
pub fn parse_f64(text: &[u8]) -> Option<f64> {
    let value: f64 = std::str::from_utf8(text).ok()?.parse().ok()?;
    let spelt_infinite = text.iter().any(|byte| byte.eq_ignore_ascii_case(&b'i'));
    (value.is_finite() || (value.is_infinite() && spelt_infinite)).then_some(value)
}

/// Writes a float as INCRBYFLOAT stores it: never an exponent, at most 17 decimals, no trailing
/// zeros, no negative zero.
///
/// Redis computes in `long double` and prints what 17 decimals hide; the shortest digits that read
/// back as the same `f64` give the same text for the sums that people write.
pub fn format_f64(value: f64) -> String {
    if !value.is_finite() {
        return non_finite(value).to_owned();
    }
    let mut text = value.to_string();
    if let Some(point) = text.find('.')
        && text.len() - point - 1 > FIXED_DECIMALS
    {
        text = format!("{value:.FIXED_DECIMALS$}");
        let kept = text.trim_end_matches('0').trim_end_matches('.').len();
        text.truncate(kept);
    }
    if text == "-0" {
        text.remove(0);
    }
    text
}

/// Writes a float as double replies carry it: the shortest digits that read back as the same value,
/// with an exponent where that is shorter to read (`1e+25`).
pub fn format_f64_short(value: f64) -> String {
    if !value.is_finite() {
        return non_finite(value).to_owned();
    }
    if value == 0.0 {
        return if value.is_sign_negative() { "-0" } else { "0" }.to_owned();
    }
    // Rust's scientific form gives the shortest digits and the exponent of the first.
    let scientific = format!("{value:e}");
    let Some((mantissa, exponent)) = scientific.split_once('e') else {
        return scientific;
    };
    let Ok(exponent) = exponent.parse::<i32>() else {
        return scientific;
    };
    let digits = mantissa.bytes().filter(u8::is_ascii_digit).count() as i32;
    // The power of ten of the last digit.
    let scale = exponent - (digits - 1);
    let whole = scale >= 0 && exponent < digits + 7;
    let fraction = scale < 0 && (scale > -7 || exponent.abs() < 4);
    // Integers that a double holds exactly are never abbreviated.
    let exact = value.fract() == 0.0 && value.abs() < (1_u64 << 52) as f64;
    if whole || fraction || exact {
        return value.to_string();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{}", exponent.abs())
}

fn non_finite(value: f64) -> &'static str {
    if value.is_nan() {
        "nan"
    } else if value > 0.0 {
        "inf"
    } else {
        "-inf"
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn integers_are_strict() {
        for bad in [
            "",
            "-",
            "+1",
            " 1",
            "1 ",
            "01",
            "-01",
            "-0",
            "00",
            "1a",
            "a",
            "0x1",
            "1.0",
            "--1",
            "9223372036854775808",
            "-9223372036854775809",
            "99999999999999999999999",
        ] {
            assert_eq!(parse_i64(bad.as_bytes()), None, "{bad:?}");
        }
        assert_eq!(parse_i64(b"0"), Some(0));
        assert_eq!(parse_i64(b"-9223372036854775808"), Some(i64::MIN));
        assert_eq!(parse_i64(b"9223372036854775807"), Some(i64::MAX));
        assert_eq!(parse_u64(b"18446744073709551615"), Some(u64::MAX));
        assert_eq!(parse_u64(b"18446744073709551616"), None);
        assert_eq!(parse_u64(b"-1"), None);
    }

    #[test]
    fn floats_are_read_as_incrbyfloat_reads_them() {
        for bad in [
            "", " 1", "1 ", "nan", "-nan", "1e", "abc", "1e400", "1_0", "--1", "\u{ff11}",
        ] {
            assert_eq!(parse_f64(bad.as_bytes()), None, "{bad:?}");
        }
        assert_eq!(parse_f64(b"1.5e3"), Some(1500.0));
        assert_eq!(parse_f64(b"+.5"), Some(0.5));
        assert_eq!(parse_f64(b"-inf"), Some(f64::NEG_INFINITY));
        assert_eq!(parse_f64(b"Infinity"), Some(f64::INFINITY));
    }

    #[test]
    fn stored_floats_have_no_exponent() {
        for (value, text) in [
            (0.0, "0"),
            (-0.0, "0"),
            (3000.0, "3000"),
            (10.5 + 0.1, "10.6"),
            (5.0e-2, "0.05"),
            (1e20, "100000000000000000000"),
            (1e-17, "0.00000000000000001"),
            (-1e-20, "0"),
            (0.1 + 0.2, "0.30000000000000004"),
            (1.0 / 3.0, "0.3333333333333333"),
            (-2.5, "-2.5"),
        ] {
            assert_eq!(format_f64(value), text);
        }
    }

    #[test]
    fn reply_floats_are_the_shortest() {
        for (value, text) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (1.0, "1"),
            (-1.5, "-1.5"),
            (1e15, "1000000000000000"),
            (1e25, "1e+25"),
            (1.5e300, "1.5e+300"),
            (0.0001, "0.0001"),
            (1e-7, "1e-7"),
            (2.0 / 3.0, "0.6666666666666666"),
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "-inf"),
            (f64::NAN, "nan"),
        ] {
            assert_eq!(format_f64_short(value), text);
        }
    }

    proptest! {
        #[test]
        fn integers_round_trip(value: i64, unsigned: u64) {
            prop_assert_eq!(parse_i64(value.to_string().as_bytes()), Some(value));
            prop_assert_eq!(parse_u64(unsigned.to_string().as_bytes()), Some(unsigned));
        }

        #[test]
        fn reply_floats_round_trip(bits: u64) {
            let value = f64::from_bits(bits);
            prop_assume!(value.is_finite());
            let text = format_f64_short(value);
            prop_assert_eq!(text.parse::<f64>().map(f64::to_bits), Ok(bits), "{}", text);
        }

        #[test]
        fn stored_floats_come_back_within_their_decimals(value in -1e15_f64..1e15) {
            let text = format_f64(value);
            prop_assert!(!text.contains('e'));
            prop_assert!((text.parse::<f64>().unwrap() - value).abs() <= 1e-17);
        }
    }
}
