//! The soft deadline of an entry, and the tick from which its next value is wanted.

/// A soft deadline: the tick from which on an entry is no longer fresh, or none. It does not move
/// with the deadline.
///
/// Once an entry is no longer fresh, its next value is wanted: at once, or after a while
/// ([`again_at`](Self::again_at)).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Soft(u64);

/// This bit says that the soft deadline is past. Ticks that are deadlines are smaller.
const PAST: u64 = 1 << 63;

impl Soft {
    /// Fresh to the end.
    pub const NEVER: Self = Self(0);

    /// As it is kept; 0 for [`NEVER`](Self::NEVER).
    #[inline]
    pub(crate) fn raw(self) -> u64 {
        self.0
    }

    #[inline]
    pub(crate) fn from_raw(raw: u64) -> Self {
        Self(raw)
    }

    /// No longer fresh from this tick on.
    #[inline]
    #[must_use]
    pub fn at(tick: u64) -> Self {
        // 0 stands for no soft deadline, and takes no memory. Tick 0 is a tick like any other.
        Self(tick.saturating_add(1).min(PAST - 1))
    }

    /// No longer fresh, but the next value is wanted only from this tick on.
    #[must_use]
    pub fn again_at(tick: u64) -> Self {
        Self(Self::at(tick).0 | PAST)
    }

    /// The tick from which on the entry is no longer fresh, if there is one.
    #[inline]
    #[must_use]
    pub fn tick(self) -> Option<u64> {
        if self.is_put_off() {
            Some(0)
        } else {
            self.due()
        }
    }

    /// The tick from which on the next value is wanted, if there is one.
    #[inline]
    #[must_use]
    pub fn due(self) -> Option<u64> {
        (self.0 & !PAST).checked_sub(1)
    }

    /// Returns whether it was made by [`again_at`](Self::again_at).
    #[inline]
    #[must_use]
    pub fn is_put_off(self) -> bool {
        self.0 & PAST != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_off_is_past_and_not_due() {
        for tick in [0, 1, 1 << 40, 1 << 50] {
            let (at, again) = (Soft::at(tick), Soft::again_at(tick));
            assert_eq!((at.tick(), at.due()), (Some(tick), Some(tick)));
            assert_eq!((again.tick(), again.due()), (Some(0), Some(tick)));
            assert!(again.is_put_off() && !at.is_put_off());
        }
        assert_eq!((Soft::NEVER.tick(), Soft::NEVER.due()), (None, None));
    }

    #[test]
    fn ticks_beyond_all_deadlines_are_not_mistaken() {
        assert!(!Soft::at(u64::MAX).is_put_off());
        assert!(Soft::at(u64::MAX).tick() > Some(1 << 60));
        assert!(Soft::again_at(u64::MAX).due() > Some(1 << 60));
    }
}
