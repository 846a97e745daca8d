//! LZF, the compression of strings: literals, and copies of bytes at most 8 KiB before.
//!
//! | bytes | meaning |
//! |---|---|
//! | `000lllll`, `l + 1` bytes | these bytes |
//! | `lllddddd dddddddd` | `l + 2` bytes from `d + 1` bytes back |
//! | `111ddddd llllllll dddddddd` | `l + 9` bytes from `d + 1` bytes back |

use super::Malformed;

/// The most bytes that three compressed ones stand for.
const COPY_MAX: usize = 264;

/// Expands to exactly `len` bytes. A length that the compressed bytes cannot have is refused before
/// any memory is taken.
pub(super) fn expand(mut packed: &[u8], len: usize) -> Result<Vec<u8>, Malformed> {
    if len > longest(packed.len()) {
        return Err(Malformed);
    }
    let mut out = Vec::with_capacity(len);
    while let Some((&first, rest)) = packed.split_first() {
        packed = if first < 32 {
            let literal = usize::from(first) + 1;
            out.extend_from_slice(rest.get(..literal).ok_or(Malformed)?);
            &rest[literal..]
        } else {
            copy_back(first, rest, &mut out, len)?
        };
        if out.len() > len {
            return Err(Malformed);
        }
    }
    if out.len() == len {
        Ok(out)
    } else {
        Err(Malformed)
    }
}

/// The most bytes to which `packed` compressed ones expand.
pub(super) fn longest(packed: usize) -> usize {
    packed.saturating_mul(COPY_MAX / 3 + 1)
}

/// Expands a copy of earlier bytes. Returns the compressed bytes behind it.
fn copy_back<'p>(
    first: u8,
    rest: &'p [u8],
    out: &mut Vec<u8>,
    len: usize,
) -> Result<&'p [u8], Malformed> {
    let (more, rest) = match first >> 5 {
        7 => rest
            .split_first()
            .map(|(more, rest)| (usize::from(*more), rest))
            .ok_or(Malformed)?,
        _ => (0, rest),
    };
    let count = usize::from(first >> 5) + more + 2;
    let (low, rest) = rest.split_first().ok_or(Malformed)?;
    let back = (usize::from(first & 0x1f) << 8 | usize::from(*low)) + 1;
    let start = out.len().checked_sub(back).ok_or(Malformed)?;
    if out.len() + count > len {
        return Err(Malformed);
    }
    // The copy may overlap what it writes: a run.
    let mut left = count;
    while left > 0 {
        let now = left.min(out.len() - start);
        out.extend_from_within(start..start + now);
        left -= now;
    }
    Ok(rest)
}
