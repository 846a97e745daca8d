//! Errors in a client's bytes.

use std::error::Error;
use std::fmt;

/// Why the bytes are not a command. The connection cannot be resynchronised: answer
/// `ERR Protocol error: ` followed by this error's text, then close.
///
/// The text is the one that Redis sends, except that in [`ExpectedBulk`](Self::ExpectedBulk) a byte
/// that is neither printable ASCII nor a line end is escaped (`\x00`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProtocolError {
    /// The argument count is no number or exceeds [`Limits::args`](crate::Limits::args).
    InvalidMultibulkLength,
    /// More arguments than a client may send before it has authenticated.
    UnauthenticatedMultibulkLength,
    /// The line with the argument count does not end within
    /// [`Limits::inline`](crate::Limits::inline) bytes.
    TooBigMultibulkCount,
    /// An argument does not begin with `$` but with this byte.
    ExpectedBulk(u8),
    /// An argument's length is no number, negative, or exceeds
    /// [`Limits::bulk`](crate::Limits::bulk).
    InvalidBulkLength,
    /// An argument longer than a client may send before it has authenticated.
    UnauthenticatedBulkLength,
    /// The line with an argument's length does not end within
    /// [`Limits::inline`](crate::Limits::inline) bytes.
    TooBigBulkCount,
    /// An inline command does not end within [`Limits::inline`](crate::Limits::inline) bytes.
    TooBigInline,
    /// An inline command has a quote without its partner, or text right after a closing quote.
    UnbalancedQuotes,
    /// All arguments together reach 4 GiB.
    TooBigCommand,
}

impl fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::InvalidMultibulkLength => "invalid multibulk length",
            Self::UnauthenticatedMultibulkLength => "unauthenticated multibulk length",
            Self::TooBigMultibulkCount => "too big mbulk count string",
            Self::ExpectedBulk(got) if *got == b' ' || got.is_ascii_graphic() => {
                return write!(f, "expected '$', got '{}'", char::from(*got));
            }
            // A line end would end the reply.
            Self::ExpectedBulk(b'\r' | b'\n') => "expected '$', got ' '",
            Self::ExpectedBulk(got) => return write!(f, "expected '$', got '\\x{got:02x}'"),
            Self::InvalidBulkLength => "invalid bulk length",
            Self::UnauthenticatedBulkLength => "unauthenticated bulk length",
            Self::TooBigBulkCount => "too big bulk count string",
            Self::TooBigInline => "too big inline request",
            Self::UnbalancedQuotes => "unbalanced quotes in request",
            Self::TooBigCommand => "too big request",
        })
    }
}

impl Error for ProtocolError {}

/// Why two floats have no sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SumError {
    /// One of them is not a float.
    NotAFloat,
    /// The sum is infinite or NaN.
    NotFinite,
}

impl fmt::Display for SumError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotAFloat => "value is not a valid float",
            Self::NotFinite => "increment would produce NaN or Infinity",
        })
    }
}

impl Error for SumError {}
