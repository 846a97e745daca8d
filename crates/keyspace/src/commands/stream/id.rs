//! Ids as commands write them: `5-1`, `5`, `5-*`, `-`, `+`, `(5-1`.

use tidewheel_collections::StreamId;

use crate::error::CommandError;

const INVALID: CommandError =
    CommandError::fixed("ERR Invalid stream ID specified as stream command argument");
const INVALID_START: CommandError = CommandError::fixed("ERR invalid start ID for the interval");
const INVALID_END: CommandError = CommandError::fixed("ERR invalid end ID for the interval");

/// The longest text of an id.
const TEXT_MAX: usize = 127;

/// An id for XADD, as far as the call says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NewId {
    /// `*`
    Any,
    /// `5-*`
    Within(u64),
    /// `5-1`
    This(StreamId),
}

/// Reads an id of one or two numbers.
pub(super) fn parse(text: &[u8]) -> Result<StreamId, CommandError> {
    numbers(text, 0)
}

/// Reads an id for XADD that is not `*`.
pub(super) fn parse_new(text: &[u8]) -> Result<NewId, CommandError> {
    if let Some(ms) = text.strip_suffix(b"-*")
        && text.len() <= TEXT_MAX
        && !ms.contains(&b'-')
    {
        return number(ms).map(NewId::Within).ok_or(INVALID);
    }
    parse(text).map(NewId::This)
}

/// Reads an id that may also be `-` for the lowest or `+` for the highest; one without a number
/// within the millisecond gets `seq`.
pub(super) fn parse_any(text: &[u8], seq: u64) -> Result<StreamId, CommandError> {
    match text {
        b"-" => Ok(StreamId::MIN),
        b"+" => Ok(StreamId::MAX),
        _ => numbers(text, seq),
    }
}

/// Reads the lower end of a range.
pub(super) fn parse_start(text: &[u8]) -> Result<StreamId, CommandError> {
    match exclusive(text) {
        Some(text) => numbers(text, 0)?.next().ok_or(INVALID_START),
        None => parse_any(text, 0),
    }
}

/// Reads the upper end of a range.
pub(super) fn parse_end(text: &[u8]) -> Result<StreamId, CommandError> {
    match exclusive(text) {
        Some(text) => numbers(text, u64::MAX)?.previous().ok_or(INVALID_END),
        None => parse_any(text, u64::MAX),
    }
}

fn exclusive(text: &[u8]) -> Option<&[u8]> {
    text.strip_prefix(b"(").filter(|rest| !rest.is_empty())
}

fn numbers(text: &[u8], seq: u64) -> Result<StreamId, CommandError> {
    let read = || {
        if text.len() > TEXT_MAX {
            return None;
        }
        let Some(at) = text.iter().position(|&byte| byte == b'-') else {
            return Some(StreamId::new(number(text)?, seq));
        };
        Some(StreamId::new(
            number(&text[..at])?,
            number(&text[at + 1..])?,
        ))
    };
    read().ok_or(INVALID)
}

/// A number in digits; blanks, a plus sign and zeros may stand in front.
fn number(text: &[u8]) -> Option<u64> {
    let text = text.trim_ascii_start();
    let digits = text.strip_prefix(b"+").unwrap_or(text);
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_u64, |number, digit| {
        let digit = digit.checked_sub(b'0').filter(|digit| *digit < 10)?;
        number.checked_mul(10)?.checked_add(digit.into())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_as_the_public_servers_read_them() {
        let id = |ms, seq| Ok(StreamId::new(ms, seq));
        assert_eq!(parse(b"5-1"), id(5, 1));
        assert_eq!(parse(b"5"), id(5, 0));
        assert_eq!(parse(b"007-01"), id(7, 1));
        assert_eq!(parse(b" 7- +1"), id(7, 1));
        let most = b"18446744073709551615-18446744073709551615";
        assert_eq!(parse(most), Ok(StreamId::MAX));
        let wrong: [&[u8]; 11] = [
            b"",
            b"-",
            b"+",
            b"x",
            b"5-",
            b"-5",
            b"5-*",
            b"5-1-",
            b"18446744073709551616",
            b"5 ",
            &[b'0'; 128],
        ];
        for text in wrong {
            assert_eq!(parse(text), Err(INVALID), "{text:?}");
        }
        assert_eq!(parse_new(b"5-*"), Ok(NewId::Within(5)));
        assert_eq!(parse_new(b"5-1-*"), Err(INVALID));
        assert_eq!(parse_start(b"(5-1"), id(5, 2));
        assert_eq!(parse_end(b"(5"), id(5, u64::MAX - 1));
        assert_eq!(parse_end(b"+"), Ok(StreamId::MAX));
        assert_eq!(parse_start(b"(-"), Err(INVALID));
        assert_eq!(parse_start(b"("), Err(INVALID));
        assert_eq!(parse_end(b"(0-0"), Err(INVALID_END));
        let most: Vec<u8> = [b"(".as_slice(), most].concat();
        assert_eq!(parse_start(&most), Err(INVALID_START));
    }
}
