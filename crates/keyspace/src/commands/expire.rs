//! Deadlines of keys: EXPIRE and its relatives, TTL and its relatives, PERSIST.

use tidewheel_resp::Args;

use crate::commands::lifetime::invalid_expire_time;
use crate::context::{Context, Lookup};
use crate::error::CommandError;
use crate::events::Cause;
use crate::time::{TimeOrigin, Unit, rounded_seconds};

type Outcome = Result<(), CommandError>;

/// The reply of TTL and EXPIRETIME to a key that does not exist.
const NO_KEY: i64 = -2;
/// Their reply to a key without a deadline.
const NO_DEADLINE: i64 = -1;

const CONDITIONS_CONFLICT: CommandError =
    CommandError::fixed("ERR NX and XX, GT or LT options at the same time are not compatible");
const ORDERS_CONFLICT: CommandError =
    CommandError::fixed("ERR GT and LT options at the same time are not compatible");

pub(crate) fn expire(ctx: &mut Context<'_, '_>) -> Outcome {
    set_deadline(ctx, Unit::Seconds, TimeOrigin::Now)
}

pub(crate) fn pexpire(ctx: &mut Context<'_, '_>) -> Outcome {
    set_deadline(ctx, Unit::Milliseconds, TimeOrigin::Now)
}

pub(crate) fn expireat(ctx: &mut Context<'_, '_>) -> Outcome {
    set_deadline(ctx, Unit::Seconds, TimeOrigin::Epoch)
}

pub(crate) fn pexpireat(ctx: &mut Context<'_, '_>) -> Outcome {
    set_deadline(ctx, Unit::Milliseconds, TimeOrigin::Epoch)
}

/// The conditions under which a new deadline replaces the old one.
#[derive(Default)]
pub(crate) struct Conditions {
    without: bool,
    with: bool,
    later: bool,
    sooner: bool,
}

impl Conditions {
    /// Reads the first `count` words.
    pub(crate) fn parse(words: Args<'_>, count: usize) -> Result<Self, CommandError> {
        let mut conditions = Self::default();
        for word in words.iter().take(count) {
            let flag = match word.to_ascii_uppercase().as_slice() {
                b"NX" => &mut conditions.without,
                b"XX" => &mut conditions.with,
                b"GT" => &mut conditions.later,
                b"LT" => &mut conditions.sooner,
                _ => {
                    let word = String::from_utf8_lossy(word);
                    return Err(CommandError::quoting(format!(
                        "ERR Unsupported option {word}"
                    )));
                }
            };
            *flag = true;
        }
        if conditions.without && (conditions.with || conditions.later || conditions.sooner) {
            return Err(CONDITIONS_CONFLICT);
        }
        if conditions.later && conditions.sooner {
            return Err(ORDERS_CONFLICT);
        }
        Ok(conditions)
    }

    /// No deadline counts as one infinitely far away.
    pub(crate) fn allow(&self, old: Option<u64>, new: u64) -> bool {
        !(self.without && old.is_some()
            || self.with && old.is_none()
            || self.later && old.is_none_or(|old| new <= old)
            || self.sooner && old.is_some_and(|old| new >= old))
    }
}

fn set_deadline(ctx: &mut Context<'_, '_>, unit: Unit, base: TimeOrigin) -> Outcome {
    let conditions = Conditions::parse(ctx.args.from(3), usize::MAX)?;
    let number = ctx.integer(2)?;
    let deadline = ctx
        .now
        .deadline(number, unit, base)
        .ok_or_else(|| invalid_expire_time(ctx.name()))?;
    let key = ctx.key(1);
    let Some(slot) = ctx.find(key, Lookup::Write) else {
        ctx.out.integer(0);
        return Ok(());
    };
    if !conditions.allow(ctx.deadline(key, slot), deadline) {
        ctx.out.integer(0);
        return Ok(());
    }
    if ctx.now.reached(deadline) {
        // It was never going to live until then: deleted, not expired.
        ctx.remove(key, slot, Cause::Del);
    } else {
        let (at, hold) = ctx.on(key);
        hold.set_deadline(at, slot, Some(deadline), Cause::Expire);
    }
    ctx.out.integer(1);
    Ok(())
}

pub(crate) fn persist(ctx: &mut Context<'_, '_>) -> Outcome {
    let key = ctx.key(1);
    let slot = ctx.find(key, Lookup::Write);
    let timed = slot.filter(|&slot| ctx.deadline(key, slot).is_some());
    if let Some(slot) = timed {
        let (at, hold) = ctx.on(key);
        hold.set_deadline(at, slot, None, Cause::Persist);
    }
    ctx.out.integer(timed.is_some().into());
    Ok(())
}

pub(crate) fn ttl(ctx: &mut Context<'_, '_>) -> Outcome {
    report(ctx, |ctx, deadline| {
        rounded_seconds(ctx.now.remaining_ms(deadline))
    })
}

pub(crate) fn pttl(ctx: &mut Context<'_, '_>) -> Outcome {
    report(ctx, |ctx, deadline| ctx.now.remaining_ms(deadline))
}

pub(crate) fn expiretime(ctx: &mut Context<'_, '_>) -> Outcome {
    report(ctx, |ctx, deadline| {
        rounded_seconds(ctx.now.wall_of(deadline))
    })
}

pub(crate) fn pexpiretime(ctx: &mut Context<'_, '_>) -> Outcome {
    report(ctx, |ctx, deadline| ctx.now.wall_of(deadline))
}

fn report(ctx: &mut Context<'_, '_>, of: fn(&Context<'_, '_>, u64) -> i64) -> Outcome {
    let key = ctx.key(1);
    let answer = match ctx.find(key, Lookup::Peek) {
        None => NO_KEY,
        Some(slot) => ctx
            .deadline(key, slot)
            .map_or(NO_DEADLINE, |deadline| of(ctx, deadline)),
    };
    ctx.out.integer(answer);
    Ok(())
}
