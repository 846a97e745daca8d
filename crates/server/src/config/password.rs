//! The password: compares what a client gives with what is set.
//!
//! Loops keep copies of the settings, and a copy may be one change behind. So a copy never decides
//! who may come in: only [`Live`](super::Live) reads a password, from the settings in force.

/// The password that clients must give; empty if none is needed.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Password(String);

impl Password {
    pub(super) fn new(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// Returns the password as CONFIG GET shows it.
    pub(super) fn text(&self) -> &str {
        &self.0
    }

    /// Returns true if clients must give a password.
    pub(super) fn is_asked(&self) -> bool {
        !self.0.is_empty()
    }

    /// Returns true if `given` is right. The time this takes depends only on the length of `given`.
    /// If no password is set, every one is right, as it is for Redis' default user.
    pub(super) fn admits(&self, given: &[u8]) -> bool {
        !self.is_asked() || same(self.0.as_bytes(), given)
    }
}

impl std::fmt::Debug for Password {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.is_asked() { "set" } else { "none" })
    }
}

fn same(wanted: &[u8], given: &[u8]) -> bool {
    let mut difference = wanted.len() ^ given.len();
    for (i, byte) in given.iter().enumerate() {
        let against = wanted
            .get(i % wanted.len().max(1))
            .copied()
            .unwrap_or_default();
        difference |= usize::from(std::hint::black_box(byte ^ against));
    }
    difference == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_equal_only_as_a_whole() {
        let password = Password::new("secret");
        assert!(password.admits(b"secret"));
        for given in [&b""[..], b"secre", b"secrets", b"Secret", b"secretsecret"] {
            assert!(!password.admits(given));
        }
        assert!(Password::default().admits(b"anything"));
    }

    #[test]
    fn a_password_is_not_printed() {
        assert_eq!(format!("{:?}", Password::new("secret")), "set");
    }
}
