//! Typed values: the tag of an entry, and the objects that live outside the store's blocks.

pub(crate) mod collection;

use std::sync::Arc;

use tidewheel_collections::{Hash, List, Set, Stream, ZSet};
use tidewheel_resp::parse_i64;
use tidewheel_store::{Slot, Store, Value};

use crate::error::CommandError;
use crate::value::collection::{Collection, Owned, split};

/// Values above this many bytes are copied, read back and dropped without holding a shard's lock.
pub(crate) const LARGE: usize = 64 * 1024;

/// The longest string that the public protocol calls `embstr`.
const EMBSTR_MAX: usize = 44;

/// The most digits that can be an `int`.
const INT_DIGITS_MAX: usize = 20;

/// A value that is too large or too structured to lie beside its key.
#[derive(Debug)]
pub(crate) enum Object {
    /// A string. Shared so that a reply can be copied after the lock is gone.
    Bytes(Arc<Vec<u8>>),
    Hash(Box<Owned<Hash>>),
    List(Box<Owned<List>>),
    Set(Box<Owned<Set>>),
    ZSet(Box<Owned<ZSet>>),
    Stream(Box<Owned<Stream>>),
}

impl Object {
    pub(crate) fn new(bytes: Vec<u8>) -> Self {
        Self::Bytes(Arc::new(bytes))
    }

    /// The object, if it is not shared.
    pub(crate) fn into_last(self) -> Option<Self> {
        match self {
            Self::Bytes(bytes) => Arc::into_inner(bytes).map(Self::new),
            other => Some(other),
        }
    }

    /// Members of a collection, due ones included; 0 of a string.
    pub(crate) fn members(&self) -> usize {
        match self {
            Self::Bytes(_) => 0,
            Self::Hash(owned) => owned.of.len(),
            Self::List(owned) => owned.of.len(),
            Self::Set(owned) => owned.of.len(),
            Self::ZSet(owned) => owned.of.len(),
            Self::Stream(owned) => owned.of.len(),
        }
    }

    /// The earliest deadline of a member of a hash, a set or a sorted set, or one before it.
    pub(crate) fn next_deadline(&self) -> Option<u64> {
        match self {
            Self::Bytes(_) | Self::List(_) | Self::Stream(_) => None,
            Self::Hash(hash) => hash.of.get().next_deadline(),
            Self::Set(set) => set.of.get().next_deadline(),
            Self::ZSet(zset) => zset.of.get().next_deadline(),
        }
    }

    /// Bytes on the heap.
    pub(crate) fn bytes(&self) -> usize {
        OBJECT_OVERHEAD
            + match self {
                Self::Bytes(bytes) => bytes.capacity(),
                Self::Hash(hash) => hash.of.heap_bytes(),
                Self::List(list) => list.of.heap_bytes(),
                Self::Set(set) => set.of.heap_bytes(),
                Self::ZSet(zset) => zset.of.heap_bytes(),
                Self::Stream(stream) => stream.of.heap_bytes(),
            }
    }

    /// Bytes that the allocator has taken for it.
    pub(crate) fn allocated_bytes(&self) -> usize {
        fn of<C: Collection>(owned: &Owned<C>) -> usize {
            match owned.of.is_large() {
                // Pages, each of a size that the allocator has.
                true => owned.of.heap_bytes(),
                false => allocated(owned.of.heap_bytes()),
            }
        }
        OBJECT_OVERHEAD
            + match self {
                Self::Bytes(bytes) => allocated(bytes.capacity()),
                Self::Hash(hash) => of(hash),
                Self::List(list) => of(list),
                Self::Set(set) => of(set),
                Self::ZSet(zset) => of(zset),
                Self::Stream(stream) => of(stream),
            }
    }

    /// Another one with the same content. A string is shared until one of the two is changed.
    pub(crate) fn copy(&self, now: u64) -> Self {
        fn of<C: Collection>(owned: &Owned<C>, now: u64) -> Object {
            C::into_object(Box::new(Owned {
                own_deadline: owned.own_deadline,
                of: owned.of.copy(now),
            }))
        }
        match self {
            Self::Bytes(bytes) => Self::Bytes(Arc::clone(bytes)),
            Self::Hash(hash) => of(hash, now),
            Self::List(list) => of(list, now),
            Self::Set(set) => of(set, now),
            Self::ZSet(zset) => of(zset, now),
            Self::Stream(stream) => of(stream, now),
        }
    }

    /// As [`copy`](Self::copy), but a list and a stream share their bytes until one of the two is
    /// changed.
    pub(crate) fn share(&mut self, now: u64) -> Self {
        let own_deadline = self.own_deadline();
        match self {
            Self::List(list) => {
                let of = list.of.share();
                Self::List(Box::new(Owned { own_deadline, of }))
            }
            Self::Stream(stream) => {
                let of = stream.of.share();
                Self::Stream(Box::new(Owned { own_deadline, of }))
            }
            other => other.copy(now),
        }
    }

    /// True if the deadlines of all members are known to be reached.
    pub(crate) fn is_over(&self, now: u64) -> bool {
        match self {
            Self::Bytes(_) | Self::List(_) | Self::Stream(_) => false,
            Self::Hash(hash) => hash.of.get().is_over(now),
            Self::Set(set) => set.of.get().is_over(now),
            Self::ZSet(zset) => zset.of.get().is_over(now),
        }
    }

    /// The key's own deadline, if its members have deadlines.
    pub(crate) fn own_deadline(&self) -> Option<u64> {
        match self {
            Self::Bytes(_) | Self::List(_) | Self::Stream(_) => None,
            Self::Hash(hash) => hash.own_deadline,
            Self::Set(set) => set.own_deadline,
            Self::ZSet(zset) => zset.own_deadline,
        }
    }

    /// The place of the key's own deadline.
    pub(crate) fn own_deadline_mut(&mut self) -> Option<&mut Option<u64>> {
        match self {
            Self::Bytes(_) | Self::List(_) | Self::Stream(_) => None,
            Self::Hash(hash) => Some(&mut hash.own_deadline),
            Self::Set(set) => Some(&mut set.own_deadline),
            Self::ZSet(zset) => Some(&mut zset.own_deadline),
        }
    }
}

/// The shared header (two counts and a vector) and the allocator's rounding, roughly.
const OBJECT_OVERHEAD: usize = 64;

/// Bytes that an allocation takes: allocators round sizes up. jemalloc's sizes are four to each
/// doubling.
fn allocated(bytes: usize) -> usize {
    match bytes {
        0..=128 => bytes.next_multiple_of(16),
        _ => bytes.next_multiple_of(bytes.next_power_of_two() / 8),
    }
}

/// The store of one shard's database.
pub(crate) type Entries = Store<Object>;

/// A string whose encoding follows from its bytes.
pub(crate) const TAG_STRING: u8 = 0;
/// A string that was changed in place: always reported as `raw`, as the public protocol does.
pub(crate) const TAG_STRING_RAW: u8 = 1;

pub(crate) const TAG_HASH: u8 = 2;
pub(crate) const TAG_LIST: u8 = 3;
pub(crate) const TAG_SET: u8 = 4;
pub(crate) const TAG_ZSET: u8 = 5;
/// From here to [`TAG_ZSET_TIMED`], members have deadlines.
pub(crate) const TAG_HASH_TIMED: u8 = 6;
pub(crate) const TAG_SET_TIMED: u8 = 7;
pub(crate) const TAG_ZSET_TIMED: u8 = 8;
pub(crate) const TAG_STREAM: u8 = 9;

/// True if the value is a string.
#[inline]
pub(crate) fn is_string(tag: u8) -> bool {
    tag <= TAG_STRING_RAW
}

/// True if members of the value have deadlines.
#[inline]
pub(crate) fn is_timed(tag: u8) -> bool {
    (TAG_HASH_TIMED..=TAG_ZSET_TIMED).contains(&tag)
}

/// A key's own deadline. The entry's may be earlier, while members have deadlines.
#[inline]
pub(crate) fn own_deadline(store: &Entries, slot: Slot) -> Option<u64> {
    let (tag, deadline) = store.tag_and_deadline(slot);
    if is_timed(tag) {
        return kept_deadline(store, slot);
    }
    deadline
}

/// The key's own deadline as it is kept with the value.
#[cold]
fn kept_deadline(store: &Entries, slot: Slot) -> Option<u64> {
    match store.value(slot) {
        Value::Inline(bytes) => split(bytes).0,
        Value::Object(object) => object.own_deadline(),
    }
}

/// The type's name, as TYPE and `SCAN … TYPE` spell it.
pub(crate) fn type_name(tag: u8) -> &'static str {
    match tag {
        TAG_STRING | TAG_STRING_RAW => "string",
        TAG_HASH | TAG_HASH_TIMED => "hash",
        TAG_LIST => "list",
        TAG_SET | TAG_SET_TIMED => "set",
        TAG_ZSET | TAG_ZSET_TIMED => "zset",
        TAG_STREAM => "stream",
        _ => "unknown",
    }
}

/// The bytes of a string entry, with the shared handle where they lie outside the block.
#[inline]
pub(crate) fn string(store: &Entries, slot: Slot) -> Result<Value<'_, Object>, CommandError> {
    match store.tagged(slot) {
        (TAG_STRING | TAG_STRING_RAW, value) => Ok(value),
        _ => Err(CommandError::WRONG_TYPE),
    }
}

/// The bytes of a string value.
pub(crate) fn bytes<'a>(value: &Value<'a, Object>) -> &'a [u8] {
    match value {
        Value::Inline(bytes) => bytes,
        Value::Object(Object::Bytes(bytes)) => bytes,
        Value::Object(_) => unreachable!("the tag says that it is a string"),
    }
}

/// A string that outlives the lock: copied if it is short, shared if not.
pub(crate) fn shared(value: &Value<'_, Object>) -> Arc<Vec<u8>> {
    match value {
        Value::Inline(bytes) => Arc::new(bytes.to_vec()),
        Value::Object(Object::Bytes(bytes)) => Arc::clone(bytes),
        Value::Object(_) => unreachable!("the tag says that it is a string"),
    }
}

/// The name that OBJECT ENCODING replies.
pub(crate) fn encoding(tag: u8, bytes: &[u8]) -> &'static str {
    if tag == TAG_STRING_RAW {
        "raw"
    } else if bytes.len() <= INT_DIGITS_MAX && parse_i64(bytes).is_some() {
        "int"
    } else if bytes.len() <= EMBSTR_MAX {
        "embstr"
    } else {
        "raw"
    }
}

/// The capacity that a copy of a string is given: its length, and a quarter more if the string has
/// grown.
pub(crate) fn room_for(len: usize, total: usize) -> usize {
    if 0 < len && len < total {
        total + total / 4
    } else {
        total
    }
}
