//! Typed values: the tag of an entry, and the objects that live outside the store's blocks.

use std::sync::Arc;

use tidewheel_resp::parse_i64;
use tidewheel_store::{Slot, Store, Value};

use crate::error::CommandError;

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
}

impl Object {
    pub(crate) fn new(bytes: Vec<u8>) -> Self {
        Self::Bytes(Arc::new(bytes))
    }

    /// The object, if it is not shared.
    pub(crate) fn into_last(self) -> Option<Self> {
        let Self::Bytes(bytes) = self;
        Arc::into_inner(bytes).map(Self::new)
    }

    /// Bytes on the heap.
    pub(crate) fn bytes(&self) -> usize {
        let Self::Bytes(bytes) = self;
        bytes.capacity() + OBJECT_OVERHEAD
    }
}

/// The shared header (two counts and a vector) and the allocator's rounding, roughly.
const OBJECT_OVERHEAD: usize = 64;

/// The store of one shard's database.
pub(crate) type Entries = Store<Object>;

/// A string whose encoding follows from its bytes.
pub(crate) const TAG_STRING: u8 = 0;
/// A string that was changed in place: always reported as `raw`, as the public protocol does.
pub(crate) const TAG_STRING_RAW: u8 = 1;

/// The type's name, as TYPE and `SCAN … TYPE` spell it.
pub(crate) fn type_name(tag: u8) -> &'static str {
    match tag {
        TAG_STRING | TAG_STRING_RAW => "string",
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
    }
}

/// A string that outlives the lock: copied if it is short, shared if not.
pub(crate) fn shared(value: &Value<'_, Object>) -> Arc<Vec<u8>> {
    match value {
        Value::Inline(bytes) => Arc::new(bytes.to_vec()),
        Value::Object(Object::Bytes(bytes)) => Arc::clone(bytes),
    }
}

/// What OBJECT ENCODING says.
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

/// The capacity that a copy of a string is given: its length, and a quarter more if the string has grown.
pub(crate) fn room_for(len: usize, total: usize) -> usize {
    if 0 < len && len < total {
        total + total / 4
    } else {
        total
    }
}
