//! Changes a string, without the shard's lock if that takes long.
//!
//! Work that takes long is not done under the shard's lock. A large string is changed *aside* if it
//! is shared (with a reply that is being copied, or with the result of COPY), if it has no capacity
//! left, or if it becomes large:
//!
//! 1. The string is shared, and the lock released. A shared string is not changed in place, so the
//!    same object has the same bytes from now on.
//! 2. Its bytes are copied, and the copy is changed.
//! 3. The shard is locked again. If the key still holds the same object, the copy replaces it.
//! 4. If not, another command was faster, and this one begins again.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use tidewheel_store::{INLINE_MAX, NewValue, Slot, Value};

use crate::context::{Context, Key};
use crate::error::CommandError;
use crate::events::Cause;
use crate::shard::Stored;
use crate::value::{self, LARGE, Object, TAG_STRING_RAW, room_for};

const TOO_LONG: CommandError =
    CommandError::fixed("ERR string exceeds maximum allowed size (proto-max-bulk-len)");

/// Changes aside that may fail because another command was faster. After that the string is changed
/// under the lock, even if it takes long. More than two are rarely needed: the faster command has
/// left a string that has capacity and is not shared.
pub(crate) const ASIDE_MAX: u32 = 8;

/// A change aside copies the whole string. It pays if the command writes at least one part in this
/// many.
const ASIDE_PART: usize = 16;

/// A change of a string that keeps its deadline, or adds a string.
pub(crate) struct StringChange<F> {
    /// Bytes that the string has afterwards.
    pub(crate) total: usize,
    /// Bytes that are written.
    pub(crate) written: usize,
    /// The tag, if the string is new.
    pub(crate) tag_of_new: u8,
    pub(crate) cause: Cause,
    pub(crate) change: F,
}

/// The string as it was when its change aside began.
enum OldString {
    Nothing,
    Inline(Vec<u8>),
    Object(Arc<Vec<u8>>),
}

impl OldString {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Nothing => &[],
            Self::Inline(bytes) => bytes,
            Self::Object(bytes) => bytes,
        }
    }

    /// True if the string is still the same.
    fn is(&self, value: Option<&Value<'_, Object>>) -> bool {
        match (self, value) {
            (Self::Nothing, None) => true,
            (Self::Inline(old), Some(Value::Inline(bytes))) => old == bytes,
            (Self::Object(old), Some(Value::Object(Object::Bytes(bytes)))) => {
                Arc::ptr_eq(old, bytes)
            }
            _ => false,
        }
    }
}

impl<F: Fn(&mut Vec<u8>)> StringChange<F> {
    /// Changes the string. False if another command was faster: look it up again.
    pub(crate) fn apply(
        &self,
        ctx: &mut Context<'_, '_>,
        key: Key<'_>,
        slot: Option<Slot>,
        attempt: u32,
    ) -> Result<bool, CommandError> {
        let value = slot.map(|slot| ctx.entries(key).value(slot));
        if attempt < ASIDE_MAX
            && let Some(old) = self.takes_long(value.as_ref())
        {
            return self.apply_aside(ctx, key, old);
        }
        match (slot, value) {
            (Some(slot), Some(Value::Object(_))) => {
                let (at, hold) = ctx.on(key);
                hold.change_bytes(at, slot, self.cause, |bytes| {
                    (self.change)(Arc::make_mut(bytes));
                });
            }
            (_, value) => {
                let old = value.as_ref().map_or(&[][..], value::bytes);
                let mut bytes = self.changed(old, self.total);
                put(ctx, key, slot, &mut bytes, self.tag_of_new, self.cause);
            }
        }
        Ok(true)
    }

    /// The string as it is now, if the change takes too long for the lock.
    fn takes_long(&self, value: Option<&Value<'_, Object>>) -> Option<OldString> {
        let long = |len: usize| self.written > LARGE.max(len / ASIDE_PART);
        match value {
            None => long(0).then_some(OldString::Nothing),
            Some(Value::Inline(bytes)) => {
                long(bytes.len()).then(|| OldString::Inline(bytes.to_vec()))
            }
            Some(Value::Object(Object::Bytes(bytes))) => {
                let copied = self.total > bytes.capacity() || Arc::strong_count(bytes) > 1;
                let takes_long = copied && bytes.len() > LARGE || long(bytes.len());
                takes_long.then(|| OldString::Object(Arc::clone(bytes)))
            }
            Some(Value::Object(_)) => unreachable!("the caller has looked at the type"),
        }
    }

    /// Changes a copy without the lock, and replaces the string by it. False if another command was
    /// faster.
    #[cold]
    fn apply_aside(
        &self,
        ctx: &mut Context<'_, '_>,
        key: Key<'_>,
        old: OldString,
    ) -> Result<bool, CommandError> {
        ctx.step_out();
        let mut bytes = self.changed(old.bytes(), room_for(old.bytes().len(), self.total));
        ctx.step_in(key.bytes)?;
        let slot = ctx.find_at(key, ctx.session.db);
        let value = slot.map(|slot| ctx.entries(key).value(slot));
        let same = old.is(value.as_ref());
        if same {
            put(ctx, key, slot, &mut bytes, self.tag_of_new, self.cause);
        }
        if let OldString::Object(shared) = old {
            ctx.let_go(shared);
        }
        // A copy that was not stored is large too.
        ctx.let_go(Arc::new(bytes));
        Ok(same)
    }

    /// A changed copy with that capacity.
    fn changed(&self, old: &[u8], room: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(room);
        bytes.extend_from_slice(old);
        (self.change)(&mut bytes);
        bytes
    }
}

/// Stores a changed string, which keeps its deadline, or a new one.
pub(crate) fn put(
    ctx: &mut Context<'_, '_>,
    key: Key<'_>,
    slot: Option<Slot>,
    bytes: &mut Vec<u8>,
    tag_of_new: u8,
    cause: Cause,
) {
    match slot {
        // Bits of a bitmap change more often than its length.
        Some(slot) if overwrite_raw(ctx, key, slot, bytes, cause) => {}
        Some(slot) => {
            let deadline = ctx.deadline(key, slot);
            let stored = stored(TAG_STRING_RAW, bytes, deadline);
            ctx.replace(key, slot, stored, cause);
        }
        None => ctx.insert(key, stored(tag_of_new, bytes, None), cause),
    }
}

/// Changes a string that is raw already, and keeps its length. False, and nothing is done, if it is
/// another.
fn overwrite_raw(
    ctx: &mut Context<'_, '_>,
    key: Key<'_>,
    slot: Slot,
    bytes: &[u8],
    cause: Cause,
) -> bool {
    let seen = ctx.entries(key).seen(slot);
    let (at, hold) = ctx.on(key);
    seen.tag == TAG_STRING_RAW && hold.overwrite(at, &seen, bytes, cause)
}

/// Growth at which zeroed pages from the system beat writing zeros.
const ZERO_PAGES_MIN: usize = 1 << 20;

/// Pads with zeros. The system hands out large zeroed allocations without touching them, so that a
/// far offset does not hold the shard's lock for as long as writing half a gigabyte takes.
pub(crate) fn grow_with_zeros(bytes: &mut Vec<u8>, total: usize) {
    let len = bytes.len();
    if total.saturating_sub(len) >= ZERO_PAGES_MIN.max(len) {
        let mut grown = vec![0; total];
        grown[..len].copy_from_slice(bytes);
        *bytes = grown;
    } else if total > len {
        bytes.resize(total, 0);
    }
}

/// Checks that a string of `len` bytes may become `more` bytes longer.
pub(crate) fn check_length(
    ctx: &Context<'_, '_>,
    len: usize,
    more: usize,
) -> Result<(), CommandError> {
    let limit = ctx.keyspace.rules().proto_max_bulk_len.load(Relaxed);
    match len.checked_add(more) {
        Some(total) if total as u64 <= limit => Ok(()),
        _ => Err(TOO_LONG),
    }
}

/// Takes long bytes with it, and copies short ones.
fn stored(tag: u8, bytes: &mut Vec<u8>, deadline: Option<u64>) -> Stored<'_> {
    let value = if bytes.len() <= INLINE_MAX {
        NewValue::Inline(bytes)
    } else {
        NewValue::Object(Object::new(std::mem::take(bytes)))
    };
    Stored {
        tag,
        value,
        deadline,
    }
}
