//! What becomes of the groups' notes of an entry that is deleted: KEEPREF, DELREF, ACKED.

use tidewheel_collections::{Stream, StreamId};

/// What becomes of pending entries of groups when an entry is deleted.
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

    /// Deletes an entry by this rule, if it may be. Returns whether it did.
    pub(super) fn delete(self, stream: &mut Stream, id: StreamId) -> bool {
        if self == Self::Acked && stream.groups.needs(id) {
            return false;
        }
        let deleted = stream.log.delete(id);
        if deleted && self == Self::Delete {
            stream.groups.forget(id);
        }
        deleted
    }
}
