//! Removal: small neighbours become one, empty nodes go, and the last node takes the number of one
//! that goes.

use super::node::{FAN, LEAF, NIL};
use super::{LeafPosition, Order};

/// Two neighbours with at most so many in all become one node.
const JOINED_LEAF: usize = LEAF - LEAF / 8;
const JOINED_FAN: usize = FAN - FAN / 8;

impl Order {
    /// Removes an id; `before` is true for those before it. Returns whether it was there.
    pub(crate) fn remove(&mut self, id: u32, before: impl FnMut(f64, u32) -> bool) -> bool {
        let found = self.find(id, before);
        if let Some(place) = found {
            self.cut(place, 1);
        }
        found.is_some()
    }

    /// Removes some ids from a rank on: those of one leaf, and at most `max`. Appends them to
    /// `removed`.
    pub(crate) fn remove_run(&mut self, rank: usize, max: usize, removed: &mut Vec<u32>) {
        let Some(place) = self.select(rank).filter(|_| max > 0) else {
            return;
        };
        let ids = &self.leaves[place.leaf].ids()[place.at..];
        let count = ids.len().min(max);
        removed.extend_from_slice(&ids[..count]);
        self.cut(place, count);
    }

    /// Exchanges the id of a member that has another place in memory now. `before` is true for
    /// those before it, and false for the old id, whose memory may be gone.
    pub(crate) fn replace(
        &mut self,
        old: u32,
        new: u32,
        score: f64,
        before: impl FnMut(f64, u32) -> bool,
    ) {
        let Some(place) = self.find(old, before) else {
            debug_assert!(false, "a moved member is in the order");
            return;
        };
        self.leaves[place.leaf].set(place.at, new);
        if place.at == 0 {
            self.lead(0, place.leaf, score, new);
        }
    }

    fn find(&self, id: u32, before: impl FnMut(f64, u32) -> bool) -> Option<LeafPosition> {
        let (mut place, _) = self.seek(before);
        if place.leaf == NIL {
            return None;
        }
        if place.at == self.leaves[place.leaf].len() {
            // Behind the last id of a leaf is the first one of the next.
            place = LeafPosition {
                leaf: self.leaves[place.leaf].next,
                at: 0,
            };
        }
        let found = place.leaf != NIL && self.leaves[place.leaf].ids()[place.at] == id;
        found.then_some(place)
    }

    fn cut(&mut self, place: LeafPosition, count: usize) {
        let LeafPosition { leaf, at } = place;
        self.leaves[leaf].remove(at, count);
        self.len -= count;
        self.recount(leaf, |below| *below -= count as u32);
        let ids = self.leaves[leaf].ids();
        let len = ids.len();
        if len == 0 {
            return self.detach_leaf(leaf);
        }
        if at == 0 {
            let first = ids[0];
            let score = self.leaves[leaf].score(0);
            self.lead(0, leaf, score, first);
        }
        if len < LEAF / 2 {
            self.join_leaf(leaf);
        }
    }

    /// Joins a leaf with a neighbour under the same parent, if one leaf is enough for both.
    fn join_leaf(&mut self, leaf: u32) {
        let (previous, next) = (self.leaves[leaf].previous, self.leaves[leaf].next);
        for (left, right) in [(leaf, next), (previous, leaf)] {
            if left == NIL || right == NIL {
                continue;
            }
            let len = self.leaves[right].len();
            let siblings = self.leaves[left].parent == self.leaves[right].parent;
            if siblings && self.leaves[left].len() + len <= JOINED_LEAF {
                self.between(left, right, |left, right| left.pull(right, len));
                return self.detach_leaf(right);
            }
        }
    }

    fn detach_leaf(&mut self, leaf: u32) {
        let (previous, next) = (self.leaves[leaf].previous, self.leaves[leaf].next);
        self.link(previous, next);
        let parent = self.leaves[leaf].parent;
        if parent == NIL {
            self.root = NIL;
        } else {
            let slot = self.inners[parent].slot_of(leaf);
            self.inners[parent].remove(slot);
        }
        self.free_leaf(leaf);
        if parent != NIL {
            self.settle(parent);
        }
    }

    /// Makes two leaves neighbours.
    fn link(&mut self, left: u32, right: u32) {
        match left {
            NIL => self.first = right,
            _ => self.leaves[left].next = right,
        }
        match right {
            NIL => self.last = left,
            _ => self.leaves[right].previous = left,
        }
    }

    /// Puts a node that lost a branch in order, and those above it.
    fn settle(&mut self, node: u32) {
        let (mut level, mut node) = (1, node);
        loop {
            let emptied = if self.inners[node].len() == 0 {
                node
            } else {
                let first = self.inners[node].branch(0);
                self.lead(level, node, first.score, first.id);
                match self.join(level, node) {
                    Some(emptied) => emptied,
                    None => break,
                }
            };
            let parent = self.inners[emptied].parent;
            if parent == NIL {
                self.root = NIL;
                self.top = 0;
                self.free_inner(emptied, NIL);
                return;
            }
            let slot = self.inners[parent].slot_of(emptied);
            self.inners[parent].remove(slot);
            node = self.free_inner(emptied, parent);
            level += 1;
        }
        self.lower();
    }

    /// Moves the branches of a node and its neighbour into one, if that is enough for both; returns
    /// the one without.
    fn join(&mut self, level: u32, node: u32) -> Option<u32> {
        let parent = self.inners[node].parent;
        if parent == NIL || self.inners[node].len() >= FAN / 2 {
            return None;
        }
        let siblings = self.inners[parent].children();
        let slot = self.inners[parent].slot_of(node);
        let fits = |left: usize| {
            let (left, right) = (*siblings.get(left)?, *siblings.get(left + 1)?);
            let len = self.inners[left].len() + self.inners[right].len();
            (len <= JOINED_FAN).then_some((left, right))
        };
        let (left, right) = fits(slot).or_else(|| fits(slot.checked_sub(1)?))?;
        let total = self.inners[right].total();
        for slot in 0..self.inners[right].len() {
            let branch = self.inners[right].branch(slot);
            let end = self.inners[left].len();
            self.inners[left].insert(end, branch);
            self.set_parent(level - 1, branch.child, left);
        }
        let slot = self.inners[parent].slot_of(left);
        *self.inners[parent].count_mut(slot) += total;
        Some(right)
    }

    /// Drops roots with one branch.
    fn lower(&mut self) {
        while self.top > 0 && self.inners[self.root].len() == 1 {
            let (old, child) = (self.root, self.inners[self.root].children()[0]);
            self.top -= 1;
            self.set_parent(self.top, child, NIL);
            self.root = child;
            let moved = self.free_inner(old, child);
            if self.top > 0 {
                self.root = moved;
            }
        }
    }

    fn free_leaf(&mut self, leaf: u32) {
        let Some(moved) = self.leaves.swap_remove(leaf) else {
            return;
        };
        // The leaf that had the last number has this one now.
        let (previous, next) = (self.leaves[leaf].previous, self.leaves[leaf].next);
        self.link(previous, leaf);
        self.link(leaf, next);
        self.renumber(self.leaves[leaf].parent, moved, leaf);
    }

    /// Frees an inner node; returns the number that node `kept` has afterwards.
    fn free_inner(&mut self, node: u32, kept: u32) -> u32 {
        let Some(moved) = self.inners.swap_remove(node) else {
            return kept;
        };
        self.renumber(self.inners[node].parent, moved, node);
        let below = self.level_below(node);
        for slot in 0..self.inners[node].len() {
            let child = self.inners[node].children()[slot];
            self.set_parent(below, child, node);
        }
        if kept == moved { node } else { kept }
    }

    fn renumber(&mut self, parent: u32, old: u32, new: u32) {
        if parent == NIL {
            self.root = new;
            return;
        }
        let slot = self.inners[parent].slot_of(old);
        self.inners[parent].renumber(slot, new);
    }

    /// The level of an inner node's children.
    fn level_below(&self, node: u32) -> u32 {
        let (mut level, mut above) = (self.top, self.inners[node].parent);
        while above != NIL {
            level -= 1;
            above = self.inners[above].parent;
        }
        level - 1
    }
}
