//! Strings: APPEND and SETRANGE, which change bytes in place.

use tidewheel_store::Slot;

use crate::commands::change::{StringChange, check_length, grow_with_zeros};
use crate::context::{Context, Key, Lookup};
use crate::error::CommandError;
use crate::events::Cause;
use crate::value::{self, TAG_STRING, TAG_STRING_RAW};

type Outcome = Result<(), CommandError>;

const OFFSET_OUT_OF_RANGE: CommandError = CommandError::fixed("ERR offset is out of range");

pub(crate) fn append(ctx: &mut Context<'_, '_>) -> Outcome {
    let key = ctx.key(1);
    let tail = ctx.args.get(2).unwrap_or_default();
    for attempt in 0.. {
        let (slot, len) = find(ctx, key)?;
        check_length(ctx, len, tail.len())?;
        let edit = StringChange {
            total: len + tail.len(),
            written: tail.len(),
            tag_of_new: TAG_STRING,
            cause: Cause::Append,
            change: |bytes: &mut Vec<u8>| bytes.extend_from_slice(tail),
        };
        if edit.apply(ctx, key, slot, attempt)? {
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
        let edit = StringChange {
            total,
            written: end - offset.min(len),
            tag_of_new: TAG_STRING_RAW,
            cause: Cause::SetRange,
            change: |bytes: &mut Vec<u8>| {
                grow_with_zeros(bytes, total);
                bytes[offset..end].copy_from_slice(piece);
            },
        };
        if edit.apply(ctx, key, slot, attempt)? {
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
