//! Where a command's keys are, and what it does with them.

/// Where the keys are: from argument `first` to `last` in steps of `step`; all zero without keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeySpec {
    /// The first key's position.
    pub first: u32,
    /// The last key's position; a negative one counts from the end (−1 is the last argument).
    pub last: i32,
    /// The distance between keys.
    pub step: u32,
    /// What is done to them: one for each key, and the last one for all that follow.
    pub uses: &'static [KeyUse],
}

impl KeySpec {
    /// No keys.
    pub const NONE: Self = Self {
        first: 0,
        last: 0,
        step: 0,
        uses: &[],
    };

    /// One key.
    pub(crate) const fn one(position: u32, uses: &'static [KeyUse]) -> Self {
        Self {
            first: position,
            last: position as i32,
            step: 1,
            uses,
        }
    }

    /// All arguments from the first to the end, in steps.
    pub(crate) const fn all(step: u32, uses: &'static [KeyUse]) -> Self {
        Self {
            first: 1,
            last: -1,
            step,
            uses,
        }
    }

    /// Two keys.
    pub(crate) const fn two(uses: &'static [KeyUse]) -> Self {
        Self {
            first: 1,
            last: 2,
            step: 1,
            uses,
        }
    }

    /// The positions of the keys in a call with `n_args` arguments.
    pub fn positions(&self, n_args: usize) -> impl Iterator<Item = usize> + use<> {
        let end = if self.step == 0 {
            0
        } else if self.last < 0 {
            (n_args + 1).saturating_sub(self.last.unsigned_abs() as usize)
        } else {
            (self.last as usize + 1).min(n_args)
        };
        (self.first as usize..end).step_by(self.step.max(1) as usize)
    }
}

/// What a command does with a key, in COMMAND INFO's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyUse {
    /// Flags: RO, RW, OW or RM, then access, update, insert or delete.
    pub flags: &'static [&'static str],
}
