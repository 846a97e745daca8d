//! ZRANDMEMBER.

use tidewheel_collections::{Scored, ZSetRef};
use tidewheel_resp::Writer;

use super::reply::Layout;
use super::{Outcome, one};
use crate::commands::arguments::{check_repetitions, repeat};
use crate::context::Context;
use crate::error::CommandError;
use crate::random::Random;

const OUT_OF_RANGE: CommandError = CommandError::fixed(
    "ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807",
);
const TOO_MANY_PAIRS: CommandError = CommandError::fixed("ERR value is out of range");

/// The reply may have two elements for each member.
const PAIRS_MAX: u64 = i64::MAX as u64 >> 1;

pub(crate) fn zrandmember(ctx: &mut Context<'_, '_>) -> Outcome {
    let with_scores = ctx.args.len() > 3;
    let count = match ctx.args.len() {
        2 => None,
        _ => Some(ctx.integer(2)?),
    };
    if count == Some(i64::MIN) {
        return Err(OUT_OF_RANGE);
    }
    if ctx.args.len() > 4 || with_scores && !ctx.is(3, "WITHSCORES") {
        return Err(CommandError::SYNTAX);
    }
    if with_scores && count.is_some_and(|count| count.unsigned_abs() > PAIRS_MAX) {
        return Err(TOO_MANY_PAIRS);
    }
    check_repetitions(count)?;
    let mut random = ctx.random(ctx.key(1));
    one(ctx, |zset, out| match (zset, count) {
        (None, None) => out.null(),
        (None, Some(_)) => out.array(0),
        (Some(zset), None) => reply_one(zset, &mut random, out),
        (Some(zset), Some(count)) => reply_many(zset, count, with_scores, &mut random, out),
    })
}

fn reply_one(zset: ZSetRef<'_>, random: &mut Random, out: &mut Writer) {
    match zset.random(random.next()) {
        Some(entry) => out.bulk(entry.member),
        None => out.null(),
    }
}

/// A negative count allows for repetitions.
fn reply_many(zset: ZSetRef<'_>, count: i64, scores: bool, random: &mut Random, out: &mut Writer) {
    let layout = Layout::new(out, scores);
    let wanted = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX);
    if count < 0 {
        layout.head(out, wanted);
        return repeat(wanted, out, |out| {
            if let Some(entry) = zset.random(random.next()) {
                layout.put(out, entry.member, entry.score);
            }
        });
    }
    let n = wanted.min(zset.len());
    layout.head(out, n);
    let put = |entry: Scored<'_>| layout.put(out, entry.member, entry.score);
    zset.random_distinct(n, || random.next(), put);
}
