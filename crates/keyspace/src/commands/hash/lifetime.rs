//! Fields with a lifetime in one call: HGETEX, HSETEX, HGETDEL.

use tidewheel_collections::{Hash, HashRef, NewDeadline};
use tidewheel_resp::Writer;

use super::Outcome;
use crate::commands::lifetime::{Lifetime, LifetimeOption, invalid_expire_time};
use crate::commands::members::{is_of_members, named};
use crate::context::{Context, Lookup};
use crate::error::CommandError;
use crate::events::{Cause, NotifyClass};

const HSET: Cause = Cause::Of(NotifyClass::Hash, "hset");
const HDEL: Cause = Cause::Of(NotifyClass::Hash, "hdel");
const HEXPIRE: Cause = Cause::Of(NotifyClass::Hash, "hexpire");
const HPERSIST: Cause = Cause::Of(NotifyClass::Hash, "hpersist");

fn reply_value(hash: HashRef<'_>, field: &[u8], out: &mut Writer) {
    match hash.value(field) {
        Some(value) => out.bulk(value),
        None => out.null(),
    }
}

/// Whether argument `i` begins the fields.
fn fields_begin(ctx: &Context<'_, '_>, i: usize) -> bool {
    i >= ctx.args.len() || ctx.is(i, "FIELDS") || ctx.is(i, "MEMBERS")
}

/// As for strings, but a field may be told to live for no time.
fn evaluate(ctx: &Context<'_, '_>, option: LifetimeOption) -> Result<Lifetime, CommandError> {
    let evaluated = match option {
        LifetimeOption::Number {
            unit,
            base,
            argument,
        } if ctx.integer(argument)? == 0 => {
            let deadline = ctx.now.deadline(0, unit, base);
            Lifetime::Until(deadline.unwrap_or(0))
        }
        option => option.evaluate(ctx)?,
    };
    match evaluated {
        Lifetime::Until(deadline) if !is_of_members(&ctx.now, deadline) => {
            Err(invalid_expire_time(ctx.name()))
        }
        lifetime => Ok(lifetime),
    }
}

pub(crate) fn hgetdel(ctx: &mut Context<'_, '_>) -> Outcome {
    let fields = named(ctx, 2, 1)?;
    let (key, args) = (ctx.key(1), ctx.args);
    let slot = ctx.find_of::<Hash>(key, Lookup::Write)?;
    ctx.edit(key, slot, |hash: &mut Hash, out| {
        let mut gone = false;
        out.array(fields.len());
        for field in fields.filter_map(|at| args.get(at)) {
            let taken = hash.take(field, |entry| out.bulk(entry.value));
            gone |= taken.is_some();
            if taken.is_none() {
                out.null();
            }
        }
        ((), gone.then_some(HDEL))
    });
    Ok(())
}

pub(crate) fn hgetex(ctx: &mut Context<'_, '_>) -> Outcome {
    let (mut option, mut i) = (None, 2);
    while !fields_begin(ctx, i) {
        let (parsed, used) = LifetimeOption::parse(ctx.args, i, option)?;
        if option.is_some() || matches!(parsed, LifetimeOption::Keep) {
            return Err(CommandError::SYNTAX);
        }
        option = Some(parsed);
        i += used;
    }
    let fields = named(ctx, i, 1)?;
    let lifetime = match option {
        Some(option) => evaluate(ctx, option)?,
        None => Lifetime::Keep,
    };
    let (key, args, now) = (ctx.key(1), ctx.args, ctx.now);
    let slot = ctx.find_of::<Hash>(key, Lookup::Write)?;
    ctx.edit(key, slot, |hash: &mut Hash, out| {
        let mut cause = None;
        out.array(fields.len());
        for field in fields.filter_map(|at| args.get(at)) {
            reply_value(hash.get(), field, out);
            let Some(old) = hash.get().find(field).map(|entry| entry.deadline) else {
                continue;
            };
            match lifetime {
                Lifetime::Until(deadline) if now.reached(deadline) => {
                    hash.remove(field);
                    cause = Some(HDEL);
                }
                Lifetime::Until(deadline) => {
                    hash.set_deadline(field, Some(deadline), now.tick);
                    cause = Some(HEXPIRE);
                }
                Lifetime::Forever if old.is_some() => {
                    hash.set_deadline(field, None, now.tick);
                    cause = Some(HPERSIST);
                }
                Lifetime::Forever | Lifetime::Keep => {}
            }
        }
        ((), cause)
    });
    Ok(())
}

/// HSETEX's condition on all of its fields.
#[derive(Clone, Copy, PartialEq)]
enum Condition {
    Absent,
    Present,
}

pub(crate) fn hsetex(ctx: &mut Context<'_, '_>) -> Outcome {
    let (mut condition, mut option, mut i) = (None, None, 2);
    while !fields_begin(ctx, i) {
        let wanted = match (ctx.is(i, "FNX"), ctx.is(i, "FXX")) {
            (true, _) => Some(Condition::Absent),
            (_, true) => Some(Condition::Present),
            _ => None,
        };
        if let Some(wanted) = wanted {
            if condition.replace(wanted).is_some() {
                return Err(CommandError::SYNTAX);
            }
            i += 1;
            continue;
        }
        let (parsed, used) = LifetimeOption::parse(ctx.args, i, option)?;
        if option.is_some() || matches!(parsed, LifetimeOption::Persist) {
            return Err(CommandError::SYNTAX);
        }
        option = Some(parsed);
        i += used;
    }
    let fields = named(ctx, i, 2)?;
    let lifetime = match option {
        Some(option) => evaluate(ctx, option)?,
        None => Lifetime::Forever,
    };
    let (deadline, dead) = match lifetime {
        Lifetime::Keep => (NewDeadline::Keep, false),
        Lifetime::Forever => (NewDeadline::None, false),
        // They are stored first, and leave then: others are told of both.
        Lifetime::Until(deadline) if ctx.now.reached(deadline) => (NewDeadline::None, true),
        Lifetime::Until(deadline) => (NewDeadline::At(deadline), false),
    };
    let (key, args) = (ctx.key(1), ctx.args);
    let slot = ctx.find_of::<Hash>(key, Lookup::Write)?;
    let change = ctx.change(ctx.keyspace.rules().packing.hash.get());
    let stored = ctx.edit(key, slot, |hash: &mut Hash, _| {
        let pairs = fields.clone().step_by(2);
        let pair = |at: usize| (&args[at], &args[at + 1]);
        let is_there = |at| hash.get().contains(pair(at).0);
        let allowed = match condition {
            None => true,
            Some(Condition::Absent) => !pairs.clone().any(is_there),
            Some(Condition::Present) => pairs.clone().all(is_there),
        };
        if !allowed {
            return (false, None);
        }
        for (field, value) in pairs.map(pair) {
            hash.insert(field, value, deadline, &change);
        }
        (true, Some(HSET))
    });
    if stored && dead {
        let slot = ctx.find_of::<Hash>(key, Lookup::Write)?;
        ctx.edit(key, slot, |hash: &mut Hash, _| {
            for field in fields.step_by(2) {
                hash.remove(&args[field]);
            }
            ((), Some(HDEL))
        });
    } else if stored && matches!(lifetime, Lifetime::Until(_)) {
        ctx.event(key, HEXPIRE);
    }
    ctx.out.integer(stored.into());
    Ok(())
}
