//! Passwords: kept and compared as SHA-256.

use sha2::{Digest, Sha256};

/// A password's SHA-256.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct PasswordHash([u8; 32]);

impl PasswordHash {
    pub(super) fn of(password: &[u8]) -> Self {
        Self(Sha256::digest(password).into())
    }

    /// Reads 64 digits, in lower case.
    pub(super) fn from_hex(text: &[u8]) -> Option<Self> {
        let digit = |byte: u8| match byte {
            b'0'..=b'9' => Some(byte - b'0'),
            b'a'..=b'f' => Some(byte - b'a' + 10),
            _ => None,
        };
        let mut hash = [0; 32];
        if text.len() != 64 {
            return None;
        }
        for (byte, pair) in hash.iter_mut().zip(text.chunks_exact(2)) {
            *byte = digit(pair[0])? << 4 | digit(pair[1])?;
        }
        Some(Self(hash))
    }

    pub(super) fn to_hex(self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// True if both are the same. The time that this takes tells nothing about where they differ.
    pub(super) fn is(self, other: Self) -> bool {
        let differences = self.0.iter().zip(other.0).map(|(a, b)| a ^ b);
        let all = differences.fold(0, |all, byte| std::hint::black_box(all | byte));
        all == 0
    }
}

impl std::fmt::Debug for PasswordHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("(redacted)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_written_and_read_back() {
        // FIPS 180-2, appendix B.1.
        let hex = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        let hash = PasswordHash::of(b"abc");
        assert_eq!(hash.to_hex(), hex);
        let read = PasswordHash::from_hex(hex.as_bytes());
        assert!(read.is_some_and(|read| read.is(hash)));
        for wrong in [&hex[1..], &hex.to_uppercase(), &hex.replace('b', "g")] {
            assert!(
                PasswordHash::from_hex(wrong.as_bytes()).is_none(),
                "{wrong}"
            );
        }
        assert!(!hash.is(PasswordHash::of(b"abd")));
        assert_eq!(format!("{hash:?}"), "(redacted)");
    }
}
