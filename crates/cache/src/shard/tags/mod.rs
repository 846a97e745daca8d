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
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use crate::sync::{AtomicU64, Ordering::Relaxed};

#[cfg(feature = "serde")]
pub(crate) use graph::TAGS_PER_ENTRY_MAX;
pub(crate) use graph::TagGraph;

/// The tags of one cache; nothing before an entry has one.
pub(crate) struct Tags {
    graph: OnceLock<TagGraph>,
    /// Uses that are no entry's, nor about to be. See [`LentTags`].
    lent: AtomicU64,
}

/// Tags that a caller gives an entry, and what they are looked up in. Mostly there are none: then
/// it is quickly dropped.
#[derive(Clone, Default)]
pub(crate) struct GivenTags(Option<Box<TagList>>);

#[derive(Clone)]
struct TagList {
    names: Vec<Arc<str>>,
    new_graph: fn() -> TagGraph,
}

impl GivenTags {
    pub(crate) fn push(&mut self, tag: Arc<str>, new_graph: fn() -> TagGraph) {
        let list = self.0.get_or_insert_with(|| {
            let names = Vec::new();
            Box::new(TagList { names, new_graph })
        });
        list.names.push(tag);
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
            graph: OnceLock::new(),
            lent: AtomicU64::new(0),
        }
    }

    /// Holds tags for an entry that is about to be stored with them.
    #[inline]
    pub(crate) fn hold(&self, tags: &GivenTags) -> HeldTags<'_> {
        self.held(match &tags.0 {
            None => 0,
            Some(given) => self.label_of(&given.names, given.new_graph),
        })
    }

    /// Holds no tags, for an entry without any.
    #[inline]
    pub(crate) fn hold_none(&self) -> HeldTags<'_> {
        self.held(0)
    }

    fn label_of<T: AsRef<str>>(&self, tags: &[T], new_graph: fn() -> TagGraph) -> u64 {
        let names: Vec<&str> = tags.iter().map(AsRef::as_ref).collect();
        self.graph.get_or_init(new_graph).label_of(&names)
    }

    /// Holds the tags of an entry that comes from a snapshot.
    #[cfg(feature = "serde")]
    pub(crate) fn hold_names(&self, tags: &[String]) -> HeldTags<'_> {
        self.held(match tags.is_empty() {
            true => 0,
            false => self.label_of(tags, TagGraph::new),
        })
    }

    /// Holds the label of an entry whose tags cannot be told apart.
    #[cfg(feature = "serde")]
    pub(crate) fn hold_any(&self) -> HeldTags<'_> {
        self.held(self.graph.get_or_init(TagGraph::new).label_of_any())
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
        let label = self.graph.get()?.label_of_known(tag)?;
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
        label == 0 || self.graph.get().is_none_or(|graph| graph.is_current(label))
    }

    /// Counts another entry with this label, which one that is stored has.
    fn keep(&self, label: u64) {
        if let Some(graph) = self.graph.get().filter(|_| label != 0) {
            graph.keep(label);
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
        if let Some(graph) = self.graph.get() {
            graph.release(label);
        }
    }

    /// Invalidates every entry whose label was made before; `false` when there is none. O(1).
    pub(crate) fn invalidate(&self, tag: &str) -> bool {
        let graph = self.graph.get();
        graph.is_some_and(|graph| graph.invalidate(tag))
    }

    /// The names of an entry's tags; `None` if they cannot be told apart.
    #[cfg(feature = "serde")]
    pub(crate) fn names(&self, label: u64) -> Option<Vec<String>> {
        let graph = self.graph.get();
        graph.map_or(Some(Vec::new()), |graph| graph.names(label))
    }

    /// Returns whether an entry has the tag of `leaf`. It is not known for an entry with too many
    /// tags.
    pub(crate) fn has(&self, label: u64, leaf: &LentTags<'_>) -> bool {
        let graph = self.graph.get();
        graph.is_some_and(|graph| graph.has(label, leaf.label()))
    }

    /// Panics if a count is wrong: `labels` are those of all entries. Which tags are lent is not
    /// known, but how often. For tests.
    pub(crate) fn validate(&self, mut labels: impl Iterator<Item = u64>) {
        match self.graph.get() {
            Some(graph) => graph.validate(labels, self.lent.load(Relaxed)),
            None => assert!(labels.all(|label| label == 0), "a label of no tags"),
        }
    }
}
