//! Adding elements at the ends.

use tidewheel_collections::{List, ListLimits};

use super::{End, Outcome, limits};
use crate::context::{Context, Lookup};

pub(crate) fn lpush(ctx: &mut Context<'_, '_>) -> Outcome {
    push(ctx, End::Left, false)
}

pub(crate) fn rpush(ctx: &mut Context<'_, '_>) -> Outcome {
    push(ctx, End::Right, false)
}

pub(crate) fn lpushx(ctx: &mut Context<'_, '_>) -> Outcome {
    push(ctx, End::Left, true)
}

pub(crate) fn rpushx(ctx: &mut Context<'_, '_>) -> Outcome {
    push(ctx, End::Right, true)
}

fn push(ctx: &mut Context<'_, '_>, end: End, must_exist: bool) -> Outcome {
    let (key, elements) = (ctx.key(1), ctx.args.from(2));
    let slot = ctx.find_of::<List>(key, Lookup::Write)?;
    if must_exist && slot.is_none() {
        ctx.out.integer(0);
        return Ok(());
    }
    let limits = limits(ctx);
    ctx.edit(key, slot, |list: &mut List, out| {
        for element in elements {
            add(list, end, element, &limits);
        }
        out.integer(list.get().len() as i64);
        ((), Some(end.pushed()))
    });
    Ok(())
}

/// Adds one element.
pub(super) fn add(list: &mut List, end: End, element: &[u8], limits: &ListLimits) {
    match end {
        End::Left => list.push_front(element, limits),
        End::Right => list.push_back(element, limits),
    }
}
