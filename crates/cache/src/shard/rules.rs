//! What all shards of a cache have in common.

use std::hash::{BuildHasher, Hash};

use tidewheel_time::mix;

use super::capacity::Account;
use super::config::Config;
use super::emptied::NewEmptied;
use super::event_room::EventRoom;
use super::tags::Tags;
use crate::removal::RemovalCause;

/// The rules by which shards act: the settings, and the little that they share.
pub(crate) struct Rules<K, V, S> {
    pub(crate) hasher: S,
    pub(crate) config: Config<K, V>,
    pub(crate) account: Account,
    pub(crate) tags: Tags,
    pub(crate) events: EventRoom,
    pub(crate) new_emptied: NewEmptied<K, V>,
}

impl<K, V, S> Rules<K, V, S> {
    /// The cause of an entry that leaves for this one: if a tag of it was invalidated, it was not
    /// there for readers any more, and left for that.
    #[inline]
    pub(crate) fn cause_of(&self, label: u64, cause: RemovalCause) -> RemovalCause {
        if self.tags.is_current(label) {
            cause
        } else {
            RemovalCause::Invalidated
        }
    }
}

impl<K: Hash, V, S: BuildHasher> Rules<K, V, S> {
    #[inline]
    pub(crate) fn hash<Q: Hash + ?Sized>(&self, key: &Q) -> Hashed {
        Hashed(mix(self.hasher.hash_one(key)))
    }

    /// The place of a stored key.
    #[inline]
    pub(crate) fn place_of(&self, key: &K) -> u32 {
        self.hash(key).place()
    }
}

/// A hash, and what follows from it.
#[derive(Clone, Copy)]
pub(crate) struct Hashed(pub(crate) u64);

impl Hashed {
    /// Returns the entry's place within its shard.
    #[inline]
    pub(crate) fn place(self) -> u32 {
        self.0 as u32
    }
}
