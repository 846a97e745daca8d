//! Integers as the protocol writes them.

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

    proptest! {
        #[test]
        fn integers_round_trip(value: i64, unsigned: u64) {
            prop_assert_eq!(parse_i64(value.to_string().as_bytes()), Some(value));
            prop_assert_eq!(parse_u64(unsigned.to_string().as_bytes()), Some(unsigned));
        }
    }
}
