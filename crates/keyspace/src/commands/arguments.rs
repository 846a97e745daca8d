//! Numbers that mean the same in many calls: how many keys follow, and places counted from either end.

use std::ops::Range;

use tidewheel_resp::{Writer, parse_i64};

use crate::context::Context;
use crate::error::CommandError;

const NO_KEYS: CommandError = CommandError::fixed("ERR numkeys should be greater than 0");
const NEGATIVE_LIMIT: CommandError = CommandError::fixed("ERR LIMIT can't be negative");

/// The argument that says how many keys follow it.
pub(crate) fn count_of_keys(ctx: &Context<'_, '_>, argument: usize) -> Result<usize, CommandError> {
    let count = ctx.args.get(argument).and_then(parse_i64);
    let count = count.filter(|count| *count > 0).ok_or(NO_KEYS)?;
    Ok(usize::try_from(count).unwrap_or(usize::MAX))
}

/// How many members are counted at most: 0 is no limit.
pub(crate) fn limit_of_count(text: &[u8]) -> Result<usize, CommandError> {
    let limit = parse_i64(text).and_then(|limit| usize::try_from(limit).ok());
    match limit.ok_or(NEGATIVE_LIMIT)? {
        0 => Ok(usize::MAX),
        limit => Ok(limit),
    }
}

/// The places from `start` to `end`, both inclusive, among `len`. Negative ones count from the end: −1 is the last.
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

/// The most members that a call may ask for with repetitions. The public servers allow a number whose reply would take years;
/// nobody else would be served meanwhile.
const REPETITIONS_MAX: u64 = 1 << 24;

/// The most bytes of a reply with repetitions. A client that asks for more is cut off.
const REPETITION_BYTES_MAX: usize = 256 << 20;

/// Refuses a count of random members, of which a negative one allows for repetitions, if it asks for too many of these.
pub(crate) fn check_repetitions(count: Option<i64>) -> Result<(), CommandError> {
    match count {
        Some(count) if count < 0 && count.unsigned_abs() > REPETITIONS_MAX => {
            Err(CommandError::fixed("ERR value is out of range"))
        }
        _ => Ok(()),
    }
}

/// Writes a reply's part with repetitions. It stops where the reply becomes too long: for its client, or for anybody.
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
