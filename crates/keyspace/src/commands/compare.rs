//! Conditions on a string's value: SET with IFEQ or IFNE, DELEX and DELIFEQ.
//!
//! They are what a lock's owner needs to renew or to release it, without a script.

use crate::context::{Context, Key, Lookup};
use crate::error::CommandError;
use crate::events::Cause;
use crate::value;

type Outcome = Result<(), CommandError>;

/// What is asked of a value; the number is the argument that it is compared with.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Comparison {
    Equals(usize),
    Differs(usize),
}

/// Compares a key's string as asked for. Where there is no key, nothing is equal.
pub(crate) fn holds(
    ctx: &mut Context<'_, '_>,
    key: Key<'_>,
    comparison: Comparison,
) -> Result<bool, CommandError> {
    let (Comparison::Equals(argument) | Comparison::Differs(argument)) = comparison;
    let wanted = ctx.args.get(argument).unwrap_or_default();
    let is_equal = match ctx.find(key, Lookup::Read) {
        None => false,
        Some(slot) => value::bytes(&value::string(ctx.entries(key), slot)?) == wanted,
    };
    Ok(is_equal == matches!(comparison, Comparison::Equals(_)))
}

pub(crate) fn delifeq(ctx: &mut Context<'_, '_>) -> Outcome {
    delete_if(ctx, Comparison::Equals(2))
}

pub(crate) fn delex(ctx: &mut Context<'_, '_>) -> Outcome {
    match ctx.args.len() {
        2 => {
            let key = ctx.key(1);
            let slot = ctx.find(key, Lookup::Write);
            delete(ctx, key, slot.is_some())
        }
        4 if ctx.is(2, "IFEQ") => delete_if(ctx, Comparison::Equals(3)),
        4 if ctx.is(2, "IFNE") => delete_if(ctx, Comparison::Differs(3)),
        _ => Err(CommandError::SYNTAX),
    }
}

fn delete_if(ctx: &mut Context<'_, '_>, comparison: Comparison) -> Outcome {
    let key = ctx.key(1);
    let holds = holds(ctx, key, comparison)?;
    delete(ctx, key, holds)
}

/// Deletes a key if that is wanted, and it exists.
fn delete(ctx: &mut Context<'_, '_>, key: Key<'_>, wanted: bool) -> Outcome {
    let slot = ctx.find_at(key, ctx.session.db).filter(|_| wanted);
    if let Some(slot) = slot {
        ctx.remove(key, slot, Cause::Del);
    }
    ctx.out.integer(slot.is_some().into());
    Ok(())
}
