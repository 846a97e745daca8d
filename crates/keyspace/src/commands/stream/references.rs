//! The rules for the groups' notes of an entry that is deleted: KEEPREF, DELREF, ACKED.

/// The rule for pending entries of groups when an entry is deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum References {
    /// They stay (KEEPREF).
    #[default]
    Keep,
    /// They leave, in all groups (DELREF).
    Delete,
    /// Only an entry is deleted that no group needs any more (ACKED).
    Acked,
}

impl References {
    /// Reads the word.
    pub(super) fn of(word: &[u8]) -> Option<Self> {
        [
            ("KEEPREF", Self::Keep),
            ("DELREF", Self::Delete),
            ("ACKED", Self::Acked),
        ]
        .into_iter()
        .find(|(name, _)| word.eq_ignore_ascii_case(name.as_bytes()))
        .map(|(_, of)| of)
    }
}
