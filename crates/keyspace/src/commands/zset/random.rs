//! ZRANDMEMBER: members at random.

use tidewheel_collections::{Scored, ZSetRef};
use tidewheel_resp::Writer;

use super::reply::Layout;
use super::{Outcome, one};
use crate::commands::arguments::{check_repetitions, count_at_random, repeat};
use crate::context::Context;
use crate::random::Random;

pub(crate) fn zrandmember(ctx: &mut Context<'_, '_>) -> Outcome {
    let (count, with_scores) = count_at_random(ctx, Some("WITHSCORES"))?;
    let mut random = ctx.random(ctx.key(1));
    one(ctx, |zset, out| {
        match (zset, count) {
            (None, None) => out.null(),
            (None, Some(_)) => out.array(0),
            (Some(zset), None) => reply_one(zset, &mut random, out),
            (Some(zset), Some(count)) => {
                check_repetitions(count)?;
                reply_many(zset, count, with_scores, &mut random, out);
            }
        }
        Ok(())
    })?
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
