//! Recognises members that are integers: a set of those alone may stay packed longer.

/// The longest decimal of 64 bits: `-9223372036854775808`.
const LONGEST: usize = 20;

/// Returns whether the bytes are an `i64` as it is printed: without a plus, and without zeros in
/// front.
pub(super) fn is_integer(bytes: &[u8]) -> bool {
    if bytes.is_empty() || bytes.len() > LONGEST {
        return false;
    }
    let digits = bytes.strip_prefix(b"-").unwrap_or(bytes);
    let canonical = match digits {
        [b'0'] => digits.len() == bytes.len(),
        [b'1'..=b'9', ..] => true,
        _ => false,
    };
    let text = std::str::from_utf8(bytes);
    canonical && text.is_ok_and(|text| text.parse::<i64>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::is_integer;

    #[test]
    fn only_what_an_integer_prints_as_is_one() {
        let integers = [
            "0",
            "7",
            "-1",
            "10",
            "9223372036854775807",
            "-9223372036854775808",
        ];
        assert!(integers.iter().all(|text| is_integer(text.as_bytes())));
        let others = [
            "",
            "-",
            "-0",
            "00",
            "01",
            "+1",
            " 1",
            "1 ",
            "1a",
            "1.0",
            "9223372036854775808",
            "-9223372036854775809",
            "--1",
            "123456789012345678901",
        ];
        assert!(others.iter().all(|text| !is_integer(text.as_bytes())));
    }
}
