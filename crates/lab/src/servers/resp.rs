//! Replies to load, skipped without being copied: [`Reply::read`](tidewheel_resp::Reply::read) copies each.

use anyhow::{Result, bail, ensure};
use tidewheel_resp::parse_i64;

/// The longest status, error or number line.
const MAX_LINE: usize = 64 << 10;
/// A longer announcement is taken for a broken stream, not for a reply.
const MAX_BULK: i64 = 64 << 20;

/// What a skipped reply was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Skipped<'a> {
    Plain,
    Null,
    Bulk(&'a [u8]),
    Error(&'a [u8]),
}

/// The reply at the front of `buf`, which is no collection, and its length; `None` when more is needed.
pub(super) fn skip(buf: &[u8]) -> Result<Option<(Skipped<'_>, usize)>> {
    // Lines of load replies are a few bytes: a plain loop beats a searcher's set-up.
    let Some(cr) = buf.iter().take(MAX_LINE).position(|&byte| byte == b'\r') else {
        ensure!(
            buf.len() < MAX_LINE,
            "a reply line of more than {MAX_LINE} bytes"
        );
        return Ok(None);
    };
    let (line, start) = (&buf[..cr], cr + 2);
    if buf.len() < start {
        return Ok(None);
    }
    let skipped = match line {
        [b'+' | b':', ..] => Skipped::Plain,
        [b'-', text @ ..] => Skipped::Error(text),
        b"$-1" | b"_" => Skipped::Null,
        [b'$', length @ ..] => {
            let length = parse_i64(length).filter(|length| (0..=MAX_BULK).contains(length));
            let Some(length) = length else {
                bail!("{:?} where a length belongs", String::from_utf8_lossy(line));
            };
            let end = start + length as usize;
            return match buf.get(end..end + 2) {
                None => Ok(None),
                Some(b"\r\n") => Ok(Some((Skipped::Bulk(&buf[start..end]), end + 2))),
                Some(_) => bail!("a bulk reply that does not end where it said"),
            };
        }
        _ => bail!(
            "{:?} in reply to a plain request",
            String::from_utf8_lossy(line)
        ),
    };
    Ok(Some((skipped, start)))
}

#[cfg(test)]
mod tests {
    use tidewheel_resp::Reply;

    use super::*;

    #[test]
    fn skip_agrees_with_the_reader_on_length_and_prefixes() {
        for reply in [
            &b"+OK\r\n"[..],
            b"$-1\r\n",
            b"$2\r\nhi\r\n",
            b":7\r\n",
            b"-ERR x\r\n",
        ] {
            let with_more = [reply, b"+next\r\n"].concat();
            let (_, skipped) = skip(&with_more).expect("valid").expect("complete");
            let (_, read) = Reply::read(&with_more).expect("valid").expect("complete");
            assert_eq!(skipped, read);
            for cut in 0..reply.len() {
                assert_eq!(skip(&reply[..cut]).expect("a prefix is no error"), None);
            }
        }
        for bad in [
            &b"?\r\n"[..],
            b"$x\r\n",
            b"$99999999999999\r\n",
            b"$1\r\nabc\r\n",
            b"*1\r\n",
        ] {
            assert!(skip(bad).is_err(), "{:?}", String::from_utf8_lossy(bad));
        }
    }
}
