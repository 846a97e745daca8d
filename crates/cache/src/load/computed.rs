//! The result of a closure that changes a key.

use std::convert::Infallible;

use crate::stats::Counters;

/// The change that [`Entry::try_compute`](crate::Entry::try_compute) has made to a key.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Computed<V> {
    /// There was no value, and there is none. (Or the closure wanted one removed that had gone by
    /// then.)
    Absent,
    /// There is this value, as before.
    Kept(V),
    /// There was no value, and now there is this one. (Or there was one, which had gone before it
    /// could be replaced.)
    Inserted(V),
    /// There was another value.
    Replaced {
        /// The old value.
        old: V,
        /// The new value.
        new: V,
    },
    /// There was this value, and there is none.
    Removed(V),
    /// This value was not stored, and there is none: [`Entry::compute`](crate::Entry::compute) says
    /// when.
    NotStored(V),
}

impl<V> Computed<V> {
    /// The value that is there afterwards.
    #[must_use]
    pub fn into_value(self) -> Option<V> {
        self.into_parts().0
    }

    /// The value that was removed or replaced.
    #[must_use]
    pub fn into_old(self) -> Option<V> {
        match self {
            Self::Replaced { old, .. } | Self::Removed(old) => Some(old),
            _ => None,
        }
    }

    /// The value that is there afterwards, and the one that is not.
    fn into_parts(self) -> (Option<V>, Option<V>) {
        match self {
            Self::Absent => (None, None),
            Self::Kept(value) | Self::Inserted(value) => (Some(value), None),
            Self::Replaced { old, new } => (Some(new), Some(old)),
            Self::Removed(value) | Self::NotStored(value) => (None, Some(value)),
        }
    }

    /// The value that is there afterwards; the other one is dropped, whatever that does.
    pub(crate) fn value(self, counters: &Counters) -> Option<V> {
        let (value, other) = self.into_parts();
        counters.discard(other);
        value
    }

    /// A value that was stored.
    pub(super) fn stored(new: V, old: Option<V>) -> Self {
        match old {
            Some(old) => Self::Replaced { old, new },
            None => Self::Inserted(new),
        }
    }
}

/// Unwraps the result of a closure that cannot fail.
pub(crate) fn sure<T>(done: Result<T, Infallible>) -> T {
    let Ok(done) = done;
    done
}
