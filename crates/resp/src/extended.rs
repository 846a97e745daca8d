//! Floats with 64 bits of mantissa, like `long double` on x86. INCRBYFLOAT adds with them what does
//! not fit into fixed decimals.
//!
//! An example: `1e400` plus `1` is far beyond an `f64`, but not beyond these floats, which go up to
//! about 1.19 · 10^4932. A sum is made in three steps: each text becomes the nearest float, the sum
//! of the two is rounded to the nearest float (ties to even), and the result is written with 17
//! decimals. Every step calculates with whole numbers of any length, so that nothing is rounded
//! twice.

use std::cmp::Ordering;

use crate::error::SumError;

/// A text of this many bytes or more is no float, as in Redis.
pub(crate) const TEXT_MAX: usize = 5 * 1024;

/// Digits of a text that are used. Of the digits after them it only matters whether all are 0.
const DIGITS_MAX: usize = 64;

/// A number with this many digits before the point is infinite. One with this many zeros behind the
/// point is 0.
const MAGNITUDE_MAX: i64 = 5_000;

/// 2^16384 and above is infinite.
const BITS_MAX: i64 = 16_384;

/// A number below half of 2^-16445 is 0.
const BITS_MIN: i64 = -16_445;

/// The digits after the decimal point that are written.
const DECIMALS: usize = 17;

/// A float: mantissa · 2^exponent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Extended {
    negative: bool,
    mantissa: u64,
    exponent: i64,
}

const ZERO: Extended = Extended {
    negative: false,
    mantissa: 0,
    exponent: 0,
};

/// Adds two floats, text to text, each shorter than [`TEXT_MAX`].
pub(crate) fn sum(a: &[u8], b: &[u8]) -> Result<String, SumError> {
    let (a, b) = (parse(a)?, parse(b)?);
    let finite = a.zip(b).ok_or(SumError::NotFinite)?;
    let sum = add(finite.0, finite.1).ok_or(SumError::NotFinite)?;
    Ok(format(sum))
}

/// Returns whether a `long double` holds a number that is too large or too small for an `f64`. Of
/// hexadecimal ones it holds all that anybody writes.
pub(crate) fn holds(text: &[u8]) -> bool {
    let is_hexadecimal = text.iter().any(|byte| matches!(byte, b'x' | b'X'));
    is_hexadecimal || (text.len() < TEXT_MAX && parse(text).is_ok())
}

/// Reads a text; `None` for an infinite one.
fn parse(text: &[u8]) -> Result<Option<Extended>, SumError> {
    let text = std::str::from_utf8(text).map_err(|_| SumError::NotAFloat)?;
    // This reader tells what is spelt like a float, also if it is too large for one.
    let near: f64 = text.parse().map_err(|_| SumError::NotAFloat)?;
    if near.is_nan() {
        return Err(SumError::NotAFloat);
    }
    if text.contains(['i', 'I']) {
        return Ok(None);
    }
    let (negative, text) = match text.as_bytes() {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    };
    let (digits, power) = decimal(text);
    let magnitude = digits.len() as i64 + power;
    if digits.is_empty() {
        return Ok(Some(ZERO));
    }
    // A number that is too large, or becomes 0, is refused.
    if !(-MAGNITUDE_MAX..MAGNITUDE_MAX).contains(&magnitude) {
        return Err(SumError::NotAFloat);
    }
    let value = nearest(negative, &digits, power).ok_or(SumError::NotAFloat)?;
    Ok(Some(value))
}

/// The significant digits of a number and the power of ten of their last; no digits for 0.
fn decimal(text: &[u8]) -> (Vec<u8>, i64) {
    let end = text.iter().position(|byte| matches!(byte, b'e' | b'E'));
    let (mantissa, exponent) = text.split_at(end.unwrap_or(text.len()));
    let mut power = exponent_of(exponent.get(1..).unwrap_or_default());
    let (mut digits, mut point, mut rest) = (Vec::new(), false, false);
    for &byte in mantissa {
        if byte == b'.' {
            point = true;
            continue;
        }
        let counts = digits.len() < DIGITS_MAX;
        if counts && (byte != b'0' || !digits.is_empty()) {
            digits.push(byte - b'0');
        } else if !counts {
            rest |= byte != b'0';
        }
        power += i64::from(!counts) - i64::from(point);
    }
    if rest {
        // One more digit says that it is a little more.
        digits.push(1);
        power -= 1;
    }
    (digits, power)
}

/// An exponent. One that does not fit its type counts as a very large one.
fn exponent_of(text: &[u8]) -> i64 {
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    };
    let far = 10 * TEXT_MAX as i64;
    let value = digits.iter().fold(0, |value, digit| {
        (value * 10 + i64::from(digit - b'0')).min(far)
    });
    if negative { -value } else { value }
}

/// The float nearest to digits · 10^power; `None` if that is infinite or 0.
fn nearest(negative: bool, digits: &[u8], power: i64) -> Option<Extended> {
    let mut whole = Whole::of_digits(digits);
    if power >= 0 {
        whole.multiply_by_power(power as usize);
        return whole.round(negative, 0, false);
    }
    // At least this many bits remain after the division.
    let shift = 70 + (-power as usize) * 10 / 3 + 4;
    whole.shift_left(shift);
    let rest = whole.divide_by_power(-power as usize);
    let value = whole.round(negative, -(shift as i64), rest)?;
    let top = i64::from(u64::BITS - value.mantissa.leading_zeros()) + value.exponent;
    (top >= BITS_MIN).then_some(value)
}

/// The float nearest to the sum; `None` if that is infinite.
fn add(a: Extended, b: Extended) -> Option<Extended> {
    if a.mantissa == 0 {
        return Some(b);
    }
    if b.mantissa == 0 {
        return Some(a);
    }
    let exponent = a.exponent.min(b.exponent);
    let aligned = |x: Extended| {
        let mut whole = Whole(vec![x.mantissa as u32, (x.mantissa >> 32) as u32]);
        whole.shift_left((x.exponent - exponent) as usize);
        whole
    };
    let (mut x, mut y) = (aligned(a), aligned(b));
    let (negative, sum) = if a.negative == b.negative {
        x.add(&y);
        (a.negative, x)
    } else {
        match x.compare(&y) {
            Ordering::Equal => return Some(ZERO),
            Ordering::Greater => {
                x.subtract(&y);
                (a.negative, x)
            }
            Ordering::Less => {
                y.subtract(&x);
                (b.negative, y)
            }
        }
    };
    sum.round(negative, exponent, false)
}

/// Writes a float with up to 17 decimals, without trailing zeros or a negative zero.
fn format(value: Extended) -> String {
    let mut whole = Whole(vec![value.mantissa as u32, (value.mantissa >> 32) as u32]);
    whole.multiply_by_power(DECIMALS);
    if value.exponent >= 0 {
        whole.shift_left(value.exponent as usize);
    } else {
        whole.round_off(-value.exponent as usize, false);
    }
    let digits = whole.into_digits();
    let digits = format!("{digits:0>width$}", width = DECIMALS + 1);
    let (integer, fraction) = digits.split_at(digits.len() - DECIMALS);
    let fraction = fraction.trim_end_matches('0');
    let is_zero = integer == "0" && fraction.is_empty();
    let sign = if value.negative && !is_zero { "-" } else { "" };
    let point = if fraction.is_empty() { "" } else { "." };
    format!("{sign}{integer}{point}{fraction}")
}

/// A whole number, its lowest 32 bits first.
#[derive(Debug)]
struct Whole(Vec<u32>);

/// The largest power of ten in 32 bits, and its exponent.
const STEP: u32 = 1_000_000_000;
const STEP_DIGITS: usize = 9;

impl Whole {
    fn of_digits(digits: &[u8]) -> Self {
        let mut whole = Self(Vec::new());
        for digit in digits {
            whole.multiply_add(10, u32::from(*digit));
        }
        whole
    }

    fn multiply_add(&mut self, factor: u32, more: u32) {
        let mut carry = u64::from(more);
        for word in &mut self.0 {
            carry += u64::from(*word) * u64::from(factor);
            *word = carry as u32;
            carry >>= 32;
        }
        if carry > 0 {
            self.0.push(carry as u32);
        }
    }

    fn divide(&mut self, by: u32) -> u32 {
        let mut rest = 0;
        for word in self.0.iter_mut().rev() {
            let dividend = rest << 32 | u64::from(*word);
            *word = (dividend / u64::from(by)) as u32;
            rest = dividend % u64::from(by);
        }
        while self.0.last() == Some(&0) {
            self.0.pop();
        }
        rest as u32
    }

    fn multiply_by_power(&mut self, power: usize) {
        (0..power / STEP_DIGITS).for_each(|_| self.multiply_add(STEP, 0));
        (0..power % STEP_DIGITS).for_each(|_| self.multiply_add(10, 0));
    }

    /// Divides by a power of ten; returns whether something was left over.
    fn divide_by_power(&mut self, power: usize) -> bool {
        let mut rest = false;
        (0..power / STEP_DIGITS).for_each(|_| rest |= self.divide(STEP) != 0);
        (0..power % STEP_DIGITS).for_each(|_| rest |= self.divide(10) != 0);
        rest
    }

    fn bits(&self) -> usize {
        let top = self.0.iter().rposition(|word| *word != 0);
        top.map_or(0, |i| 32 * (i + 1) - self.0[i].leading_zeros() as usize)
    }

    fn bit(&self, at: usize) -> bool {
        self.0
            .get(at / 32)
            .is_some_and(|word| word >> (at % 32) & 1 == 1)
    }

    /// Returns whether a bit below `at` is set.
    fn any_below(&self, at: usize) -> bool {
        let words = (at / 32).min(self.0.len());
        self.0[..words].iter().any(|word| *word != 0) || (words * 32..at).any(|bit| self.bit(bit))
    }

    fn shift_left(&mut self, bits: usize) {
        let words = bits / 32;
        let mut carry = 0;
        for word in &mut self.0 {
            let wide = u64::from(*word) << (bits % 32) | carry;
            *word = wide as u32;
            carry = wide >> 32;
        }
        self.0.push(carry as u32);
        self.0.splice(0..0, std::iter::repeat_n(0, words));
    }

    fn shift_right(&mut self, bits: usize) {
        self.0.drain(..(bits / 32).min(self.0.len()));
        let mut carry = 0;
        for word in self.0.iter_mut().rev() {
            let wide = u64::from(*word) << 32 >> (bits % 32);
            let lost = wide as u32;
            *word = (wide >> 32) as u32 | carry;
            carry = lost;
        }
    }

    /// Halves `bits` times and rounds to the nearest, ties to even. With a `rest` the number counts
    /// as a little larger than it is.
    fn round_off(&mut self, bits: usize, rest: bool) {
        if bits == 0 {
            return;
        }
        let half = self.bit(bits - 1);
        let more = rest || self.any_below(bits - 1);
        let odd = self.bit(bits);
        self.shift_right(bits);
        if half && (more || odd) {
            self.multiply_add(1, 1);
        }
    }

    fn add(&mut self, other: &Self) {
        let len = self.0.len().max(other.0.len()) + 1;
        self.0.resize(len, 0);
        let mut carry = 0;
        for (i, word) in self.0.iter_mut().enumerate() {
            carry += u64::from(*word) + u64::from(other.0.get(i).copied().unwrap_or(0));
            *word = carry as u32;
            carry >>= 32;
        }
    }

    /// Subtracts a number that is not larger.
    fn subtract(&mut self, other: &Self) {
        let mut borrow = 0;
        for (i, word) in self.0.iter_mut().enumerate() {
            let less = i64::from(other.0.get(i).copied().unwrap_or(0)) + borrow;
            let left = i64::from(*word) - less;
            *word = left as u32;
            borrow = i64::from(left < 0);
        }
    }

    fn compare(&self, other: &Self) -> Ordering {
        let word = |whole: &Self, i: usize| whole.0.get(i).copied().unwrap_or(0);
        let len = self.0.len().max(other.0.len());
        let differs = (0..len).rev().find(|i| word(self, *i) != word(other, *i));
        differs.map_or(Ordering::Equal, |i| word(self, i).cmp(&word(other, i)))
    }

    /// The float nearest to this · 2^exponent; with a `rest` the number counts as a little larger.
    /// `None` if the float is infinite.
    fn round(mut self, negative: bool, exponent: i64, rest: bool) -> Option<Extended> {
        let lost = self.bits().saturating_sub(64);
        self.round_off(lost, rest);
        let mut exponent = exponent + lost as i64;
        if self.bits() > 64 {
            self.shift_right(1);
            exponent += 1;
        }
        let top = self.bits() as i64 + exponent;
        let word = |i: usize| u64::from(self.0.get(i).copied().unwrap_or(0));
        (top <= BITS_MAX).then(|| Extended {
            negative,
            mantissa: word(0) | word(1) << 32,
            exponent,
        })
    }

    fn into_digits(mut self) -> String {
        let mut steps = Vec::new();
        while self.bits() > 0 {
            steps.push(self.divide(STEP));
        }
        let mut text = steps.pop().unwrap_or(0).to_string();
        for step in steps.iter().rev() {
            text.push_str(&format!("{step:09}"));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start_and_len(a: &str, b: &str) -> (String, usize) {
        let text = sum(a.as_bytes(), b.as_bytes()).expect("a finite sum");
        (text.chars().take(40).collect(), text.len())
    }

    /// As redis-server 7.0 on x86-64 answers INCRBYFLOAT.
    #[test]
    fn sums_are_those_of_a_long_double() {
        for (a, b, expected) in [
            ("1e30", "1", "1000000000000000000024696061952"),
            ("0", "0.1234567890123456789", "0.12345678901234568"),
            ("1e22", "-1", "10000000000000000000000"),
            ("1e22", "0.5", "10000000000000000000000"),
            ("1e4000", "-1e4000", "0"),
            ("1e-400", "0", "0"),
            ("-1e-30", "0", "0"),
            ("3", "1e-4000", "3"),
            ("0.3333333333333333333333", "0", "0.33333333333333333"),
        ] {
            let text = sum(a.as_bytes(), b.as_bytes());
            assert_eq!(text.as_deref(), Ok(expected), "{a} + {b}");
        }
        let expected = ("1999999999999999999933717593116912913211".to_owned(), 309);
        assert_eq!(start_and_len("1e308", "1e308"), expected);
        let expected = ("1000000000000000000028188068394758651458".to_owned(), 401);
        assert_eq!(start_and_len("1e400", "1"), expected);
    }

    /// 1e400 was refused as no float, and so was the sum of two numbers of 1e308.
    #[test]
    fn only_what_a_long_double_cannot_hold_is_refused() {
        let sum = |a: &str, b: &str| sum(a.as_bytes(), b.as_bytes());
        assert!(sum("1.18e4932", "-1").is_ok());
        assert_eq!(sum("1e4932", "1e4932"), Err(SumError::NotFinite));
        assert_eq!(sum("inf", "1"), Err(SumError::NotFinite));
        for text in ["1e5000", "1e-5000", "1e999999999999", "nan", "", "1e", "x"] {
            assert_eq!(sum(text, "1"), Err(SumError::NotAFloat), "{text}");
        }
        let zeros = format!("0.{}1", "0".repeat(4_000));
        assert_eq!(sum(&zeros, "0").as_deref(), Ok("0"));
    }
}
