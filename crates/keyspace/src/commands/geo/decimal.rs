//! Writes numbers with a fixed number of decimals, exactly rounded. `format!` takes ten times as
//! long.

/// 10^17 has 57 bits: its product with a mantissa fits into 128 bits.
const DECIMALS_MAX: u32 = 17;

/// Smaller numbers have 16 digits before the point at most, and an integer holds their whole part.
const END: f64 = (1_u64 << 53) as f64;

/// A sign, digits, the point, decimals.
const TEXT_MAX: usize = 1 + 16 + 1 + DECIMALS_MAX as usize;

/// The text of a number.
#[derive(Debug)]
pub(super) struct Decimal {
    text: [u8; TEXT_MAX],
    from: usize,
    to: usize,
}

impl Decimal {
    /// A number as `format!` writes it with so many decimals, 1 to 17 of them. `None` if it is 2^53
    /// or more, or no number.
    pub(super) fn new(number: f64, decimals: u32) -> Option<Self> {
        let magnitude = number.abs();
        if magnitude.is_nan() || magnitude >= END || !(1..=DECIMALS_MAX).contains(&decimals) {
            return None;
        }
        let one = 10_u64.pow(decimals);
        let part = scaled(magnitude.fract(), one);
        let carry = part / one;
        let mut decimal = Self {
            text: [b'0'; TEXT_MAX],
            from: TEXT_MAX,
            to: TEXT_MAX,
        };
        decimal.put_digits(part - carry * one, decimals);
        decimal.put(b'.');
        decimal.put_digits(magnitude as u64 + carry, 1);
        if number.is_sign_negative() {
            decimal.put(b'-');
        }
        Some(decimal)
    }

    fn put(&mut self, byte: u8) {
        self.from -= 1;
        self.text[self.from] = byte;
    }

    /// Puts a number of at least so many digits in front.
    fn put_digits(&mut self, mut number: u64, least: u32) {
        let mut put = 0;
        while number > 0 || put < least {
            self.put(b'0' + (number % 10) as u8);
            number /= 10;
            put += 1;
        }
    }

    /// Without zeros at its end.
    pub(super) fn trimmed(mut self) -> Self {
        while self.text[self.to - 1] == b'0' {
            self.to -= 1;
        }
        if self.text[self.to - 1] == b'.' {
            self.to -= 1;
        }
        self
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.text[self.from..self.to]
    }
}

/// The product of a number below 1 and `one`. A half goes to the even neighbour.
fn scaled(part: f64, one: u64) -> u64 {
    const MANTISSA_BITS: u64 = 52;
    let (mantissa, exponent) = (
        part.to_bits() & ((1 << MANTISSA_BITS) - 1),
        part.to_bits() >> MANTISSA_BITS,
    );
    let hidden = u64::from(exponent > 0) << MANTISSA_BITS;
    // The number is a mantissa divided by two to the power of this, which is at least 53.
    let shift = 1075 - exponent.max(1);
    let product = u128::from(mantissa | hidden) * u128::from(one);
    if shift >= 128 {
        // The product has at most 110 bits.
        return 0;
    }
    let (below, half) = (product & ((1 << shift) - 1), 1 << (shift - 1));
    let whole = (product >> shift) as u64;
    whole + u64::from(below > half || below == half && whole % 2 == 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text(number: f64, decimals: u32) -> Option<String> {
        let decimal = Decimal::new(number, decimals)?;
        Some(String::from_utf8_lossy(decimal.as_bytes()).into_owned())
    }

    fn expected(number: f64, decimals: u32) -> String {
        format!("{number:.0$}", decimals as usize)
    }

    #[test]
    fn halves_and_the_smallest_and_the_largest_numbers_are_written_as_format_writes_them() {
        let halves = (0..40).map(|i| f64::from(2 * i + 1) / f64::from(1 << 18));
        let near_one = [
            0.999_95,
            0.999_949_999,
            1.0 - f64::EPSILON / 2.0,
            0.125,
            0.062_5,
            2.5,
        ];
        let ends = [
            0.0,
            -0.0,
            5e-324,
            f64::MIN_POSITIVE,
            1e-17,
            5e-18,
            END - 1.0,
            END / 4.0 - 0.25,
            1e-25,
        ];
        for number in halves.chain(near_one).chain(ends) {
            for decimals in 1..=DECIMALS_MAX {
                for number in [number, -number] {
                    assert_eq!(text(number, decimals), Some(expected(number, decimals)));
                }
            }
        }
        for number in [END, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(text(number, 4), None);
        }
        let trimmed = |number| Decimal::new(number, 17).map(|d| d.trimmed().as_bytes().to_vec());
        assert_eq!(trimmed(1.5).as_deref(), Some(&b"1.5"[..]));
        assert_eq!(trimmed(100.0).as_deref(), Some(&b"100"[..]));
        assert_eq!(trimmed(0.0).as_deref(), Some(&b"0"[..]));
    }

    proptest! {
        #[test]
        fn numbers_are_written_as_format_writes_them(bits: u64, near in -180.0..180.0, decimals in 1..=DECIMALS_MAX) {
            prop_assert_eq!(text(near, decimals), Some(expected(near, decimals)));
            let any = f64::from_bits(bits);
            if any.abs() < END {
                prop_assert_eq!(text(any, decimals), Some(expected(any, decimals)));
            }
        }
    }
}
