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
    /// What most entries have not: so these are small.
    pub(crate) more: Option<Arc<More>>,
}

/// What few entries have, or only those of caches that ask for it.
#[derive(Debug)]
pub(crate) struct More {
    pub(crate) tags: Box<[Arc<Tag>]>,
    /// The soft deadline, by the plane's clock.
    pub(crate) soft: Option<Moment>,
    /// Until when it may be answered in place of an error, by the first tier's clock.
    pub(crate) kept_until: Option<Duration>,
}

impl More {
    /// Nothing, if there is nothing.
    pub(crate) fn of(
        tags: Vec<Arc<Tag>>,
        soft: Option<Moment>,
        kept_until: Option<Duration>,
    ) -> Option<Arc<Self>> {
        let is_needed = !tags.is_empty() || soft.is_some() || kept_until.is_some();
        is_needed.then(|| {
            Arc::new(Self {
                tags: tags.into(),
                soft,
                kept_until,
            })
        })
    }
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

    /// Whether it may be believed, of an entry whose watch is: that is looked at together with its end.
    #[inline]
    pub(crate) fn belief<'a>(&self, clock: impl FnOnce() -> &'a Readings) -> Belief {
        let Some(more) = &self.more else {
            return Belief::Fresh;
        };
        let clock = clock();
        if !more.tags.iter().all(|tag| tag.is_believed(clock)) {
            return Belief::None;
        }
        if more.soft.is_some_and(|soft| clock.now() >= soft) {
            return Belief::Soft;
        }
        Belief::Fresh
    }

    pub(crate) fn is_believed(&self, clock: &Readings) -> bool {
        self.watch.is_believed(clock) && self.belief(|| clock) != Belief::None
    }

    /// Until when it may be answered in place of an error, if it may be at this time of the first tier.
    pub(crate) fn kept_until(&self, now: Duration) -> Option<Duration> {
        let more = self.more.as_ref()?;
        let is_valid = !more.tags.iter().any(|tag| tag.is_replaced());
        more.kept_until.filter(|until| is_valid && now < *until)
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
