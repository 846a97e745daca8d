//! The nodes of the tree: leaves with members, inner nodes with children.
//!
//! The tree's own tests have small nodes, so that few members make a deep tree.

/// No node.
pub(super) const NIL: u32 = u32::MAX;

/// Members of a leaf: eight cache lines with its links.
pub(super) const LEAF: usize = if cfg!(test) { 6 } else { 41 };

/// Children of an inner node: sixteen cache lines.
pub(super) const FAN: usize = if cfg!(test) { 5 } else { 50 };

/// Ids and their scores, in columns.
#[derive(Debug)]
pub(super) struct Leaf {
    scores: [f64; LEAF],
    ids: [u32; LEAF],
    len: u16,
    pub(super) parent: u32,
    pub(super) previous: u32,
    pub(super) next: u32,
}

impl Leaf {
    pub(super) fn new(previous: u32, next: u32) -> Self {
        Self {
            scores: [0.0; LEAF],
            ids: [0; LEAF],
            len: 0,
            parent: NIL,
            previous,
            next,
        }
    }

    #[inline]
    pub(super) fn ids(&self) -> &[u32] {
        &self.ids[..self.len as usize]
    }

    pub(super) fn len(&self) -> usize {
        self.len as usize
    }

    pub(super) fn score(&self, at: usize) -> f64 {
        self.scores[at]
    }

    /// Returns the number of members before the sought place.
    #[inline]
    pub(super) fn partition(&self, before: impl FnMut(f64, u32) -> bool) -> usize {
        partition(&self.scores, &self.ids, self.len, before)
    }

    pub(super) fn set(&mut self, at: usize, id: u32) {
        self.ids[at] = id;
    }

    pub(super) fn insert(&mut self, at: usize, score: f64, id: u32) {
        let len = self.len as usize;
        self.scores.copy_within(at..len, at + 1);
        self.ids.copy_within(at..len, at + 1);
        (self.scores[at], self.ids[at]) = (score, id);
        self.len += 1;
    }

    pub(super) fn remove(&mut self, at: usize, count: usize) {
        let len = self.len as usize;
        self.scores.copy_within(at + count..len, at);
        self.ids.copy_within(at + count..len, at);
        self.len -= count as u16;
    }

    /// Takes the first `count` members of its right neighbour.
    pub(super) fn pull(&mut self, right: &mut Self, count: usize) {
        let to = self.len as usize..self.len as usize + count;
        self.scores[to.clone()].copy_from_slice(&right.scores[..count]);
        self.ids[to].copy_from_slice(&right.ids[..count]);
        self.len += count as u16;
        right.remove(0, count);
    }

    /// Gives its last `count` members to its right neighbour.
    pub(super) fn push(&mut self, right: &mut Self, count: usize) {
        let (len, behind) = (self.len as usize, right.len as usize);
        right.scores.copy_within(..behind, count);
        right.ids.copy_within(..behind, count);
        right.scores[..count].copy_from_slice(&self.scores[len - count..len]);
        right.ids[..count].copy_from_slice(&self.ids[len - count..len]);
        self.len -= count as u16;
        right.len += count as u16;
    }
}

/// Returns the number of members in two columns that are before the sought place.
#[inline]
fn partition(
    scores: &[f64],
    ids: &[u32],
    len: u16,
    mut before: impl FnMut(f64, u32) -> bool,
) -> usize {
    let (mut from, mut to) = (0, len as usize);
    while from < to {
        let middle = (from + to) / 2;
        if before(scores[middle], ids[middle]) {
            from = middle + 1;
        } else {
            to = middle;
        }
    }
    from
}

/// An inner node's record of a child: its first member (score and id), its number, and how many ids
/// are below it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Branch {
    pub(super) score: f64,
    pub(super) id: u32,
    pub(super) child: u32,
    pub(super) count: u32,
}

/// The branches of a node, in columns: a search reads the scores, a walk to a rank the counts.
#[derive(Debug)]
pub(super) struct Inner {
    scores: [f64; FAN],
    ids: [u32; FAN],
    children: [u32; FAN],
    counts: [u32; FAN],
    len: u16,
    pub(super) parent: u32,
}

impl Inner {
    pub(super) fn new(branches: impl IntoIterator<Item = Branch>) -> Self {
        let mut inner = Self {
            scores: [0.0; FAN],
            ids: [0; FAN],
            children: [NIL; FAN],
            counts: [0; FAN],
            len: 0,
            parent: NIL,
        };
        for branch in branches {
            inner.insert(inner.len(), branch);
        }
        inner
    }

    pub(super) fn len(&self) -> usize {
        self.len as usize
    }

    pub(super) fn children(&self) -> &[u32] {
        &self.children[..self.len as usize]
    }

    #[inline]
    pub(super) fn counts(&self) -> &[u32] {
        &self.counts[..self.len as usize]
    }

    /// Ids below this node.
    pub(super) fn total(&self) -> u32 {
        self.counts().iter().sum()
    }

    pub(super) fn branch(&self, slot: usize) -> Branch {
        Branch {
            score: self.scores[slot],
            id: self.ids[slot],
            child: self.children[slot],
            count: self.counts[slot],
        }
    }

    pub(super) fn slot_of(&self, child: u32) -> usize {
        let found = self.children().iter().position(|c| *c == child);
        found.expect("a node is in its parent")
    }

    /// The branches whose first member is before the sought place.
    #[inline]
    pub(super) fn partition(&self, before: impl FnMut(f64, u32) -> bool) -> usize {
        partition(&self.scores, &self.ids, self.len, before)
    }

    pub(super) fn count_mut(&mut self, slot: usize) -> &mut u32 {
        &mut self.counts[slot]
    }

    pub(super) fn set_first(&mut self, slot: usize, score: f64, id: u32) {
        self.scores[slot] = score;
        self.ids[slot] = id;
    }

    pub(super) fn insert(&mut self, slot: usize, branch: Branch) {
        let len = self.len as usize;
        self.scores.copy_within(slot..len, slot + 1);
        self.ids.copy_within(slot..len, slot + 1);
        self.children.copy_within(slot..len, slot + 1);
        self.counts.copy_within(slot..len, slot + 1);
        self.set_first(slot, branch.score, branch.id);
        self.children[slot] = branch.child;
        self.counts[slot] = branch.count;
        self.len += 1;
    }

    pub(super) fn remove(&mut self, slot: usize) {
        let len = self.len as usize;
        self.scores.copy_within(slot + 1..len, slot);
        self.ids.copy_within(slot + 1..len, slot);
        self.children.copy_within(slot + 1..len, slot);
        self.counts.copy_within(slot + 1..len, slot);
        self.len -= 1;
    }

    /// Cuts off the branches from `slot` on.
    pub(super) fn split_off(&mut self, slot: usize) -> Self {
        let right = Self::new((slot..self.len()).map(|slot| self.branch(slot)));
        self.len = slot as u16;
        right
    }

    pub(super) fn renumber(&mut self, slot: usize, child: u32) {
        self.children[slot] = child;
    }
}
