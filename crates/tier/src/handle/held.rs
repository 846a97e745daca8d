//! An entry of the first tier: a value or an absence, and whether it may be believed.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tidewheel_time::{Moment, Readings};

use crate::core::tags::Tag;
use crate::core::watch::Watch;

/// What the first tier keeps of a key. A weigher sees it.
#[derive(Clone)]
pub struct Held<V> {
    pub(crate) value: Option<V>,
    pub(crate) watch: Arc<Watch>,
    pub(crate) tags: Option<Arc<[Arc<Tag>]>>,
    /// The soft deadline, by the plane's clock.
    pub(crate) soft: Moment,
    /// Until when it may be answered in place of an error, by the first tier's clock.
    pub(crate) kept_until: Duration,
}

/// What a look at an entry has shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Belief {
    /// It may be believed, and needs no load.
    Fresh,
    /// It may be believed, and somebody is to load it again.
    Soft,
    /// It may not be believed.
    None,
}

impl<V> Held<V> {
    /// The value; `None` if it is known that there is none.
    #[must_use]
    pub fn value(&self) -> Option<&V> {
        self.value.as_ref()
    }

    #[inline]
    pub(crate) fn belief(&self, clock: &Readings) -> Belief {
        if !self.is_believed(clock) {
            return Belief::None;
        }
        if self.soft != Moment(u64::MAX) && clock.now() >= self.soft {
            return Belief::Soft;
        }
        Belief::Fresh
    }

    #[inline]
    pub(crate) fn is_believed(&self, clock: &Readings) -> bool {
        self.watch.is_believed(clock)
            && self
                .tags
                .as_ref()
                .is_none_or(|tags| tags.iter().all(|tag| tag.is_believed(clock)))
    }

    /// Whether it may be answered in place of an error at this time of the first tier.
    pub(crate) fn is_kept(&self, now: Duration) -> bool {
        let mut tags = self.tags.iter().flat_map(|tags| tags.iter());
        now < self.kept_until && !tags.any(|tag| tag.is_replaced())
    }
}

impl<V> fmt::Debug for Held<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Held")
            .field("is_absent", &self.value.is_none())
            .field("watch", &self.watch)
            .finish_non_exhaustive()
    }
}
