//! XRANGE, XREVRANGE: entries between two ids.

use tidewheel_collections::Stream;
use tidewheel_resp::{Args, parse_i64};
use tidewheel_store::Slot;

use super::reply::Span;
use super::{Outcome, id, one};
use crate::context::Context;
use crate::error::CommandError;
use crate::value::{Entries, collection};

/// The most entries that are counted to know whether a call takes long.
const COUNTED_MAX: usize = 1 << 14;

pub(crate) fn xrange(ctx: &mut Context<'_, '_>) -> Outcome {
    range(ctx, false)
}

pub(crate) fn xrevrange(ctx: &mut Context<'_, '_>) -> Outcome {
    range(ctx, true)
}

/// Reads the ends and the words behind them.
fn parse(args: Args<'_>, reverse: bool) -> Result<Span, CommandError> {
    let (low, high) = if reverse { (3, 2) } else { (2, 3) };
    let start = id::parse_start(&args[low])?;
    let end = id::parse_end(&args[high])?;
    let mut most = usize::MAX;
    let mut i = 4;
    while let Some(word) = args.get(i) {
        let count = args
            .get(i + 1)
            .filter(|_| word.eq_ignore_ascii_case(b"COUNT"));
        let count = parse_i64(count.ok_or(CommandError::SYNTAX)?);
        most = usize::try_from(count.ok_or(CommandError::NOT_AN_INTEGER)?).unwrap_or(0);
        i += 2;
    }
    Ok(Span {
        start,
        end,
        reverse,
        most,
    })
}

fn range(ctx: &mut Context<'_, '_>, reverse: bool) -> Outcome {
    let span = parse(ctx.args, reverse)?;
    one(ctx, |stream, out| match stream {
        None => out.array(0),
        Some(_) if span.most == 0 => out.null_array(),
        Some(stream) => span.write(&stream.log, out),
    })
}

/// The entries that a call visits, counted up to some thousands.
pub(crate) fn count_of_ids(entries: &Entries, slot: Slot, reverse: bool, args: Args<'_>) -> usize {
    let (Ok(span), Ok(stream)) = (
        parse(args, reverse),
        collection::read::<Stream>(entries, slot),
    ) else {
        return 0;
    };
    let within = stream.log.range(span.start, span.end);
    within.take(span.most.min(COUNTED_MAX)).count()
}
