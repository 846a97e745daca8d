//! SADD, SREM, SMOVE, SISMEMBER and their relatives: single members.

use tidewheel_collections::{NewDeadline, Set, SetRef};
use tidewheel_resp::Writer;

use super::Outcome;
use crate::context::{Context, Lookup};
use crate::events::{Cause, NotifyClass};

const SADD: Cause = Cause::Of(NotifyClass::Set, "sadd");
const SREM: Cause = Cause::Of(NotifyClass::Set, "srem");

pub(crate) fn sadd(ctx: &mut Context<'_, '_>) -> Outcome {
    let (key, members) = (ctx.key(1), ctx.args.from(2));
    let slot = ctx.find_of::<Set>(key, Lookup::Write)?;
    let change = ctx.change(ctx.keyspace.rules().packing.set.get());
    let new = ctx.edit(key, slot, |set: &mut Set, _| {
        let is_new = |member: &&[u8]| set.insert(member, NewDeadline::Keep, &change);
        let new = members.iter().filter(is_new).count();
        (new as i64, (new > 0).then_some(SADD))
    });
    ctx.out.integer(new);
    Ok(())
}

pub(crate) fn srem(ctx: &mut Context<'_, '_>) -> Outcome {
    let (key, members) = (ctx.key(1), ctx.args.from(2));
    let slot = ctx.find_of::<Set>(key, Lookup::Write)?;
    let gone = ctx.edit(key, slot, |set: &mut Set, _| {
        let gone = members.iter().filter(|member| set.remove(member)).count();
        (gone as i64, (gone > 0).then_some(SREM))
    });
    ctx.out.integer(gone);
    Ok(())
}

pub(crate) fn smove(ctx: &mut Context<'_, '_>) -> Outcome {
    let (from, to, args) = (ctx.key(1), ctx.key(2), ctx.args);
    let member = args.get(3).unwrap_or_default();
    let source = ctx.find_of::<Set>(from, Lookup::Write)?;
    if source.is_some() {
        ctx.find_of::<Set>(to, Lookup::Write)?;
    }
    if from.bytes == to.bytes {
        let is_there = |set: Option<SetRef<'_>>| set.is_some_and(|set| set.contains(member));
        return ctx.read::<Set, _>(from, Lookup::Write, |set, out| {
            out.integer(is_there(set).into());
        });
    }
    let moved = source.is_some()
        && ctx.edit(from, source, |set: &mut Set, _| {
            let gone = set.remove(member);
            (gone, gone.then_some(SREM))
        });
    if moved {
        // Looked up again: the first change may have moved it.
        let slot = ctx.find_at(to, ctx.session.db);
        let change = ctx.change(ctx.keyspace.rules().packing.set.get());
        ctx.edit(to, slot, |set: &mut Set, _| {
            let new = set.insert(member, NewDeadline::Keep, &change);
            ((), new.then_some(SADD))
        });
    }
    ctx.out.integer(moved.into());
    Ok(())
}

pub(crate) fn scard(ctx: &mut Context<'_, '_>) -> Outcome {
    one(ctx, |set, out| {
        out.integer(set.map_or(0, SetRef::len) as i64);
    })
}

pub(crate) fn sismember(ctx: &mut Context<'_, '_>) -> Outcome {
    let member = ctx.args.get(2).unwrap_or_default();
    one(ctx, |set, out| {
        out.integer(set.is_some_and(|set| set.contains(member)).into());
    })
}

pub(crate) fn smismember(ctx: &mut Context<'_, '_>) -> Outcome {
    let members = ctx.args.from(2);
    one(ctx, |set, out| {
        out.array(members.len());
        for member in members {
            out.integer(set.is_some_and(|set| set.contains(member)).into());
        }
    })
}

pub(crate) fn smembers(ctx: &mut Context<'_, '_>) -> Outcome {
    one(ctx, |set, out| {
        out.set(set.map_or(0, SetRef::len));
        if let Some(set) = set {
            set.for_each(|entry| out.bulk(entry.key));
        }
    })
}

/// Reads the set of the call's key, and replies.
fn one(ctx: &mut Context<'_, '_>, reply: impl FnOnce(Option<SetRef<'_>>, &mut Writer)) -> Outcome {
    let key = ctx.key(1);
    ctx.read::<Set, _>(key, Lookup::Read, reply)
}
