//! The id of an entry: a time in milliseconds, and a number within it.

/// The id of an entry. Ids only grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct StreamId {
    /// Wall time in milliseconds, as a rule.
    pub ms: u64,
    /// The number within the millisecond.
    pub seq: u64,
}

impl StreamId {
    /// The lowest id, which no entry has.
    pub const MIN: Self = Self { ms: 0, seq: 0 };
    /// The highest id.
    pub const MAX: Self = Self {
        ms: u64::MAX,
        seq: u64::MAX,
    };

    /// An id of its two numbers.
    #[must_use]
    pub fn new(ms: u64, seq: u64) -> Self {
        Self { ms, seq }
    }

    /// The id behind it; `None` behind the highest.
    #[must_use]
    pub fn next(self) -> Option<Self> {
        match self.seq.checked_add(1) {
            Some(seq) => Some(Self { seq, ..self }),
            None => self.ms.checked_add(1).map(|ms| Self { ms, seq: 0 }),
        }
    }

    /// The id before it; `None` before the lowest.
    #[must_use]
    pub fn previous(self) -> Option<Self> {
        match self.seq.checked_sub(1) {
            Some(seq) => Some(Self { seq, ..self }),
            None => self.ms.checked_sub(1).map(|ms| Self { ms, seq: u64::MAX }),
        }
    }

    /// The sixteen bytes of the public form, the highest first.
    #[must_use]
    pub fn to_bytes(self) -> [u8; 16] {
        (u128::from(self.ms) << 64 | u128::from(self.seq)).to_be_bytes()
    }

    /// The id of sixteen such bytes.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        let all = u128::from_be_bytes(bytes);
        Self {
            ms: (all >> 64) as u64,
            seq: all as u64,
        }
    }
}

impl std::fmt::Display for StreamId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{}", self.ms, self.seq)
    }
}
