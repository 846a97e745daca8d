//! An entry of the first tier is a value or an absence, and says whether it may be believed.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tidewheel_time::{Moment, Readings};

use crate::core::tags::Tag;
use crate::core::watch::Watch;

/// The first tier's entry of a key. A weigher sees it.
#[derive(Clone)]
pub struct Held<V> {
    pub(crate) value: Option<V>,
    pub(crate) watch: Arc<Watch>,
    /// The parts that most entries lack, so that these are small.
    pub(crate) more: Option<Arc<More>>,
}

/// The parts that few entries have, or only those of caches that ask for them.
#[derive(Debug)]
pub(crate) struct More {
    pub(crate) tags: Box<[Arc<Tag>]>,
    /// The soft deadline, by the stream's clock.
    pub(crate) soft: Option<Moment>,
    /// The time until which it may be answered in place of an error, and the condition of that.
    pub(crate) kept: Option<Kept>,
    /// True if its tags have no versions that could be believed: it is over when one of them is
    /// known to be.
    pub(crate) is_unversioned: bool,
}

/// The time until which an entry may be answered in place of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Kept {
    /// The end of that time, by the first tier's clock.
    pub(crate) until: Duration,
    /// The number of times that the namespace had been cleared, as far as this process knew.
    pub(crate) cleared: u64,
}

impl More {
    /// Makes the further parts, if there are any.
    pub(crate) fn of(
        tags: Vec<Arc<Tag>>,
        soft: Option<Moment>,
        kept: Option<Kept>,
    ) -> Option<Arc<Self>> {
        let is_needed = !tags.is_empty() || soft.is_some() || kept.is_some();
        is_needed.then(|| {
            Arc::new(Self {
                tags: tags.into(),
                soft,
                kept,
                is_unversioned: false,
            })
        })
    }

    /// The further parts of a value that no engine speaks for.
    pub(crate) fn unversioned(tags: Box<[Arc<Tag>]>, kept: Option<Kept>) -> Option<Arc<Self>> {
        let is_needed = !tags.is_empty() || kept.is_some();
        is_needed.then(|| {
            Arc::new(Self {
                tags,
                soft: None,
                kept,
                is_unversioned: true,
            })
        })
    }

    fn is_any_tag_over(&self) -> bool {
        self.tags.iter().any(|tag| tag.is_replaced())
    }

    fn are_tags_believed(&self, clock: &Readings) -> bool {
        if self.is_unversioned {
            return !self.is_any_tag_over();
        }
        self.tags.iter().all(|tag| tag.is_believed(clock))
    }
}

/// The result of a look at an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Belief {
    /// The entry may be believed, and needs no load.
    Fresh,
    /// The entry may be believed, and somebody is to load it again.
    Soft,
    /// The entry may not be believed.
    None,
}

impl<V> Held<V> {
    /// The value; `None` if it is known that there is none.
    #[must_use]
    pub fn value(&self) -> Option<&V> {
        self.value.as_ref()
    }

    /// The belief in an entry whose watch is believed: that is looked at together with its end.
    #[inline]
    pub(crate) fn belief<'a>(&self, clock: impl FnOnce() -> &'a Readings) -> Belief {
        let Some(more) = &self.more else {
            return Belief::Fresh;
        };
        let clock = clock();
        if !more.are_tags_believed(clock) {
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

    /// The time until which it may be answered in place of an error, if it may be at this time of
    /// the first tier. `cleared`: how often the namespace was cleared.
    pub(crate) fn kept(&self, now: Duration, cleared: u64) -> Option<Kept> {
        let more = self.more.as_ref()?;
        let kept = more.kept?;
        let may_be = now < kept.until && kept.cleared == cleared && !more.is_any_tag_over();
        may_be.then_some(kept)
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
