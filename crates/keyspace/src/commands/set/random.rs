//! Members at random: SPOP, SRANDMEMBER.

use tidewheel_collections::{Set, SetRef};
use tidewheel_resp::{Writer, parse_i64};

use super::Outcome;
use crate::commands::arguments::{check_repetitions, count_at_random, repeat};
use crate::context::{Context, Lookup};
use crate::error::CommandError;
use crate::events::{Cause, NotifyClass};
use crate::random::Random;

const SPOP: Cause = Cause::Of(NotifyClass::Set, "spop");

const MUST_BE_POSITIVE: CommandError =
    CommandError::fixed("ERR value is out of range, must be positive");

pub(crate) fn spop(ctx: &mut Context<'_, '_>) -> Outcome {
    let count = match ctx.args.len() {
        2 => None,
        3 => {
            let count = parse_i64(&ctx.args[2]).and_then(|count| usize::try_from(count).ok());
            Some(count.ok_or(MUST_BE_POSITIVE)?)
        }
        _ => return Err(CommandError::SYNTAX),
    };
    let key = ctx.key(1);
    let slot = ctx.find_of::<Set>(key, Lookup::Write)?;
    let (mut random, now) = (ctx.random(key), ctx.now.tick);
    let mut popped: Vec<Box<[u8]>> = Vec::new();
    let records = ctx.is_recording();
    ctx.edit(key, slot, |set: &mut Set, out| {
        let wanted = count.unwrap_or(1).min(set.get().len());
        match count {
            None if wanted == 0 => out.null(),
            None => {}
            Some(_) => out.set(wanted),
        }
        set.pop_many(
            wanted,
            now,
            || random.next(),
            |entry| {
                out.bulk(entry.key);
                if records {
                    popped.push(entry.key.into());
                }
            },
        );
        ((), (wanted > 0).then_some(SPOP))
    });
    if records {
        let words = [&b"SREM"[..], key.bytes].into_iter();
        let words: Vec<_> = words.chain(popped.iter().map(|member| &**member)).collect();
        ctx.record_instead(&words);
    }
    Ok(())
}

pub(crate) fn srandmember(ctx: &mut Context<'_, '_>) -> Outcome {
    let (count, _) = count_at_random(ctx, None)?;
    let key = ctx.key(1);
    let mut random = ctx.random(key);
    ctx.read::<Set, _>(key, Lookup::Read, |set, out| {
        match (count, set) {
            (None, None) => out.null(),
            (None, Some(set)) => reply_one(set, &mut random, out),
            (Some(_), None) => out.array(0),
            (Some(count), Some(set)) => {
                check_repetitions(count)?;
                reply_many(set, count, &mut random, out);
            }
        }
        Ok(())
    })?
}

fn reply_one(set: SetRef<'_>, random: &mut Random, out: &mut Writer) {
    match set.random(random.next()) {
        Some(entry) => out.bulk(entry.key),
        None => out.null(),
    }
}

/// A negative count allows for repetitions.
fn reply_many(set: SetRef<'_>, count: i64, random: &mut Random, out: &mut Writer) {
    let wanted = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX);
    if count >= 0 {
        let n = wanted.min(set.len());
        out.array(n);
        return set.random_distinct(n, || random.next(), |entry| out.bulk(entry.key));
    }
    out.array(wanted);
    repeat(wanted, out, |out| reply_one(set, random, out));
}
