//! Tags: names by which many entries are invalidated at once, in O(1).
//!
//! A tag is a *leaf*: a count of its invalidations. A set of tags is a chain of *pairs*, each of a smaller
//! set and one more leaf; equal sets are one node. An entry keeps one word: its set's node, and the sum of
//! the counts of the set's leaves at the time the word was made. Counts only grow, so the sum is the same
//! later exactly when none of the tags was invalidated in between, whatever order things happened in: an
//! entry whose word was made before an invalidation and stored after it counts as stored before. (The
//! word has the low 32 bits of the sum: an entry would have to stay unswept through 2^32 invalidations of
//! its own tags to be taken for a current one.)
//!
//! Readers load two atomics for the usual entry with one tag and take no lock. Entries without tags pay
//! nothing. Nodes are counted: one that no entry and no pair refers to is reused.

use std::collections::HashMap;
use std::sync::OnceLock;

use foldhash::fast::RandomState;

use crate::sync::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
    RwLock,
};

/// Tags of one entry that are kept apart; an entry with more is invalidated by any tag.
const TAGS_PER_ENTRY_MAX: usize = 32;

/// Nodes in the first chunk; each further one is twice as long.
const FIRST_CHUNK: u32 = 64;

const CHUNKS: usize = 24;

/// Tags and sets of them that exist at a time. Entries for which there is no node left share
/// [`OVERFLOW`].
const NODES_MAX: u32 = FIRST_CHUNK * ((1 << CHUNKS) - 1);

/// The leaf of entries whose tags cannot be told apart: every invalidation hits it.
const OVERFLOW: u32 = 1;

/// In a node's body: that it is a pair. Then there are 31 bits of the smaller set and 32 of the leaf.
const PAIR: u64 = 1 << 63;

/// Maps that have room for this many names give it back when most of it is unused.
const SHRINK_FROM: usize = 1024;

/// The tags of one cache.
#[derive(Debug)]
pub(crate) struct Tags {
    nodes: [OnceLock<Box<[Node]>>; CHUNKS],
    names: RwLock<Names>,
}

#[derive(Debug, Default)]
struct Node {
    /// A leaf's count, or what a pair consists of.
    body: AtomicU64,
    /// Entries and pairs that refer to it, and words that are about to be stored.
    refs: AtomicU64,
}

#[derive(Debug, Default)]
struct Names {
    leaves: HashMap<Box<str>, u32, RandomState>,
    pairs: HashMap<(u32, u32), u32, RandomState>,
    /// What each node stands for.
    keys: Vec<Key>,
    free: Vec<u32>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Key {
    /// Nothing: the node is reserved, or free.
    Nothing,
    Leaf(Box<str>),
    Pair(u32, u32),
}

impl Tags {
    pub(crate) fn new() -> Self {
        Self {
            nodes: [const { OnceLock::new() }; CHUNKS],
            names: RwLock::new(Names::default()),
        }
    }

    /// The word that an entry with these tags keeps. Whoever asks for it stores it in an entry, or calls
    /// [`release`](Self::release).
    #[inline]
    pub(crate) fn word<T: AsRef<str>>(&self, tags: &[T]) -> u64 {
        if tags.is_empty() {
            return 0;
        }
        self.word_of(tags)
    }

    fn word_of<T: AsRef<str>>(&self, tags: &[T]) -> u64 {
        let mut names: Vec<&str> = tags.iter().map(AsRef::as_ref).collect();
        names.sort_unstable();
        names.dedup();
        let id = self.known(&names).unwrap_or_else(|| self.interned(&names));
        u64::from(id) << 32 | self.sum(id) & u64::from(u32::MAX)
    }

    /// Whether no tag of an entry was invalidated since its word was made.
    #[inline]
    pub(crate) fn is_current(&self, word: u64) -> bool {
        word == 0 || self.sum((word >> 32) as u32) as u32 == word as u32
    }

    /// Counts another entry with this word, which one that is stored has.
    pub(crate) fn keep(&self, word: u64) {
        if word != 0 {
            self.node((word >> 32) as u32).refs.fetch_add(1, Relaxed);
        }
    }

    /// An entry with this word has left, or was not stored after all.
    #[inline]
    pub(crate) fn release(&self, word: u64) {
        if word != 0 {
            self.unref((word >> 32) as u32);
        }
    }

    /// Invalidates every entry whose word was made before; `false` when there is none. O(1).
    pub(crate) fn invalidate(&self, tag: &str) -> bool {
        let names = self.read();
        let mut any = false;
        if let Some(&id) = names.leaves.get(tag) {
            self.node(id).body.fetch_add(1, Release);
            any = true;
        }
        if names.keys.len() > OVERFLOW as usize && self.node(OVERFLOW).refs.load(Acquire) > 0 {
            self.node(OVERFLOW).body.fetch_add(1, Release);
            any = true;
        }
        any
    }

    /// The names of an entry's tags.
    #[cfg(feature = "serde")]
    pub(crate) fn names(&self, word: u64) -> Vec<String> {
        let mut result = Vec::new();
        if word == 0 {
            return result;
        }
        let names = self.read();
        let mut id = (word >> 32) as u32;
        loop {
            match names.keys.get(id as usize) {
                Some(Key::Leaf(name)) => result.push(name.to_string()),
                Some(Key::Pair(set, leaf)) => {
                    if let Some(Key::Leaf(name)) = names.keys.get(*leaf as usize) {
                        result.push(name.to_string());
                    }
                    id = *set;
                    continue;
                }
                Some(Key::Nothing) | None => {}
            }
            return result;
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
        let chunk = (id / FIRST_CHUNK + 1).ilog2();
        let first = FIRST_CHUNK * ((1 << chunk) - 1);
        let nodes = self.nodes[chunk as usize].get_or_init(|| {
            std::iter::repeat_with(Node::default)
                .take((FIRST_CHUNK << chunk) as usize)
                .collect()
        });
        &nodes[(id - first) as usize]
    }

    /// Refers to a set that exists.
    fn known(&self, tags: &[&str]) -> Option<u32> {
        let names = self.read();
        let mut set = None;
        for tag in tags {
            let leaf = *names.leaves.get(*tag)?;
            set = Some(match set {
                None => leaf,
                Some(set) => *names.pairs.get(&(set, leaf))?,
            });
        }
        let id = set?;
        // Nodes are freed under the writer's lock only.
        self.node(id).refs.fetch_add(1, Relaxed);
        Some(id)
    }

    /// Refers to a set, which is made if need be.
    fn interned(&self, tags: &[&str]) -> u32 {
        let mut names = self
            .names
            .write()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        while names.keys.len() <= OVERFLOW as usize {
            names.keys.push(Key::Nothing);
        }
        let left = NODES_MAX as usize - names.keys.len() + names.free.len();
        if tags.len() > TAGS_PER_ENTRY_MAX || left < 2 * tags.len() {
            self.node(OVERFLOW).refs.fetch_add(1, Relaxed);
            return OVERFLOW;
        }
        let mut set = None;
        for tag in tags {
            let leaf = match names.leaves.get(*tag) {
                Some(&leaf) => leaf,
                None => {
                    let leaf = self.make(&mut names, Key::Leaf(Box::from(*tag)), 0);
                    names.leaves.insert(Box::from(*tag), leaf);
                    leaf
                }
            };
            set = Some(match set {
                None => leaf,
                Some(set) => match names.pairs.get(&(set, leaf)) {
                    Some(&pair) => pair,
                    None => {
                        let body = PAIR | u64::from(set) << 32 | u64::from(leaf);
                        let pair = self.make(&mut names, Key::Pair(set, leaf), body);
                        names.pairs.insert((set, leaf), pair);
                        self.node(set).refs.fetch_add(1, Relaxed);
                        self.node(leaf).refs.fetch_add(1, Relaxed);
                        pair
                    }
                },
            });
        }
        let id = set.unwrap_or(OVERFLOW);
        self.node(id).refs.fetch_add(1, Relaxed);
        id
    }

    /// A node to which nothing refers yet.
    fn make(&self, names: &mut Names, key: Key, body: u64) -> u32 {
        let id = match names.free.pop() {
            Some(id) => {
                names.keys[id as usize] = key;
                id
            }
            None => {
                names.keys.push(key);
                names.keys.len() as u32 - 1
            }
        };
        let node = self.node(id);
        node.refs.store(0, Relaxed);
        node.body.store(body, Release);
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
        let mut names = self
            .names
            .write()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let mut next = vec![id];
        while let Some(id) = next.pop() {
            // Somebody may have referred to it since, or another may have freed it first.
            if self.node(id).refs.load(Acquire) != 0 {
                continue;
            }
            match std::mem::replace(&mut names.keys[id as usize], Key::Nothing) {
                Key::Nothing => continue,
                Key::Leaf(name) => {
                    names.leaves.remove(&name);
                }
                Key::Pair(set, leaf) => {
                    names.pairs.remove(&(set, leaf));
                    for part in [set, leaf] {
                        if self.node(part).refs.fetch_sub(1, Relaxed) == 1 {
                            next.push(part);
                        }
                    }
                }
            }
            names.free.push(id);
        }
        names.shrink();
    }

    fn read(&self) -> impl std::ops::Deref<Target = Names> + '_ {
        self.names
            .read()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Panics if a count is wrong: `words` are those of all entries. For tests.
    pub(crate) fn validate(&self, words: impl Iterator<Item = u64>) {
        let names = self.read();
        let mut refs = vec![0u64; names.keys.len()];
        for word in words {
            refs[(word >> 32) as usize] += 1;
        }
        for key in &names.keys {
            if let Key::Pair(set, leaf) = key {
                refs[*set as usize] += 1;
                refs[*leaf as usize] += 1;
            }
        }
        for (id, refs) in refs.iter().enumerate() {
            let counted = self.node(id as u32).refs.load(Relaxed);
            assert_eq!(
                counted, *refs,
                "references to the tags {:?}",
                names.keys[id]
            );
        }
        let kept = names.leaves.len() + names.pairs.len();
        let reserved = names.keys.len().min(OVERFLOW as usize + 1);
        assert_eq!(kept + names.free.len() + reserved, names.keys.len());
    }
}

impl Names {
    /// Gives memory back once most of it is unused; the cost is paid by the removals before.
    fn shrink(&mut self) {
        if self.leaves.capacity() > SHRINK_FROM && self.leaves.len() < self.leaves.capacity() / 8 {
            self.leaves.shrink_to(self.leaves.len() * 2);
        }
        if self.pairs.capacity() > SHRINK_FROM && self.pairs.len() < self.pairs.capacity() / 8 {
            self.pairs.shrink_to(self.pairs.len() * 2);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_current_until_one_of_its_tags_is_invalidated() {
        let tags = Tags::new();
        let a = tags.word(&["a"]);
        let ab = tags.word(&["b", "a", "b"]);
        let abc = tags.word(&["a", "b", "c"]);
        assert!(tags.invalidate("c"));
        assert!(tags.is_current(a) && tags.is_current(ab) && !tags.is_current(abc));
        let again = tags.word(&["c", "b", "a"]);
        assert!(tags.is_current(again) && !tags.is_current(abc));
        assert!(tags.invalidate("a"));
        assert!(
            ![a, ab, abc, again]
                .iter()
                .any(|word| tags.is_current(*word))
        );
        assert!(!tags.invalidate("nobody's"));
    }

    #[test]
    fn tags_that_no_entry_has_are_forgotten() {
        let tags = Tags::new();
        for round in 0..10_000 {
            let name = format!("user:{round}");
            let word = tags.word(&[name.as_str(), "all", "b"]);
            assert!(tags.is_current(word));
            tags.release(word);
        }
        tags.validate(std::iter::empty());
        let names = tags.read();
        assert!(names.leaves.is_empty() && names.pairs.is_empty());
        assert!(names.keys.len() < 10, "nodes are reused");
    }

    #[test]
    fn a_tag_that_was_forgotten_comes_back_anew() {
        let tags = Tags::new();
        let first = tags.word(&["a"]);
        tags.invalidate("a");
        tags.release(first);
        let second = tags.word(&["a"]);
        assert!(tags.is_current(second));
        tags.validate([second].into_iter());
    }

    #[test]
    fn an_entry_with_too_many_tags_is_invalidated_by_any() {
        let tags = Tags::new();
        let many: Vec<String> = (0..=TAGS_PER_ENTRY_MAX).map(|i| i.to_string()).collect();
        let word = tags.word(&many);
        assert!(tags.is_current(word));
        assert!(tags.invalidate("0"));
        assert!(!tags.is_current(word));
        tags.release(word);
        assert!(!tags.invalidate("0"));
    }

    #[test]
    fn every_node_has_a_place() {
        let tags = Tags::new();
        for id in 0..5000 {
            tags.node(id).body.store(u64::from(id), Relaxed);
        }
        assert!((0..5000).all(|id| tags.node(id).body.load(Relaxed) == u64::from(id)));
    }
}
