//! LPOP, RPOP, LMPOP: take elements from the ends.

use tidewheel_collections::{List, ListLimits, ListRef};
use tidewheel_resp::{Writer, parse_i64};
use tidewheel_store::Slot;

use super::{ListEnd, Outcome, limits};
use crate::commands::arguments::count_of_pop;
use crate::context::{Context, Key, Lookup};
use crate::error::CommandError;

const NOT_POSITIVE: CommandError =
    CommandError::fixed("ERR value is out of range, must be positive");
const NO_KEYS: CommandError = CommandError::fixed("ERR numkeys should be greater than 0");

pub(crate) fn lpop(ctx: &mut Context<'_, '_>) -> Outcome {
    pop(ctx, ListEnd::Left, "lpop")
}

pub(crate) fn rpop(ctx: &mut Context<'_, '_>) -> Outcome {
    pop(ctx, ListEnd::Right, "rpop")
}

fn pop(ctx: &mut Context<'_, '_>, end: ListEnd, name: &str) -> Outcome {
    let count = match ctx.args.get(2) {
        _ if ctx.args.len() > 3 => return Err(CommandError::wrong_arity(name)),
        Some(count) => Some(number(count, 0).ok_or(NOT_POSITIVE)?),
        None => None,
    };
    let key = ctx.key(1);
    let slot = ctx.find_of::<List>(key, Lookup::Write)?;
    match (slot, count) {
        (None, None) => ctx.out.null(),
        (None, Some(_)) => ctx.out.null_array(),
        (Some(_), Some(0)) => ctx.out.array(0),
        (Some(slot), None) => take_one(ctx, key, slot, end),
        (Some(slot), Some(count)) => take(ctx, key, slot, end, count),
    }
    Ok(())
}

pub(crate) fn lmpop(ctx: &mut Context<'_, '_>) -> Outcome {
    let call = LmpopCall::read(ctx, 1)?;
    for at in call.keys.clone() {
        if call.serve(ctx, at)? {
            return Ok(());
        }
    }
    ctx.out.null_array();
    Ok(())
}

/// The arguments of LMPOP.
pub(super) struct LmpopCall {
    /// The positions of the keys.
    pub(super) keys: std::ops::Range<usize>,
    end: ListEnd,
    count: usize,
}

impl LmpopCall {
    /// Reads the arguments from the number of keys on.
    pub(super) fn read(ctx: &Context<'_, '_>, at: usize) -> Result<Self, CommandError> {
        let n = ctx.args.get(at).and_then(|n| number(n, 1)).ok_or(NO_KEYS)?;
        let keys = at + 1..(at + 1).saturating_add(n);
        if keys.end >= ctx.args.len() {
            return Err(CommandError::SYNTAX);
        }
        let end = ListEnd::of(ctx, keys.end)?;
        let count = count_of_pop(ctx, keys.end + 1)?;
        Ok(Self { keys, end, count })
    }

    /// Replies with elements of one of the keys. False if there are none.
    pub(super) fn serve(&self, ctx: &mut Context<'_, '_>, at: usize) -> Result<bool, CommandError> {
        let key = ctx.key(at);
        let Some(slot) = ctx.find_of::<List>(key, Lookup::Write)? else {
            return Ok(false);
        };
        ctx.out.array(2);
        ctx.out.bulk(key.bytes);
        take(ctx, key, slot, self.end, self.count);
        Ok(true)
    }
}

/// A number that is at least `least`.
fn number(bytes: &[u8], least: i64) -> Option<usize> {
    let number = parse_i64(bytes).filter(|n| *n >= least)?;
    usize::try_from(number).ok()
}

/// Takes an element from a list, and replies with it.
pub(super) fn take_one(ctx: &mut Context<'_, '_>, key: Key<'_>, slot: Slot, end: ListEnd) {
    let limits = limits(ctx);
    ctx.edit(key, Some(slot), |list: &mut List, out| {
        out.bulk(first(list.get(), end));
        remove(list, end, 1, &limits);
        ((), Some(end.popped()))
    });
}

/// Takes up to `count` elements from a list, and replies with them.
fn take(ctx: &mut Context<'_, '_>, key: Key<'_>, slot: Slot, end: ListEnd, count: usize) {
    let limits = limits(ctx);
    ctx.edit(key, Some(slot), |list: &mut List, out| {
        let count = count.min(list.get().len());
        out.array(count);
        write(list.get(), end, count, out);
        remove(list, end, count, &limits);
        ((), Some(end.popped()))
    });
}

fn write(list: ListRef<'_>, end: ListEnd, count: usize, out: &mut Writer) {
    match end {
        ListEnd::Left => {
            list.forward(0)
                .take(count)
                .for_each(|element| out.bulk(element));
        }
        ListEnd::Right => {
            list.backward(list.len() - 1)
                .take(count)
                .for_each(|element| out.bulk(element));
        }
    }
}

/// The element at an end of a list, which is never empty.
pub(super) fn first(list: ListRef<'_>, end: ListEnd) -> &[u8] {
    let element = match end {
        ListEnd::Left => list.get(0),
        ListEnd::Right => list.get(list.len().saturating_sub(1)),
    };
    element.unwrap_or_default()
}

/// Removes elements at an end.
pub(super) fn remove(list: &mut List, end: ListEnd, count: usize, limits: &ListLimits) {
    match end {
        ListEnd::Left => list.drop_front(count, limits),
        ListEnd::Right => list.drop_back(count, limits),
    }
    list.pack(limits);
}
