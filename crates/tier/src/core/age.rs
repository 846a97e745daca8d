//! The age of a value follows from the time that the engine says it has left.

use std::time::Duration;

use super::envelope::Envelope;

/// The age of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Age {
    /// Before its soft deadline.
    Fresh,
    /// Past it, and before its end.
    Soft,
    /// Past its end, and kept for a loader that fails.
    Kept,
}

/// The times that are left of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Left {
    pub(crate) age: Age,
    /// The time until its end.
    pub(crate) hard: Duration,
    /// The time until its soft deadline, if it has one.
    pub(crate) soft: Option<Duration>,
    /// The time for which it is kept after its end.
    pub(crate) kept: Duration,
}

impl Left {
    /// Computes them by the engine's time to live, which includes the time that the value is kept.
    pub(crate) fn of(envelope: &Envelope<'_>, pttl_ms: u64) -> Self {
        let (grace, kept) = (u64::from(envelope.grace_ms), u64::from(envelope.kept_ms));
        let age = if pttl_ms <= kept {
            Age::Kept
        } else if grace > 0 && pttl_ms <= kept + grace {
            Age::Soft
        } else {
            Age::Fresh
        };
        let soft = Duration::from_millis(pttl_ms.saturating_sub(kept + grace));
        Self {
            age,
            hard: Duration::from_millis(pttl_ms.saturating_sub(kept)),
            soft: (grace > 0).then_some(soft),
            kept: Duration::from_millis(kept),
        }
    }

    /// The time after the question for which the first tier may keep it. A millisecond less than
    /// the engine says: the first tier's deadlines are rounded up.
    pub(crate) fn local(&self) -> Duration {
        self.hard.saturating_sub(Duration::from_millis(1))
    }
}
