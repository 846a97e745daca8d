//! Tags: names by which many entries are invalidated at once, in O(1).
//!
//! A tag is a *leaf*: a count of its invalidations. A set of tags is a chain of *pairs*, each of a
//! smaller set and one more leaf. Equal sets are one node.
//!
//! An entry keeps a *label*: the number of its set's node, and the sum of the leaves' counts when
//! the label was made. An example: tag `a` was invalidated twice and tag `b` never, so a label for
//! both has the sum 2. Somebody invalidates `b`. The sum is 3 now, so the label is no longer
//! current, and the entry counts as invalidated. Counts only grow, so the sums are equal exactly
//! when none of the tags was invalidated since the label was made. So an entry whose label was made
//! before an invalidation counts as stored before it, even if it was stored after.
//!
//! A label has the low 32 bits of the sum. An old label would count as current again if the entry's
//! own tags were invalidated 2^32 times before a sweep finds the entry.
//!
//! Readers load two atomics for the usual entry with one tag and take no lock. Entries without tags
//! pay nothing. Nodes are counted: one that no entry and no pair refers to is reused.
//!
//! Only [`Lifetime::tag`](crate::Lifetime::tag) names the code behind this: a program whose entries
//! have no tags does not contain it.

mod graph;
mod names;
mod nodes;

use std::cell::Cell;
use std::fmt;
use std::hash::BuildHasher;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

#[cfg(feature = "serde")]
use foldhash::fast::RandomState;

use crate::sync::{AtomicU64, Ordering::Relaxed};

#[cfg(feature = "serde")]
pub(crate) use graph::TAGS_PER_ENTRY_MAX;
use graph::TagGraph;

/// The tags of one cache; nothing before an entry has one.
pub(crate) struct Tags {
    index: OnceLock<Box<dyn TagIndex>>,
    /// Uses that are no entry's, nor about to be. See [`LentTags`].
    lent: AtomicU64,
}

/// The index in which entries' tags are looked up.
pub(crate) trait TagIndex: Send + Sync {
    /// The label that an entry with these tags keeps, used once.
    fn label_of(&self, tags: &[&str]) -> u64;

    fn is_current(&self, label: u64) -> bool;

    fn keep(&self, label: u64);

    fn release(&self, label: u64);

    /// The label of an entry whose tags cannot be told apart.
    #[cfg(feature = "serde")]
    fn label_of_any(&self) -> u64;

    /// The label of a tag that entries have, used once more.
    fn label_of_known(&self, tag: &str) -> Option<u64>;

    /// Invalidates every entry whose label was made before; `false` when there is none. O(1).
    fn invalidate(&self, tag: &str) -> bool;

    /// The names of an entry's tags; `None` if they cannot be told apart.
    #[cfg(feature = "serde")]
    fn names(&self, label: u64) -> Option<Vec<String>>;

    /// Returns whether an entry has the tag of `leaf`. It is not known for an entry with too many
    /// tags.
    fn has(&self, label: u64, leaf: u64) -> bool;

    /// Panics if a count is wrong: `labels` are those of all entries. For tests.
    fn validate(&self, labels: &mut dyn Iterator<Item = u64>, lent: u64);
}

/// Makes what tags are looked up in.
pub(crate) type NewTagIndex = fn() -> Box<dyn TagIndex>;

/// The only implementation. A program that names it contains it.
pub(crate) fn tag_index<S>() -> Box<dyn TagIndex>
where
    S: BuildHasher + Default + Send + Sync + 'static,
{
    Box::new(TagGraph::<S>::new())
}

/// Tags that a caller gives an entry, and what they are looked up in. Mostly there are none: then
/// it is quickly dropped.
#[derive(Clone, Default)]
pub(crate) struct GivenTags(Option<Box<TagList>>);

#[derive(Clone)]
struct TagList {
    names: Vec<Arc<str>>,
    index: NewTagIndex,
}

impl GivenTags {
    pub(crate) fn push(&mut self, tag: Arc<str>, index: NewTagIndex) {
        let names = self.0.get_or_insert_with(|| {
            Box::new(TagList {
                names: Vec::new(),
                index,
            })
        });
        names.names.push(tag);
    }
}

impl Deref for GivenTags {
    type Target = [Arc<str>];

    fn deref(&self) -> &[Arc<str>] {
        self.0.as_ref().map_or(&[], |given| &given.names)
    }
}

impl PartialEq for GivenTags {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for GivenTags {}

impl fmt::Debug for GivenTags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// A use of an entry's tags, for as long as the entry is on its way: what is not passed on to the
/// entry is given back, also when user code panics in between.
pub(crate) struct HeldTags<'a> {
    tags: &'a Tags,
    label: Cell<u64>,
}

impl HeldTags<'_> {
    #[inline]
    pub(crate) fn label(&self) -> u64 {
        self.label.get()
    }

    /// An entry has the use from now on, in the store or among those that have left.
    #[inline]
    pub(crate) fn pass_on(&self) -> u64 {
        self.label.take()
    }
}

impl Drop for HeldTags<'_> {
    #[inline]
    fn drop(&mut self) {
        self.tags.release(self.label());
    }
}

/// A use of tags by something other than an entry, perhaps for long: a refresh, or a scan of
/// entries.
pub(crate) struct LentTags<'a> {
    tags: &'a Tags,
    label: u64,
}

impl LentTags<'_> {
    pub(crate) fn label(&self) -> u64 {
        self.label
    }
}

impl Drop for LentTags<'_> {
    fn drop(&mut self) {
        let is_some = self.label != 0;
        self.tags.lent.fetch_sub(is_some.into(), Relaxed);
        self.tags.release(self.label);
    }
}

impl Tags {
    pub(crate) fn new() -> Self {
        Self {
            index: OnceLock::new(),
            lent: AtomicU64::new(0),
        }
    }

    /// Holds tags for an entry that is about to be stored with them.
    #[inline]
    pub(crate) fn hold(&self, tags: &GivenTags) -> HeldTags<'_> {
        self.held(match &tags.0 {
            None => 0,
            Some(given) => self.label_of(&given.names, given.index),
        })
    }

    /// Holds no tags, for an entry without any.
    #[inline]
    pub(crate) fn hold_none(&self) -> HeldTags<'_> {
        self.held(0)
    }

    fn label_of<T: AsRef<str>>(&self, tags: &[T], index: NewTagIndex) -> u64 {
        let names: Vec<&str> = tags.iter().map(AsRef::as_ref).collect();
        self.index.get_or_init(index).label_of(&names)
    }

    /// Holds the tags of an entry that comes from a snapshot.
    #[cfg(feature = "serde")]
    pub(crate) fn hold_names(&self, tags: &[String]) -> HeldTags<'_> {
        self.held(match tags.is_empty() {
            true => 0,
            false => self.label_of(tags, tag_index::<RandomState>),
        })
    }

    /// Holds the label of an entry whose tags cannot be told apart.
    #[cfg(feature = "serde")]
    pub(crate) fn hold_any(&self) -> HeldTags<'_> {
        self.held(
            self.index
                .get_or_init(tag_index::<RandomState>)
                .label_of_any(),
        )
    }

    /// Holds the tags of a stored entry for another one that is about to be stored with them.
    #[inline]
    pub(crate) fn hold_again(&self, label: u64) -> HeldTags<'_> {
        self.keep(label);
        self.held(label)
    }

    /// Lends a tag's leaf to a caller that looks for entries with this tag; `None` when no entry
    /// has it.
    pub(crate) fn lend_known(&self, tag: &str) -> Option<LentTags<'_>> {
        let label = self.index()?.label_of_known(tag)?;
        Some(self.lend(label))
    }

    /// Lends the tags of a stored entry.
    pub(crate) fn lend_again(&self, label: u64) -> LentTags<'_> {
        self.keep(label);
        self.lend(label)
    }

    /// As [`lend_again`](Self::lend_again), if the entry has tags.
    #[inline]
    pub(crate) fn lend_any(&self, label: u64) -> Option<LentTags<'_>> {
        (label != 0).then(|| self.lend_again(label))
    }

    /// Returns whether a tag was invalidated since these were lent.
    pub(crate) fn are_overtaken(&self, lent: Option<&LentTags<'_>>) -> bool {
        lent.is_some_and(|lent| !self.is_current(lent.label()))
    }

    fn lend(&self, label: u64) -> LentTags<'_> {
        let is_some = label != 0;
        self.lent.fetch_add(is_some.into(), Relaxed);
        LentTags { tags: self, label }
    }

    #[inline]
    fn held(&self, label: u64) -> HeldTags<'_> {
        let label = Cell::new(label);
        HeldTags { tags: self, label }
    }

    /// Returns whether no tag of an entry was invalidated since its label was made.
    #[inline]
    pub(crate) fn is_current(&self, label: u64) -> bool {
        label == 0 || self.index.get().is_none_or(|index| index.is_current(label))
    }

    /// Counts another entry with this label, which one that is stored has.
    fn keep(&self, label: u64) {
        if let Some(index) = self.index.get().filter(|_| label != 0) {
            index.keep(label);
        }
    }

    /// An entry with this label has left, or was not stored after all.
    #[inline]
    pub(crate) fn release(&self, label: u64) {
        if label != 0 {
            self.release_some(label);
        }
    }

    #[inline(never)]
    fn release_some(&self, label: u64) {
        if let Some(index) = self.index.get() {
            index.release(label);
        }
    }

    /// Invalidates every entry whose label was made before; `false` when there is none. O(1).
    pub(crate) fn invalidate(&self, tag: &str) -> bool {
        self.index().is_some_and(|index| index.invalidate(tag))
    }

    /// The names of an entry's tags; `None` if they cannot be told apart.
    #[cfg(feature = "serde")]
    pub(crate) fn names(&self, label: u64) -> Option<Vec<String>> {
        match self.index() {
            Some(index) => index.names(label),
            None => Some(Vec::new()),
        }
    }

    /// Returns whether an entry has the tag of `leaf`. It is not known for an entry with too many
    /// tags.
    pub(crate) fn has(&self, label: u64, leaf: &LentTags<'_>) -> bool {
        self.index()
            .is_some_and(|index| index.has(label, leaf.label()))
    }

    /// Panics if a count is wrong: `labels` are those of all entries. Which tags are lent is not
    /// known, but how often. For tests.
    pub(crate) fn validate(&self, mut labels: impl Iterator<Item = u64>) {
        match self.index() {
            Some(index) => index.validate(&mut labels, self.lent.load(Relaxed)),
            None => assert!(labels.all(|label| label == 0), "a label of no tags"),
        }
    }

    fn index(&self) -> Option<&dyn TagIndex> {
        self.index.get().map(|index| &**index)
    }
}
