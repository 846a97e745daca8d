//! Bitmaps: SETBIT, GETBIT, BITCOUNT, BITPOS.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use tidewheel_resp::parse_i64;
use tidewheel_store::Value;

use crate::bits;
use crate::commands::change::{StringChange, grow_with_zeros};
use crate::context::{Context, Key, Lookup};
use crate::error::CommandError;
use crate::events::Cause;
use crate::value::{self, LARGE, Object, TAG_STRING_RAW};

type Outcome = Result<(), CommandError>;

const BAD_OFFSET: CommandError =
    CommandError::fixed("ERR bit offset is not an integer or out of range");
const BAD_BIT: CommandError = CommandError::fixed("ERR bit is not an integer or out of range");
const NO_BIT: CommandError = CommandError::fixed("ERR The bit argument must be 1 or 0.");

/// A text as the number of a bit that a string of at most `longest` bytes may have.
pub(crate) fn offset(text: &[u8], longest: u64) -> Result<u64, CommandError> {
    allowed(parse_i64(text), longest)
}

/// An offset that a string of at most `longest` bytes may have.
pub(crate) fn allowed(offset: Option<i64>, longest: u64) -> Result<u64, CommandError> {
    offset
        .and_then(|offset| u64::try_from(offset).ok())
        .filter(|offset| offset / 8 < longest)
        .ok_or(BAD_OFFSET)
}

/// The bit that the second argument names: its byte, and its place there.
fn place(ctx: &Context<'_, '_>) -> Result<(usize, u8), CommandError> {
    let longest = ctx.keyspace.rules().proto_max_bulk_len.load(Relaxed);
    let offset = offset(ctx.args.get(2).unwrap_or_default(), longest)?;
    Ok(((offset / 8) as usize, 0x80 >> (offset % 8)))
}

pub(crate) fn setbit(ctx: &mut Context<'_, '_>) -> Outcome {
    let (byte, mask) = place(ctx)?;
    let on = match ctx.integer(3) {
        Ok(0) => false,
        Ok(1) => true,
        _ => return Err(BAD_BIT),
    };
    let key = ctx.key(1);
    for attempt in 0.. {
        let slot = ctx.find(key, Lookup::Write);
        let (len, was) = match slot {
            Some(slot) => bit(&value::string(ctx.entries(key), slot)?, byte, mask),
            None => (0, false),
        };
        let total = len.max(byte + 1);
        let edit = StringChange {
            total,
            written: total - len + 1,
            tag_of_new: TAG_STRING_RAW,
            cause: Cause::SetBit,
            change: |bytes: &mut Vec<u8>| {
                grow_with_zeros(bytes, total);
                bytes[byte] = bytes[byte] & !mask | if on { mask } else { 0 };
            },
        };
        let same = total == len && was == on;
        if same || edit.apply(ctx, key, slot, attempt)? {
            ctx.out.integer(was.into());
            break;
        }
    }
    Ok(())
}

/// The length of a string, and one of its bits.
fn bit(value: &Value<'_, Object>, byte: usize, mask: u8) -> (usize, bool) {
    let bytes = value::bytes(value);
    let byte = bytes.get(byte).copied().unwrap_or_default();
    (bytes.len(), byte & mask != 0)
}

pub(crate) fn getbit(ctx: &mut Context<'_, '_>) -> Outcome {
    let (byte, mask) = place(ctx)?;
    let key = ctx.key(1);
    let is_on = match ctx.find(key, Lookup::Read) {
        Some(slot) => bit(&value::string(ctx.entries(key), slot)?, byte, mask).1,
        None => false,
    };
    ctx.out.integer(is_on.into());
    Ok(())
}

pub(crate) fn bitcount(ctx: &mut Context<'_, '_>) -> Outcome {
    let part = StringRange::parse(ctx, 2)?;
    let key = ctx.key(1);
    let ones = look(ctx, key, |bytes| match bytes {
        Some(bytes) if !part.is_backwards() => bits::count(bytes, part.bits(bytes.len())),
        _ => 0,
    })?;
    ctx.out.integer(ones as i64);
    Ok(())
}

pub(crate) fn bitpos(ctx: &mut Context<'_, '_>) -> Outcome {
    let wanted = match ctx.integer(2)? {
        0 => false,
        1 => true,
        _ => return Err(NO_BIT),
    };
    let part = StringRange::parse(ctx, 3)?;
    let key = ctx.key(1);
    let found = look(ctx, key, |bytes| match bytes {
        Some(bytes) => part.find(bytes, wanted),
        // A string that does not exist is zeros without end.
        None => (!wanted).then_some(0),
    })?;
    ctx.out.integer(found.map_or(-1, |bit| bit as i64));
    Ok(())
}

/// Looks at a string; if it is large, without the lock. `look` gets `None` if there is none.
fn look<R>(
    ctx: &mut Context<'_, '_>,
    key: Key<'_>,
    look: impl FnOnce(Option<&[u8]>) -> R,
) -> Result<R, CommandError> {
    let Some(slot) = ctx.find(key, Lookup::Read) else {
        return Ok(look(None));
    };
    let value = value::string(ctx.entries(key), slot)?;
    if value::bytes(&value).len() <= LARGE {
        return Ok(look(Some(value::bytes(&value))));
    }
    let bytes: Arc<_> = value::shared(&value);
    let result = ctx.outside(|| look(Some(&bytes)));
    ctx.let_go(bytes);
    Ok(result)
}

/// The part of a string that a call names.
struct StringRange {
    start: i64,
    /// None: to the end, and BITPOS finds a zero behind it.
    end: Option<i64>,
    /// True if the numbers count bits, not bytes.
    in_bits: bool,
}

impl StringRange {
    /// Reads `[start [end [BYTE|BIT]]]`.
    fn parse(ctx: &Context<'_, '_>, first: usize) -> Result<Self, CommandError> {
        let n = ctx.args.len().saturating_sub(first);
        if n > 3 {
            return Err(CommandError::SYNTAX);
        }
        let start = if n > 0 { ctx.integer(first)? } else { 0 };
        let in_bits = n == 3 && ctx.is(first + 2, "BIT");
        if n == 3 && !in_bits && !ctx.is(first + 2, "BYTE") {
            return Err(CommandError::SYNTAX);
        }
        let end = (n > 1).then(|| ctx.integer(first + 1)).transpose()?;
        Ok(Self {
            start,
            end,
            in_bits,
        })
    }

    /// True if it ends before it begins, both counted from the end. BITPOS looks at the first byte
    /// or bit then if the string is shorter.
    fn is_backwards(&self) -> bool {
        let end = self.end.unwrap_or(-1);
        self.start < 0 && end < 0 && self.start > end
    }

    /// The bits that it names in a string of `len` bytes.
    fn bits(&self, len: usize) -> Range<u64> {
        let unit = if self.in_bits { 1 } else { 8 };
        let total = len as i64 * 8 / unit;
        let from_end = |at: i64| match at {
            ..0 => at.saturating_add(total).max(0),
            _ => at.min(total),
        };
        let end = from_end(self.end.unwrap_or(-1)).min(total - 1) + 1;
        let start = from_end(self.start).min(end);
        (start * unit) as u64..(end * unit) as u64
    }

    fn find(&self, bytes: &[u8], wanted: bool) -> Option<u64> {
        let part = self.bits(bytes.len());
        let found = bits::find(bytes, wanted, part.clone());
        let zeros_follow = !wanted && self.end.is_none() && !part.is_empty();
        found.or_else(|| zeros_follow.then_some(part.end))
    }
}
