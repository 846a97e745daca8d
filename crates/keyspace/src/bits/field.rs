//! Integers of up to 64 bits somewhere in a string of bits, and their rules of overflow.

/// The type of an integer field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Field {
    pub(crate) signed: bool,
    /// 1 to 64 if it is signed, 1 to 63 if not.
    pub(crate) bits: u32,
}

/// The rule for a number that the field cannot hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum OnOverflow {
    /// Its lowest bits are kept.
    #[default]
    Wrap,
    /// It becomes the nearest number that fits.
    Saturate,
    /// Nothing is written.
    Fail,
}

impl Field {
    /// Reads a type like `i16` or `u8`.
    pub(crate) fn parse(text: &[u8]) -> Option<Self> {
        let (kind, digits) = text.split_first()?;
        let (signed, most) = match kind {
            b'i' => (true, 64),
            b'u' => (false, 63),
            _ => return None,
        };
        let bits = tidewheel_resp::parse_i64(digits)?;
        let bits = u32::try_from(bits).ok()?;
        (1..=most).contains(&bits).then_some(Self { signed, bits })
    }

    /// The number that these lowest bits mean.
    pub(crate) fn number(self, raw: u64) -> i64 {
        let unused = 64 - self.bits;
        if self.signed {
            (raw << unused) as i64 >> unused
        } else {
            raw as i64
        }
    }

    /// The lowest bits that mean this number.
    pub(crate) fn raw(self, number: i64) -> u64 {
        number as u64 & u64::MAX >> (64 - self.bits)
    }

    /// The number that is written in place of any other one; `None` if nothing is.
    pub(crate) fn fit(self, number: i128, rule: OnOverflow) -> Option<i64> {
        let (least, most) = self.limits();
        if (least..=most).contains(&number) {
            return Some(number as i64);
        }
        match rule {
            OnOverflow::Wrap => Some(self.number(self.raw(number as i64))),
            OnOverflow::Saturate => Some(number.clamp(least, most) as i64),
            OnOverflow::Fail => None,
        }
    }

    /// The number to write for a client's number. To an unsigned field a negative number is a huge
    /// one.
    pub(crate) fn given(self, number: i64) -> i128 {
        if self.signed {
            number.into()
        } else {
            i128::from(number as u64)
        }
    }

    fn limits(self) -> (i128, i128) {
        if self.signed {
            let half = 1_i128 << (self.bits - 1);
            (-half, half - 1)
        } else {
            (0, (1_i128 << self.bits) - 1)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_read_as_the_protocol_spells_them() {
        for (text, signed, bits) in [("i1", true, 1), ("i64", true, 64), ("u63", false, 63)] {
            let field = Field::parse(text.as_bytes());
            assert_eq!(field, Some(Field { signed, bits }));
        }
        for text in ["", "i", "u0", "u64", "i65", "i-1", "I8", "x8", "i08", "i8 "] {
            assert_eq!(Field::parse(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn numbers_wrap_saturate_or_fail_at_the_limits() {
        let cases = [
            ("i8", 128, -128, 127),
            ("i8", -129, 127, -128),
            ("u8", 256, 0, 255),
            ("u8", -1, 255, 0),
            ("i64", i128::from(i64::MAX) + 1, i64::MIN, i64::MAX),
            ("i64", i128::from(i64::MIN) - 1, i64::MAX, i64::MIN),
            ("u63", 1 << 63, 0, i64::MAX),
            ("i1", 1, -1, 0),
        ];
        for (text, number, wrapped, nearest) in cases {
            let field = Field::parse(text.as_bytes()).expect("a type");
            assert_eq!(field.fit(number, OnOverflow::Wrap), Some(wrapped));
            assert_eq!(field.fit(number, OnOverflow::Saturate), Some(nearest));
            assert_eq!(field.fit(number, OnOverflow::Fail), None, "{text}");
        }
    }
}
