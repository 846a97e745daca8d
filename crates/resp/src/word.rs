//! Up to eight bytes as one number: so short names and numbers are compared and read at once.

/// Up to eight bytes as a little-endian word, zeros above; `None` for more.
#[inline]
#[must_use]
pub fn short_word(bytes: &[u8]) -> Option<u64> {
    // Two overlapping loads cover every length without a loop.
    let len = bytes.len();
    if let (Some(low), Some(high)) = (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        if len > 8 {
            return None;
        }
        let high = u64::from(u32::from_le_bytes(*high)) << (8 * (len - 4));
        return Some(u64::from(u32::from_le_bytes(*low)) | high);
    }
    Some(match *bytes {
        [] => 0,
        [a] => u64::from(a),
        [a, b] => u64::from(u16::from_le_bytes([a, b])),
        [a, b, c, ..] => u64::from(u32::from_le_bytes([a, b, c, 0])),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_has_the_bytes_in_their_order() {
        for len in 0..=8_usize {
            let bytes: Vec<u8> = (1..=len as u8).map(|byte| byte | 0x80).collect();
            let mut padded = [0; 8];
            padded[..len].copy_from_slice(&bytes);
            assert_eq!(short_word(&bytes), Some(u64::from_le_bytes(padded)));
        }
        assert_eq!(short_word(&[1; 9]), None);
    }
}
