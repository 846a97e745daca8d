//! Values in the public format, which DUMP writes and RESTORE reads.
//!
//! A payload is a byte for the type, the value, two bytes for the format's version, and a checksum (CRC-64) of all that.
//! Payloads come from anywhere, so a reader trusts nothing: each length is held against the bytes that are there, each
//! count against what could be in them, and no element may come twice.
//!
//! | file | idea |
//! |---|---|
//! | `envelope.rs` | type, version and checksum around a value |
//! | `crc64.rs` | the checksum |
//! | `reader.rs`, `writer.rs` | lengths and strings |
//! | `lzf.rs` | the compression of strings |

mod crc64;
mod envelope;
mod lzf;
mod reader;
mod writer;

pub(crate) use self::envelope::{open, seal};
use self::reader::Reader;
use self::writer::Writer;

/// The bytes are no value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bad;

/// The type of a payload.
mod kind {
    pub(super) const STRING: u8 = 0;
}

/// A value that was read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Loaded {
    String(Vec<u8>),
}

/// Reads the value of an opened payload.
pub(crate) fn load(payload: &[u8]) -> Result<Loaded, Bad> {
    let mut reader = Reader::new(payload);
    let value = match reader.byte()? {
        kind::STRING => Loaded::String(reader.string()?.into_owned()),
        _ => return Err(Bad),
    };
    if reader.is_empty() {
        Ok(value)
    } else {
        Err(Bad)
    }
}

/// The payload of a string.
pub(crate) fn of_string(bytes: &[u8]) -> Vec<u8> {
    let mut writer = Writer::new(kind::STRING, bytes.len());
    writer.string(bytes);
    seal(writer.into_bytes())
}

/// Bytes that the value of a payload has, about. Whether it is sound is seen later.
pub(crate) fn measure(payload: &[u8]) -> usize {
    let mut reader = Reader::new(payload);
    let declared = reader.byte().and_then(|_| reader.string_len());
    payload.len().max(declared.unwrap_or(0))
}

#[cfg(test)]
mod tests;
