//! What is around a value: its type before it, the format's version and a checksum behind it.

use super::crc64::crc64;

const VERSION_LEN: usize = 2;
const CHECKSUM_LEN: usize = 8;

/// The oldest version that all readers know which know the forms that are written here.
const VERSION: u16 = 10;

/// Appends version and checksum to a type and a value.
pub(crate) fn seal(bytes: Vec<u8>) -> Vec<u8> {
    seal_as(VERSION, bytes)
}

pub(super) fn seal_as(version: u16, mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.extend_from_slice(&version.to_le_bytes());
    let checksum = crc64(&bytes);
    bytes.extend_from_slice(&checksum.to_le_bytes());
    bytes
}

/// The type and the value, if the version is known and the checksum is right.
pub(crate) fn open(payload: &[u8], checked: bool) -> Option<&[u8]> {
    let (summed, checksum) = payload.split_last_chunk::<CHECKSUM_LEN>()?;
    let (value, version) = summed.split_last_chunk::<VERSION_LEN>()?;
    let known = is_known(u16::from_le_bytes(*version));
    let right = !checked || u64::from_le_bytes(*checksum) == crc64(summed);
    (known && right).then_some(value)
}

/// Redis counts from 1 on, and Valkey from 80 on since the two went separate ways.
fn is_known(version: u16) -> bool {
    matches!(version, 1..=13 | 80)
}
