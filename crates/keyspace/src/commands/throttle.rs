//! CL.THROTTLE: a limit on how often something may happen.
//!
//! An example: `CL.THROTTLE user:7 4 60 60` allows one call a second on average, and five at once.
//! The key holds the time at which the caller's bucket will be empty again (the generic cell rate
//! algorithm), in microseconds, and lives until then.

use crate::context::{Context, Key, Lookup};
use crate::error::CommandError;
use crate::events::Cause;
use crate::shard::Stored;
use crate::value::{self, TAG_STRING};

type Outcome = Result<(), CommandError>;

const SECOND_US: i64 = 1_000_000;
const OUT_OF_RANGE: CommandError =
    CommandError::fixed("ERR burst, count, period or quantity is out of range");
const NOT_OURS: CommandError = CommandError::fixed("ERR the key holds no limit of CL.THROTTLE");

/// The limit that a call names.
struct Limit {
    /// Microseconds from one call to the next.
    interval: i64,
    /// Calls at once.
    most: i64,
    /// Microseconds that so many calls take.
    tolerance: i64,
    /// How many calls this one counts as.
    quantity: i64,
}

impl Limit {
    fn read(ctx: &Context<'_, '_>) -> Result<Self, CommandError> {
        let positive = |n: i64| (n > 0).then_some(n).ok_or(OUT_OF_RANGE);
        let burst = ctx.integer(2)?;
        let (count, period) = (positive(ctx.integer(3)?)?, positive(ctx.integer(4)?)?);
        let quantity = match ctx.args.len() {
            5 => 1,
            6 => ctx.integer(5)?,
            _ => return Err(CommandError::wrong_arity("cl.throttle")),
        };
        if burst < 0 || quantity < 0 {
            return Err(OUT_OF_RANGE);
        }
        let period = period.checked_mul(SECOND_US).ok_or(OUT_OF_RANGE)?;
        let interval = (period / count).max(1);
        let most = burst.checked_add(1).ok_or(OUT_OF_RANGE)?;
        let tolerance = interval.checked_mul(most).ok_or(OUT_OF_RANGE)?;
        Ok(Self {
            interval,
            most,
            tolerance,
            quantity,
        })
    }
}

pub(crate) fn throttle(ctx: &mut Context<'_, '_>) -> Outcome {
    let limit = Limit::read(ctx)?;
    let key = ctx.key(1);
    let now = ctx.now.wall_us();
    let seen = ctx.look(key, Lookup::Write);
    let empty_at = match &seen {
        None => now,
        Some(seen) => {
            let value = value::string(ctx.entries(key), seen.slot)?;
            let number = tidewheel_resp::parse_i64(value::bytes(&value));
            number.ok_or(NOT_OURS)?.max(now)
        }
    };
    let cost = limit
        .interval
        .checked_mul(limit.quantity)
        .ok_or(OUT_OF_RANGE)?;
    let after = empty_at.checked_add(cost).ok_or(OUT_OF_RANGE)?;
    let wait = after.saturating_sub(limit.tolerance).saturating_sub(now);
    let allowed = wait <= 0;
    let full = if allowed { after - now } else { empty_at - now };
    if allowed && limit.quantity > 0 {
        store(ctx, key, seen.map(|seen| seen.slot), (now, after))?;
    }
    let left = limit.tolerance.saturating_sub(full).max(0) / limit.interval;
    let retry = match allowed {
        true => -1,
        // What can never be allowed need not be tried again.
        false if cost > limit.tolerance => -1,
        false => seconds(wait),
    };
    ctx.out.array(5);
    for number in [(!allowed).into(), limit.most, left, retry, seconds(full)] {
        ctx.out.integer(number);
    }
    Ok(())
}

/// Rounded up: who waits for so long is not too early.
fn seconds(us: i64) -> i64 {
    us.max(0).saturating_add(SECOND_US - 1) / SECOND_US
}

fn store(
    ctx: &mut Context<'_, '_>,
    key: Key<'_>,
    slot: Option<tidewheel_store::Slot>,
    (now, after): (i64, i64),
) -> Outcome {
    let ms = (after - now).unsigned_abs().div_ceil(1_000);
    let deadline = ctx.now.tick.checked_add(ms).ok_or(OUT_OF_RANGE)?;
    let mut digits = itoa::Buffer::new();
    let stored = Stored {
        tag: TAG_STRING,
        value: tidewheel_store::NewValue::Inline(digits.format(after).as_bytes()),
        deadline: Some(deadline),
    };
    match slot {
        Some(slot) => ctx.replace(key, slot, stored, Cause::Set),
        None => ctx.insert(key, stored, Cause::Set),
    }
    Ok(())
}
