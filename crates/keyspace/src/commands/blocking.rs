//! Timeouts and waits that all blocking commands share.

use tidewheel_resp::{Writer, parse_f64_wide, parse_i64};

use crate::context::Context;
use crate::error::CommandError;
use crate::waiters::AwaitedKeys;

type Outcome = Result<(), CommandError>;

const NOT_A_FLOAT: CommandError = CommandError::fixed("ERR timeout is not a float or out of range");
const OUT_OF_RANGE: CommandError = CommandError::fixed("ERR timeout is out of range");
/// Keys that one command may wait for: each takes up to a microsecond, here and when the wait ends.
const WAITED_MAX: usize = 10_000;
const TOO_MANY: CommandError =
    CommandError::fixed("ERR too many keys to wait for: at most 10000 for one command");
const NEGATIVE: CommandError = CommandError::fixed("ERR timeout is negative");

/// Reads seconds as milliseconds, rounded up; `None` for ever.
pub(crate) fn timeout(ctx: &Context<'_, '_>, at: usize) -> Result<Option<u64>, CommandError> {
    let seconds = ctx
        .args
        .get(at)
        .and_then(parse_f64_wide)
        .ok_or(NOT_A_FLOAT)?;
    let ms = (seconds * 1000.0).ceil();
    let most = i64::MAX.saturating_sub(ctx.now.wall_ms().max(0));
    if ms >= most as f64 {
        return Err(OUT_OF_RANGE);
    }
    if ms < 0.0 {
        return Err(NEGATIVE);
    }
    let ms = ms as u64;
    Ok((ms > 0).then_some(ms))
}

/// Tries to run a blocking command on the key at one of its arguments. False if there is nothing.
pub(crate) type ServeFn = fn(&mut Context<'_, '_>, usize) -> Result<bool, CommandError>;

/// Runs the command on the first of its keys that holds something; waits for them if none does.
/// `nothing` is the reply where it may not wait.
pub(crate) fn serve_or_wait(
    ctx: &mut Context<'_, '_>,
    wanted: AwaitedKeys,
    serve: ServeFn,
    nothing: fn(&mut Writer),
) -> Outcome {
    for at in wanted.keys.clone() {
        if serve_key(ctx, at, serve)? {
            return Ok(());
        }
    }
    wait(ctx, wanted, nothing)
}

/// Runs a blocking command on the key at one of its arguments. False if there is nothing.
///
/// It is recorded as the command that takes from this key: which of several keys it was depends on
/// the others.
pub(crate) fn serve_key(
    ctx: &mut Context<'_, '_>,
    at: usize,
    serve: ServeFn,
) -> Result<bool, CommandError> {
    let served = serve(ctx, at)?;
    if served && let Some(words) = words_of_taking(ctx, at) {
        ctx.record_instead(&words);
    }
    Ok(served)
}

/// The words of the command that takes from one key; `None` if it records itself.
fn words_of_taking<'b>(ctx: &Context<'_, 'b>, at: usize) -> Option<Vec<&'b [u8]>> {
    let args = ctx.args;
    let key = args.get(at).unwrap_or_default();
    let but_last = |name: &'static [u8]| {
        let words = args.iter().take(args.len() - 1).skip(1);
        std::iter::once(name).chain(words).collect()
    };
    // What stands behind the keys, whose number is the third word.
    let many = |name: &'static [u8]| {
        let keys = args.get(2).and_then(parse_i64).unwrap_or(0);
        let behind = 3 + usize::try_from(keys).unwrap_or(0);
        let words = [name, b"1", key].into_iter();
        words.chain(args.iter().skip(behind)).collect()
    };
    Some(match ctx.name() {
        "blpop" => vec![b"LPOP", key],
        "brpop" => vec![b"RPOP", key],
        "bzpopmin" => vec![b"ZPOPMIN", key],
        "bzpopmax" => vec![b"ZPOPMAX", key],
        "brpoplpush" => but_last(b"RPOPLPUSH"),
        "blmove" => but_last(b"LMOVE"),
        "blmpop" => many(b"LMPOP"),
        "bzmpop" => many(b"ZMPOP"),
        _ => return None,
    })
}

/// Waits for keys that have nothing for the command. `nothing` is the reply where it may not wait.
pub(crate) fn wait(
    ctx: &mut Context<'_, '_>,
    wanted: AwaitedKeys,
    nothing: fn(&mut Writer),
) -> Outcome {
    if ctx.may_wait() && wanted.keys.len() > WAITED_MAX {
        return Err(TOO_MANY);
    }
    if !ctx.wait(wanted) {
        nothing(ctx.out);
    }
    Ok(())
}
