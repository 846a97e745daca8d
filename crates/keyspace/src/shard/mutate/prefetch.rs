//! Prefetches collections whose members are due, many of them at once.
//!
//! An example: of 16 hashes a field is due. From an entry to its fields it is three steps, and each
//! is a cache miss: where the object is, the object, the fields. So each step is taken for all 16
//! before the next one: their misses overlap.

use tidewheel_collections::{HashRef, PackedRef, SetRef, ZSetRef};
use tidewheel_store::{HandedBack, Value, prefetch};

use super::Hold;
use crate::value::Object;
use crate::value::collection::split;

/// Collections that are prefetched at once. More would push each other out of the processor's
/// cache.
pub(super) const TOGETHER: usize = 32;

/// The most cache lines of one collection that are prefetched.
const LINES_MAX: usize = 48;

impl Hold<'_> {
    /// Prefetches the collections of these entries, of which members are due.
    pub(super) fn prefetch_members(&self, db: u32, handed: &[HandedBack]) {
        if handed.len() < 2 {
            return;
        }
        let entries = self.entries(db);
        let slots = || handed.iter().map(|handed| handed.slot);
        slots().for_each(|slot| entries.warm_object(slot));
        let objects = || slots().filter_map(|slot| entries.object(slot));
        objects().for_each(Object::prefetch);
        for slot in slots() {
            let packed = match entries.value(slot) {
                Value::Inline(bytes) => Some(PackedRef::new(split(bytes).1)),
                Value::Object(object) => object.packed(),
            };
            packed.into_iter().for_each(|packed| packed.warm(LINES_MAX));
        }
    }
}

impl Object {
    /// Prefetches a collection's first cache line. Does not wait for it.
    fn prefetch(&self) {
        match self {
            Self::Hash(hash) => prefetch(&**hash),
            Self::Set(set) => prefetch(&**set),
            Self::ZSet(zset) => prefetch(&**zset),
            Self::Bytes(_) | Self::List(_) | Self::Stream(_) => {}
        }
    }

    /// The members, if they are one string of bytes.
    fn packed(&self) -> Option<PackedRef<'_>> {
        match self {
            Self::Hash(hash) => match hash.of.get() {
                HashRef::Packed(packed) => Some(packed),
                HashRef::Large(_) => None,
            },
            Self::Set(set) => match set.of.get() {
                SetRef::Packed(packed) => Some(packed),
                SetRef::Large(_) => None,
            },
            Self::ZSet(zset) => match zset.of.get() {
                ZSetRef::Packed(packed) => Some(packed),
                ZSetRef::Large(_) => None,
            },
            Self::Bytes(_) | Self::List(_) | Self::Stream(_) => None,
        }
    }
}
