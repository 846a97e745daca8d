//! Numbers as text, as C writes them.

/// A number as C's `%.Ng` writes it: up to `digits` significant digits.
pub(crate) fn general(value: f64, digits: usize) -> String {
    if value.is_nan() {
        return if value.is_sign_negative() {
            "-nan"
        } else {
            "nan"
        }
        .to_owned();
    }
    if value.is_infinite() {
        return if value < 0.0 { "-inf" } else { "inf" }.to_owned();
    }
    let digits = digits.max(1);
    let scientific = format!("{value:.*e}", digits - 1);
    let Some((mantissa, exponent)) = scientific.split_once('e') else {
        return scientific;
    };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if exponent < -4 || exponent >= digits as i32 {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{}e{sign}{:02}", trimmed(mantissa), exponent.abs());
    }
    let decimals = (digits as i32 - 1 - exponent).max(0) as usize;
    trimmed(&format!("{value:.decimals$}")).to_owned()
}

/// Without zeros at the end of the decimals.
fn trimmed(text: &str) -> &str {
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.')
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::general;

    #[test]
    fn numbers_are_written_as_c_writes_them() {
        for (value, digits, text) in [
            (0.0, 14, "0"),
            (-0.0, 14, "-0"),
            (1.5, 17, "1.5"),
            (0.1, 17, "0.10000000000000001"),
            (0.1, 14, "0.1"),
            (1e20, 17, "1e+20"),
            (1e-5, 14, "1e-05"),
            (0.0001, 14, "0.0001"),
            (123_456_789_012_345.0, 14, "1.2345678901234e+14"),
            (2.34567, 3, "2.35"),
            (99.99, 2, "1e+02"),
            (1e300, 14, "1e+300"),
            (f64::INFINITY, 14, "inf"),
            (f64::NEG_INFINITY, 14, "-inf"),
        ] {
            assert_eq!(general(value, digits), text);
        }
    }
}
