//! BLPOP, BLMPOP, BLMOVE and their relatives: wait until a list has elements.

use tidewheel_collections::List;
use tidewheel_resp::Writer;

use super::pop::{LmpopCall, take_one};
use super::{ListEnd, Outcome, transfer};
use crate::commands::blocking::{ServeFn, serve_or_wait, timeout};
use crate::context::{Context, Lookup};
use crate::error::CommandError;
use crate::waiters::AwaitedKeys;

pub(crate) fn blpop(ctx: &mut Context<'_, '_>) -> Outcome {
    pop(ctx, serve_blpop)
}

pub(crate) fn serve_blpop(ctx: &mut Context<'_, '_>, at: usize) -> Result<bool, CommandError> {
    serve(ctx, at, ListEnd::Left)
}

pub(crate) fn brpop(ctx: &mut Context<'_, '_>) -> Outcome {
    pop(ctx, serve_brpop)
}

pub(crate) fn serve_brpop(ctx: &mut Context<'_, '_>, at: usize) -> Result<bool, CommandError> {
    serve(ctx, at, ListEnd::Right)
}

fn pop(ctx: &mut Context<'_, '_>, serve: ServeFn) -> Outcome {
    let last = ctx.args.len() - 1;
    let ms = timeout(ctx, last)?;
    let wanted = AwaitedKeys::of::<List>(1..last, ms);
    serve_or_wait(ctx, wanted, serve, Writer::null_array)
}

fn serve(ctx: &mut Context<'_, '_>, at: usize, end: ListEnd) -> Result<bool, CommandError> {
    let key = ctx.key(at);
    let Some(slot) = ctx.find_of::<List>(key, Lookup::Write)? else {
        return Ok(false);
    };
    ctx.out.array(2);
    ctx.out.bulk(key.bytes);
    take_one(ctx, key, slot, end);
    Ok(true)
}

pub(crate) fn blmpop(ctx: &mut Context<'_, '_>) -> Outcome {
    let ms = timeout(ctx, 1)?;
    let keys = LmpopCall::read(ctx, 2)?.keys;
    let wanted = AwaitedKeys::of::<List>(keys, ms);
    serve_or_wait(ctx, wanted, serve_blmpop, Writer::null_array)
}

pub(crate) fn serve_blmpop(ctx: &mut Context<'_, '_>, at: usize) -> Result<bool, CommandError> {
    LmpopCall::read(ctx, 2)?.serve(ctx, at)
}

pub(crate) fn brpoplpush(ctx: &mut Context<'_, '_>) -> Outcome {
    let ms = timeout(ctx, 3)?;
    transfer(ctx, ms, serve_brpoplpush)
}

pub(crate) fn serve_brpoplpush(ctx: &mut Context<'_, '_>, _: usize) -> Result<bool, CommandError> {
    transfer::serve(ctx, ListEnd::Right, ListEnd::Left)
}

pub(crate) fn blmove(ctx: &mut Context<'_, '_>) -> Outcome {
    ends(ctx)?;
    let ms = timeout(ctx, 5)?;
    transfer(ctx, ms, serve_blmove)
}

pub(crate) fn serve_blmove(ctx: &mut Context<'_, '_>, _: usize) -> Result<bool, CommandError> {
    let (from, to) = ends(ctx)?;
    transfer::serve(ctx, from, to)
}

fn ends(ctx: &Context<'_, '_>) -> Result<(ListEnd, ListEnd), CommandError> {
    Ok((ListEnd::of(ctx, 3)?, ListEnd::of(ctx, 4)?))
}

fn transfer(ctx: &mut Context<'_, '_>, ms: Option<u64>, serve: ServeFn) -> Outcome {
    let wanted = AwaitedKeys {
        also: Some(2),
        ..AwaitedKeys::of::<List>(1..2, ms)
    };
    serve_or_wait(ctx, wanted, serve, Writer::null)
}
