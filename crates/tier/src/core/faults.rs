//! Tests switch a rule off here, to see that they would notice.

/// True if a rule is switched off. It never is, outside of this crate's own tests: then it is a
/// constant.
macro_rules! fault {
    ($rule:ident) => {
        $crate::core::faults::is_planted($crate::core::faults::Fault::$rule)
    };
}
pub(crate) use fault;

/// A rule that is switched off, by its number in `core/mod.rs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(
    dead_code,
    reason = "some are only planted by the tests' own engine, and none outside of tests"
)]
pub(crate) enum Fault {
    H1,
    H2,
    H3,
    H4,
    H5,
    H6,
    H7,
    H8,
    H9,
    H10,
    H11,
    H13,
    H14,
}

#[cfg(not(test))]
#[inline(always)]
pub(crate) const fn is_planted(_: Fault) -> bool {
    false
}

/// The error of a machine's clock, for a test that compares two.
#[cfg(not(test))]
pub(crate) const fn skew() -> std::time::Duration {
    std::time::Duration::ZERO
}

#[cfg(test)]
pub(crate) use planted::{is_planted, planted, set_skew, skew};

#[cfg(test)]
mod planted {
    use std::cell::Cell;
    use std::time::Duration;

    use super::Fault;

    thread_local! {
        static PLANTED: Cell<Option<Fault>> = const { Cell::new(None) };
        static SKEW: Cell<Duration> = const { Cell::new(Duration::ZERO) };
    }

    pub(crate) fn skew() -> Duration {
        SKEW.get()
    }

    pub(crate) fn set_skew(skew: Duration) {
        SKEW.set(skew);
    }

    pub(crate) fn is_planted(fault: Fault) -> bool {
        PLANTED.get() == Some(fault)
    }

    /// Runs something on this thread with a rule switched off.
    pub(crate) fn planted<T>(fault: Option<Fault>, run: impl FnOnce() -> T) -> T {
        PLANTED.set(fault);
        let result = run();
        PLANTED.set(None);
        result
    }
}
