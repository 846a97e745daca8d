//! The password of the default user, as the setting `requirepass` has it. The user has its hash.

/// The text of `requirepass`; empty if none is asked.
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
}

impl std::fmt::Debug for Password {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.0.is_empty() { "none" } else { "set" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_not_printed() {
        assert_eq!(format!("{:?}", Password::new("secret")), "set");
    }
}
