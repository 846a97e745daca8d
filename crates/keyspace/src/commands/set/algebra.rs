//! Several sets as one: SINTER, SUNION, SDIFF, the commands that store what these reply, and
//! SINTERCARD.

use std::ops::Range;

use tidewheel_collections::{NewDeadline, Set, SetRef};
use tidewheel_resp::Writer;

use super::Outcome;
use super::combine::{SetOperation, common};
use crate::commands::arguments::{count_of_keys, limit_of_count};
use crate::context::{Context, Lookup};
use crate::error::CommandError;
use crate::events::{Cause, NotifyClass};
use crate::value::collection;

const TOO_MANY_KEYS: CommandError =
    CommandError::fixed("ERR Number of keys can't be greater than number of args");

pub(crate) fn sinter(ctx: &mut Context<'_, '_>) -> Outcome {
    reply(ctx, SetOperation::Inter)
}

pub(crate) fn sunion(ctx: &mut Context<'_, '_>) -> Outcome {
    reply(ctx, SetOperation::Union)
}

pub(crate) fn sdiff(ctx: &mut Context<'_, '_>) -> Outcome {
    reply(ctx, SetOperation::Diff)
}

pub(crate) fn sinterstore(ctx: &mut Context<'_, '_>) -> Outcome {
    store(ctx, SetOperation::Inter, "sinterstore")
}

pub(crate) fn sunionstore(ctx: &mut Context<'_, '_>) -> Outcome {
    store(ctx, SetOperation::Union, "sunionstore")
}

pub(crate) fn sdiffstore(ctx: &mut Context<'_, '_>) -> Outcome {
    store(ctx, SetOperation::Diff, "sdiffstore")
}

pub(crate) fn sintercard(ctx: &mut Context<'_, '_>) -> Outcome {
    let keys = count_of_keys(ctx, 1)?;
    if keys > ctx.args.len() - 2 {
        return Err(TOO_MANY_KEYS);
    }
    let limit = parse_limit(ctx, 2 + keys)?;
    read(ctx, 2..2 + keys, |sets, out| {
        let mut n = 0;
        common(sets, limit, |_| n += 1);
        out.integer(n);
    })
}

/// The words behind the keys; the last limit counts.
fn parse_limit(ctx: &Context<'_, '_>, mut at: usize) -> Result<usize, CommandError> {
    let mut limit = usize::MAX;
    while at < ctx.args.len() {
        match ctx.args.get(at + 1) {
            Some(text) if ctx.is(at, "LIMIT") => limit = limit_of_count(text)?,
            _ => return Err(CommandError::SYNTAX),
        }
        at += 2;
    }
    Ok(limit)
}

fn reply(ctx: &mut Context<'_, '_>, op: SetOperation) -> Outcome {
    let keys = 1..ctx.args.len();
    read(ctx, keys, |sets, out| {
        // How many there are comes first in the reply and is known last.
        let mut members = Vec::new();
        op.apply(sets, |member| members.push(member));
        out.set(members.len());
        members.into_iter().for_each(|member| out.bulk(member));
    })
}

fn store(ctx: &mut Context<'_, '_>, op: SetOperation, event: &'static str) -> Outcome {
    let (keys, to) = (2..ctx.args.len(), ctx.key(1));
    let change = ctx.change(ctx.keyspace.rules().packing.set.get());
    // Made before anything is removed: the destination may be a source.
    let mut result = Set::new();
    read(ctx, keys, |sets, _| {
        let mut add = |member: &[u8]| {
            result.insert(member, NewDeadline::None, &change);
        };
        match op {
            // The result itself knows which members it has.
            SetOperation::Union => {
                let sets = sets.into_iter().flatten();
                sets.for_each(|set| set.for_each_to_copy(|entry| add(entry.key)));
            }
            _ => op.apply(sets, add),
        }
    })?;
    let len = ctx.put(to, result, Cause::Of(NotifyClass::Set, event));
    ctx.out.integer(len as i64);
    Ok(())
}

/// Calls `work` with the sets at some arguments, `None` for each that does not exist, and the
/// reply.
fn read<R>(
    ctx: &mut Context<'_, '_>,
    keys: Range<usize>,
    work: impl FnOnce(Vec<Option<SetRef<'_>>>, &mut Writer) -> R,
) -> Result<R, CommandError> {
    // First all that is due leaves: that may move the others.
    let mut alive = Vec::with_capacity(keys.len());
    for at in keys.clone() {
        let slot = ctx.find_of::<Set>(ctx.key(at), Lookup::Read)?;
        alive.push(slot.is_some());
    }
    let (args, keyspace) = (ctx.args, ctx.keyspace);
    let (several, out) = ctx.apart();
    let sets = keys.zip(alive).map(|(at, alive)| {
        let key = keyspace.key(&args[at]);
        let entries = several.entries(key);
        let slot = entries.find(key.hash, key.bytes).filter(|_| alive)?;
        collection::read::<Set>(entries, slot).ok()
    });
    Ok(work(sets.collect(), out))
}
