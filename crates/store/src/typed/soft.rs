//! Until when an entry is fresh.

/// A soft deadline: the tick from which on an entry is no longer fresh, or none. It does not move with the
/// deadline.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Soft(u64);

impl Soft {
    /// Fresh to the end.
    pub const NEVER: Self = Self(0);

    /// No longer fresh from this tick on.
    #[inline]
    #[must_use]
    pub fn at(tick: u64) -> Self {
        // 0 stands for no soft deadline, and takes no memory. Tick 0 is a tick like any other.
        Self(tick.saturating_add(1))
    }

    /// The tick, if there is one.
    #[inline]
    #[must_use]
    pub fn tick(self) -> Option<u64> {
        self.0.checked_sub(1)
    }
}
