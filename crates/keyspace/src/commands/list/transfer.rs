//! LMOVE, RPOPLPUSH: move an element from one list to another, or around in one.

use tidewheel_collections::List;
use tidewheel_store::Slot;

use super::pop::{first, remove};
use super::push::add;
use super::{ListEnd, Outcome, limits};
use crate::context::{Context, Key, Lookup};
use crate::error::CommandError;
use crate::value::collection;

pub(crate) fn rpoplpush(ctx: &mut Context<'_, '_>) -> Outcome {
    transfer(ctx, ListEnd::Right, ListEnd::Left)
}

pub(crate) fn lmove(ctx: &mut Context<'_, '_>) -> Outcome {
    let (from, to) = (ListEnd::of(ctx, 3)?, ListEnd::of(ctx, 4)?);
    transfer(ctx, from, to)
}

fn transfer(ctx: &mut Context<'_, '_>, from: ListEnd, to: ListEnd) -> Outcome {
    if !serve(ctx, from, to)? {
        ctx.out.null();
    }
    Ok(())
}

/// Moves an element from the first key to the second, and replies with it. False if there is none.
pub(super) fn serve(
    ctx: &mut Context<'_, '_>,
    from: ListEnd,
    to: ListEnd,
) -> Result<bool, CommandError> {
    let (source, destination) = (ctx.key(1), ctx.key(2));
    let Some(slot) = ctx.find_of::<List>(source, Lookup::Write)? else {
        return Ok(false);
    };
    if source.bytes == destination.bytes {
        rotate(ctx, source, slot, from, to);
        return Ok(true);
    }
    let into = ctx.find_of::<List>(destination, Lookup::Write)?;
    let limits = limits(ctx);
    let list = collection::read::<List>(ctx.entries(source), slot)?;
    let element = first(list, from).to_vec();
    ctx.out.bulk(&element);
    ctx.edit(destination, into, |list: &mut List, _| {
        add(list, to, &element, &limits);
        ((), Some(to.pushed()))
    });
    ctx.edit(source, Some(slot), |list: &mut List, _| {
        remove(list, from, 1, &limits);
        ((), Some(from.popped()))
    });
    Ok(true)
}

/// Both lists are the same one.
fn rotate(ctx: &mut Context<'_, '_>, key: Key<'_>, slot: Slot, from: ListEnd, to: ListEnd) {
    let limits = limits(ctx);
    ctx.edit(key, Some(slot), |list: &mut List, out| {
        let element = first(list.get(), from).to_vec();
        out.bulk(&element);
        remove(list, from, 1, &limits);
        add(list, to, &element, &limits);
        ((), Some(to.pushed()))
    });
    ctx.event(key, from.popped());
}
