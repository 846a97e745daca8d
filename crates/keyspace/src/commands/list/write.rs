//! LSET, LINSERT, LREM, LTRIM: change a list in its middle.

use tidewheel_collections::{List, Occurrences};

use super::{Outcome, caused, limits, position, span};
use crate::commands::arguments::signed_count;
use crate::context::{Context, Lookup};
use crate::error::CommandError;

const INDEX_OUT_OF_RANGE: CommandError = CommandError::fixed("ERR index out of range");

pub(crate) fn lset(ctx: &mut Context<'_, '_>) -> Outcome {
    let (key, args) = (ctx.key(1), ctx.args);
    let element = &args[3];
    let slot = ctx.find_of::<List>(key, Lookup::Write)?;
    if slot.is_none() {
        return Err(CommandError::NO_SUCH_KEY);
    }
    let index = ctx.integer(2)?;
    let limits = limits(ctx);
    let is_set = ctx.edit(key, slot, |list: &mut List, _| {
        let at = usize::try_from(position(index, list.get().len()));
        let is_set = at.is_ok_and(|at| list.set(at, element, &limits));
        if is_set {
            list.pack(&limits);
        }
        (is_set, is_set.then(|| caused("lset")))
    });
    if !is_set {
        return Err(INDEX_OUT_OF_RANGE);
    }
    ctx.out.ok();
    Ok(())
}

pub(crate) fn linsert(ctx: &mut Context<'_, '_>) -> Outcome {
    let behind = match () {
        () if ctx.is(2, "AFTER") => 1,
        () if ctx.is(2, "BEFORE") => 0,
        () => return Err(CommandError::SYNTAX),
    };
    let (key, args) = (ctx.key(1), ctx.args);
    let (pivot, element) = (&args[3], &args[4]);
    let slot = ctx.find_of::<List>(key, Lookup::Write)?;
    if slot.is_none() {
        ctx.out.integer(0);
        return Ok(());
    }
    let limits = limits(ctx);
    let len = ctx.edit(key, slot, |list: &mut List, _| {
        let Some(at) = first_of(list, pivot) else {
            return (-1, None);
        };
        list.insert(at + behind, element, &limits);
        (list.get().len() as i64, Some(caused("linsert")))
    });
    ctx.out.integer(len);
    Ok(())
}

fn first_of(list: &List, element: &[u8]) -> Option<usize> {
    let first = Occurrences {
        skip: 0,
        count: 1,
        elements: usize::MAX,
        from_back: false,
    };
    let mut found = None;
    list.get().positions(element, first, |at| {
        found = Some(at);
        false
    });
    found
}

pub(crate) fn lrem(ctx: &mut Context<'_, '_>) -> Outcome {
    let (key, args, count) = (ctx.key(1), ctx.args, signed_count(ctx, 2)?);
    let element = &args[3];
    let slot = ctx.find_of::<List>(key, Lookup::Write)?;
    let max = match count {
        0 => usize::MAX,
        count => count.unsigned_abs() as usize,
    };
    let limits = limits(ctx);
    let gone = ctx.edit(key, slot, |list: &mut List, _| {
        let gone = list.remove_value(element, max, count < 0, &limits);
        if gone > 0 {
            list.pack(&limits);
        }
        (gone as i64, (gone > 0).then(|| caused("lrem")))
    });
    ctx.out.integer(gone);
    Ok(())
}

pub(crate) fn ltrim(ctx: &mut Context<'_, '_>) -> Outcome {
    let (start, end) = (ctx.integer(2)?, ctx.integer(3)?);
    let key = ctx.key(1);
    let slot = ctx.find_of::<List>(key, Lookup::Write)?;
    if slot.is_some() {
        let limits = limits(ctx);
        ctx.edit(key, slot, |list: &mut List, _| {
            let (start, count) = span(start, end, list.get().len());
            list.trim(start, count, &limits);
            list.pack(&limits);
            ((), Some(caused("ltrim")))
        });
    }
    ctx.out.ok();
    Ok(())
}
