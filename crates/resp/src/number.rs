//! Integers as the protocol writes them.

use crate::word::short_word;

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
    if let Some(word) = short_word(digits) {
        return eight_digits(word, digits.len());
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

/// Up to eight digits, at once: neighbours become pairs, pairs fours, and these the number.
///
/// Source: Johnny Lee's and Mykola Dimura's routine, as in Daniel Lemire, "Quickly parsing eight
/// digits" (2018),
/// <https://lemire.me/blog/2018/10/03/quickly-parsing-eight-digits/>.
#[inline]
fn eight_digits(word: u64, len: usize) -> Option<u64> {
    const EACH: u64 = 0x0101_0101_0101_0101;
    const FIRST_AND_FIFTH: u64 = 0x0000_00ff_0000_00ff;
    // The last digit belongs into the highest byte: zeros take the place of those that are missing.
    let digits = (word ^ (EACH * u64::from(b'0'))) << (64 - 8 * len);
    let above_nine = digits.wrapping_add(EACH * (0x80 - 10)) | digits;
    if above_nine & (EACH * 0x80) != 0 {
        return None;
    }
    let pairs = digits * 10 + (digits >> 8);
    let high = (pairs & FIRST_AND_FIFTH).wrapping_mul(100 + (1_000_000 << 32));
    let low = (pairs >> 16 & FIRST_AND_FIFTH).wrapping_mul(1 + (10_000 << 32));
    Some(high.wrapping_add(low) >> 32)
}

#[inline]
fn digit(byte: u8) -> Option<u8> {
    let digit = byte.wrapping_sub(b'0');
    (digit <= 9).then_some(digit)
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
    fn a_byte_that_is_no_digit_spoils_a_number_of_any_length() {
        for len in 1..=21 {
            let good = vec![b'1'; len];
            for at in 0..len {
                for byte in (0..=255).filter(|byte: &u8| !byte.is_ascii_digit()) {
                    let mut bad = good.clone();
                    bad[at] = byte;
                    assert_eq!(parse_u64(&bad), None, "{bad:?}");
                }
            }
        }
    }

    #[test]
    fn short_integers_are_read_digit_for_digit() {
        for value in (0..100_000).chain([999_999, 1_234_567, 9_999_999, 12_345_678, 99_999_999]) {
            assert_eq!(parse_u64(value.to_string().as_bytes()), Some(value));
        }
    }

    proptest! {
        #[test]
        fn integers_round_trip(value: i64, unsigned: u64) {
            prop_assert_eq!(parse_i64(value.to_string().as_bytes()), Some(value));
            prop_assert_eq!(parse_u64(unsigned.to_string().as_bytes()), Some(unsigned));
        }
    }
}
