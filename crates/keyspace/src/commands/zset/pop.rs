//! ZPOPMIN, ZPOPMAX, ZMPOP: take the first or the last members.

use tidewheel_collections::ZSet;
use tidewheel_resp::{Protocol, Writer};
use tidewheel_store::Slot;

use super::reply::Layout;
use super::{Outcome, event};
use crate::commands::arguments::{count_of_keys, count_of_pop};
use crate::context::{Context, Key, Lookup};
use crate::error::CommandError;

const NOT_POSITIVE: CommandError =
    CommandError::fixed("ERR value is out of range, must be positive");

/// The end that members are taken from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ZSetEnd {
    Min,
    Max,
}

pub(crate) fn zpopmin(ctx: &mut Context<'_, '_>) -> Outcome {
    pop_one(ctx, ZSetEnd::Min)
}

pub(crate) fn zpopmax(ctx: &mut Context<'_, '_>) -> Outcome {
    pop_one(ctx, ZSetEnd::Max)
}

fn pop_one(ctx: &mut Context<'_, '_>, end: ZSetEnd) -> Outcome {
    let count = match ctx.args.len() {
        2 => None,
        3 => {
            let count = ctx.integer(2).map_err(|_| NOT_POSITIVE)?;
            Some(usize::try_from(count).map_err(|_| NOT_POSITIVE)?)
        }
        _ => return Err(CommandError::SYNTAX),
    };
    // One member and its score are a pair already, if the call names no count.
    let layout = match (count, ctx.out.protocol()) {
        (Some(_), Protocol::Resp3) => Layout::Pairs,
        _ => Layout::Flat,
    };
    let key = ctx.key(1);
    match ctx.find_of::<ZSet>(key, Lookup::Write)? {
        Some(slot) => pop(ctx, key, slot, end, count.unwrap_or(1), layout),
        None => ctx.out.array(0),
    }
    Ok(())
}

/// Takes members out and replies with them.
pub(super) fn pop(
    ctx: &mut Context<'_, '_>,
    key: Key<'_>,
    slot: Slot,
    end: ZSetEnd,
    count: usize,
    layout: Layout,
) {
    let cause = match end {
        ZSetEnd::Min => event("zpopmin"),
        ZSetEnd::Max => event("zpopmax"),
    };
    ctx.edit(key, Some(slot), |zset: &mut ZSet, out| {
        let n = count.min(zset.get().len());
        layout.head(out, n);
        match end {
            ZSetEnd::Min => pop_first(zset, n, layout, out),
            ZSetEnd::Max => pop_last(zset, n, layout, out),
        }
        ((), (n > 0).then_some(cause))
    });
}

fn pop_first(zset: &mut ZSet, n: usize, layout: Layout, out: &mut Writer) {
    zset.remove_range(0..n, |entry| layout.put(out, entry.member, entry.score));
}

fn pop_last(zset: &mut ZSet, n: usize, layout: Layout, out: &mut Writer) {
    let len = zset.get().len();
    let last = zset.get().backward(len.saturating_sub(1)).take(n);
    last.for_each(|entry| layout.put(out, entry.member, entry.score));
    zset.remove_range(len - n..len, |_| {});
}

pub(crate) fn zmpop(ctx: &mut Context<'_, '_>) -> Outcome {
    let keys = count_of_keys(ctx, 1)?;
    let (end, count) = parse_mpop(ctx, keys.saturating_add(2))?;
    for argument in 2..2 + keys {
        let key = ctx.key(argument);
        if let Some(slot) = ctx.find_of::<ZSet>(key, Lookup::Write)? {
            ctx.out.array(2);
            ctx.out.bulk(key.bytes);
            pop(ctx, key, slot, end, count, Layout::Pairs);
            return Ok(());
        }
    }
    ctx.out.null_array();
    Ok(())
}

/// Reads the words behind the keys: which end, and how many members.
pub(super) fn parse_mpop(
    ctx: &Context<'_, '_>,
    at: usize,
) -> Result<(ZSetEnd, usize), CommandError> {
    let end = if ctx.is(at, "MIN") {
        ZSetEnd::Min
    } else if ctx.is(at, "MAX") {
        ZSetEnd::Max
    } else {
        return Err(CommandError::SYNTAX);
    };
    let count = count_of_pop(ctx, at + 1)?;
    Ok((end, count))
}
