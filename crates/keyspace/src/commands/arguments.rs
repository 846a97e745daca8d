//! Parses numbers that many commands share: the number of keys that follow, and positions counted
//! from either end.

use std::ops::Range;

use tidewheel_resp::{Writer, parse_i64};

use crate::context::Context;
use crate::error::CommandError;

const NO_KEYS: CommandError = CommandError::fixed("ERR numkeys should be greater than 0");
const NO_COUNT: CommandError = CommandError::fixed("ERR count should be greater than 0");
const NEGATIVE_LIMIT: CommandError = CommandError::fixed("ERR LIMIT can't be negative");

/// The argument that says how many keys follow it.
pub(crate) fn count_of_keys(ctx: &Context<'_, '_>, argument: usize) -> Result<usize, CommandError> {
    let count = ctx.args.get(argument).and_then(parse_i64);
    let count = count.filter(|count| *count > 0).ok_or(NO_KEYS)?;
    Ok(usize::try_from(count).unwrap_or(usize::MAX))
}

/// Reads a LIMIT on the members that are counted: 0 is no limit.
pub(crate) fn limit_of_count(text: &[u8]) -> Result<usize, CommandError> {
    let limit = parse_i64(text).and_then(|limit| usize::try_from(limit).ok());
    match limit.ok_or(NEGATIVE_LIMIT)? {
        0 => Ok(usize::MAX),
        limit => Ok(limit),
    }
}

/// The `COUNT n` with which LMPOP and its kin may end, at this argument; 1 without. It is read
/// before what follows it.
pub(crate) fn count_of_pop(ctx: &Context<'_, '_>, argument: usize) -> Result<usize, CommandError> {
    if ctx.args.len() == argument {
        return Ok(1);
    }
    let text = ctx.args.get(argument + 1);
    let text = text.filter(|_| ctx.is(argument, "COUNT"));
    let count = parse_i64(text.ok_or(CommandError::SYNTAX)?).filter(|count| *count > 0);
    let count = count.ok_or(NO_COUNT)?;
    if ctx.args.len() > argument + 2 {
        return Err(CommandError::SYNTAX);
    }
    Ok(usize::try_from(count).unwrap_or(usize::MAX))
}

/// The places from `start` to `end`, both inclusive, among `len`. Negative ones count from the end:
/// −1 is the last.
pub(crate) fn range_of_places(start: i64, end: i64, len: usize) -> Range<usize> {
    let signed = i64::try_from(len).unwrap_or(i64::MAX);
    let from_front = |at: i64| {
        if at < 0 {
            at.saturating_add(signed)
        } else {
            at
        }
    };
    let (start, end) = (from_front(start).max(0), from_front(end).min(signed - 1));
    match (usize::try_from(start), usize::try_from(end)) {
        (Ok(start), Ok(end)) if start <= end => start..end + 1,
        _ => 0..0,
    }
}

/// The most members that a call may ask for with repetitions. The public servers allow a number
/// whose reply would take years; nobody else would be served meanwhile.
const REPETITIONS_MAX: u64 = 1 << 24;

/// The most bytes of a reply with repetitions. A client that asks for more is cut off.
const REPETITION_BYTES_MAX: usize = 256 << 20;

/// The lowest integer has no positive counterpart, so no count is it.
const NO_COUNTERPART: CommandError = CommandError::fixed(
    "ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807",
);
const TOO_MANY: CommandError = CommandError::fixed("ERR value is out of range");

/// A count whose sign means something.
pub(crate) fn signed_count(ctx: &Context<'_, '_>, argument: usize) -> Result<i64, CommandError> {
    let count = ctx.integer(argument)?;
    if count == i64::MIN {
        return Err(NO_COUNTERPART);
    }
    Ok(count)
}

/// The arguments of HRANDFIELD and its kin: a count, if there is one, and whether `pairs` was asked
/// for.
pub(crate) fn count_at_random(
    ctx: &Context<'_, '_>,
    pairs: Option<&str>,
) -> Result<(Option<i64>, bool), CommandError> {
    match ctx.args.len() {
        2 => return Ok((None, false)),
        4.. if pairs.is_none() => return Err(CommandError::SYNTAX),
        _ => {}
    }
    let count = signed_count(ctx, 2)?;
    match (ctx.args.len(), pairs) {
        (3, _) => Ok((Some(count), false)),
        (4, Some(word)) if ctx.is(3, word) => {
            // The reply has two elements for each member.
            if count.unsigned_abs() > i64::MAX.unsigned_abs() >> 1 {
                return Err(TOO_MANY);
            }
            Ok((Some(count), true))
        }
        _ => Err(CommandError::SYNTAX),
    }
}

/// Refuses to reply with a negative count of members, which allows for repetitions, if it asks for
/// too many of these.
pub(crate) fn check_repetitions(count: i64) -> Result<(), CommandError> {
    if count < 0 && count.unsigned_abs() > REPETITIONS_MAX {
        return Err(TOO_MANY);
    }
    Ok(())
}

/// Writes a reply's part with repetitions. It stops where the reply becomes too long: for its
/// client, or for anybody.
pub(crate) fn repeat(times: usize, out: &mut Writer, mut one: impl FnMut(&mut Writer)) {
    let most = out.len().saturating_add(REPETITION_BYTES_MAX);
    for _ in 0..times {
        if out.is_over() {
            return;
        }
        if out.len() > most {
            return out.refuse();
        }
        one(out);
    }
}

#[cfg(test)]
mod tests {
    use super::range_of_places;

    #[test]
    fn places_count_from_either_end() {
        for (start, end, places) in [
            (0, 9, 0..3),
            (0, -1, 0..3),
            (-2, -1, 1..3),
            (-9, 0, 0..1),
            (1, 1, 1..2),
            (3, 9, 0..0),
            (2, 1, 0..0),
            (0, -4, 0..0),
            (i64::MIN, i64::MAX, 0..3),
            (i64::MAX, i64::MIN, 0..0),
        ] {
            assert_eq!(range_of_places(start, end, 3), places, "{start} {end}");
        }
        assert_eq!(range_of_places(0, -1, 0), 0..0);
    }
}
