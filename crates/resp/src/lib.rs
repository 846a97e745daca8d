//! Bytes to and from the Redis protocol (RESP2 and RESP3).
//!
//! [`Parser`] cuts a connection's receive buffer into commands without copying; [`Writer`] appends
//! replies to a connection's send buffer in the protocol that the client asked for; [`Reply`] reads
//! them back, for clients and tests. None of them knows sockets or commands.
//!
//! ```
//! use tidewheel_resp::{Limits, Parsed, Parser, Protocol, Writer};
//!
//! let input = b"*2\r\n$4\r\nECHO\r\n$5\r\nhello\r\n";
//! let mut parser = Parser::new();
//! let Ok(Parsed::Complete { consumed }) = parser.parse(input, &Limits::DEFAULT) else {
//!     unreachable!("the command is whole");
//! };
//! assert_eq!(consumed, input.len());
//! let args = parser.args(input);
//! assert_eq!(&args[0], b"ECHO");
//!
//! let mut out = Writer::new(Protocol::Resp2);
//! out.bulk(&args[1]);
//! assert_eq!(out.as_bytes(), b"$5\r\nhello\r\n");
//! ```
//!
//! Hostile bytes cost no more than their own length. A length that a client announces allocates
//! nothing. It is checked against [`Limits`] before a byte of the body arrives. No byte is scanned
//! twice, however the bytes are cut into reads.
#![forbid(unsafe_code)]

/// Compiles and runs the code of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod args;
mod batch;
mod copies;
mod error;
mod extended;
mod float;
mod hexadecimal;
mod inline;
mod limits;
mod number;
mod parser;
mod reply;
mod word;
mod writer;

pub use args::{Args, ArgsIter};
pub use batch::Batch;
pub use copies::Copies;
pub use error::{ProtocolError, SumError};
pub use float::{format_f64_short, parse_f64, parse_f64_wide, sum_floats};
pub use limits::Limits;
pub use number::{parse_i64, parse_u64};
pub use parser::{Parsed, Parser};
pub use reply::{Reply, ReplyError};
pub use word::short_word;
pub use writer::{Protocol, Writer};
