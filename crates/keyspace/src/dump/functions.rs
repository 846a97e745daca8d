//! Libraries of functions: each is a mark and its code.

use std::borrow::Cow;
use std::sync::atomic::Ordering::Relaxed;

use super::Malformed;
use super::envelope::{SkippedChecks, VERSION, open};
use super::reader::PayloadReader;
use super::writer::Writer;
use crate::error::CommandError;
use crate::rules::Rules;

/// The mark, and that of a form that was never released.
const LIBRARY: u8 = 245;
const LIBRARY_EARLY: u8 = 246;

const WRONG: CommandError = CommandError::fixed("ERR DUMP payload version or checksum are wrong");
const EARLY: CommandError = CommandError::fixed("ERR Pre-GA function format not supported");
const NO_FUNCTION: CommandError = CommandError::fixed("ERR given type is not a function");
const MALFORMED: CommandError = CommandError::fixed("ERR Failed loading library payload");
const TOO_LONG: CommandError = CommandError::fixed("ERR the libraries are too long");

/// Writes the payload of FUNCTION DUMP.
#[must_use]
pub fn write_functions<'a>(codes: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut writer = Writer::empty();
    for code in codes {
        writer.bytes(&[LIBRARY]);
        writer.string(code);
    }
    writer.seal(VERSION)
}

/// Reads such a payload.
///
/// # Errors
/// If it is none, or all codes together have more than `bytes_max` bytes.
pub fn read_functions<'b>(
    payload: &'b [u8],
    rules: &Rules,
    bytes_max: usize,
) -> Result<Vec<Cow<'b, [u8]>>, CommandError> {
    let lenience = SkippedChecks {
        any_version: rules.any_dump_version.load(Relaxed),
        any_checksum: rules.skip_checksums.load(Relaxed),
    };
    let opened = open(payload, lenience).ok_or(WRONG)?;
    let mut reader = PayloadReader::new(opened.value);
    let (mut codes, mut bytes) = (Vec::new(), 0_usize);
    let malformed = |_: Malformed| MALFORMED;
    while !reader.is_empty() {
        match reader.byte().map_err(malformed)? {
            LIBRARY => {}
            LIBRARY_EARLY => return Err(EARLY),
            _ => return Err(NO_FUNCTION),
        }
        // What is compressed is not expanded before its length is known.
        let mut ahead = reader;
        bytes = bytes.saturating_add(ahead.string_len().map_err(malformed)?);
        if bytes > bytes_max {
            return Err(TOO_LONG);
        }
        codes.push(reader.string().map_err(malformed)?);
    }
    Ok(codes)
}
