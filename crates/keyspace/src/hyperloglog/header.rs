//! The header: four letters, the encoding, three unused bytes, the last estimate.

use super::{DENSE_LEN, REGISTERS};

/// Bytes of the header.
pub(super) const HEADER: usize = 16;

const MAGIC: &[u8; 4] = b"HYLL";
const KIND_AT: usize = 4;
const ESTIMATE_AT: usize = 8;
/// Set in the estimate when it no longer holds.
const STALE: u64 = 1 << 63;

/// No sparse one is longer: each register has a run of its own, of two bytes.
pub(super) const SPARSE_MAX: usize = HEADER + 2 * REGISTERS;

/// The encoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    Dense = 0,
    Sparse = 1,
}

/// The encoding of a string; `None` if the string is no HyperLogLog.
pub(crate) fn encoding(bytes: &[u8]) -> Option<Encoding> {
    if bytes.len() < HEADER || !bytes.starts_with(MAGIC) {
        return None;
    }
    match bytes[KIND_AT] {
        0 if bytes.len() == DENSE_LEN => Some(Encoding::Dense),
        1 => Some(Encoding::Sparse),
        _ => None,
    }
}

/// A header whose estimate, zero, holds.
pub(super) fn new(encoding: Encoding) -> Vec<u8> {
    let len = match encoding {
        Encoding::Dense => DENSE_LEN,
        Encoding::Sparse => HEADER,
    };
    let mut bytes = Vec::with_capacity(len);
    bytes.extend_from_slice(MAGIC);
    bytes.resize(HEADER, 0);
    bytes[KIND_AT] = encoding as u8;
    bytes
}

/// The last estimate, if it still holds.
pub(crate) fn cached(bytes: &[u8]) -> Option<u64> {
    let estimate = bytes[ESTIMATE_AT..].first_chunk().copied()?;
    let estimate = u64::from_le_bytes(estimate);
    (estimate & STALE == 0).then_some(estimate)
}

/// Keeps an estimate.
pub(crate) fn remember(bytes: &mut [u8], estimate: u64) {
    bytes[ESTIMATE_AT..HEADER].copy_from_slice(&estimate.to_le_bytes());
}

/// Says that the estimate no longer holds.
pub(crate) fn invalidate(bytes: &mut [u8]) {
    bytes[HEADER - 1] |= (STALE >> 56) as u8;
}

pub(super) fn copy_estimate(from: &[u8], to: &mut [u8]) {
    to[ESTIMATE_AT..HEADER].copy_from_slice(&from[ESTIMATE_AT..HEADER]);
}
