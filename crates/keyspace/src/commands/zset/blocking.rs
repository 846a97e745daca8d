//! BZPOPMIN, BZPOPMAX, BZMPOP: wait until a sorted set has members.

use tidewheel_collections::ZSet;
use tidewheel_resp::Writer;

use super::Outcome;
use super::pop::{ZSetEnd, parse_mpop, pop};
use super::reply::Layout;
use crate::commands::arguments::count_of_keys;
use crate::commands::blocking::{ServeFn, serve_or_wait, timeout};
use crate::context::{Context, Lookup};
use crate::error::CommandError;
use crate::waiters::AwaitedKeys;

pub(crate) fn bzpopmin(ctx: &mut Context<'_, '_>) -> Outcome {
    pop_one(ctx, serve_bzpopmin)
}

pub(crate) fn serve_bzpopmin(ctx: &mut Context<'_, '_>, at: usize) -> Result<bool, CommandError> {
    serve(ctx, at, ZSetEnd::Min)
}

pub(crate) fn bzpopmax(ctx: &mut Context<'_, '_>) -> Outcome {
    pop_one(ctx, serve_bzpopmax)
}

pub(crate) fn serve_bzpopmax(ctx: &mut Context<'_, '_>, at: usize) -> Result<bool, CommandError> {
    serve(ctx, at, ZSetEnd::Max)
}

fn pop_one(ctx: &mut Context<'_, '_>, serve: ServeFn) -> Outcome {
    let last = ctx.args.len() - 1;
    let ms = timeout(ctx, last)?;
    let wanted = AwaitedKeys::of::<ZSet>(1..last, ms);
    serve_or_wait(ctx, wanted, serve, Writer::null_array)
}

fn serve(ctx: &mut Context<'_, '_>, at: usize, end: ZSetEnd) -> Result<bool, CommandError> {
    let key = ctx.key(at);
    let Some(slot) = ctx.find_of::<ZSet>(key, Lookup::Write)? else {
        return Ok(false);
    };
    ctx.out.array(3);
    ctx.out.bulk(key.bytes);
    pop(ctx, key, slot, end, 1, Layout::Bare);
    Ok(true)
}

pub(crate) fn bzmpop(ctx: &mut Context<'_, '_>) -> Outcome {
    let ms = timeout(ctx, 1)?;
    let keys = count_of_keys(ctx, 2)?;
    parse_mpop(ctx, keys.saturating_add(3))?;
    let wanted = AwaitedKeys::of::<ZSet>(3..3 + keys, ms);
    serve_or_wait(ctx, wanted, serve_bzmpop, Writer::null_array)
}

pub(crate) fn serve_bzmpop(ctx: &mut Context<'_, '_>, at: usize) -> Result<bool, CommandError> {
    let keys = count_of_keys(ctx, 2)?;
    let (end, count) = parse_mpop(ctx, keys.saturating_add(3))?;
    let key = ctx.key(at);
    let Some(slot) = ctx.find_of::<ZSet>(key, Lookup::Write)? else {
        return Ok(false);
    };
    ctx.out.array(2);
    ctx.out.bulk(key.bytes);
    pop(ctx, key, slot, end, count, Layout::Pairs);
    Ok(true)
}
