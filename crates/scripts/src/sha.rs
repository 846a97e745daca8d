//! The name of a script: the SHA-1 of its body.

use std::fmt;
use std::hash::{Hash, Hasher};

use sha1::{Digest, Sha1};

/// A script's name: the SHA-1 of its body as 40 lower-case hexadecimal digits.
///
/// ```
/// use tidewheel_scripts::Sha;
///
/// let sha = Sha::of(b"return 1");
/// assert_eq!(sha.as_bytes(), b"e0e1f9fabfc9d4800c877a703b823ac0578ff8db");
/// assert_eq!(Sha::parse(b"E0E1F9FABFC9D4800C877A703B823AC0578FF8DB"), Some(sha));
/// assert_eq!(Sha::parse(b"e0e1"), None);
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Sha([u8; 40]);

impl Hash for Sha {
    /// A part of it tells them apart.
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write(&self.0[..16]);
    }
}

impl Sha {
    /// The name of a body.
    #[must_use]
    pub fn of(body: &[u8]) -> Self {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut digits = [0; 40];
        for (pair, byte) in digits.chunks_exact_mut(2).zip(Sha1::digest(body)) {
            pair[0] = DIGITS[usize::from(byte >> 4)];
            pair[1] = DIGITS[usize::from(byte & 15)];
        }
        Self(digits)
    }

    /// Reads a name in upper or lower case.
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<Self> {
        let digits: [u8; 40] = text.try_into().ok()?;
        let all = digits.iter().all(u8::is_ascii_hexdigit);
        all.then(|| Self(digits.map(|digit| digit.to_ascii_lowercase())))
    }

    /// The digits.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Display for Sha {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0
            .iter()
            .try_for_each(|digit| write!(f, "{}", char::from(*digit)))
    }
}

impl fmt::Debug for Sha {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sha({self})")
    }
}
