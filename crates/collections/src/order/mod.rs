//! The order of a sorted set: ids by (score, member), each with its rank.
//!
//! An example: a set of a million members has about 30,000 leaves of up to 41 members. An inner
//! node has up to 50 branches, and knows of each the first member and how many members are below
//! it. So four steps lead to a score, and to a rank.
//!
//! It is a B+-tree with subtree counts (Bayer, McCreight: "Organization and Maintenance of Large
//! Ordered Indices", 1972; the counts are those of order-statistic trees). The tree knows scores
//! and ids. Whoever seeks says of a score and an id whether they come before the sought place, and
//! looks at the member itself only if the scores are equal.
//!
//! Leaves without scores were tried. They save 10 bytes a member, but each step within a leaf reads
//! a block then: see `docs/decisions.md`.
//!
//! - *Fill.* A full leaf first gives ids to a neighbour under the same parent, and is split only if
//!   there is no room. A new last or first member of a full leaf begins a leaf of its own, so
//!   ascending and descending members fill leaves completely. After a removal two neighbours that
//!   fit into 7/8 of one node become one.
//! - *Memory.* Nodes have no holes between them (`dense`), so every freed node's memory goes back.
//! - *Cost.* Each call but `validate` is O(log n), plus what it visits. A node knows its parent, so
//!   nothing recurses.

mod dense;
mod insert;
mod node;
mod remove;
mod seek;
#[cfg(test)]
mod tests;
mod validate;

use dense::Dense;
use node::{Inner, Leaf, NIL};

/// Ids in order of their members. Levels count from the leaves, which are level 0.
#[derive(Debug)]
pub(crate) struct Order {
    leaves: Dense<Leaf>,
    inners: Dense<Inner>,
    /// A leaf if `top` is 0.
    root: u32,
    /// The root's level.
    top: u32,
    first: u32,
    last: u32,
    len: usize,
}

/// Where an id is, or would be: behind the last one of its leaf is possible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct LeafPosition {
    leaf: u32,
    at: usize,
}

impl Order {
    pub(crate) fn new() -> Self {
        Self {
            leaves: Dense::new(),
            inners: Dense::new(),
            root: NIL,
            top: 0,
            first: NIL,
            last: NIL,
            len: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Heap bytes held. O(1).
    pub(crate) fn bytes(&self) -> usize {
        self.leaves.bytes() + self.inners.bytes()
    }

    fn parent(&self, level: u32, node: u32) -> u32 {
        if level == 0 {
            self.leaves[node].parent
        } else {
            self.inners[node].parent
        }
    }

    fn set_parent(&mut self, level: u32, node: u32, parent: u32) {
        if level == 0 {
            self.leaves[node].parent = parent;
        } else {
            self.inners[node].parent = parent;
        }
    }

    /// Ids below a node.
    fn count(&self, level: u32, node: u32) -> u32 {
        if level == 0 {
            self.leaves[node].len() as u32
        } else {
            self.inners[node].total()
        }
    }

    /// Writes a node's first member into the branches above that begin with it.
    fn lead(&mut self, level: u32, node: u32, score: f64, id: u32) {
        let (mut level, mut node) = (level, node);
        loop {
            let parent = self.parent(level, node);
            if parent == NIL {
                return;
            }
            let slot = self.inners[parent].slot_of(node);
            self.inners[parent].set_first(slot, score, id);
            if slot > 0 {
                return;
            }
            (level, node) = (level + 1, parent);
        }
    }

    /// Corrects the counts above a leaf.
    fn recount(&mut self, leaf: u32, change: impl Fn(&mut u32)) {
        let (mut parent, mut node) = (self.leaves[leaf].parent, leaf);
        while parent != NIL {
            let inner = &mut self.inners[parent];
            let slot = inner.slot_of(node);
            change(inner.count_mut(slot));
            (parent, node) = (inner.parent, parent);
        }
    }
}
