//! Numbers in as many bytes as they need: LEB128.

/// The number at `at`, and where it ends.
#[inline(always)]
pub(super) fn varint(bytes: &[u8], at: usize) -> (usize, usize) {
    let first = bytes[at];
    if first < 0x80 {
        return (first.into(), at + 1);
    }
    long_varint(bytes, at)
}

fn long_varint(bytes: &[u8], at: usize) -> (usize, usize) {
    let mut number = 0;
    let mut shift = 0;
    let mut at = at;
    while shift < usize::BITS {
        let byte = bytes[at];
        number |= usize::from(byte & 0x7f) << shift;
        shift += 7;
        at += 1;
        if byte < 0x80 {
            break;
        }
    }
    (number, at)
}

/// Returns how many bytes a number takes.
pub(super) fn varint_len(number: usize) -> usize {
    let bits = usize::BITS - (number | 1).leading_zeros();
    bits.div_ceil(7) as usize
}

/// Writes a number; returns where it ends.
pub(super) fn put_varint(bytes: &mut [u8], at: usize, mut number: usize) -> usize {
    let mut at = at;
    while number >= 0x80 {
        bytes[at] = number as u8 | 0x80;
        number >>= 7;
        at += 1;
    }
    bytes[at] = number as u8;
    at + 1
}
