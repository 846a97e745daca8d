//! LPUSH, RPUSH, LPUSHX, RPUSHX: add elements at the ends.

use tidewheel_collections::{List, ListLimits};

use super::{ListEnd, Outcome, limits};
use crate::context::{Context, Lookup};

pub(crate) fn lpush(ctx: &mut Context<'_, '_>) -> Outcome {
    push(ctx, ListEnd::Left, false)
}

pub(crate) fn rpush(ctx: &mut Context<'_, '_>) -> Outcome {
    push(ctx, ListEnd::Right, false)
}

pub(crate) fn lpushx(ctx: &mut Context<'_, '_>) -> Outcome {
    push(ctx, ListEnd::Left, true)
}

pub(crate) fn rpushx(ctx: &mut Context<'_, '_>) -> Outcome {
    push(ctx, ListEnd::Right, true)
}

fn push(ctx: &mut Context<'_, '_>, end: ListEnd, must_exist: bool) -> Outcome {
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
pub(super) fn add(list: &mut List, end: ListEnd, element: &[u8], limits: &ListLimits) {
    match end {
        ListEnd::Left => list.push_front(element, limits),
        ListEnd::Right => list.push_back(element, limits),
    }
}
