//! The incremental request parser.
//!
//! A client sends either `*<count>\r\n` and that many `$<length>\r\n<bytes>\r\n`, or one inline
//! line:
//!
//! ```text
//! *2\r\n $3\r\nGET\r\n $1\r\nk\r\n        two arguments
//! GET k\r\n                             the same, as an inline command
//! ```
//!
//! The order of calls, for each read of a connection:
//!
//! 1. [`parse`](Parser::parse) the buffer. On `Incomplete`, read more behind it and parse again.
//! 2. On `Complete`, take the arguments with [`args`](Parser::args) and run the command.
//! 3. Drop the consumed bytes and begin again with the rest.
//!
//! The parser keeps the offset that it has reached, so a command that arrives in pieces is scanned
//! once: while it waits for an argument of 512 MiB, each read costs one comparison. As in Redis,
//! the two bytes after a number or a body are skipped unread. RESP3 types have no meaning in
//! requests: an argument of such a type is refused, and a command that begins with one is an inline
//! command.

use memchr::{memchr, memchr2};

use crate::args::{Args, Span};
use crate::number::parse_i64;
use crate::{Limits, ProtocolError, inline};

/// Commands end below this offset, so that a span fits 32 bits each.
const COMMAND_MAX: usize = u32::MAX as usize;

/// The memory that a parser may keep between commands. If it holds more, it frees that when the
/// next command begins.
const KEEP_ARGS: usize = 1024;
const KEEP_INLINE: usize = 4096;

/// A line with a number may always be this long, also under a lower limit. It is longer than any
/// number. So a number that arrives in pieces is treated as one that arrives at once.
const NUMBER_LINE_MIN: usize = 32;

/// The result of [`Parser::parse`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parsed {
    /// A command lies in the first `consumed` bytes; [`Parser::args`] are its arguments. Zero
    /// arguments (a blank line, `*0`) mean that there is nothing to run or answer.
    Complete {
        /// Bytes that the next call's buffer must not contain.
        consumed: usize,
    },
    /// The command goes on beyond the buffer.
    Incomplete {
        /// Bytes more that are certainly needed, at least 1. A client announces this number: use it
        /// to size reads, within a cap, and never to allocate as much.
        wanted: usize,
    },
}

/// Cuts a byte stream into commands.
#[derive(Debug, Default)]
pub struct Parser {
    stage: ParseStage,
    /// An inline line contains a NUL and therefore never ends; see [`Parser::inline_line`].
    endless: bool,
    /// True if the last complete command was inline, its arguments in `text`.
    inline: bool,
    /// Arguments yet to come.
    missing: usize,
    /// Offset of the first byte that is not parsed yet.
    pos: usize,
    /// Offset up to which the unfinished line was searched for its end.
    scanned: usize,
    /// Length of the argument whose body is awaited.
    body: usize,
    spans: Vec<Span>,
    /// Unquoted inline arguments.
    text: Vec<u8>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ParseStage {
    /// Between commands.
    #[default]
    Start,
    /// In an inline line.
    Inline,
    /// In the line with the argument count.
    Count,
    /// In a line with an argument's length.
    Header,
    /// In an argument.
    Body,
}

impl Parser {
    /// A parser between commands. It allocates nothing until arguments arrive.
    pub fn new() -> Self {
        Self::default()
    }

    /// Looks for one command at the start of `buf`.
    ///
    /// After `Incomplete` call again with the same bytes and more behind them; after `Complete`
    /// with the buffer from `consumed` on. `limits` may change between commands.
    ///
    /// # Errors
    /// When the bytes break the protocol or a limit. The stream has no next command then: answer
    /// the error and close. Calling again gives the same error.
    #[inline]
    pub fn parse(&mut self, buf: &[u8], limits: &Limits) -> Result<Parsed, ProtocolError> {
        if self.stage == ParseStage::Start {
            let Some(first) = buf.first() else {
                return Ok(Parsed::Incomplete { wanted: 1 });
            };
            self.forget_last();
            // Nearly all commands arrive whole: nothing has to be remembered of them.
            if let Some(consumed) = self.simple_arguments(buf, limits) {
                return Ok(Parsed::Complete { consumed });
            }
            if self.stage == ParseStage::Start {
                self.begin(*first);
            }
        }
        if self.stage == ParseStage::Inline {
            return self.inline_line(buf, limits);
        }
        if self.stage == ParseStage::Count && !self.count(buf, limits)? {
            return Ok(Parsed::Incomplete { wanted: 1 });
        }
        self.arguments(buf, limits)
    }

    /// The arguments of the last complete command. `buf` is the buffer that `parse` saw then; with
    /// another one, [`Args::get`] answers `None` or other bytes.
    #[inline]
    pub fn args<'a>(&'a self, buf: &'a [u8]) -> Args<'a> {
        match self.stage {
            ParseStage::Start => {
                Args::from_spans(if self.inline { &self.text } else { buf }, &self.spans)
            }
            _ => Args::from_spans(&[], &[]),
        }
    }

    /// Forgets everything that it has seen, but keeps its memory: for the next connection.
    pub fn reset(&mut self) {
        self.stage = ParseStage::Start;
        self.endless = false;
        self.inline = false;
        self.missing = 0;
        self.body = 0;
        self.spans.clear();
        self.text.clear();
    }

    /// Returns whether the parser is between commands. If not, a connection that ends has cut one
    /// off.
    pub fn is_idle(&self) -> bool {
        self.stage == ParseStage::Start
    }

    /// Heap bytes held, for CLIENT LIST and memory limits.
    pub fn heap_bytes(&self) -> usize {
        self.spans.capacity() * size_of::<Span>() + self.text.capacity()
    }

    /// Forgets the last command's arguments.
    #[inline]
    fn forget_last(&mut self) {
        self.spans.clear();
        if self.spans.capacity() > KEEP_ARGS {
            self.spans = Vec::new();
        }
        if self.inline {
            self.leave_inline();
        }
    }

    /// Takes the simple arguments at the start of a command, as many as are whole. Returns where
    /// the command ends, if that is all of them; otherwise the parser goes on behind them.
    #[inline]
    fn simple_arguments(&mut self, buf: &[u8], limits: &Limits) -> Option<usize> {
        let (count, next) = short_number(buf, 0, b'*')?;
        if !(1..=limits.args).contains(&count) {
            return None;
        }
        let (pos, missing) = take_whole(buf, next, count, limits, &mut self.spans);
        if missing == 0 {
            return Some(pos);
        }
        self.stage = ParseStage::Header;
        (self.pos, self.scanned, self.missing) = (pos, pos, missing);
        None
    }

    /// Begins a command of which nothing is taken yet.
    fn begin(&mut self, first: u8) {
        self.pos = 0;
        self.scanned = 0;
        if first == b'*' {
            self.stage = ParseStage::Count;
        } else {
            self.stage = ParseStage::Inline;
            self.endless = false;
        }
    }

    #[cold]
    fn leave_inline(&mut self) {
        self.inline = false;
        self.text.clear();
        if self.text.capacity() > KEEP_INLINE {
            self.text = Vec::new();
        }
    }

    /// Reads the argument count; false while its line is incomplete.
    #[inline]
    fn count(&mut self, buf: &[u8], limits: &Limits) -> Result<bool, ProtocolError> {
        let (count, next) = match short_number(buf, 0, b'*') {
            Some(found) => found,
            None => match self.number(buf, limits, ProtocolError::TooBigMultibulkCount)? {
                None => return Ok(false),
                Some((None, _)) => return Err(ProtocolError::InvalidMultibulkLength),
                // A negative count is no command, as zero is none.
                Some((Some(count), next)) => (usize::try_from(count).unwrap_or(0), next),
            },
        };
        if count > limits.args {
            return Err(if limits.unauthenticated && count <= Limits::DEFAULT.args {
                ProtocolError::UnauthenticatedMultibulkLength
            } else {
                ProtocolError::InvalidMultibulkLength
            });
        }
        self.missing = count;
        self.pos = next;
        self.scanned = next;
        self.stage = ParseStage::Header;
        Ok(true)
    }

    #[inline]
    fn arguments(&mut self, buf: &[u8], limits: &Limits) -> Result<Parsed, ProtocolError> {
        // A line whose end was not found yet is searched from where the search stopped.
        if self.stage == ParseStage::Header && self.scanned == self.pos {
            self.whole_arguments(buf, limits);
        }
        while self.missing > 0 {
            if self.stage == ParseStage::Header && !self.header(buf, limits)? {
                return Ok(Parsed::Incomplete { wanted: 1 });
            }
            // No overflow: `header` has checked that both end below COMMAND_MAX.
            let end = self.pos + self.body;
            if buf.len() < end + 2 {
                self.stage = ParseStage::Body;
                return Ok(Parsed::Incomplete {
                    wanted: end + 2 - buf.len(),
                });
            }
            self.spans.push(Span {
                start: self.pos as u32,
                len: self.body as u32,
            });
            self.pos = end + 2;
            self.scanned = end + 2;
            self.missing -= 1;
            self.stage = ParseStage::Header;
        }
        self.stage = ParseStage::Start;
        Ok(Parsed::Complete { consumed: self.pos })
    }

    #[inline]
    fn whole_arguments(&mut self, buf: &[u8], limits: &Limits) {
        let (pos, missing) = take_whole(buf, self.pos, self.missing, limits, &mut self.spans);
        (self.pos, self.scanned, self.missing) = (pos, pos, missing);
    }

    /// Reads an argument's length; false while its line is incomplete.
    #[inline]
    fn header(&mut self, buf: &[u8], limits: &Limits) -> Result<bool, ProtocolError> {
        match buf.get(self.pos) {
            None => return Ok(false),
            Some(b'$') => {}
            Some(other) => return Err(ProtocolError::ExpectedBulk(*other)),
        }
        let (len, next) = match short_number(buf, self.pos, b'$') {
            Some(found) => found,
            None => match self.number(buf, limits, ProtocolError::TooBigBulkCount)? {
                None => return Ok(false),
                Some((len, next)) => match len.map(usize::try_from) {
                    Some(Ok(len)) => (len, next),
                    _ => return Err(ProtocolError::InvalidBulkLength),
                },
            },
        };
        if len > limits.bulk {
            return Err(if limits.unauthenticated && len <= Limits::DEFAULT.bulk {
                ProtocolError::UnauthenticatedBulkLength
            } else {
                ProtocolError::InvalidBulkLength
            });
        }
        if next.saturating_add(len) > COMMAND_MAX - 2 {
            return Err(ProtocolError::TooBigCommand);
        }
        self.body = len;
        self.pos = next;
        Ok(true)
    }

    /// Reads the number of the line at `pos`, behind its type byte, and where the next line begins.
    /// `None` while the line is incomplete, `Some((None, _))` when it holds no number.
    #[cold]
    fn number(
        &mut self,
        buf: &[u8],
        limits: &Limits,
        too_big: ProtocolError,
    ) -> Result<Option<(Option<i64>, usize)>, ProtocolError> {
        let cap = self.pos.saturating_add(limits.inline.max(NUMBER_LINE_MIN));
        let window_end = buf.len().min(cap.saturating_add(1));
        let window = buf.get(self.scanned..window_end).unwrap_or_default();
        let Some(found) = memchr(b'\r', window) else {
            self.scanned = self.scanned.max(window_end);
            return if buf.len() > cap {
                Err(too_big)
            } else {
                Ok(None)
            };
        };
        let line_end = self.scanned + found;
        if buf.len() < line_end + 2 {
            self.scanned = line_end;
            return Ok(None);
        }
        let digits = buf.get(self.pos + 1..line_end).unwrap_or_default();
        Ok(Some((parse_i64(digits), line_end + 2)))
    }

    /// Reads an inline command.
    ///
    /// A line with a NUL byte never ends, as in Redis: it comes from a client of another protocol,
    /// and what follows it must not be taken for commands. It fails when it reaches the limit.
    #[cold]
    fn inline_line(&mut self, buf: &[u8], limits: &Limits) -> Result<Parsed, ProtocolError> {
        let window_end = buf.len().min(limits.inline.saturating_add(1));
        if !self.endless {
            let window = buf.get(self.scanned..window_end).unwrap_or_default();
            match memchr2(b'\n', 0, window) {
                Some(found) if window[found] == b'\n' => {
                    return self.inline_command(buf, self.scanned + found);
                }
                Some(_) => self.endless = true,
                None => self.scanned = self.scanned.max(window_end),
            }
        }
        if buf.len() > limits.inline {
            return Err(ProtocolError::TooBigInline);
        }
        Ok(Parsed::Incomplete { wanted: 1 })
    }

    fn inline_command(&mut self, buf: &[u8], newline: usize) -> Result<Parsed, ProtocolError> {
        self.text.clear();
        self.spans.clear();
        let line = &buf[..newline];
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        inline::split(line, &mut self.text, &mut self.spans)?;
        self.inline = true;
        self.stage = ParseStage::Start;
        Ok(Parsed::Complete {
            consumed: newline + 1,
        })
    }
}

/// Takes up to `missing` arguments from `pos` on, while they are simple and whole in the buffer. It
/// stops at the first that is not. Returns where it stopped, and how many are missing then.
#[inline(always)]
pub(crate) fn take_whole(
    buf: &[u8],
    mut pos: usize,
    mut missing: usize,
    limits: &Limits,
    spans: &mut Vec<Span>,
) -> (usize, usize) {
    let buf = &buf[..buf.len().min(COMMAND_MAX)];
    while missing > 0 {
        let Some((len, start)) = short_number(buf, pos, b'$') else {
            break;
        };
        let end = start + len + 2;
        if len > limits.bulk || end > buf.len() {
            break;
        }
        spans.push(Span {
            start: start as u32,
            len: len as u32,
        });
        pos = end;
        missing -= 1;
    }
    (pos, missing)
}

/// Reads the number behind the type byte `kind` at `at` when it is whole and has at most nine
/// digits, and where the next line begins. Anything else is left to [`Parser::number`]; at most ten
/// bytes are read in vain.
#[inline(always)]
pub(crate) fn short_number(buf: &[u8], at: usize, kind: u8) -> Option<(usize, usize)> {
    // Most headers are one or two digits long and are followed by at least two bytes more. The
    // bytes that must be there, and the upper halves of digits, are compared at once: they leave
    // zeros, and the digits are what is left.
    let head = buf.get(at..)?.first_chunk::<5>();
    if let Some(head) = head.and_then(|head| head.first_chunk()) {
        let word = u32::from_le_bytes(*head);
        let one = (word ^ u32::from_le_bytes([kind, b'0', b'\r', 0])).rotate_right(8);
        let one = one & 0xff00_ffff;
        if one <= 9 {
            return Some((one as usize, at + 4));
        }
        let two = (word ^ u32::from_le_bytes([kind, b'0', b'0', b'\r'])).rotate_right(8);
        let (high, low) = (two & 0xff, two >> 8);
        if low <= 9 && (1..=9).contains(&high) {
            return Some(((high * 10 + low) as usize, at + 5));
        }
    }
    longer_number(buf, at, kind)
}

/// As [`short_number`], digit by digit.
#[inline(never)]
fn longer_number(buf: &[u8], at: usize, kind: u8) -> Option<(usize, usize)> {
    let (first, line) = buf.get(at..)?.split_first()?;
    if *first != kind {
        return None;
    }
    let mut value = 0;
    for (i, byte) in line.iter().enumerate().take(10) {
        let digit = usize::from(byte.wrapping_sub(b'0'));
        if digit <= 9 {
            value = value * 10 + digit;
            continue;
        }
        let canonical = i == 1 || (i > 1 && line[0] != b'0');
        return (*byte == b'\r' && canonical && line.len() > i + 1).then_some((value, at + i + 3));
    }
    None
}
