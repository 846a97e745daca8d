//! Writes and removes fields: HSET, HMSET, HSETNX, HDEL.

use tidewheel_collections::{Hash, NewDeadline};

use super::Outcome;
use crate::context::{Context, Lookup};
use crate::error::CommandError;
use crate::events::{Cause, NotifyClass};

const HSET: Cause = Cause::Of(NotifyClass::Hash, "hset");
const HDEL: Cause = Cause::Of(NotifyClass::Hash, "hdel");

pub(crate) fn hset(ctx: &mut Context<'_, '_>) -> Outcome {
    let new = set_pairs(ctx)?;
    ctx.out.integer(new);
    Ok(())
}

pub(crate) fn hmset(ctx: &mut Context<'_, '_>) -> Outcome {
    set_pairs(ctx)?;
    ctx.out.ok();
    Ok(())
}

/// Writes fields. Returns how many are new.
fn set_pairs(ctx: &mut Context<'_, '_>) -> Result<i64, CommandError> {
    let pairs = ctx.args.from(2);
    if !pairs.len().is_multiple_of(2) {
        return Err(CommandError::wrong_arity(ctx.name()));
    }
    let key = ctx.key(1);
    let slot = ctx.find_of::<Hash>(key, Lookup::Write)?;
    let change = ctx.change(ctx.keyspace.rules().packing.hash.get());
    let new = ctx.edit(key, slot, |hash: &mut Hash, _| {
        let mut new = 0;
        for i in (0..pairs.len()).step_by(2) {
            let is_new = hash.insert(&pairs[i], &pairs[i + 1], NewDeadline::None, &change);
            new += i64::from(is_new);
        }
        (new, Some(HSET))
    });
    Ok(new)
}

pub(crate) fn hsetnx(ctx: &mut Context<'_, '_>) -> Outcome {
    let (key, args) = (ctx.key(1), ctx.args);
    let (field, value) = (&args[2], &args[3]);
    let slot = ctx.find_of::<Hash>(key, Lookup::Write)?;
    let change = ctx.change(ctx.keyspace.rules().packing.hash.get());
    let new = ctx.edit(key, slot, |hash: &mut Hash, _| {
        if hash.get().contains(field) {
            return (false, None);
        }
        hash.insert(field, value, NewDeadline::None, &change);
        (true, Some(HSET))
    });
    ctx.out.integer(new.into());
    Ok(())
}

pub(crate) fn hdel(ctx: &mut Context<'_, '_>) -> Outcome {
    let (key, fields) = (ctx.key(1), ctx.args.from(2));
    let slot = ctx.find_of::<Hash>(key, Lookup::Write)?;
    let gone = ctx.edit(key, slot, |hash: &mut Hash, _| {
        let gone = fields.iter().filter(|field| hash.remove(field)).count();
        (gone as i64, (gone > 0).then_some(HDEL))
    });
    ctx.out.integer(gone);
    Ok(())
}
