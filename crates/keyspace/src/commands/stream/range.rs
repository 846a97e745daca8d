//! XRANGE, XREVRANGE: entries between two ids.

use super::reply::Span;
use super::{Outcome, id, one};
use crate::context::Context;
use crate::error::CommandError;

pub(crate) fn xrange(ctx: &mut Context<'_, '_>) -> Outcome {
    range(ctx, false)
}

pub(crate) fn xrevrange(ctx: &mut Context<'_, '_>) -> Outcome {
    range(ctx, true)
}

fn range(ctx: &mut Context<'_, '_>, reverse: bool) -> Outcome {
    let args = ctx.args;
    let (low, high) = if reverse { (3, 2) } else { (2, 3) };
    let start = id::parse_start(&args[low])?;
    let end = id::parse_end(&args[high])?;
    let mut most = usize::MAX;
    let mut i = 4;
    while i < args.len() {
        if !ctx.is(i, "COUNT") || i + 1 == args.len() {
            return Err(CommandError::SYNTAX);
        }
        most = usize::try_from(ctx.integer(i + 1)?).unwrap_or(0);
        i += 2;
    }
    let span = Span {
        start,
        end,
        reverse,
        most,
    };
    one(ctx, |stream, out| match stream {
        None => out.array(0),
        Some(_) if most == 0 => out.null_array(),
        Some(stream) => span.write(&stream.log, out),
    })
}
