//! Patterns of keys and of channels.

use tidewheel_keyspace::{KeyUse, glob_match};

use super::rule_error::{PARTS_MAX, RuleError};

/// Patterns of channels, or all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ChannelPatterns {
    All,
    These(Vec<Vec<u8>>),
}

impl ChannelPatterns {
    pub(super) const NONE: Self = Self::These(Vec::new());

    /// Adds a pattern.
    pub(super) fn add(&mut self, pattern: &[u8]) -> Result<(), RuleError> {
        let Self::These(patterns) = self else {
            return Err(RuleError::ChannelAfterAll);
        };
        if !patterns.iter().any(|known| known == pattern) {
            if patterns.len() == PARTS_MAX {
                return Err(RuleError::TooMany);
            }
            patterns.push(pattern.to_vec());
        }
        Ok(())
    }

    pub(super) fn allow(&self, channel: &[u8]) -> bool {
        match self {
            Self::All => true,
            Self::These(patterns) => patterns.iter().any(|pattern| glob_match(pattern, channel)),
        }
    }

    /// True if somebody may listen to a pattern: it must be one of these, letter by letter.
    pub(super) fn allow_pattern(&self, wanted: &[u8]) -> bool {
        match self {
            Self::All => true,
            Self::These(patterns) => patterns.iter().any(|pattern| pattern == wanted),
        }
    }

    /// The rules that make them.
    pub(super) fn rules(&self) -> Vec<Vec<u8>> {
        match self {
            Self::All => vec![b"&*".to_vec()],
            Self::These(patterns) => (patterns.iter())
                .map(|pattern| [b"&", &pattern[..]].concat())
                .collect(),
        }
    }
}

/// A pattern of keys, and what may be done with them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KeyPattern {
    pub(super) reads: bool,
    pub(super) writes: bool,
    pub(super) pattern: Vec<u8>,
}

/// Patterns of keys, or all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum KeyPatterns {
    All,
    These(Vec<KeyPattern>),
}

impl KeyPatterns {
    pub(super) const NONE: Self = Self::These(Vec::new());

    /// Adds a pattern.
    pub(super) fn add(&mut self, new: KeyPattern) -> Result<(), RuleError> {
        let Self::These(patterns) = self else {
            return Err(RuleError::KeyAfterAll);
        };
        let is_full = patterns.len() == PARTS_MAX;
        let known = patterns
            .iter_mut()
            .find(|known| known.pattern == new.pattern);
        match known {
            Some(known) => {
                known.reads |= new.reads;
                known.writes |= new.writes;
            }
            None if is_full => return Err(RuleError::TooMany),
            None => patterns.push(new),
        }
        Ok(())
    }

    pub(super) fn allow(&self, key: &[u8], used: KeyUse) -> bool {
        self.any(used, |pattern| glob_match(pattern, key))
    }

    /// True if any key may be read.
    pub(super) fn allow_reading_all(&self) -> bool {
        let used = KeyUse {
            at: 0,
            reads: true,
            writes: false,
        };
        self.any(used, |pattern| pattern == b"*")
    }

    fn any(&self, used: KeyUse, fits: impl Fn(&[u8]) -> bool) -> bool {
        let Self::These(patterns) = self else {
            return true;
        };
        let may = |pattern: &&KeyPattern| {
            (pattern.reads || !used.reads) && (pattern.writes || !used.writes)
        };
        let mut allowed = patterns.iter().filter(may);
        allowed.any(|allowed| fits(&allowed.pattern))
    }

    /// The rules that make them.
    pub(super) fn rules(&self) -> Vec<Vec<u8>> {
        let rule = |pattern: &KeyPattern| {
            let start = match (pattern.reads, pattern.writes) {
                (true, false) => &b"%R~"[..],
                (false, true) => b"%W~",
                // By itself `~*` is the rule behind which there are no others.
                _ if pattern.pattern == b"*" => b"%RW~",
                _ => b"~",
            };
            [start, &pattern.pattern].concat()
        };
        match self {
            Self::All => vec![b"~*".to_vec()],
            Self::These(patterns) => patterns.iter().map(rule).collect(),
        }
    }
}
