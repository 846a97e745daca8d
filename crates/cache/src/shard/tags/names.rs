//! Finds the node of a tag's name, or of a pair of a smaller set and one more leaf.
//!
//! In a store of entries, as the cache itself is: its index grows by segments and its entries lie
//! in pages, so no tag, however many there are, costs the one who brings it more than a few
//! microseconds.

use std::hash::BuildHasher;

use foldhash::fast::RandomState;
use tidewheel_store::{Attributes, Slot, TypedStore};

/// Entries that are moved to a fuller page, at most, when a name is forgotten.
const TIDIED_PER_REMOVAL: u32 = 2;

pub(super) struct Names {
    named: TypedStore<NamedNode, ()>,
    hasher: RandomState,
    /// Every node below this number was given out at least once.
    pub(super) end: u32,
    /// The first node of the list of free ones; 0 for none.
    pub(super) free: u32,
    /// The length of that list.
    pub(super) free_len: u32,
}

struct NamedNode {
    id: u32,
    key: NodeKey,
}

/// The meaning of a node.
pub(super) enum NodeKey {
    Leaf(Box<str>),
    /// A smaller set, and one more leaf.
    Pair(u32, u32),
}

/// A borrowed [`NodeKey`], for look-ups.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum NodeKeyRef<'a> {
    Leaf(&'a str),
    Pair(u32, u32),
}

impl NodeKey {
    fn as_key_ref(&self) -> NodeKeyRef<'_> {
        match self {
            Self::Leaf(name) => NodeKeyRef::Leaf(name),
            Self::Pair(set, leaf) => NodeKeyRef::Pair(*set, *leaf),
        }
    }
}

impl From<NodeKeyRef<'_>> for NodeKey {
    fn from(wanted: NodeKeyRef<'_>) -> Self {
        match wanted {
            NodeKeyRef::Leaf(name) => Self::Leaf(name.into()),
            NodeKeyRef::Pair(set, leaf) => Self::Pair(set, leaf),
        }
    }
}

fn place(hasher: &RandomState, wanted: NodeKeyRef<'_>) -> u32 {
    let hash = hasher.hash_one(wanted);
    (hash >> 32) as u32 ^ hash as u32
}

impl Names {
    /// No names; nodes below `end` are none of theirs.
    pub(super) fn new(end: u32) -> Self {
        Self {
            named: TypedStore::new(),
            hasher: RandomState::default(),
            end,
            free: 0,
            free_len: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.named.len()
    }

    /// The node of a name or a pair.
    pub(super) fn find(&self, wanted: NodeKeyRef<'_>) -> Option<u32> {
        let place = place(&self.hasher, wanted);
        let slot = self
            .named
            .find(place, |named| named.key.as_key_ref() == wanted);
        slot.map(|slot| self.named.key(slot).id)
    }

    /// Returns the meaning of a node whose name is at this place.
    #[cfg(feature = "serde")]
    pub(super) fn key_of(&self, id: u32, place: u32) -> Option<&NodeKey> {
        self.slot_of(id, place)
            .map(|slot| &self.named.key(slot).key)
    }

    fn slot_of(&self, id: u32, place: u32) -> Option<Slot> {
        self.named.find(place, |named| named.id == id)
    }

    /// Gives a node what it stands for; returns where that is found.
    pub(super) fn insert(&mut self, id: u32, wanted: NodeKeyRef<'_>) -> u32 {
        let Self { named, hasher, .. } = self;
        let place_of = |named: &NamedNode| place(hasher, named.key.as_key_ref());
        let place = place(hasher, wanted);
        let key = wanted.into();
        let plain = Attributes::default();
        named.insert(
            place,
            NamedNode { id, key },
            (),
            plain,
            0,
            u64::MAX,
            &place_of,
        );
        place
    }

    /// Forgets what a node stands for; `None` when it stands for nothing.
    pub(super) fn remove(&mut self, id: u32, place: u32) -> Option<NodeKey> {
        let slot = self.slot_of(id, place)?;
        let removed = self.named.remove(slot, place);
        let Self { named, hasher, .. } = self;
        let place_of = |named: &NamedNode| self::place(hasher, named.key.as_key_ref());
        named.maintain(TIDIED_PER_REMOVAL, &place_of);
        Some(removed.key.key)
    }

    /// Panics if the structure is broken. Visits every node that stands for something. O(n).
    pub(super) fn validate(&self, mut visit: impl FnMut(u32, &NodeKey)) {
        self.named
            .validate(&|named| place(&self.hasher, named.key.as_key_ref()));
        let mut cursor = Some(0);
        while let Some(from) = cursor {
            cursor = self.named.scan(from, 64, |slot| {
                let named = self.named.key(slot);
                visit(named.id, &named.key);
            });
        }
    }
}
