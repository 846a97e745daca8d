//! Finding: a place by comparison, a place by rank, and walks from there.

use super::node::{Leaf, NIL};
use super::{LeafPosition, Order};

impl Order {
    /// Returns the number of ids that come before a place. `before` says whether an id's member
    /// does. It is given the member's score and id.
    #[inline]
    pub(crate) fn rank(&self, before: impl FnMut(f64, u32) -> bool) -> usize {
        self.seek(before).1
    }

    /// The id at a rank.
    pub(crate) fn at(&self, rank: usize) -> Option<u32> {
        let place = self.select(rank)?;
        Some(self.leaves[place.leaf].ids()[place.at])
    }

    pub(crate) fn first(&self) -> Option<u32> {
        (self.first != NIL).then(|| self.leaves[self.first].ids()[0])
    }

    pub(crate) fn last(&self) -> Option<u32> {
        let leaf = (self.last != NIL).then(|| &self.leaves[self.last]);
        leaf.and_then(|leaf| leaf.ids().last().copied())
    }

    /// The ids from a rank on. On a walk beyond one leaf, `ahead` is shown ids that will come soon.
    pub(crate) fn forward(&self, rank: usize, ahead: impl Fn(u32)) -> impl Iterator<Item = u32> {
        let place = self.select(rank);
        let (leaf, mut skip) = place.map_or((NIL, 0), |place| (place.leaf, place.at));
        self.leaves_from(leaf, ahead, |leaf| leaf.next)
            .flat_map(move |leaf| &leaf.ids()[std::mem::take(&mut skip)..])
            .copied()
    }

    /// The ids from a rank down to the first; `ahead` is as there.
    pub(crate) fn backward(&self, rank: usize, ahead: impl Fn(u32)) -> impl Iterator<Item = u32> {
        let place = self.select(rank);
        let (leaf, at) = place.map_or((NIL, 0), |place| (place.leaf, place.at));
        let mut end = Some(at + 1);
        self.leaves_from(leaf, ahead, |leaf| leaf.previous)
            .flat_map(move |leaf| {
                let end = end.take().unwrap_or(leaf.len());
                leaf.ids()[..end].iter().rev()
            })
            .copied()
    }

    fn leaves_from(
        &self,
        leaf: u32,
        ahead: impl Fn(u32),
        next: impl Fn(&Leaf) -> u32,
    ) -> impl Iterator<Item = &Leaf> {
        let (mut number, mut is_first) = (leaf, true);
        std::iter::from_fn(move || {
            let leaf = (number != NIL).then(|| &self.leaves[number])?;
            number = next(leaf);
            // Most walks end within one leaf: they ask for nothing.
            if !std::mem::take(&mut is_first) {
                leaf.ids().iter().copied().for_each(&ahead);
            }
            Some(leaf)
        })
    }

    /// The place behind the ids that come before, and their number. The tree must not be empty for
    /// the place to exist.
    #[inline]
    pub(super) fn seek(&self, mut before: impl FnMut(f64, u32) -> bool) -> (LeafPosition, usize) {
        let (mut rank, mut node) = (0, self.root);
        for _ in 0..self.top {
            let inner = &self.inners[node];
            let branch = inner.partition(&mut before).max(1) - 1;
            rank += inner.counts()[..branch].iter().sum::<u32>() as usize;
            node = inner.children()[branch];
        }
        let at = if node == NIL {
            0
        } else {
            self.leaves[node].partition(before)
        };
        (LeafPosition { leaf: node, at }, rank + at)
    }

    pub(super) fn select(&self, rank: usize) -> Option<LeafPosition> {
        if rank >= self.len {
            return None;
        }
        let (mut rest, mut node) = (rank as u32, self.root);
        for _ in 0..self.top {
            let inner = &self.inners[node];
            let mut slot = 0;
            while let Some(behind) = rest.checked_sub(inner.counts()[slot]) {
                rest = behind;
                slot += 1;
            }
            node = inner.children()[slot];
        }
        Some(LeafPosition {
            leaf: node,
            at: rest as usize,
        })
    }
}
