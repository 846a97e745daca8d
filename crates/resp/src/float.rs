//! Floats as INCRBYFLOAT reads, adds and stores them, and as double replies carry them.

use crate::error::SumError;
use crate::extended::{self, TEXT_MAX};
use crate::hexadecimal;

/// The digits after the decimal point that INCRBYFLOAT keeps.
const FIXED_DECIMALS: usize = 17;

/// 10^17: one in the fixed-point numbers of [`sum_floats`].
const FIXED_ONE: i128 = 100_000_000_000_000_000;

/// From here on a `long double` has no decimals: 2^63, as a fixed-point number.
const NO_DECIMALS_FROM: u128 = FIXED_ONE.unsigned_abs() << 63;

/// The largest power of ten within an `i128`.
const POWER_MAX: i32 = 38;

/// Adds two floats as INCRBYFLOAT does, text to text.
///
/// Redis adds in `long double`: 0.1 and 0.2 make 0.3, where an `f64` makes 0.30000000000000004.
/// Here, numbers of up to 17 decimals and a magnitude below 2^63 are added exactly, in decimal.
/// Other numbers are added as Redis does on x86.
///
/// # Errors
/// When either is no float or the sum is not finite; the errors read as Redis words them.
pub fn sum_floats(a: &[u8], b: &[u8]) -> Result<String, SumError> {
    // First of all: a stored text may be half a gigabyte long.
    if a.len().max(b.len()) >= TEXT_MAX {
        return Err(SumError::NotAFloat);
    }
    sum_fixed(a, b).map_or_else(|| extended::sum(a, b), |sum| Ok(format_fixed(sum)))
}

/// The sum as a multiple of 10^-17, if all three numbers are ones that are added exactly.
fn sum_fixed(a: &[u8], b: &[u8]) -> Option<i128> {
    let (a, b) = (parse_fixed(a)?, parse_fixed(b)?);
    let sum = a.checked_add(b)?;
    [a, b, sum]
        .iter()
        .all(|number| number.unsigned_abs() < NO_DECIMALS_FROM)
        .then_some(sum)
}

/// Reads a decimal number as a multiple of 10^-17 if it is one and fits.
fn parse_fixed(text: &[u8]) -> Option<i128> {
    let (negative, text) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    };
    let (mantissa, exponent) = match text.iter().position(|byte| matches!(byte, b'e' | b'E')) {
        Some(at) => (
            &text[..at],
            std::str::from_utf8(&text[at + 1..]).ok()?.parse().ok()?,
        ),
        None => (text, 0_i32),
    };
    let (mut value, mut digits, mut decimals, mut seen_point) = (0_i128, 0, 0_i32, false);
    for byte in mantissa {
        match byte {
            b'0'..=b'9' => {
                value = value
                    .checked_mul(10)?
                    .checked_add(i128::from(byte - b'0'))?;
                digits += 1;
                decimals = decimals.checked_add(i32::from(seen_point))?;
            }
            b'.' if !seen_point => seen_point = true,
            _ => return None,
        }
    }
    if digits == 0 {
        return None;
    }
    let shift = exponent
        .checked_sub(decimals)?
        .checked_add(FIXED_DECIMALS as i32)?;
    if value == 0 {
        return Some(0);
    }
    if !(-POWER_MAX..=POWER_MAX).contains(&shift) {
        return None;
    }
    let power = 10_i128.pow(shift.unsigned_abs());
    let value = if shift >= 0 {
        value.checked_mul(power)?
    } else if value % power == 0 {
        value / power
    } else {
        return None;
    };
    Some(if negative { -value } else { value })
}

fn format_fixed(value: i128) -> String {
    let sign = if value < 0 { "-" } else { "" };
    let one = FIXED_ONE.unsigned_abs();
    let (whole, fraction) = (value.unsigned_abs() / one, value.unsigned_abs() % one);
    let mut text = format!("{sign}{whole}");
    if fraction != 0 {
        text.push_str(format!(".{fraction:0FIXED_DECIMALS$}").trim_end_matches('0'));
    }
    text
}

/// Reads a float: decimal, scientific or hexadecimal notation or `inf`, with no blanks around it.
/// NaN is refused, and so is a number that does not fit: one that is too large, and one that is not
/// 0 and would become it.
pub fn parse_f64(text: &[u8]) -> Option<f64> {
    let (value, fit) = parse_nearest(text)?;
    (fit == Fit::Near).then_some(value)
}

/// Reads a float as [`parse_f64`] does, but of the range of a `long double`: a number that is too
/// large for an `f64` is infinite, and one that is too small is the smallest `f64` of its sign. So
/// only 0 is 0.
pub fn parse_f64_wide(text: &[u8]) -> Option<f64> {
    let (value, fit) = parse_nearest(text)?;
    if fit != Fit::Near && !extended::holds(text) {
        return None;
    }
    match fit {
        Fit::Small => Some(SMALLEST.copysign(value)),
        Fit::Near | Fit::Large => Some(value),
    }
}

/// The smallest positive `f64`.
const SMALLEST: f64 = f64::from_bits(1);

/// The position of a number relative to the range of `f64`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fit {
    Near,
    /// It became infinite.
    Large,
    /// It became 0.
    Small,
}

/// The nearest `f64` to what is written.
fn parse_nearest(text: &[u8]) -> Option<(f64, Fit)> {
    let (value, exponent_marks) = match std::str::from_utf8(text).ok()?.parse::<f64>() {
        Ok(value) => (value, b"eE"),
        Err(_) => (hexadecimal::parse(text)?, b"pP"),
    };
    let fit = match value {
        _ if value.is_nan() => return None,
        _ if value.is_infinite() && !text.iter().any(|byte| matches!(byte, b'i' | b'I')) => {
            Fit::Large
        }
        0.0 => {
            let mut digits = text
                .iter()
                .take_while(|byte| !exponent_marks.contains(byte));
            let is_zero =
                digits.all(|byte| matches!(byte, b'0' | b'.' | b'+' | b'-' | b'x' | b'X'));
            if is_zero { Fit::Near } else { Fit::Small }
        }
        _ => Fit::Near,
    };
    Some((value, fit))
}

/// Whole numbers up to this one are written with all their digits.
const WHOLE_MAX: f64 = (1_u64 << 62) as f64;

/// Writes a float as double replies carry it: a whole number of up to 2^62 with all its digits, any
/// other with the fewest digits that read back as the same value, and with an exponent where that
/// is shorter to read (`1e+25`).
pub fn format_f64_short(value: f64) -> String {
    if !value.is_finite() {
        return non_finite(value).to_owned();
    }
    if value == 0.0 {
        return if value.is_sign_negative() { "-0" } else { "0" }.to_owned();
    }
    if value.abs() <= WHOLE_MAX && value.fract() == 0.0 {
        return (value as i64).to_string();
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
    if whole || fraction {
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

    fn sum(a: &str, b: &str) -> Result<String, SumError> {
        sum_floats(a.as_bytes(), b.as_bytes())
    }

    #[test]
    fn sums_are_exact_in_decimal() {
        for (a, b, expected) in [
            ("0.1", "0.2", "0.3"),
            ("1", "-1.1", "-0.1"),
            ("-92.783", "0.71", "-92.073"),
            ("10.50", "0.1", "10.6"),
            ("3.0e3", "200", "3200"),
            ("1e-17", "0", "0.00000000000000001"),
            ("5.0e3", "-5000", "0"),
            ("0", "-0", "0"),
            ("-.5", "+5.", "4.5"),
            (
                "9223372036854775807.99999999999999999",
                "0",
                "9223372036854775807.99999999999999999",
            ),
            ("0e999", "7", "7"),
        ] {
            assert_eq!(sum(a, b).as_deref(), Ok(expected), "{a} + {b}");
        }
    }

    /// As Redis answers. Our sums had decimals that a `long double` cannot hold.
    #[test]
    fn sums_from_two_to_the_sixty_third_on_are_whole() {
        for (a, b, expected) in [
            ("9223372036854775808", "1.5", "9223372036854775810"),
            ("18446744073709551615", "0.5", "18446744073709551616"),
            ("1e19", "0.5", "10000000000000000000"),
            ("12345678901234567890", "0.25", "12345678901234567890"),
        ] {
            assert_eq!(sum(a, b).as_deref(), Ok(expected), "{a} + {b}");
        }
    }

    #[test]
    fn sums_beyond_the_exact_range_are_near() {
        assert_eq!(sum("1e-20", "0").as_deref(), Ok("0"));
        assert_eq!(sum("1e-20", "0.25").as_deref(), Ok("0.25"));
        let largest = "170141183460469231731.68730371588410572";
        assert!(parse_fixed(largest.as_bytes()).is_some());
        assert!(
            sum(largest, largest)
                .unwrap()
                .starts_with("3402823669209384634")
        );
    }

    #[test]
    fn sums_that_do_not_exist_say_why() {
        for (a, b, error) in [
            ("1", "abc", SumError::NotAFloat),
            ("", "1", SumError::NotAFloat),
            (".", "1", SumError::NotAFloat),
            ("1e", "1", SumError::NotAFloat),
            ("1.2.3", "1", SumError::NotAFloat),
            ("1 ", "1", SumError::NotAFloat),
            ("nan", "1", SumError::NotAFloat),
            ("inf", "1", SumError::NotFinite),
            ("inf", "-inf", SumError::NotFinite),
            ("1e4932", "1e4932", SumError::NotFinite),
            (&"0".repeat(TEXT_MAX), "1", SumError::NotAFloat),
            ("1", &"1".repeat(TEXT_MAX), SumError::NotAFloat),
        ] {
            assert_eq!(sum(a, b), Err(error), "{a} + {b}");
        }
    }

    #[test]
    fn floats_are_read_in_every_notation_and_refused_when_they_do_not_fit() {
        for bad in [
            "", " 1", "1 ", "nan", "-nan", "1e", "abc", "1e400", "1_0", "--1", "\u{ff11}",
        ] {
            assert_eq!(parse_f64(bad.as_bytes()), None, "{bad:?}");
        }
        assert_eq!(parse_f64(b"1.5e3"), Some(1500.0));
        assert_eq!(parse_f64(b"+.5"), Some(0.5));
        assert_eq!(parse_f64(b"-inf"), Some(f64::NEG_INFINITY));
        assert_eq!(parse_f64(b"Infinity"), Some(f64::INFINITY));
        assert_eq!(parse_f64(b"-0x1.8p3"), Some(-12.0));
        assert_eq!(parse_f64(b"0x1p1024"), None);
    }

    /// 1e-400 was 0.
    #[test]
    fn a_number_that_becomes_zero_is_no_float() {
        let zeros = format!("0.{}1", "0".repeat(400));
        for bad in [
            "1e-400",
            "-1e-400",
            "2e-324",
            "0x1p-1080",
            "-0x.01p-1080",
            &zeros,
        ] {
            assert_eq!(parse_f64(bad.as_bytes()), None, "{bad}");
        }
        for (zero, bits) in [
            ("0", 0),
            ("0e-999", 0),
            ("-0.00", 1 << 63),
            ("0x0p-9999", 0),
            ("+.0", 0),
        ] {
            assert_eq!(
                parse_f64(zero.as_bytes()).map(f64::to_bits),
                Some(bits),
                "{zero}"
            );
        }
        assert_eq!(parse_f64(b"4.9e-324"), Some(SMALLEST));
        assert_eq!(parse_f64(b"0x1p-1074"), Some(SMALLEST));
    }

    #[test]
    fn a_wide_number_is_zero_only_if_it_is_written_so() {
        for (text, value) in [
            ("1e-400", Some(SMALLEST)),
            ("-1e-400", Some(-SMALLEST)),
            ("0x1p-1080", Some(SMALLEST)),
            ("0e-9999", Some(0.0)),
            ("1e400", Some(f64::INFINITY)),
            ("-1e400", Some(f64::NEG_INFINITY)),
            ("inf", Some(f64::INFINITY)),
            ("0.1", Some(0.1)),
            ("1e5000", None),
            ("1e-5000", None),
            ("nan", None),
            ("", None),
        ] {
            assert_eq!(parse_f64_wide(text.as_bytes()), value, "{text}");
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
            (1e16, "10000000000000000"),
            (-1e18, "-1000000000000000000"),
            (1234567890123456789.0, "1234567890123456768"),
            (4611686018427387904.0, "4611686018427387904"),
            (9223372036854774784.0, "9223372036854775000"),
            (1e19, "1e+19"),
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
        fn sums_agree_with_integers(a in -1_i64 << 60..1 << 60, b in -1_i64 << 60..1 << 60, places in 0_usize..17) {
            let shifted = |value: i64| format!("{value}e-{places}");
            let expected = format_fixed(i128::from(a + b) * 10_i128.pow(17 - places as u32));
            prop_assert_eq!(sum(&shifted(a), &shifted(b)), Ok(expected));
        }

        #[test]
        fn random_text_sums_as_f64_reads_it(a in "[-+]?[0-9.]{0,24}(e[-+]?[0-9]{1,3})?") {
            let read = parse_f64(a.as_bytes());
            if let Some(fixed) = parse_fixed(a.as_bytes()) {
                let close: f64 = format_fixed(fixed).parse().unwrap();
                prop_assert_eq!(Some(close), read, "{}", a);
            }
            prop_assert_eq!(sum(&a, "0").is_ok(), a.parse::<f64>().is_ok());
        }

        #[test]
        fn reply_floats_round_trip(bits: u64) {
            let value = f64::from_bits(bits);
            prop_assume!(value.is_finite());
            let text = format_f64_short(value);
            prop_assert_eq!(text.parse::<f64>().map(f64::to_bits), Ok(bits), "{}", text);
        }
    }
}
