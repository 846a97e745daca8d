//! The nodes of tags, in chunks of one size: readers find one by its number without a lock.
//!
//! Chunks are listed in spines, each twice as long as the one before, so nothing is ever copied,
//! and what the longest spine takes when it is made is a few bytes for each of [`CHUNK`] nodes.

use std::sync::OnceLock;

use crate::sync::{AtomicU32, AtomicU64};

/// Nodes that are made together.
const CHUNK: u32 = 512;

const SPINES: usize = 21;

/// Nodes that there can be.
pub(super) const NODES_MAX: u32 = CHUNK * ((1 << SPINES) - 1);

type Chunk = OnceLock<Box<[Node]>>;

#[derive(Default)]
pub(super) struct Node {
    /// A leaf's count, or what a pair consists of; of a free node, the next free one.
    pub(super) body: AtomicU64,
    /// Entries and pairs that refer to it, and labels that are about to be stored.
    pub(super) refs: AtomicU64,
    /// The place of its name.
    pub(super) place: AtomicU32,
}

#[derive(Default)]
pub(super) struct Nodes([OnceLock<Box<[Chunk]>>; SPINES]);

/// A spine, a chunk of it, and a node of that.
#[inline]
fn position(id: u32) -> (usize, usize, usize) {
    let chunk = id / CHUNK + 1;
    let spine = chunk.ilog2();
    let chunk = chunk - (1 << spine);
    (spine as usize, chunk as usize, (id % CHUNK) as usize)
}

impl Nodes {
    /// A node; with its chunk, if that is the first of it.
    #[inline]
    pub(super) fn get(&self, id: u32) -> &Node {
        let (spine, chunk, node) = position(id);
        let chunks = self.0[spine].get_or_init(|| {
            let chunks = std::iter::repeat_with(Chunk::new);
            chunks.take(1 << spine).collect()
        });
        let nodes = chunks[chunk].get_or_init(|| {
            let nodes = std::iter::repeat_with(Node::default);
            nodes.take(CHUNK as usize).collect()
        });
        &nodes[node]
    }

    /// A node that was asked for before.
    pub(super) fn existing(&self, id: u32) -> Option<&Node> {
        let (spine, chunk, node) = position(id);
        self.0[spine].get()?[chunk].get()?.get(node)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::Ordering::Relaxed;

    #[test]
    fn every_node_has_a_place_of_its_own() {
        let nodes = Nodes::default();
        let ids = (0..5000).chain([100_000, 1_000_000]);
        for id in ids.clone() {
            assert!(
                nodes
                    .existing(id)
                    .is_none_or(|node| node.body.load(Relaxed) == 0)
            );
            nodes.get(id).body.store(u64::from(id) + 1, Relaxed);
        }
        for id in ids {
            assert_eq!(nodes.get(id).body.load(Relaxed), u64::from(id) + 1);
        }
        let (spine, chunk, _) = position(NODES_MAX - 1);
        assert_eq!((spine, chunk), (SPINES - 1, (1 << (SPINES - 1)) - 1));
    }
}
