//! Insertion: a full leaf shares with a neighbour, or is split; so are the nodes above it.

use super::node::{Branch, FAN, Inner, LEAF, Leaf, NIL};
use super::{LeafPosition, Order};

/// A neighbour with at most so many ids takes some of a full leaf.
const ROOMY: usize = LEAF - LEAF / 6 - 1;

impl Order {
    /// Adds an id behind those that come before it.
    pub(crate) fn insert(&mut self, id: u32, score: f64, before: impl FnMut(f64, u32) -> bool) {
        let (place, _) = self.seek(before);
        let place = self.with_room(place, score, id);
        self.leaves[place.leaf].insert(place.at, score, id);
        self.len += 1;
        self.recount(place.leaf, |count| *count += 1);
        if place.at == 0 {
            self.lead(0, place.leaf, score, id);
        }
    }

    /// The place where the id goes once its leaf has room.
    fn with_room(&mut self, place: LeafPosition, score: f64, id: u32) -> LeafPosition {
        let LeafPosition { leaf, at } = place;
        if leaf == NIL {
            return self.add_leaf(NIL, NIL, (score, id));
        }
        let Leaf { previous, next, .. } = self.leaves[leaf];
        if self.leaves[leaf].len() < LEAF {
            return place;
        }
        if at == LEAF && next == NIL {
            return self.add_leaf(leaf, NIL, (score, id));
        }
        if at == 0 && previous == NIL {
            return self.add_leaf(NIL, leaf, (score, id));
        }
        if self.shares(leaf, next) {
            let given = (LEAF - self.leaves[next].len()).div_ceil(2);
            self.shift_right(leaf, next, given);
            return self.after_shift(leaf, next, at);
        }
        if self.shares(previous, leaf) {
            let given = (LEAF - self.leaves[previous].len()).div_ceil(2);
            let start = self.leaves[previous].len();
            self.shift_left(previous, leaf, given);
            return self.after_shift(previous, leaf, start + at);
        }
        // The new leaf's first member is the one in the middle.
        let middle = self.leaves[leaf].ids()[LEAF / 2];
        let first = (self.leaves[leaf].score(LEAF / 2), middle);
        let right = self.add_leaf(leaf, next, first).leaf;
        self.shift_right(leaf, right, LEAF - LEAF / 2);
        self.after_shift(leaf, right, at)
    }

    /// Returns whether two neighbours have the same parent, and one of them has room.
    fn shares(&self, left: u32, right: u32) -> bool {
        if left == NIL || right == NIL {
            return false;
        }
        let (left, right) = (&self.leaves[left], &self.leaves[right]);
        left.parent == right.parent && left.len().min(right.len()) <= ROOMY
    }

    /// Where the place `at`, counted from the start of `left`, is now.
    fn after_shift(&self, left: u32, right: u32, at: usize) -> LeafPosition {
        let len = self.leaves[left].len();
        if at <= len && len < LEAF {
            LeafPosition { leaf: left, at }
        } else {
            LeafPosition {
                leaf: right,
                at: at - len,
            }
        }
    }

    fn shift_right(&mut self, left: u32, right: u32, count: usize) {
        self.between(left, right, |left, right| left.push(right, count));
        self.retitle(right);
    }

    fn shift_left(&mut self, left: u32, right: u32, count: usize) {
        self.between(left, right, |left, right| left.pull(right, count));
        self.retitle(right);
    }

    /// Moves ids between two neighbours under one parent, and corrects their counts.
    pub(super) fn between(
        &mut self,
        left: u32,
        right: u32,
        moves: impl FnOnce(&mut Leaf, &mut Leaf),
    ) {
        let mut taken = std::mem::replace(&mut self.leaves[right], Leaf::new(NIL, NIL));
        moves(&mut self.leaves[left], &mut taken);
        self.leaves[right] = taken;
        self.count_anew(0, left);
        self.count_anew(0, right);
    }

    /// Counts a node again, and those above it: a split may have put two neighbours under different
    /// parents.
    fn count_anew(&mut self, level: u32, node: u32) {
        let (mut level, mut node) = (level, node);
        loop {
            let count = self.count(level, node);
            let parent = self.parent(level, node);
            if parent == NIL {
                return;
            }
            let slot = self.inners[parent].slot_of(node);
            *self.inners[parent].count_mut(slot) = count;
            (level, node) = (level + 1, parent);
        }
    }

    fn retitle(&mut self, leaf: u32) {
        let id = self.leaves[leaf].ids()[0];
        let score = self.leaves[leaf].score(0);
        self.lead(0, leaf, score, id);
    }

    /// Adds an empty leaf between two. `first` is the score and the id of the member that will be
    /// its first.
    fn add_leaf(&mut self, previous: u32, next: u32, first: (f64, u32)) -> LeafPosition {
        let leaf = self.leaves.push(Leaf::new(previous, next));
        if previous == NIL {
            self.first = leaf;
        } else {
            self.leaves[previous].next = leaf;
        }
        if next == NIL {
            self.last = leaf;
        } else {
            self.leaves[next].previous = leaf;
        }
        let branch = Branch {
            score: first.0,
            id: first.1,
            child: leaf,
            count: 0,
        };
        match (previous, next) {
            (NIL, NIL) => self.root = leaf,
            (NIL, next) => self.attach(next, branch, 0),
            (previous, _) => self.attach(previous, branch, 1),
        }
        LeafPosition { leaf, at: 0 }
    }

    /// Hangs a new leaf beside its neighbour: before it (`side` 0) or behind it (1). Full nodes on
    /// the way up are split.
    fn attach(&mut self, beside: u32, branch: Branch, side: usize) {
        let (mut level, mut beside, mut branch, mut side) = (0, beside, branch, side);
        loop {
            let parent = self.parent(level, beside);
            if parent == NIL {
                let head = self.head(level, beside);
                return self.grow(level, head, branch, side);
            }
            let slot = self.inners[parent].slot_of(beside) + side;
            if self.inners[parent].len() < FAN {
                self.inners[parent].insert(slot, branch);
                self.set_parent(level, branch.child, parent);
                return;
            }
            branch = self.split(level, parent, slot, branch);
            (level, beside, side) = (level + 1, parent, 1);
        }
    }

    /// Splits a full inner node that gets one more branch; returns the branch of the new node.
    fn split(&mut self, level: u32, node: u32, slot: usize, branch: Branch) -> Branch {
        // A branch behind the last one is left alone: ascending members fill their nodes.
        let cut = if slot == FAN { FAN } else { FAN / 2 };
        let mut right = self.inners[node].split_off(cut);
        let goes_right = slot > cut || cut == FAN;
        if goes_right {
            right.insert(slot - cut, branch);
        } else {
            self.inners[node].insert(slot, branch);
            self.set_parent(level, branch.child, node);
        }
        // What is above them counts both, so it stays as it is.
        let count = self.inners[node].total();
        let parent = self.inners[node].parent;
        if parent != NIL {
            let slot = self.inners[parent].slot_of(node);
            *self.inners[parent].count_mut(slot) = count;
        }
        self.adopt(level, right)
    }

    /// Adds an inner node; its children learn their parent.
    fn adopt(&mut self, level: u32, inner: Inner) -> Branch {
        let first = inner.branch(0);
        let number = self.inners.push(inner);
        for slot in 0..self.inners[number].len() {
            let child = self.inners[number].children()[slot];
            self.set_parent(level, child, number);
        }
        Branch {
            child: number,
            count: self.inners[number].total(),
            ..first
        }
    }

    /// A node as its parent knows it.
    fn head(&self, level: u32, node: u32) -> Branch {
        let (score, id) = if level == 0 {
            let id = self.leaves[node].ids()[0];
            (self.leaves[node].score(0), id)
        } else {
            let first = self.inners[node].branch(0);
            (first.score, first.id)
        };
        Branch {
            score,
            id,
            child: node,
            count: self.count(level, node),
        }
    }

    /// Puts a new root over the old one and its new neighbour.
    fn grow(&mut self, level: u32, old: Branch, new: Branch, side: usize) {
        let mut root = Inner::new([old]);
        root.insert(side, new);
        self.root = self.adopt(level, root).child;
        self.top = level + 1;
    }
}
