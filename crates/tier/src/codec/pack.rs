//! Large values are compressed.

use std::borrow::Cow;

use super::CodecError;

/// The largest value that a compressed one may claim to be.
#[cfg(feature = "lz4")]
const UNPACKED_MAX: usize = 512 << 20;

/// The bytes to send, and whether they are compressed: above a size, and if they get smaller.
#[cfg(feature = "lz4")]
pub(crate) fn pack(bytes: Vec<u8>, above: Option<usize>) -> (Vec<u8>, bool) {
    if above.is_none_or(|above| bytes.len() <= above) {
        return (bytes, false);
    }
    let packed = lz4_flex::compress_prepend_size(&bytes);
    if packed.len() < bytes.len() {
        (packed, true)
    } else {
        (bytes, false)
    }
}

#[cfg(not(feature = "lz4"))]
pub(crate) fn pack(bytes: Vec<u8>, _: Option<usize>) -> (Vec<u8>, bool) {
    (bytes, false)
}

/// The bytes that were packed.
#[cfg(feature = "lz4")]
pub(crate) fn unpack(bytes: &[u8], is_packed: bool) -> Result<Cow<'_, [u8]>, CodecError> {
    if !is_packed {
        return Ok(Cow::Borrowed(bytes));
    }
    let (size, rest) = lz4_flex::block::uncompressed_size(bytes)?;
    // LZ4 cannot make one byte of more than 255.
    if size > UNPACKED_MAX || size / 255 > rest.len() {
        return Err("a compressed value claims to be too large".into());
    }
    Ok(Cow::Owned(lz4_flex::decompress(rest, size)?))
}

#[cfg(not(feature = "lz4"))]
pub(crate) fn unpack(bytes: &[u8], is_packed: bool) -> Result<Cow<'_, [u8]>, CodecError> {
    if is_packed {
        return Err("a compressed value needs the feature `lz4`".into());
    }
    Ok(Cow::Borrowed(bytes))
}
