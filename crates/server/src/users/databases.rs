//! The databases of a selector.

use std::collections::BTreeSet;

use super::rule_error::{PARTS_MAX, RuleError};

/// The selected database of a client, and how many there are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    pub(crate) db: u32,
    pub(crate) databases: usize,
}

/// Databases, or all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Databases {
    All,
    These(BTreeSet<u32>),
}

impl Databases {
    pub(super) const NONE: Self = Self::These(BTreeSet::new());

    /// Reads numbers with commas between them. They may be of databases that the server has not.
    pub(super) fn read(list: &[u8]) -> Result<Self, RuleError> {
        let mut numbers = BTreeSet::new();
        for number in list.split(|byte| *byte == b',') {
            let (is_negative, digits) = match number {
                [sign @ (b'+' | b'-'), digits @ ..] => (*sign == b'-', digits),
                digits => (false, digits),
            };
            if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
                return Err(RuleError::Syntax);
            }
            let add =
                |sum: u32, digit: &u8| sum.checked_mul(10)?.checked_add((digit - b'0').into());
            let known = digits.iter().try_fold(0, add);
            let known = known.filter(|db| *db <= i32::MAX as u32 && !(is_negative && *db > 0));
            numbers.insert(known.ok_or(RuleError::DatabaseOutOfRange)?);
            if numbers.len() > PARTS_MAX {
                return Err(RuleError::TooMany);
            }
        }
        Ok(Self::These(numbers))
    }

    pub(super) fn allow(&self, db: u32) -> bool {
        match self {
            Self::All => true,
            Self::These(numbers) => numbers.contains(&db),
        }
    }

    /// True if each of a server's databases is allowed.
    pub(super) fn allow_each_of(&self, databases: usize) -> bool {
        let mut all = 0..u32::try_from(databases).unwrap_or(u32::MAX);
        *self == Self::All || all.all(|db| self.allow(db))
    }

    /// The rule that makes them; empty for none.
    pub(super) fn rule(&self) -> String {
        match self {
            Self::All => "alldbs".to_owned(),
            Self::These(numbers) if numbers.is_empty() => String::new(),
            Self::These(numbers) => {
                let numbers: Vec<_> = numbers.iter().map(u32::to_string).collect();
                format!("db={}", numbers.join(","))
            }
        }
    }
}
