//! ZREMRANGEBYRANK, ZREMRANGEBYSCORE, ZREMRANGEBYLEX: remove a range of members.

use std::ops::Range;

use tidewheel_collections::{ZSet, ZSetRef};

use super::bounds::{LexRange, ScoreRange};
use super::{Outcome, event};
use crate::commands::arguments::range_of_places;
use crate::context::{Context, Lookup};
use crate::events::Cause;

pub(crate) fn zremrangebyrank(ctx: &mut Context<'_, '_>) -> Outcome {
    let (start, end) = (ctx.integer(2)?, ctx.integer(3)?);
    remove(ctx, event("zremrangebyrank"), |zset| {
        range_of_places(start, end, zset.len())
    })
}

pub(crate) fn zremrangebyscore(ctx: &mut Context<'_, '_>) -> Outcome {
    let range = ScoreRange::parse(&ctx.args[2], &ctx.args[3])?;
    remove(ctx, event("zremrangebyscore"), |zset| range.ranks(zset))
}

pub(crate) fn zremrangebylex(ctx: &mut Context<'_, '_>) -> Outcome {
    let args = ctx.args;
    let range = LexRange::parse(&args[2], &args[3])?;
    remove(ctx, event("zremrangebylex"), |zset| {
        range.ranks_within(zset)
    })
}

fn remove(
    ctx: &mut Context<'_, '_>,
    cause: Cause,
    ranks: impl FnOnce(ZSetRef<'_>) -> Range<usize>,
) -> Outcome {
    let key = ctx.key(1);
    let slot = ctx.find_of::<ZSet>(key, Lookup::Write)?;
    let gone = ctx.edit(key, slot, |zset: &mut ZSet, _| {
        let ranks = ranks(zset.get());
        let gone = ranks.len();
        zset.remove_range(ranks, |_| {});
        (gone as i64, (gone > 0).then_some(cause))
    });
    ctx.out.integer(gone);
    Ok(())
}
