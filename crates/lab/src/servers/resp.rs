//! Replies of a RESP2 server: whole values for questions, a fast skip for load.

use anyhow::{Result, bail};

/// Nothing that the laboratory asks for nests deeper.
const MAX_DEPTH: usize = 8;
/// Longer announcements are taken for a broken stream, not for a reply.
const MAX_BULK: i64 = 64 << 20;
const MAX_ITEMS: i64 = 1 << 20;
/// The longest status, error or number line.
const MAX_LINE: usize = 64 << 10;

/// One reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Simple(String),
    Error(String),
    Integer(i64),
    /// `None` is the null reply, whichever way the server wrote it.
    Bulk(Option<Vec<u8>>),
    Array(Vec<Self>),
}

impl Value {
    /// The text of a status or a bulk.
    pub(crate) fn text(&self) -> Option<String> {
        match self {
            Self::Simple(text) => Some(text.clone()),
            Self::Bulk(Some(bytes)) => Some(String::from_utf8_lossy(bytes).into_owned()),
            _ => None,
        }
    }
}

/// Reads one value from the front of `buf`: the value and its length, `None` when more is needed.
pub(crate) fn parse(buf: &[u8]) -> Result<Option<(Value, usize)>> {
    parse_at(buf, 0, MAX_DEPTH)
}

fn parse_at(buf: &[u8], at: usize, depth: usize) -> Result<Option<(Value, usize)>> {
    let Some(line) = line_at(buf, at)? else {
        return Ok(None);
    };
    let text = || String::from_utf8_lossy(line.body).into_owned();
    let value = match line.kind {
        b'+' => Value::Simple(text()),
        b'-' => Value::Error(text()),
        b':' => Value::Integer(number(line.body)?),
        b'_' => Value::Bulk(None),
        b'$' => match bulk_bounds(buf, &line)? {
            Bulk::Null => Value::Bulk(None),
            Bulk::Partial => return Ok(None),
            Bulk::Whole { start, end } => {
                return Ok(Some((Value::Bulk(Some(buf[start..end].to_vec())), end + 2)));
            }
        },
        b'*' | b'>' => {
            let items = number(line.body)?;
            if items > MAX_ITEMS || depth == 0 {
                bail!("a reply of {items} items, nested too deep or too long to be meant");
            }
            if items < 0 {
                return Ok(Some((Value::Bulk(None), line.end)));
            }
            let mut values = Vec::new();
            let mut end = line.end;
            for _ in 0..items {
                let Some((value, next)) = parse_at(buf, end, depth - 1)? else {
                    return Ok(None);
                };
                values.push(value);
                end = next;
            }
            return Ok(Some((Value::Array(values), end)));
        }
        other => bail!("a reply that begins with {:?}", char::from(other)),
    };
    Ok(Some((value, line.end)))
}

/// What a skipped reply was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Skipped<'a> {
    Status,
    Integer,
    Null,
    Bulk(&'a [u8]),
    Error(&'a [u8]),
}

/// As [`parse`] for replies that are not arrays, without allocating.
pub(crate) fn skip(buf: &[u8]) -> Result<Option<(Skipped<'_>, usize)>> {
    let Some(line) = line_at(buf, 0)? else {
        return Ok(None);
    };
    let skipped = match line.kind {
        b'+' => Skipped::Status,
        b'-' => Skipped::Error(line.body),
        b':' => Skipped::Integer,
        b'_' => Skipped::Null,
        b'$' => match bulk_bounds(buf, &line)? {
            Bulk::Null => Skipped::Null,
            Bulk::Partial => return Ok(None),
            Bulk::Whole { start, end } => {
                return Ok(Some((Skipped::Bulk(&buf[start..end]), end + 2)));
            }
        },
        other => bail!(
            "a reply that begins with {:?} to a plain request",
            char::from(other)
        ),
    };
    Ok(Some((skipped, line.end)))
}

struct Line<'a> {
    kind: u8,
    body: &'a [u8],
    /// Just past the CR LF.
    end: usize,
}

fn line_at(buf: &[u8], at: usize) -> Result<Option<Line<'_>>> {
    let Some((&kind, rest)) = buf.get(at..).and_then(<[u8]>::split_first) else {
        return Ok(None);
    };
    // Lines of load replies are a few bytes: a plain loop beats a searcher's set-up.
    let Some(cr) = rest.iter().take(MAX_LINE).position(|&byte| byte == b'\r') else {
        if rest.len() >= MAX_LINE {
            bail!("a reply line of more than {MAX_LINE} bytes");
        }
        return Ok(None);
    };
    match rest.get(cr + 1) {
        None => Ok(None),
        Some(b'\n') => Ok(Some(Line {
            kind,
            body: &rest[..cr],
            end: at + cr + 3,
        })),
        Some(_) => bail!("a reply line with CR but no LF"),
    }
}

enum Bulk {
    Null,
    Partial,
    Whole { start: usize, end: usize },
}

fn bulk_bounds(buf: &[u8], line: &Line<'_>) -> Result<Bulk> {
    let length = number(line.body)?;
    if length < 0 {
        return Ok(Bulk::Null);
    }
    if length > MAX_BULK {
        bail!("a reply of {length} bytes, more than any that was asked for");
    }
    let (start, end) = (line.end, line.end + length as usize);
    match buf.get(end..end + 2) {
        None => Ok(Bulk::Partial),
        Some(b"\r\n") => Ok(Bulk::Whole { start, end }),
        Some(_) => bail!("a bulk reply that does not end where it said"),
    }
}

/// By hand, since it runs for every reply of a load: the library's way checks for UTF-8 first.
fn number(digits: &[u8]) -> Result<i64> {
    let (sign, rest) = match digits.split_first() {
        Some((b'-', rest)) => (-1, rest),
        _ => (1, digits),
    };
    let value = rest.iter().try_fold(0_i64, |value, &byte| {
        let digit = byte.is_ascii_digit().then(|| i64::from(byte - b'0'))?;
        value.checked_mul(10)?.checked_add(digit)
    });
    match value {
        Some(value) if !rest.is_empty() => Ok(sign * value),
        _ => bail!(
            "{:?} where a number belongs",
            String::from_utf8_lossy(digits)
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(bytes: &[u8]) -> Value {
        let (value, used) = parse(bytes).expect("valid").expect("complete");
        assert_eq!(used, bytes.len());
        value
    }

    #[test]
    fn every_kind_of_reply_is_read() {
        assert_eq!(whole(b"+OK\r\n"), Value::Simple("OK".into()));
        assert_eq!(whole(b"-ERR no\r\n"), Value::Error("ERR no".into()));
        assert_eq!(whole(b":-12\r\n"), Value::Integer(-12));
        assert_eq!(whole(b"$-1\r\n"), Value::Bulk(None));
        assert_eq!(whole(b"$0\r\n\r\n"), Value::Bulk(Some(Vec::new())));
        assert_eq!(
            whole(b"$3\r\na\r\n\r\n"),
            Value::Bulk(Some(b"a\r\n".to_vec()))
        );
        assert_eq!(whole(b"*-1\r\n"), Value::Bulk(None));
        assert_eq!(
            whole(b"*2\r\n$1\r\na\r\n*1\r\n:1\r\n"),
            Value::Array(vec![
                Value::Bulk(Some(b"a".to_vec())),
                Value::Array(vec![Value::Integer(1)]),
            ])
        );
    }

    #[test]
    fn no_proper_prefix_of_a_reply_is_complete() {
        let reply = b"*3\r\n$7\r\nmessage\r\n:1\r\n+x\r\n";
        for cut in 0..reply.len() {
            assert_eq!(
                parse(&reply[..cut]).expect("a prefix is no error"),
                None,
                "{cut} bytes"
            );
        }
    }

    #[test]
    fn skip_agrees_with_parse_on_length() {
        for reply in [
            &b"+OK\r\n"[..],
            b"$-1\r\n",
            b"$2\r\nhi\r\n",
            b":7\r\n",
            b"-ERR x\r\n",
        ] {
            let mut with_more = reply.to_vec();
            with_more.extend_from_slice(b"+next\r\n");
            let (_, skipped) = skip(&with_more).expect("valid").expect("complete");
            let (_, parsed) = parse(&with_more).expect("valid").expect("complete");
            assert_eq!(skipped, parsed);
            for cut in 0..reply.len() {
                assert_eq!(skip(&reply[..cut]).expect("a prefix is no error"), None);
            }
        }
    }

    #[test]
    fn nonsense_is_an_error_not_a_panic() {
        for bad in [
            &b"?\r\n"[..],
            b":x\r\n",
            b":\r\n",
            b":-\r\n",
            b":9223372036854775808\r\n",
            b"$99999999999999\r\n",
            b"$1\r\nabc\r\n",
            b"+a\rb",
            b"*99999999\r\n",
        ] {
            assert!(parse(bad).is_err(), "{:?}", String::from_utf8_lossy(bad));
        }
        let deep = b"*1\r\n".repeat(MAX_DEPTH + 2);
        assert!(parse(&deep).is_err());
        assert!(parse(&vec![b'+'; MAX_LINE + 1]).is_err());
    }
}
