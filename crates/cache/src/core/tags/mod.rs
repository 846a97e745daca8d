//! Tags: names by which many entries are invalidated at once, in O(1).
//!
//! A tag is a *leaf*: a count of its invalidations. A set of tags is a chain of *pairs*, each of a smaller
//! set and one more leaf. Equal sets are one node.
//!
//! An entry keeps a *label*: the number of its set's node, and the sum of the leaves' counts when the label was
//! made. An example: tag `a` was invalidated twice and tag `b` never, so a label for both has the sum 2. Somebody
//! invalidates `b`. The sum is 3 now, so the label is no longer current, and the entry counts as invalidated. Counts
//! only grow, so the sums are equal exactly when none of the tags was invalidated since the label was made. So
//! an entry whose label was made before an invalidation counts as stored before it, even if it was stored after.
//!
//! A label has the low 32 bits of the sum. An old label would count as current again if the entry's own tags were
//! invalidated 2^32 times before a sweep finds the entry.
//!
//! Readers load two atomics for the usual entry with one tag and take no lock. Entries without tags pay
//! nothing. Nodes are counted: one that no entry and no pair refers to is reused.

mod names;
mod nodes;

use std::cell::Cell;

use crate::sync::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
    RwLock,
};
use names::{Key, Names, Wanted};
use nodes::{NODES_MAX, Node, Nodes};

/// Tags of one entry that are kept apart; an entry with more is invalidated by any tag.
pub(crate) const TAGS_PER_ENTRY_MAX: usize = 32;

/// The leaf of entries whose tags cannot be told apart, there being too many: every invalidation hits it.
/// Node 0 is nobody's: the label 0 stands for no tags.
const OVERFLOW: u32 = 1;

/// In a node's body: that it is a pair. Then there are 31 bits of the smaller set and 32 of the leaf.
const PAIR: u64 = 1 << 63;

/// The tags of one cache.
#[derive(Debug)]
pub(crate) struct Tags {
    nodes: Nodes,
    names: RwLock<Names>,
    /// Uses that are no entry's, nor about to be. See [`Lent`].
    lent: AtomicU64,
}

/// A use of an entry's tags, for as long as the entry is on its way: what is not passed on to the entry is
/// given back, also when user code panics in between.
#[derive(Debug)]
pub(crate) struct Held<'a> {
    tags: &'a Tags,
    label: Cell<u64>,
}

impl Held<'_> {
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

impl Drop for Held<'_> {
    #[inline]
    fn drop(&mut self) {
        self.tags.release(self.label());
    }
}

/// A use of tags by somebody who is no entry, and may have it for long: a refresh, or a walk over entries.
#[derive(Debug)]
pub(crate) struct Lent<'a>(Held<'a>);

impl Lent<'_> {
    pub(crate) fn label(&self) -> u64 {
        self.0.label()
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        let is_some = self.label() != 0;
        self.0.tags.lent.fetch_sub(is_some.into(), Relaxed);
    }
}

impl Tags {
    pub(crate) fn new() -> Self {
        Self {
            nodes: Nodes::default(),
            names: RwLock::new(Names::new(OVERFLOW + 1)),
            lent: AtomicU64::new(0),
        }
    }

    /// For an entry that is about to be stored with these tags.
    #[inline]
    pub(crate) fn hold<T: AsRef<str>>(&self, tags: &[T]) -> Held<'_> {
        self.held(self.label(tags))
    }

    /// For an entry that is about to be stored with the tags of one that is.
    #[inline]
    pub(crate) fn hold_again(&self, label: u64) -> Held<'_> {
        self.keep(label);
        self.held(label)
    }

    /// For an entry whose tags cannot be told apart.
    #[cfg(feature = "serde")]
    pub(crate) fn hold_any(&self) -> Held<'_> {
        self.node(OVERFLOW).refs.fetch_add(1, Relaxed);
        self.held(self.current(OVERFLOW))
    }

    #[inline]
    fn held(&self, label: u64) -> Held<'_> {
        let label = Cell::new(label);
        Held { tags: self, label }
    }

    /// The label that an entry with these tags keeps, used once.
    #[inline]
    fn label<T: AsRef<str>>(&self, tags: &[T]) -> u64 {
        if tags.is_empty() {
            return 0;
        }
        self.label_of(tags)
    }

    fn label_of<T: AsRef<str>>(&self, tags: &[T]) -> u64 {
        let mut names: Vec<&str> = tags.iter().map(AsRef::as_ref).collect();
        names.sort_unstable();
        names.dedup();
        let id = self.known(&names).unwrap_or_else(|| self.interned(&names));
        self.current(id)
    }

    /// The label of a set as it is now.
    fn current(&self, id: u32) -> u64 {
        u64::from(id) << 32 | self.sum(id) & u64::from(u32::MAX)
    }

    /// Whether no tag of an entry was invalidated since its label was made.
    #[inline]
    pub(crate) fn is_current(&self, label: u64) -> bool {
        label == 0 || self.sum((label >> 32) as u32) as u32 == label as u32
    }

    /// Counts another entry with this label, which one that is stored has.
    fn keep(&self, label: u64) {
        if label != 0 {
            self.node((label >> 32) as u32).refs.fetch_add(1, Relaxed);
        }
    }

    /// An entry with this label has left, or was not stored after all.
    #[inline]
    pub(crate) fn release(&self, label: u64) {
        if label != 0 {
            self.unref((label >> 32) as u32);
        }
    }

    /// Invalidates every entry whose label was made before; `false` when there is none. O(1).
    pub(crate) fn invalidate(&self, tag: &str) -> bool {
        let names = self.read();
        let mut any = false;
        if let Some(id) = names.find(Wanted::Leaf(tag)) {
            self.node(id).body.fetch_add(1, Release);
            any = true;
        }
        let overflow = self.nodes.existing(OVERFLOW);
        if let Some(overflow) = overflow.filter(|overflow| overflow.refs.load(Acquire) > 0) {
            overflow.body.fetch_add(1, Release);
            any = true;
        }
        any
    }

    /// The names of an entry's tags; `None` if they cannot be told apart.
    #[cfg(feature = "serde")]
    pub(crate) fn names(&self, label: u64) -> Option<Vec<String>> {
        let mut result = Vec::new();
        match (label >> 32) as u32 {
            0 => return Some(result),
            OVERFLOW => return None,
            _ => {}
        }
        let names = self.read();
        let key_of = |id| names.key_of(id, self.node(id).place.load(Relaxed));
        let mut next = Some((label >> 32) as u32);
        while let Some(id) = next.take() {
            let leaf = match key_of(id) {
                Some(Key::Pair(set, leaf)) => {
                    next = Some(*set);
                    key_of(*leaf)
                }
                leaf => leaf,
            };
            if let Some(Key::Leaf(name)) = leaf {
                result.push(name.to_string());
            }
        }
        Some(result)
    }

    /// For somebody who looks for entries with a tag, and keeps its leaf meanwhile; `None` when no entry has it.
    pub(crate) fn lend_known(&self, tag: &str) -> Option<Lent<'_>> {
        let id = self.known(&[tag])?;
        Some(self.lend(self.held(self.current(id))))
    }

    /// For somebody who keeps the tags of an entry that is stored.
    pub(crate) fn lend_again(&self, label: u64) -> Lent<'_> {
        self.lend(self.hold_again(label))
    }

    fn lend<'a>(&self, held: Held<'a>) -> Lent<'a> {
        let is_some = held.label() != 0;
        self.lent.fetch_add(is_some.into(), Relaxed);
        Lent(held)
    }

    /// Whether the tag of `leaf` is among an entry's. Of an entry with too many tags nobody knows.
    pub(crate) fn has(&self, label: u64, leaf: &Lent<'_>) -> bool {
        let leaf = (leaf.label() >> 32) as u32;
        let mut id = (label >> 32) as u32;
        loop {
            let body = self.node(id).body.load(Acquire);
            if id == 0 || body & PAIR == 0 {
                return id == leaf;
            }
            if body as u32 == leaf {
                return true;
            }
            id = (body >> 32) as u32 & (u32::MAX >> 1);
        }
    }

    /// The sum of the counts of a set's leaves.
    #[inline]
    fn sum(&self, mut id: u32) -> u64 {
        let mut sum = 0u64;
        loop {
            let body = self.node(id).body.load(Acquire);
            if body & PAIR == 0 {
                return sum.wrapping_add(body);
            }
            let leaf = self.node(body as u32).body.load(Acquire);
            sum = sum.wrapping_add(leaf);
            id = (body >> 32) as u32 & (u32::MAX >> 1);
        }
    }

    #[inline]
    fn node(&self, id: u32) -> &Node {
        self.nodes.get(id)
    }

    /// Refers to a set that exists.
    fn known(&self, tags: &[&str]) -> Option<u32> {
        let names = self.read();
        let mut set = None;
        for tag in tags {
            let leaf = names.find(Wanted::Leaf(tag))?;
            set = Some(match set {
                None => leaf,
                Some(set) => names.find(Wanted::Pair(set, leaf))?,
            });
        }
        let id = set?;
        // Nodes are freed under the writer's lock only.
        self.node(id).refs.fetch_add(1, Relaxed);
        Some(id)
    }

    /// Refers to a set, which is made if need be.
    fn interned(&self, tags: &[&str]) -> u32 {
        let mut names = self.write();
        let left = (NODES_MAX - names.end + names.free_len) as usize;
        let id = if tags.len() > TAGS_PER_ENTRY_MAX || left < 2 * tags.len() {
            OVERFLOW
        } else {
            self.set_of(&mut names, tags)
        };
        self.node(id).refs.fetch_add(1, Relaxed);
        id
    }

    fn set_of(&self, names: &mut Names, tags: &[&str]) -> u32 {
        let mut set = None;
        for tag in tags {
            let leaf = self.node_of(names, Wanted::Leaf(tag), 0);
            set = Some(match set {
                None => leaf,
                Some(set) => {
                    let body = PAIR | u64::from(set) << 32 | u64::from(leaf);
                    self.node_of(names, Wanted::Pair(set, leaf), body)
                }
            });
        }
        set.unwrap_or(OVERFLOW)
    }

    /// The node of a name or a pair. A new one has this body, and nothing refers to it yet.
    fn node_of(&self, names: &mut Names, wanted: Wanted<'_>, body: u64) -> u32 {
        if let Some(id) = names.find(wanted) {
            return id;
        }
        let id = self.vacant(names);
        let node = self.node(id);
        node.refs.store(0, Relaxed);
        node.place.store(names.insert(id, wanted), Relaxed);
        node.body.store(body, Release);
        if let Wanted::Pair(set, leaf) = wanted {
            for part in [set, leaf] {
                self.node(part).refs.fetch_add(1, Relaxed);
            }
        }
        id
    }

    /// Takes a free node, or the next one that was never used.
    fn vacant(&self, names: &mut Names) -> u32 {
        let id = names.free;
        if id == 0 {
            names.end += 1;
            return names.end - 1;
        }
        names.free = self.node(id).body.load(Relaxed) as u32;
        names.free_len -= 1;
        id
    }

    fn unref(&self, id: u32) {
        if self.node(id).refs.fetch_sub(1, Release) == 1 && id != OVERFLOW {
            self.reclaim(id);
        }
    }

    /// Frees a node that nothing refers to, and those that only it referred to.
    #[cold]
    fn reclaim(&self, id: u32) {
        let mut names = self.write();
        let mut next = vec![id];
        while let Some(id) = next.pop() {
            let node = self.node(id);
            // Somebody may have referred to it since, or another may have freed it first.
            if node.refs.load(Acquire) != 0 {
                continue;
            }
            let Some(key) = names.remove(id, node.place.load(Relaxed)) else {
                continue;
            };
            if let Key::Pair(set, leaf) = key {
                let parts = [set, leaf].into_iter();
                next.extend(parts.filter(|part| self.node(*part).refs.fetch_sub(1, Relaxed) == 1));
            }
            node.body.store(names.free.into(), Relaxed);
            names.free = id;
            names.free_len += 1;
        }
    }

    fn write(&self) -> impl std::ops::DerefMut<Target = Names> + '_ {
        self.names
            .write()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn read(&self) -> impl std::ops::Deref<Target = Names> + '_ {
        self.names
            .read()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Panics if a count is wrong: `labels` are those of all entries. Which tags are lent is not known, but how often.
    /// For tests.
    pub(crate) fn validate(&self, labels: impl Iterator<Item = u64>) {
        let names = self.read();
        let mut refs = vec![0u64; names.end as usize];
        for label in labels {
            refs[(label >> 32) as usize] += 1;
        }
        names.validate(|_, key| {
            if let Key::Pair(set, leaf) = key {
                refs[*set as usize] += 1;
                refs[*leaf as usize] += 1;
            }
        });
        let mut lent = 0;
        for (id, refs) in refs.iter().enumerate() {
            let counted = self.nodes.existing(id as u32);
            let counted = counted.map_or(0, |node| node.refs.load(Relaxed));
            let more = counted.checked_sub(*refs);
            lent += more.expect("references to a node of the tags are missing");
        }
        assert_eq!(lent, self.lent.load(Relaxed), "tags that nobody has");
        let reserved = OVERFLOW + 1;
        assert_eq!(names.len() as u32 + names.free_len + reserved, names.end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_is_current_until_one_of_its_tags_is_invalidated() {
        let tags = Tags::new();
        let a = tags.label(&["a"]);
        let ab = tags.label(&["b", "a", "b"]);
        let abc = tags.label(&["a", "b", "c"]);
        assert!(tags.invalidate("c"));
        assert!(tags.is_current(a) && tags.is_current(ab) && !tags.is_current(abc));
        let again = tags.label(&["c", "b", "a"]);
        assert!(tags.is_current(again) && !tags.is_current(abc));
        assert!(tags.invalidate("a"));
        assert!(
            ![a, ab, abc, again]
                .iter()
                .any(|label| tags.is_current(*label))
        );
        assert!(!tags.invalidate("nobody's"));
    }

    #[test]
    fn tags_that_no_entry_has_are_forgotten() {
        let tags = Tags::new();
        for round in 0..10_000 {
            let name = format!("user:{round}");
            let label = tags.label(&[name.as_str(), "all", "b"]);
            assert!(tags.is_current(label));
            tags.release(label);
        }
        tags.validate(std::iter::empty());
        let names = tags.read();
        assert_eq!(names.len(), 0);
        assert!(names.end < 10, "nodes are reused");
    }

    #[test]
    fn a_tag_that_was_forgotten_and_comes_back_is_not_invalidated() {
        let tags = Tags::new();
        let first = tags.label(&["a"]);
        tags.invalidate("a");
        tags.release(first);
        let second = tags.label(&["a"]);
        assert!(tags.is_current(second));
        tags.validate([second].into_iter());
    }

    #[test]
    fn an_entry_with_too_many_tags_is_invalidated_by_any() {
        let tags = Tags::new();
        let many: Vec<String> = (0..=TAGS_PER_ENTRY_MAX).map(|i| i.to_string()).collect();
        let label = tags.label(&many);
        assert!(tags.is_current(label));
        assert!(tags.invalidate("0"));
        assert!(!tags.is_current(label));
        tags.release(label);
        assert!(!tags.invalidate("0"));
    }
}
