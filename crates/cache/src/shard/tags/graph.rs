//! The graph of tags: their nodes, the meaning of each node, and the number of its invalidations.

use super::names::{Names, NodeKey, NodeKeyRef};
use super::nodes::{NODES_MAX, Node, Nodes};
use crate::sync::{
    Ordering::{Acquire, Relaxed, Release},
    RwLock,
};

/// Tags of one entry that are kept apart; an entry with more is invalidated by any tag.
pub(crate) const TAGS_PER_ENTRY_MAX: usize = 32;

/// The leaf of entries whose tags cannot be told apart, there being too many: every invalidation
/// hits it. Node 0 is nobody's: the label 0 stands for no tags.
const OVERFLOW: u32 = 1;

/// This bit of a node's body tells that it is a pair. Then there are 31 bits of the smaller set and
/// 32 of the leaf.
const PAIR: u64 = 1 << 63;

/// The tags of a cache, and their invalidations.
pub(crate) struct TagGraph {
    nodes: Nodes,
    names: RwLock<Names>,
    /// [`Self::find_or_make`], and [`Self::reclaim`]: so only who makes a graph contains them.
    make: fn(&Self, &[&str]) -> u32,
    free: fn(&Self, u32),
}

impl TagGraph {
    pub(crate) fn new() -> Self {
        Self {
            nodes: Nodes::default(),
            names: RwLock::new(Names::new(OVERFLOW + 1)),
            make: Self::find_or_make,
            free: Self::reclaim,
        }
    }

    /// The label that an entry with these tags keeps, used once.
    pub(super) fn label_of(&self, tags: &[&str]) -> u64 {
        self.current((self.make)(self, tags))
    }

    fn find_or_make(&self, tags: &[&str]) -> u32 {
        let mut names = tags.to_vec();
        names.sort_unstable();
        names.dedup();
        self.known(&names).unwrap_or_else(|| self.interned(&names))
    }

    pub(super) fn is_current(&self, label: u64) -> bool {
        self.sum((label >> 32) as u32) as u32 == label as u32
    }

    pub(super) fn keep(&self, label: u64) {
        self.node((label >> 32) as u32).refs.fetch_add(1, Relaxed);
    }

    pub(super) fn release(&self, label: u64) {
        let id = (label >> 32) as u32;
        if self.node(id).refs.fetch_sub(1, Release) == 1 && id != OVERFLOW {
            (self.free)(self, id);
        }
    }

    /// The label of an entry whose tags cannot be told apart.
    #[cfg(feature = "serde")]
    pub(super) fn label_of_any(&self) -> u64 {
        self.node(OVERFLOW).refs.fetch_add(1, Relaxed);
        self.current(OVERFLOW)
    }

    /// The label of a tag that entries have, used once more.
    pub(super) fn label_of_known(&self, tag: &str) -> Option<u64> {
        self.known(&[tag]).map(|id| self.current(id))
    }

    /// Invalidates every entry whose label was made before; `false` when there is none. O(1).
    pub(super) fn invalidate(&self, tag: &str) -> bool {
        let names = self.read();
        let mut any = false;
        if let Some(id) = names.find(NodeKeyRef::Leaf(tag)) {
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
    pub(super) fn names(&self, label: u64) -> Option<Vec<String>> {
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
                Some(NodeKey::Pair(set, leaf)) => {
                    next = Some(*set);
                    key_of(*leaf)
                }
                leaf => leaf,
            };
            if let Some(NodeKey::Leaf(name)) = leaf {
                result.push(name.to_string());
            }
        }
        Some(result)
    }

    /// Returns whether an entry has the tag of `leaf`. It is not known for an entry with too many
    /// tags.
    pub(super) fn has(&self, label: u64, leaf: u64) -> bool {
        let leaf = (leaf >> 32) as u32;
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

    /// Panics if a count is wrong: `labels` are those of all entries. Which tags are lent is not
    /// known, but how often. For tests.
    pub(super) fn validate(&self, labels: impl Iterator<Item = u64>, lent: u64) {
        let names = self.read();
        let mut refs = vec![0u64; names.end as usize];
        for label in labels {
            refs[(label >> 32) as usize] += 1;
        }
        names.validate(|_, key| {
            if let NodeKey::Pair(set, leaf) = key {
                refs[*set as usize] += 1;
                refs[*leaf as usize] += 1;
            }
        });
        let mut more = 0;
        for (id, refs) in refs.iter().enumerate() {
            let counted = self.nodes.existing(id as u32);
            let counted = counted.map_or(0, |node| node.refs.load(Relaxed));
            let some = counted.checked_sub(*refs);
            more += some.expect("references to a node of the tags are missing");
        }
        assert_eq!(more, lent, "tags that nobody has");
        let reserved = OVERFLOW + 1;
        assert_eq!(names.len() as u32 + names.free_len + reserved, names.end);
    }

    /// The label of a set as it is now.
    fn current(&self, id: u32) -> u64 {
        u64::from(id) << 32 | self.sum(id) & u64::from(u32::MAX)
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
            let leaf = names.find(NodeKeyRef::Leaf(tag))?;
            set = Some(match set {
                None => leaf,
                Some(set) => names.find(NodeKeyRef::Pair(set, leaf))?,
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
            let leaf = self.node_of(names, NodeKeyRef::Leaf(tag), 0);
            set = Some(match set {
                None => leaf,
                Some(set) => {
                    let body = PAIR | u64::from(set) << 32 | u64::from(leaf);
                    self.node_of(names, NodeKeyRef::Pair(set, leaf), body)
                }
            });
        }
        set.unwrap_or(OVERFLOW)
    }

    /// The node of a name or a pair. A new one has this body, and nothing refers to it yet.
    fn node_of(&self, names: &mut Names, wanted: NodeKeyRef<'_>, body: u64) -> u32 {
        if let Some(id) = names.find(wanted) {
            return id;
        }
        let id = self.vacant(names);
        let node = self.node(id);
        node.refs.store(0, Relaxed);
        node.place.store(names.insert(id, wanted), Relaxed);
        node.body.store(body, Release);
        if let NodeKeyRef::Pair(set, leaf) = wanted {
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

    /// Frees a node that nothing refers to, and those that only it referred to.
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
            if let NodeKey::Pair(set, leaf) = key {
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_is_current_until_one_of_its_tags_is_invalidated() {
        let tags = TagGraph::new();
        let a = tags.label_of(&["a"]);
        let ab = tags.label_of(&["b", "a", "b"]);
        let abc = tags.label_of(&["a", "b", "c"]);
        assert!(tags.invalidate("c"));
        assert!(tags.is_current(a) && tags.is_current(ab) && !tags.is_current(abc));
        let again = tags.label_of(&["c", "b", "a"]);
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
        let tags = TagGraph::new();
        for round in 0..10_000 {
            let name = format!("user:{round}");
            let label = tags.label_of(&[name.as_str(), "all", "b"]);
            assert!(tags.is_current(label));
            tags.release(label);
        }
        tags.validate(std::iter::empty(), 0);
        let names = tags.read();
        assert_eq!(names.len(), 0);
        assert!(names.end < 10, "nodes are reused");
    }

    #[test]
    fn a_tag_that_was_forgotten_and_comes_back_is_not_invalidated() {
        let tags = TagGraph::new();
        let first = tags.label_of(&["a"]);
        tags.invalidate("a");
        tags.release(first);
        let second = tags.label_of(&["a"]);
        assert!(tags.is_current(second));
        tags.validate([second].into_iter(), 0);
    }

    #[test]
    fn an_entry_with_too_many_tags_is_invalidated_by_any() {
        let tags = TagGraph::new();
        let many: Vec<String> = (0..=TAGS_PER_ENTRY_MAX).map(|i| i.to_string()).collect();
        let label = tags.label_of(&many.iter().map(String::as_str).collect::<Vec<_>>());
        assert!(tags.is_current(label));
        assert!(tags.invalidate("0"));
        assert!(!tags.is_current(label));
        tags.release(label);
        assert!(!tags.invalidate("0"));
    }
}
