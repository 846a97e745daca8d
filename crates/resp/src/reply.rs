//! Reading replies back, for clients, tests and fuzzing.

use std::error::Error;
use std::fmt;

use memchr::memchr;

use crate::number::{parse_i64, parse_u64};

/// The depth to which replies may nest; a deeper one is refused instead of overflowing the stack.
const DEPTH_MAX: usize = 32;

/// The longest length announced for a string or a collection.
const LEN_MAX: u64 = u32::MAX as u64;

/// One reply, copied out of its bytes.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Reply {
    /// `+`: a status.
    Simple(String),
    /// `-`: an error, its code included.
    Error(String),
    /// `:`: a signed integer.
    Integer(i64),
    /// `$`: a byte string.
    Bulk(Vec<u8>),
    /// `_`, or a bulk string or array of length -1.
    Null,
    /// `*`: an array.
    Array(Vec<Self>),
    /// `%`: keys and values.
    Map(Vec<(Self, Self)>),
    /// `~`: a set, in the order it came.
    Set(Vec<Self>),
    /// `>`: an out-of-band message.
    Push(Vec<Self>),
    /// `,`: a floating-point number.
    Double(f64),
    /// `#`: a truth value.
    Boolean(bool),
    /// `=`: text with its three-letter format.
    Verbatim(String, Vec<u8>),
    /// `(`: an integer of any size, as its digits.
    BigNumber(String),
}

/// Why bytes are not a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReplyError {
    /// No reply begins with this byte.
    UnknownType(u8),
    /// A length, number or truth value does not read as one.
    InvalidNumber,
    /// A string is not followed by a line end, or a line holds half of one.
    MissingLineEnd,
    /// A status, an error or a format is not UTF-8.
    InvalidText,
    /// Replies are nested too deeply.
    TooDeep,
}

impl fmt::Display for ReplyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownType(byte) => write!(f, "unknown reply type 0x{byte:02x}"),
            Self::InvalidNumber => f.write_str("invalid number in a reply"),
            Self::MissingLineEnd => f.write_str("missing line end in a reply"),
            Self::InvalidText => f.write_str("a reply's text is not UTF-8"),
            Self::TooDeep => f.write_str("replies nest too deeply"),
        }
    }
}

impl Error for ReplyError {}

impl Reply {
    /// Reads the reply at the start of `buf` and how many bytes it has; `None` while it is
    /// incomplete.
    ///
    /// Every call begins at the start of the buffer. So call it with whole replies, or pay for each
    /// attempt.
    ///
    /// # Errors
    /// When the bytes are not RESP2 or RESP3. Line ends are checked strictly.
    pub fn read(buf: &[u8]) -> Result<Option<(Self, usize)>, ReplyError> {
        let mut reader = Reader { buf, pos: 0 };
        match reader.reply(DEPTH_MAX) {
            Ok(reply) => Ok(Some((reply, reader.pos))),
            Err(Stop::Incomplete) => Ok(None),
            Err(Stop::Wrong(error)) => Err(error),
        }
    }
}

/// Why reading stopped.
enum Stop {
    Incomplete,
    Wrong(ReplyError),
}

impl From<ReplyError> for Stop {
    fn from(error: ReplyError) -> Self {
        Self::Wrong(error)
    }
}

struct Reader<'a> {
    buf: &'a [u8],
    pos: usize,
}

impl<'a> Reader<'a> {
    fn reply(&mut self, depth: usize) -> Result<Reply, Stop> {
        let Some(depth) = depth.checked_sub(1) else {
            return Err(ReplyError::TooDeep.into());
        };
        let line = self.line()?;
        let Some((kind, line)) = line.split_first() else {
            return Err(ReplyError::MissingLineEnd.into());
        };
        Ok(match kind {
            b'+' => Reply::Simple(text(line)?),
            b'-' => Reply::Error(text(line)?),
            b':' => Reply::Integer(parse_i64(line).ok_or(ReplyError::InvalidNumber)?),
            b'$' if line == b"-1" => Reply::Null,
            b'$' => Reply::Bulk(self.bytes(line)?.to_vec()),
            b'=' => match self.bytes(line)?.split_at_checked(4) {
                Some(([format @ .., b':'], bytes)) => {
                    Reply::Verbatim(text(format)?, bytes.to_vec())
                }
                _ => return Err(ReplyError::InvalidText.into()),
            },
            b'*' if line == b"-1" => Reply::Null,
            b'*' => Reply::Array(self.replies(line, depth)?),
            b'~' => Reply::Set(self.replies(line, depth)?),
            b'>' => Reply::Push(self.replies(line, depth)?),
            b'%' => {
                let mut pairs = Vec::new();
                for _ in 0..len(line)? {
                    pairs.push((self.reply(depth)?, self.reply(depth)?));
                }
                Reply::Map(pairs)
            }
            b'_' if line.is_empty() => Reply::Null,
            b'#' if line == b"t" => Reply::Boolean(true),
            b'#' if line == b"f" => Reply::Boolean(false),
            b',' => Reply::Double(text(line)?.parse().map_err(|_| ReplyError::InvalidNumber)?),
            b'(' => match line.strip_prefix(b"-").unwrap_or(line) {
                digits if !digits.is_empty() && digits.iter().all(u8::is_ascii_digit) => {
                    Reply::BigNumber(text(line)?)
                }
                _ => return Err(ReplyError::InvalidNumber.into()),
            },
            b'_' | b'#' => return Err(ReplyError::InvalidNumber.into()),
            other => return Err(ReplyError::UnknownType(*other).into()),
        })
    }

    fn replies(&mut self, line: &[u8], depth: usize) -> Result<Vec<Reply>, Stop> {
        // Not sized by the announced length: it grows as replies are found.
        let mut replies = Vec::new();
        for _ in 0..len(line)? {
            replies.push(self.reply(depth)?);
        }
        Ok(replies)
    }

    /// Takes a line without its end.
    fn line(&mut self) -> Result<&'a [u8], Stop> {
        let rest = self.buf.get(self.pos..).unwrap_or_default();
        let end = memchr(b'\r', rest).ok_or(Stop::Incomplete)?;
        match rest.get(end + 1) {
            None => Err(Stop::Incomplete),
            Some(b'\n') if memchr(b'\n', &rest[..end]).is_none() => {
                self.pos += end + 2;
                Ok(&rest[..end])
            }
            Some(_) => Err(ReplyError::MissingLineEnd.into()),
        }
    }

    /// Takes a string of the length that `line` announces.
    fn bytes(&mut self, line: &[u8]) -> Result<&'a [u8], Stop> {
        let len = len(line)?;
        let rest = self.buf.get(self.pos..).unwrap_or_default();
        let (bytes, rest) = rest.split_at_checked(len).ok_or(Stop::Incomplete)?;
        match rest {
            [b'\r', b'\n', ..] => {
                self.pos += len + 2;
                Ok(bytes)
            }
            [] | [b'\r'] => Err(Stop::Incomplete),
            _ => Err(ReplyError::MissingLineEnd.into()),
        }
    }
}

fn len(line: &[u8]) -> Result<usize, ReplyError> {
    let len = parse_u64(line)
        .filter(|len| *len <= LEN_MAX)
        .ok_or(ReplyError::InvalidNumber)?;
    usize::try_from(len).map_err(|_| ReplyError::InvalidNumber)
}

fn text(bytes: &[u8]) -> Result<String, ReplyError> {
    std::str::from_utf8(bytes)
        .map(str::to_owned)
        .map_err(|_| ReplyError::InvalidText)
}
