//! Panics if the tree is broken. O(n).

use super::Order;
use super::node::{FAN, LEAF, NIL};

impl Order {
    /// `score_of` tells the score of an id, `precedes` whether one comes before another.
    pub(crate) fn validate(
        &self,
        score_of: impl Fn(u32) -> f64,
        precedes: impl Fn(u32, u32) -> bool,
    ) {
        let (mut leaves, mut inners, mut last) = (0, 0, NIL);
        // Nodes with their levels, parents, counts and first members; the leftmost is met first.
        let mut open = Vec::new();
        if self.root != NIL {
            open.push((self.top, self.root, NIL, None));
        }
        while let Some((level, node, parent, known)) = open.pop() {
            assert_eq!(self.parent(level, node), parent, "a parent");
            if let Some((count, score, id)) = known {
                assert_eq!(self.count(level, node), count, "a count");
                let first = self.first_below(level, node);
                assert_eq!((score_of(first), first), (score, id), "a first member");
            }
            if level == 0 {
                leaves += 1;
                let leaf = &self.leaves[node];
                assert!(leaf.len() > 0, "an empty leaf");
                assert_eq!(leaf.previous, last, "a link");
                last = node;
                continue;
            }
            inners += 1;
            let inner = &self.inners[node];
            assert!((1..=FAN).contains(&inner.len()), "an empty node");
            assert!(parent != NIL || inner.len() > 1, "a root with one branch");
            for slot in (0..inner.len()).rev() {
                let branch = inner.branch(slot);
                let known = (branch.count, branch.score, branch.id);
                open.push((level - 1, branch.child, node, Some(known)));
            }
        }
        assert_eq!(last, self.last, "the last leaf");
        assert_eq!((leaves, inners), (self.leaves.len(), self.inners.len()));
        let leaves_scores = (0..self.leaves.len() as u32).map(|leaf| &self.leaves[leaf]);
        for leaf in leaves_scores {
            let mut known = leaf.ids().iter().enumerate();
            assert!(
                known.all(|(at, id)| leaf.score(at) == score_of(*id)),
                "a score"
            );
        }
        let ids: Vec<u32> = self.forward(0, |_| ()).collect();
        assert_eq!(ids.len(), self.len, "the walk");
        let mut pairs = ids.windows(2);
        assert!(pairs.all(|pair| precedes(pair[0], pair[1])), "the order");
        // Of two neighbours under one parent, both are half full, or they have more than 7/8 of a
        // leaf in all. Ends that have just begun, and leaves alone under their parents, are few.
        assert!(leaves <= 3 + 4 * self.len / LEAF, "leaves are nearly empty");
    }

    fn first_below(&self, level: u32, node: u32) -> u32 {
        let leaf = (0..level).fold(node, |node, _| self.inners[node].children()[0]);
        self.leaves[leaf].ids()[0]
    }
}
