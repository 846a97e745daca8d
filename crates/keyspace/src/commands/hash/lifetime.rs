//! Fields with a lifetime in one call: HGETEX, HSETEX, HGETDEL.

use std::ops::Range;

use tidewheel_collections::{Hash, HashRef, NewDeadline};
use tidewheel_resp::{Writer, parse_i64};

use super::Outcome;
use crate::commands::lifetime::{Lifetime, LifetimeOption, invalid_expire_time};
use crate::commands::members::{NEGATIVE, NO_COUNT, is_of_members, named, names_begin};
use crate::context::{Context, Lookup};
use crate::error::CommandError;
use crate::events::{Cause, NotifyClass};

const HSET: Cause = Cause::Of(NotifyClass::Hash, "hset");
const HDEL: Cause = Cause::Of(NotifyClass::Hash, "hdel");
const HEXPIRE: Cause = Cause::Of(NotifyClass::Hash, "hexpire");
const HPERSIST: Cause = Cause::Of(NotifyClass::Hash, "hpersist");

const NO_PAIRS: CommandError = CommandError::fixed("ERR invalid number of fields");
const LIFETIMES: CommandError =
    CommandError::fixed("ERR Only one of EX, PX, EXAT, PXAT or KEEPTTL arguments can be specified");
const CONDITIONS: CommandError =
    CommandError::fixed("ERR Only one of FXX or FNX arguments can be specified");

/// A number of fields beyond this is none.
const FIELDS_MAX: usize = i32::MAX as usize;

fn reply_value(hash: HashRef<'_>, field: &[u8], out: &mut Writer) {
    match hash.value(field) {
        Some(value) => out.bulk(value),
        None => out.null(),
    }
}

/// As for strings, but a field may be told to live for no time.
fn evaluate(ctx: &Context<'_, '_>, option: LifetimeOption) -> Result<Lifetime, CommandError> {
    let evaluated = match option {
        LifetimeOption::Number {
            unit,
            base,
            argument,
        } => {
            let number = ctx.integer(argument)?;
            if number < 0 {
                return Err(NEGATIVE);
            }
            ctx.now.deadline(number, unit, base).map(Lifetime::Until)
        }
        LifetimeOption::Keep => Some(Lifetime::Keep),
        LifetimeOption::Persist => Some(Lifetime::Forever),
    };
    let possible = evaluated.filter(|lifetime| match lifetime {
        Lifetime::Until(deadline) => is_of_members(&ctx.now, *deadline),
        Lifetime::Forever | Lifetime::Keep => true,
    });
    possible.ok_or_else(|| invalid_expire_time(ctx.name()))
}

pub(crate) fn hgetdel(ctx: &mut Context<'_, '_>) -> Outcome {
    let (key, args) = (ctx.key(1), ctx.args);
    let slot = ctx.find_of::<Hash>(key, Lookup::Write)?;
    let fields = named(ctx, 2, NO_COUNT)?;
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
    let (key, args, now) = (ctx.key(1), ctx.args, ctx.now);
    // The type is looked at first, as in Redis.
    let slot = ctx.find_of::<Hash>(key, Lookup::Write)?;
    let (option, at) = match LifetimeOption::parse(ctx.args, 2, None) {
        Ok((option, used)) if option != LifetimeOption::Keep => (Some(option), 2 + used),
        _ => (None, 2),
    };
    let lifetime = match option {
        Some(option) => evaluate(ctx, option)?,
        None => Lifetime::Keep,
    };
    if ctx.args.len() <= at + 1 {
        return Err(CommandError::wrong_arity(ctx.name()));
    }
    let fields = named(ctx, at, NO_COUNT)?;
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
enum FieldsCondition {
    Absent,
    Present,
}

/// The arguments of HSETEX.
struct Setex {
    /// Whether the key itself is to be there (NX, XX).
    key: Option<FieldsCondition>,
    condition: Option<FieldsCondition>,
    lifetime: Lifetime,
    /// The arguments that are fields and values.
    pairs: Range<usize>,
}

impl Setex {
    fn read(ctx: &Context<'_, '_>) -> Result<Self, CommandError> {
        let (mut key, mut condition, mut lifetime, mut i) = (None, None, None, 2);
        while !names_begin(ctx, i) {
            let wanted = match () {
                () if ctx.is(i, "FNX") => Some((&mut condition, FieldsCondition::Absent)),
                () if ctx.is(i, "FXX") => Some((&mut condition, FieldsCondition::Present)),
                () if ctx.is(i, "NX") => Some((&mut key, FieldsCondition::Absent)),
                () if ctx.is(i, "XX") => Some((&mut key, FieldsCondition::Present)),
                () => None,
            };
            if let Some((of, wanted)) = wanted {
                if of.replace(wanted).is_some() {
                    return Err(CONDITIONS);
                }
                i += 1;
                continue;
            }
            let parsed = LifetimeOption::parse(ctx.args, i, None).ok();
            let parsed = parsed.filter(|(option, _)| *option != LifetimeOption::Persist);
            let (option, used) = parsed.ok_or_else(|| unknown(ctx, i))?;
            if lifetime.is_some() {
                return Err(LIFETIMES);
            }
            lifetime = Some(evaluate(ctx, option)?);
            i += used;
        }
        Ok(Self {
            key,
            condition,
            lifetime: lifetime.unwrap_or(Lifetime::Forever),
            pairs: Self::pairs(ctx, i)?,
        })
    }

    /// The fields and values behind a word and their number.
    fn pairs(ctx: &Context<'_, '_>, at: usize) -> Result<Range<usize>, CommandError> {
        let pairs = at + 2..ctx.args.len();
        if pairs.len() < 2 {
            return Err(CommandError::wrong_arity(ctx.name()));
        }
        let count = ctx.args.get(at + 1).and_then(parse_i64);
        let count = count.and_then(|count| usize::try_from(count).ok());
        let known = count.filter(|count| (1..=FIELDS_MAX).contains(count));
        if known.ok_or(NO_PAIRS)?.checked_mul(2) != Some(pairs.len()) {
            return Err(CommandError::wrong_arity(ctx.name()));
        }
        Ok(pairs)
    }
}

#[cold]
fn unknown(ctx: &Context<'_, '_>, at: usize) -> CommandError {
    match ctx.args.get(at) {
        Some(word) => {
            let word = String::from_utf8_lossy(word);
            CommandError::quoting(format!("ERR unknown argument: {word}"))
        }
        None => CommandError::SYNTAX,
    }
}

pub(crate) fn hsetex(ctx: &mut Context<'_, '_>) -> Outcome {
    let Setex {
        key: of_key,
        condition,
        lifetime,
        pairs: fields,
    } = Setex::read(ctx)?;
    let (deadline, dead) = match lifetime {
        Lifetime::Keep => (NewDeadline::Keep, false),
        Lifetime::Forever => (NewDeadline::None, false),
        // They are stored first, and leave then: others are told of both.
        Lifetime::Until(deadline) if ctx.now.reached(deadline) => (NewDeadline::None, true),
        Lifetime::Until(deadline) => (NewDeadline::At(deadline), false),
    };
    let (key, args) = (ctx.key(1), ctx.args);
    let slot = ctx.find_of::<Hash>(key, Lookup::Write)?;
    if of_key.is_some_and(|wanted| (wanted == FieldsCondition::Present) != slot.is_some()) {
        ctx.out.integer(0);
        return Ok(());
    }
    let change = ctx.change(ctx.keyspace.rules().packing.hash.get());
    let stored = ctx.edit(key, slot, |hash: &mut Hash, _| {
        let pairs = fields.clone().step_by(2);
        let pair = |at: usize| (&args[at], &args[at + 1]);
        let is_there = |at| hash.get().contains(pair(at).0);
        let allowed = match condition {
            None => true,
            Some(FieldsCondition::Absent) => !pairs.clone().any(is_there),
            Some(FieldsCondition::Present) => pairs.clone().all(is_there),
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
