//! Strings: changing bytes where they lie.
//!
//! What takes long is not done under the shard's lock. A large string that others share (a reply that is being
//! copied, what COPY has made), that has no room left or is to become large is changed *aside*: without the
//! lock its bytes are copied and the copy is changed; then, with the lock, the copy takes its place if the
//! string is still the same. While it is copied it is shared, so nobody changes it in place, and the same object has the same
//! bytes. If somebody else was faster the command begins again.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use tidewheel_store::{INLINE_MAX, NewValue, Slot, Value};

use crate::context::{Context, Key, Lookup};
use crate::error::CommandError;
use crate::events::Cause;
use crate::order;
use crate::shard::Stored;
use crate::value::{self, LARGE, Object, TAG_STRING, TAG_STRING_RAW, room_for};

type Outcome = Result<(), CommandError>;

const TOO_LONG: CommandError =
    CommandError::fixed("ERR string exceeds maximum allowed size (proto-max-bulk-len)");
const OFFSET_OUT_OF_RANGE: CommandError = CommandError::fixed("ERR offset is out of range");

/// Changes aside that somebody else may thwart before a string is changed under the lock, however long that
/// takes. Whoever thwarts one has left a string with room that is nobody else's: two are rarely needed.
const ASIDE_MAX: u32 = 8;

/// A change aside copies everything: it must write at least this part of a string, unless there is no other way.
const ASIDE_PART: usize = 16;

pub(crate) fn append(ctx: &mut Context<'_, '_>) -> Outcome {
    let key = ctx.key(1);
    let tail = ctx.args.get(2).unwrap_or_default();
    for attempt in 0.. {
        let (slot, len) = find(ctx, key)?;
        check_length(ctx, len, tail.len())?;
        let edit = Edit {
            total: len + tail.len(),
            written: tail.len(),
            tag_of_new: TAG_STRING,
            cause: Cause::Append,
            change: |bytes: &mut Vec<u8>| bytes.extend_from_slice(tail),
        };
        if edit.apply(ctx, key, slot, attempt) {
            ctx.out.integer(edit.total as i64);
            break;
        }
    }
    Ok(())
}

pub(crate) fn setrange(ctx: &mut Context<'_, '_>) -> Outcome {
    let offset = usize::try_from(ctx.integer(2)?).map_err(|_| OFFSET_OUT_OF_RANGE)?;
    let key = ctx.key(1);
    let piece = ctx.args.get(3).unwrap_or_default();
    for attempt in 0.. {
        let (slot, len) = find(ctx, key)?;
        if piece.is_empty() {
            ctx.out.integer(len as i64);
            break;
        }
        check_length(ctx, offset, piece.len())?;
        let end = offset + piece.len();
        let total = len.max(end);
        let edit = Edit {
            total,
            written: end - offset.min(len),
            tag_of_new: TAG_STRING_RAW,
            cause: Cause::SetRange,
            change: |bytes: &mut Vec<u8>| {
                grow_with_zeros(bytes, total);
                bytes[offset..end].copy_from_slice(piece);
            },
        };
        if edit.apply(ctx, key, slot, attempt) {
            ctx.out.integer(total as i64);
            break;
        }
    }
    Ok(())
}

/// Finds a string, and its length; that of one that does not exist is 0.
fn find(ctx: &mut Context<'_, '_>, key: Key<'_>) -> Result<(Option<Slot>, usize), CommandError> {
    let slot = ctx.find(key, Lookup::Write);
    let len = match slot {
        Some(slot) => value::bytes(&value::string(ctx.entries(key), slot)?).len(),
        None => 0,
    };
    Ok((slot, len))
}

/// A change of a string, whose deadline stays; or the making of a new one.
struct Edit<F> {
    /// Bytes that the string has afterwards.
    total: usize,
    /// Bytes that are written.
    written: usize,
    /// The tag of a string that there was not before.
    tag_of_new: u8,
    cause: Cause,
    change: F,
}

/// What a string was when its change aside began.
enum Old {
    Nothing,
    Inline(Vec<u8>),
    Object(Arc<Vec<u8>>),
}

impl Old {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Nothing => &[],
            Self::Inline(bytes) => bytes,
            Self::Object(bytes) => bytes,
        }
    }

    /// Whether the string is still what it was.
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

impl<F: Fn(&mut Vec<u8>)> Edit<F> {
    /// Changes the string; false if it must be looked up again.
    fn apply(
        &self,
        ctx: &mut Context<'_, '_>,
        key: Key<'_>,
        slot: Option<Slot>,
        attempt: u32,
    ) -> bool {
        let value = slot.map(|slot| ctx.entries(key).value(slot));
        if attempt < ASIDE_MAX
            && let Some(old) = self.takes_long(value.as_ref())
        {
            return self.apply_aside(ctx, key, old);
        }
        match (slot, value) {
            (Some(slot), Some(Value::Object(_))) => {
                ctx.change_object(key, slot, self.cause, |Object::Bytes(bytes)| {
                    (self.change)(Arc::make_mut(bytes));
                });
            }
            (_, value) => {
                let old = value.as_ref().map_or(&[][..], value::bytes);
                let mut bytes = self.changed(old, self.total);
                self.store(ctx, key, slot, &mut bytes);
            }
        }
        true
    }

    /// What is to be changed aside, if the change takes too long for the lock.
    fn takes_long(&self, value: Option<&Value<'_, Object>>) -> Option<Old> {
        let long = |len: usize| self.written > LARGE.max(len / ASIDE_PART);
        match value {
            None => long(0).then_some(Old::Nothing),
            Some(Value::Inline(bytes)) => long(bytes.len()).then(|| Old::Inline(bytes.to_vec())),
            Some(Value::Object(Object::Bytes(bytes))) => {
                let copied = self.total > bytes.capacity() || Arc::strong_count(bytes) > 1;
                let takes_long = copied && bytes.len() > LARGE || long(bytes.len());
                takes_long.then(|| Old::Object(Arc::clone(bytes)))
            }
        }
    }

    /// Changes a copy without the lock and lets it take the string's place; false if somebody was faster.
    #[cold]
    fn apply_aside(&self, ctx: &mut Context<'_, '_>, key: Key<'_>, old: Old) -> bool {
        ctx.unlock();
        order::assert_no_shard_is_held();
        let mut bytes = self.changed(old.bytes(), room_for(old.bytes().len(), self.total));
        ctx.lock_one(key.bytes);
        let slot = ctx.find_at(key, ctx.session.db);
        let value = slot.map(|slot| ctx.entries(key).value(slot));
        let same = old.is(value.as_ref());
        if same {
            self.store(ctx, key, slot, &mut bytes);
        }
        if let Old::Object(shared) = old {
            ctx.let_go(shared);
        }
        // What was made in vain is as large.
        ctx.let_go(Arc::new(bytes));
        same
    }

    /// A changed copy, with so much room.
    fn changed(&self, old: &[u8], room: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(room);
        bytes.extend_from_slice(old);
        (self.change)(&mut bytes);
        bytes
    }

    /// Lets bytes take the string's place.
    fn store(
        &self,
        ctx: &mut Context<'_, '_>,
        key: Key<'_>,
        slot: Option<Slot>,
        bytes: &mut Vec<u8>,
    ) {
        match slot {
            Some(slot) => {
                let deadline = ctx.entries(key).deadline(slot);
                let stored = stored(TAG_STRING_RAW, bytes, deadline);
                ctx.replace(key, slot, stored, self.cause);
            }
            None => ctx.insert(key, stored(self.tag_of_new, bytes, None), self.cause),
        }
    }
}

/// Growth at which zeroed pages from the system beat writing zeros.
const ZERO_PAGES_MIN: usize = 1 << 20;

/// Pads with zeros. The system hands out large zeroed allocations without touching them, so that a far
/// offset does not hold the shard's lock for as long as writing half a gigabyte takes.
fn grow_with_zeros(bytes: &mut Vec<u8>, total: usize) {
    let len = bytes.len();
    if total.saturating_sub(len) >= ZERO_PAGES_MIN.max(len) {
        let mut grown = vec![0; total];
        grown[..len].copy_from_slice(bytes);
        *bytes = grown;
    } else if total > len {
        bytes.resize(total, 0);
    }
}

fn check_length(ctx: &Context<'_, '_>, len: usize, more: usize) -> Outcome {
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
