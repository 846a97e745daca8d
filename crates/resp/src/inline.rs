//! Splitting an inline command into arguments by Redis' quoting rules.

use crate::ProtocolError;
use crate::args::Span;

/// Appends the arguments of `line` (without its line end) to `text` and where they lie to `spans`.
///
/// Blanks separate arguments. Double quotes take `\n \r \t \b \a \xHH` and make any other escaped
/// byte itself; single quotes take only `\'`. A quote may open within a word but must close before
/// a blank or the end.
///
/// The caller bounds `line`; unquoting never lengthens it.
pub(crate) fn split(
    line: &[u8],
    text: &mut Vec<u8>,
    spans: &mut Vec<Span>,
) -> Result<(), ProtocolError> {
    let mut rest = line;
    loop {
        rest = skip_blanks(rest);
        if rest.is_empty() {
            return Ok(());
        }
        let start = text.len();
        rest = word(rest, text)?;
        let (Ok(start_32), Ok(len)) = (u32::try_from(start), u32::try_from(text.len() - start))
        else {
            return Err(ProtocolError::TooBigInline);
        };
        spans.push(Span {
            start: start_32,
            len,
        });
    }
}

/// Reads one argument and returns what follows it.
fn word<'a>(mut rest: &'a [u8], text: &mut Vec<u8>) -> Result<&'a [u8], ProtocolError> {
    loop {
        match rest {
            // A vertical tab or form feed separates words only where one could begin.
            [] | [b' ' | b'\t' | b'\n' | b'\r', ..] => return Ok(rest),
            [b'"', tail @ ..] => return double_quoted(tail, text),
            [b'\'', tail @ ..] => return single_quoted(tail, text),
            [byte, tail @ ..] => {
                text.push(*byte);
                rest = tail;
            }
        }
    }
}

fn double_quoted<'a>(mut rest: &'a [u8], text: &mut Vec<u8>) -> Result<&'a [u8], ProtocolError> {
    loop {
        rest = match rest {
            [] => return Err(ProtocolError::UnbalancedQuotes),
            [b'\\', b'x', high, low, tail @ ..]
                if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() =>
            {
                text.push(hex_digit(*high) << 4 | hex_digit(*low));
                tail
            }
            [b'\\', byte, tail @ ..] => {
                text.push(match byte {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'b' => 0x08,
                    b'a' => 0x07,
                    other => *other,
                });
                tail
            }
            [b'"', tail @ ..] => return after_quote(tail),
            [byte, tail @ ..] => {
                text.push(*byte);
                tail
            }
        }
    }
}

fn single_quoted<'a>(mut rest: &'a [u8], text: &mut Vec<u8>) -> Result<&'a [u8], ProtocolError> {
    loop {
        rest = match rest {
            [] => return Err(ProtocolError::UnbalancedQuotes),
            [b'\\', b'\'', tail @ ..] => {
                text.push(b'\'');
                tail
            }
            [b'\'', tail @ ..] => return after_quote(tail),
            [byte, tail @ ..] => {
                text.push(*byte);
                tail
            }
        }
    }
}

/// A closing quote ends its word.
fn after_quote(rest: &[u8]) -> Result<&[u8], ProtocolError> {
    match rest.first() {
        Some(byte) if !is_blank(*byte) => Err(ProtocolError::UnbalancedQuotes),
        _ => Ok(rest),
    }
}

fn skip_blanks(line: &[u8]) -> &[u8] {
    let start = line
        .iter()
        .position(|byte| !is_blank(*byte))
        .unwrap_or(line.len());
    &line[start..]
}

/// C's `isspace`: `u8::is_ascii_whitespace` lacks the vertical tab.
fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c)
}

fn hex_digit(byte: u8) -> u8 {
    match byte {
        b'0'..=b'9' => byte - b'0',
        b'a'..=b'f' => byte - b'a' + 10,
        _ => byte - b'A' + 10,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &[u8]) -> Result<Vec<Vec<u8>>, ProtocolError> {
        let (mut text, mut spans) = (Vec::new(), Vec::new());
        split(line, &mut text, &mut spans)?;
        assert!(text.len() <= line.len());
        Ok(spans
            .iter()
            .map(|span| text[span.start as usize..][..span.len as usize].to_vec())
            .collect())
    }

    #[test]
    fn blanks_of_every_kind_separate_words() {
        assert_eq!(words(b"").unwrap(), Vec::<Vec<u8>>::new());
        assert_eq!(words(b" \t\x0b\x0c\r ").unwrap(), Vec::<Vec<u8>>::new());
        assert_eq!(
            words(b"  SET\tkey  value ").unwrap(),
            [&b"SET"[..], b"key", b"value"]
        );
        assert_eq!(words(b"\x0ba\x0bb").unwrap(), [b"a\x0bb"]);
    }

    #[test]
    fn double_quotes_take_escapes() {
        assert_eq!(
            words(br#""a b" "\x41\x0g\n\r\t\b\a\"\\\q""#).unwrap(),
            [&b"a b"[..], b"Ax0g\n\r\t\x08\x07\"\\q"]
        );
        assert_eq!(words(br#""\xfF\x00""#).unwrap(), [b"\xff\x00"]);
    }

    #[test]
    fn single_quotes_take_only_their_own_escape() {
        assert_eq!(words(br"'a\n\'b' ''").unwrap(), [&br"a\n'b"[..], b""]);
    }

    #[test]
    fn a_quote_may_open_within_a_word_and_ends_it() {
        assert_eq!(words(br#"foo"b r" x'y'"#).unwrap(), [&b"foob r"[..], b"xy"]);
    }

    #[test]
    fn unbalanced_quotes_are_refused() {
        for line in [
            &br#""abc"#[..],
            b"'abc",
            br#""a"b"#,
            b"'a'b",
            br#""a\""#,
            br#"""""#,
            br#""\"#,
        ] {
            assert_eq!(
                words(line),
                Err(ProtocolError::UnbalancedQuotes),
                "{line:?}"
            );
        }
    }
}
