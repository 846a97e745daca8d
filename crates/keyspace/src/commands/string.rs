//! Strings: storing, reading and editing bytes.

use tidewheel_resp::{Args, parse_i64};

use crate::commands::compare::{Comparison, holds};
use crate::commands::lifetime::{Lifetime, LifetimeOption};
use crate::context::{Context, Key, Lookup};
use crate::error::CommandError;
use crate::events::Cause;
use crate::shard::Stored;
use crate::time::{TimeOrigin, Unit};
use crate::value::{self, TAG_STRING};
use crate::word::{folded, named};

type Outcome = Result<(), CommandError>;

pub(crate) fn get(ctx: &mut Context<'_, '_>) -> Outcome {
    let key = ctx.key(1);
    ctx.reply_string(key)?;
    Ok(())
}

/// As [`Context::reply_string`], for commands that do more than that.
#[inline(never)]
fn reply_value(ctx: &mut Context<'_, '_>, key: Key<'_>) -> Result<bool, CommandError> {
    ctx.reply_string(key)
}

/// SET's condition on whether the key exists.
#[derive(Clone, Copy, PartialEq, Eq)]
enum KeyCondition {
    Absent,
    Present,
    Compared(Comparison),
}

#[derive(Clone, Copy)]
struct SetOptions {
    condition: Option<KeyCondition>,
    get: bool,
    lifetime: Option<LifetimeOption>,
}

impl SetOptions {
    const NONE: Self = Self {
        condition: None,
        get: false,
        lifetime: None,
    };

    /// `None` is a syntax error.
    #[inline(always)]
    fn parse(args: Args<'_>) -> Option<Self> {
        const NX: u64 = named("NX");
        const XX: u64 = named("XX");
        const GET: u64 = named("GET");
        const IFEQ: u64 = named("IFEQ");
        const IFNE: u64 = named("IFNE");
        let mut options = Self::NONE;
        let mut i = 3;
        while let Some(word) = args.get(i) {
            match folded(word) {
                NX => options.require(KeyCondition::Absent)?,
                XX => options.require(KeyCondition::Present)?,
                GET => options.get = true,
                word @ (IFEQ | IFNE) => {
                    i += 1;
                    args.get(i)?;
                    options.require(KeyCondition::Compared(match word {
                        IFEQ => Comparison::Equals(i),
                        _ => Comparison::Differs(i),
                    }))?;
                }
                other => {
                    let (lifetime, used) =
                        LifetimeOption::of_word(other, args.len(), i, options.lifetime)?;
                    if matches!(lifetime, LifetimeOption::Persist) {
                        return None;
                    }
                    options.lifetime = Some(lifetime);
                    i += used - 1;
                }
            }
            i += 1;
        }
        Some(options)
    }

    /// `None` if another condition was there before.
    fn require(&mut self, condition: KeyCondition) -> Option<()> {
        let earlier = self.condition.replace(condition);
        earlier
            .is_none_or(|earlier| earlier == condition)
            .then_some(())
    }
}

pub(crate) fn set(ctx: &mut Context<'_, '_>) -> Outcome {
    let options = if ctx.args.len() == 3 {
        SetOptions::NONE
    } else {
        SetOptions::parse(ctx.args).ok_or(CommandError::SYNTAX)?
    };
    let lifetime = match options.lifetime {
        None => Lifetime::Forever,
        Some(option) => option.evaluate(ctx)?,
    };
    let key = ctx.key(1);
    let mut condition = options.condition;
    let mut allowed = true;
    if let Some(KeyCondition::Compared(comparison)) = condition {
        allowed = holds(ctx, key, comparison)?;
        condition = None;
    }
    if options.get {
        reply_value(ctx, key)?;
    }
    let stored = allowed && store_here(ctx, key, 2, condition, lifetime);
    match (options.get, stored) {
        (true, _) => {}
        (false, true) => ctx.out.ok(),
        (false, false) => ctx.out.null(),
    }
    Ok(())
}

/// Stores an argument under a key and announces it. Returns whether the condition allowed it.
#[inline(never)]
fn store(
    ctx: &mut Context<'_, '_>,
    key: Key<'_>,
    argument: usize,
    condition: Option<KeyCondition>,
    lifetime: Lifetime,
) -> bool {
    store_here(ctx, key, argument, condition, lifetime)
}

/// As [`store`], compiled into the command of which it is the greater part.
#[inline(always)]
fn store_here(
    ctx: &mut Context<'_, '_>,
    key: Key<'_>,
    argument: usize,
    condition: Option<KeyCondition>,
    lifetime: Lifetime,
) -> bool {
    let seen = ctx.look(key, Lookup::Write);
    let allowed = match condition {
        None | Some(KeyCondition::Compared(_)) => true,
        Some(KeyCondition::Absent) => seen.is_none(),
        Some(KeyCondition::Present) => seen.is_some(),
    };
    if !allowed {
        return false;
    }
    let deadline = match (lifetime, &seen) {
        (Lifetime::Until(deadline), _) => Some(deadline),
        (Lifetime::Keep, Some(seen)) => ctx.deadline(key, seen.slot),
        _ => None,
    };
    let stored = Stored {
        tag: TAG_STRING,
        value: ctx.new_value(argument),
        deadline,
    };
    match &seen {
        Some(seen) => ctx.replace_seen(key, seen, stored, Cause::Set),
        None => ctx.insert(key, stored, Cause::Set),
    }
    if matches!(lifetime, Lifetime::Until(_)) {
        ctx.event(key, Cause::Expire);
    }
    true
}

pub(crate) fn setnx(ctx: &mut Context<'_, '_>) -> Outcome {
    let key = ctx.key(1);
    let stored = store(ctx, key, 2, Some(KeyCondition::Absent), Lifetime::Forever);
    ctx.out.integer(stored.into());
    Ok(())
}

pub(crate) fn setex(ctx: &mut Context<'_, '_>) -> Outcome {
    set_for(ctx, Unit::Seconds)
}

pub(crate) fn psetex(ctx: &mut Context<'_, '_>) -> Outcome {
    set_for(ctx, Unit::Milliseconds)
}

fn set_for(ctx: &mut Context<'_, '_>, unit: Unit) -> Outcome {
    let option = LifetimeOption::Number {
        unit,
        base: TimeOrigin::Now,
        argument: 2,
    };
    let lifetime = option.evaluate(ctx)?;
    let key = ctx.key(1);
    store(ctx, key, 3, None, lifetime);
    ctx.out.ok();
    Ok(())
}

pub(crate) fn getset(ctx: &mut Context<'_, '_>) -> Outcome {
    let key = ctx.key(1);
    reply_value(ctx, key)?;
    store(ctx, key, 2, None, Lifetime::Forever);
    Ok(())
}

pub(crate) fn getdel(ctx: &mut Context<'_, '_>) -> Outcome {
    let key = ctx.key(1);
    if reply_value(ctx, key)?
        && let Some(slot) = ctx.find_at(key, ctx.session.db)
    {
        ctx.remove(key, slot, Cause::Del);
    }
    Ok(())
}

pub(crate) fn getex(ctx: &mut Context<'_, '_>) -> Outcome {
    let mut option = None;
    let mut i = 2;
    while i < ctx.args.len() {
        let (parsed, used) = LifetimeOption::parse(ctx.args, i, option)?;
        if matches!(parsed, LifetimeOption::Keep) {
            return Err(CommandError::SYNTAX);
        }
        option = Some(parsed);
        i += used;
    }
    let key = ctx.key(1);
    if !reply_value(ctx, key)? {
        return Ok(());
    }
    let Some(option) = option else { return Ok(()) };
    // After the lookup: a key that does not exist is nil whatever the number.
    let lifetime = option.evaluate(ctx)?;
    let Some(slot) = ctx.find_at(key, ctx.session.db) else {
        return Ok(());
    };
    match lifetime {
        Lifetime::Until(deadline) if ctx.now.reached(deadline) => {
            ctx.remove(key, slot, Cause::Del);
        }
        Lifetime::Until(deadline) => {
            let (at, hold) = ctx.on(key);
            hold.set_deadline(at, slot, Some(deadline), Cause::Expire);
        }
        Lifetime::Forever => {
            if ctx.deadline(key, slot).is_some() {
                let (at, hold) = ctx.on(key);
                hold.set_deadline(at, slot, None, Cause::Persist);
            }
        }
        Lifetime::Keep => {}
    }
    Ok(())
}

pub(crate) fn mget(ctx: &mut Context<'_, '_>) -> Outcome {
    ctx.out.array(ctx.args.len() - 1);
    for i in 1..ctx.args.len() {
        let key = ctx.key(i);
        // What is no string is nil here.
        if ctx.reply_string(key).is_err() {
            ctx.out.null();
        }
    }
    Ok(())
}

pub(crate) fn mset(ctx: &mut Context<'_, '_>) -> Outcome {
    check_pairs(ctx)?;
    store_pairs(ctx);
    ctx.out.ok();
    Ok(())
}

pub(crate) fn msetnx(ctx: &mut Context<'_, '_>) -> Outcome {
    check_pairs(ctx)?;
    for i in (1..ctx.args.len()).step_by(2) {
        let key = ctx.key(i);
        if ctx.find(key, Lookup::Write).is_some() {
            ctx.out.integer(0);
            return Ok(());
        }
    }
    store_pairs(ctx);
    ctx.out.integer(1);
    Ok(())
}

pub(crate) fn msetex(ctx: &mut Context<'_, '_>) -> Outcome {
    const NX: u64 = named("NX");
    const XX: u64 = named("XX");
    let pairs = parse_i64(&ctx.args[1]).and_then(|count| usize::try_from(count).ok());
    let pairs = pairs.filter(|count| (1..=i32::MAX as usize).contains(count));
    let pairs = pairs.ok_or(CommandError::fixed("ERR invalid numkeys value"))?;
    let end = 2 + 2 * pairs;
    if end > ctx.args.len() {
        return Err(CommandError::fixed("ERR wrong number of key-value pairs"));
    }
    let (mut condition, mut lifetime) = (None, None);
    let mut i = end;
    while let Some(word) = ctx.args.get(i) {
        let asked = match folded(word) {
            NX => KeyCondition::Absent,
            XX => KeyCondition::Present,
            _ => {
                let (option, used) = LifetimeOption::parse(ctx.args, i, lifetime)?;
                if matches!(option, LifetimeOption::Persist) {
                    return Err(CommandError::SYNTAX);
                }
                lifetime = Some(option);
                i += used;
                continue;
            }
        };
        if condition.is_some_and(|earlier| earlier != asked) {
            return Err(CommandError::SYNTAX);
        }
        condition = Some(asked);
        i += 1;
    }
    let lifetime = match lifetime {
        None => Lifetime::Forever,
        Some(option) => option.evaluate(ctx)?,
    };
    if let Some(condition) = condition {
        for i in (2..end).step_by(2) {
            let key = ctx.key(i);
            let present = ctx.find(key, Lookup::Write).is_some();
            if present != (condition == KeyCondition::Present) {
                ctx.out.integer(0);
                return Ok(());
            }
        }
    }
    for i in (2..end).step_by(2) {
        let key = ctx.key(i);
        store(ctx, key, i + 1, None, lifetime);
    }
    ctx.out.integer(1);
    Ok(())
}

fn check_pairs(ctx: &Context<'_, '_>) -> Outcome {
    if ctx.args.len().is_multiple_of(2) {
        return Err(CommandError::wrong_arity(ctx.name()));
    }
    Ok(())
}

fn store_pairs(ctx: &mut Context<'_, '_>) {
    for i in (1..ctx.args.len()).step_by(2) {
        let key = ctx.key(i);
        store(ctx, key, i + 1, None, Lifetime::Forever);
    }
}

pub(crate) fn strlen(ctx: &mut Context<'_, '_>) -> Outcome {
    let key = ctx.key(1);
    let len = match ctx.find(key, Lookup::Read) {
        Some(slot) => value::bytes(&value::string(ctx.entries(key), slot)?).len(),
        None => 0,
    };
    ctx.out.integer(len as i64);
    Ok(())
}

pub(crate) fn getrange(ctx: &mut Context<'_, '_>) -> Outcome {
    let (start, end) = (ctx.integer(2)?, ctx.integer(3)?);
    let key = ctx.key(1);
    let Some(slot) = ctx.find(key, Lookup::Read) else {
        ctx.out.bulk(b"");
        return Ok(());
    };
    let len = value::bytes(&value::string(ctx.entries(key), slot)?).len();
    match byte_range(start, end, len) {
        Some(range) => ctx.reply_bytes(key, slot, Some(range))?,
        None => ctx.out.bulk(b""),
    }
    Ok(())
}

/// The bytes from `start` to `end`, both inclusive, negative ones counted from the end.
fn byte_range(start: i64, end: i64, len: usize) -> Option<std::ops::Range<usize>> {
    if len == 0 || start < 0 && end < 0 && start > end {
        return None;
    }
    let place = |at: i64| {
        if at < 0 {
            at.saturating_add_unsigned(len as u64).max(0) as usize
        } else {
            at as usize
        }
    };
    let (start, end) = (place(start), place(end).min(len - 1));
    (start <= end).then(|| start..end + 1)
}
