//! The envelope of a value: its type before it, the format's version and a checksum behind it.

use super::crc64::crc64;

const VERSION_LEN: usize = 2;
const CHECKSUM_LEN: usize = 8;

/// The oldest version that all readers know which know the forms that are written here.
pub(super) const VERSION: u16 = 10;

/// The times at which consumers of streams were active are in the format since this version.
pub(super) const VERSION_OF_ACTIVE_TIMES: u16 = 11;

/// Fields with deadlines are in the format since this version.
pub(super) const VERSION_OF_FIELD_DEADLINES: u16 = 12;

/// A payload whose version is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OpenedPayload<'a> {
    pub(super) version: u16,
    /// The type and the value.
    pub(super) value: &'a [u8],
}

/// Appends version and checksum to a type and a value.
pub(super) fn seal(mut bytes: Vec<u8>, version: u16) -> Vec<u8> {
    bytes.extend_from_slice(&version.to_le_bytes());
    let checksum = crc64(&bytes);
    bytes.extend_from_slice(&checksum.to_le_bytes());
    bytes
}

/// The checks that are skipped when a payload is opened.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SkippedChecks {
    pub(crate) any_version: bool,
    pub(crate) any_checksum: bool,
}

/// Opens a payload if its version is known and its checksum is right.
pub(crate) fn open(payload: &[u8], lenience: SkippedChecks) -> Option<OpenedPayload<'_>> {
    let (summed, checksum) = payload.split_last_chunk::<CHECKSUM_LEN>()?;
    let (value, version) = summed.split_last_chunk::<VERSION_LEN>()?;
    let version = u16::from_le_bytes(*version);
    let known = lenience.any_version || is_known(version);
    let right = lenience.any_checksum || u64::from_le_bytes(*checksum) == crc64(summed);
    (known && right).then_some(OpenedPayload { version, value })
}

/// Redis counts from 1 on (8.10 is at 15), and Valkey from 80 on (9.2 is at 81) since the two went
/// separate ways. What a newer version has added is told by its type, which is not known.
fn is_known(version: u16) -> bool {
    matches!(version, 1..=15) || is_valkey(version)
}

/// True if the version is one that Redis never had.
pub(super) fn is_valkey(version: u16) -> bool {
    matches!(version, 80..=81)
}
