//! INCR, DECR, INCRBY, DECRBY, INCRBYFLOAT: count up and down in a string.

use tidewheel_resp::{SumError, parse_i64, sum_floats};
use tidewheel_store::{INLINE_MAX, NewValue, Seen};

use crate::context::{Context, Lookup};
use crate::error::CommandError;
use crate::events::Cause;
use crate::shard::Stored;
use crate::value::{self, Entries, Object, TAG_STRING};

type Outcome = Result<(), CommandError>;

const OVERFLOW: CommandError = CommandError::fixed("ERR increment or decrement would overflow");
const DECREMENT_OVERFLOW: CommandError = CommandError::fixed("ERR decrement would overflow");

pub(crate) fn incr(ctx: &mut Context<'_, '_>) -> Outcome {
    add(ctx, 1)
}

pub(crate) fn decr(ctx: &mut Context<'_, '_>) -> Outcome {
    add(ctx, -1)
}

pub(crate) fn incrby(ctx: &mut Context<'_, '_>) -> Outcome {
    let by = ctx.integer(2)?;
    add(ctx, by)
}

pub(crate) fn decrby(ctx: &mut Context<'_, '_>) -> Outcome {
    let by = ctx.integer(2)?.checked_neg().ok_or(DECREMENT_OVERFLOW)?;
    add(ctx, by)
}

fn add(ctx: &mut Context<'_, '_>, by: i64) -> Outcome {
    let key = ctx.key(1);
    let seen = ctx.look(key, Lookup::Write);
    let old = match &seen {
        Some(seen) => integer(ctx.entries(key), seen)?,
        None => 0,
    };
    let sum = old.checked_add(by).ok_or(OVERFLOW)?;
    let mut buffer = itoa::Buffer::new();
    let digits = buffer.format(sum);
    let text = digits.as_bytes();
    match &seen {
        Some(seen) => {
            // Most counters keep their number of digits.
            let (at, hold) = ctx.on(key);
            let fits = seen.tag == TAG_STRING && hold.overwrite(at, seen, text, Cause::IncrBy);
            if !fits {
                ctx.replace_seen(key, seen, number(text, seen.deadline()), Cause::IncrBy);
            }
        }
        None => ctx.insert(key, number(text, None), Cause::IncrBy),
    }
    ctx.out.digits(digits);
    Ok(())
}

/// A string's value, if it is a number.
#[inline]
fn integer(entries: &Entries, seen: &Seen) -> Result<i64, CommandError> {
    let number = match entries.seen_bytes(seen) {
        Some(bytes) if value::is_string(seen.tag) => parse_i64(bytes),
        _ => parse_i64(value::bytes(&value::string(entries, seen.slot)?)),
    };
    number.ok_or(CommandError::NOT_AN_INTEGER)
}

pub(crate) fn incrbyfloat(ctx: &mut Context<'_, '_>) -> Outcome {
    let key = ctx.key(1);
    let slot = ctx.find(key, Lookup::Write);
    let by = ctx.args.get(2).unwrap_or_default();
    let sum = match slot {
        Some(slot) => {
            let value = value::string(ctx.entries(key), slot)?;
            sum_floats(value::bytes(&value), by)
        }
        None => sum_floats(b"0", by),
    };
    let sum = sum.map_err(|error: SumError| CommandError::quoting(format!("ERR {error}")))?;
    match slot {
        Some(slot) => {
            let deadline = ctx.deadline(key, slot);
            let stored = number(sum.as_bytes(), deadline);
            ctx.replace(key, slot, stored, Cause::IncrByFloat);
        }
        None => ctx.insert(key, number(sum.as_bytes(), None), Cause::IncrByFloat),
    }
    ctx.out.bulk(sum.as_bytes());
    Ok(())
}

fn number(text: &[u8], deadline: Option<u64>) -> Stored<'_> {
    // A float has up to 4,933 digits.
    let value = if text.len() <= INLINE_MAX {
        NewValue::Inline(text)
    } else {
        NewValue::Object(Object::new(text.to_vec()))
    };
    Stored {
        tag: TAG_STRING,
        value,
        deadline,
    }
}
