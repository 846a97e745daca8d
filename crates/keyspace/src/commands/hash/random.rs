//! HRANDFIELD: fields at random.

use tidewheel_collections::{Hash, HashRef};
use tidewheel_resp::{Protocol, Writer};

use super::Outcome;
use crate::commands::arguments::{check_repetitions, count_at_random, repeat};
use crate::context::{Context, Lookup};
use crate::random::Random;

pub(crate) fn hrandfield(ctx: &mut Context<'_, '_>) -> Outcome {
    let (count, with_values) = count_at_random(ctx, Some("WITHVALUES"))?;
    let key = ctx.key(1);
    let mut random = ctx.random(key);
    ctx.read::<Hash, _>(key, Lookup::Read, |hash, out| {
        match (count, hash) {
            (None, None) => out.null(),
            (None, Some(hash)) => reply_one(hash, &mut random, out),
            (Some(_), None) => out.array(0),
            (Some(count), Some(hash)) => {
                check_repetitions(count)?;
                reply_many(hash, count, with_values, &mut random, out);
            }
        }
        Ok(())
    })?
}

fn reply_one(hash: HashRef<'_>, random: &mut Random, out: &mut Writer) {
    match hash.random(random.next()) {
        Some(entry) => out.bulk(entry.key),
        None => out.null(),
    }
}

/// A negative count allows for repetitions.
fn reply_many(
    hash: HashRef<'_>,
    count: i64,
    with_values: bool,
    random: &mut Random,
    out: &mut Writer,
) {
    let wanted = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX);
    let n = if count < 0 {
        wanted
    } else {
        wanted.min(hash.len())
    };
    let nested = with_values && out.protocol() == Protocol::Resp3;
    out.array(if with_values && !nested { 2 * n } else { n });
    let reply = |out: &mut Writer, key: &[u8], value: &[u8]| {
        if nested {
            out.array(2);
        }
        out.bulk(key);
        if with_values {
            out.bulk(value);
        }
    };
    if count < 0 {
        repeat(n, out, |out| {
            if let Some(entry) = hash.random(random.next()) {
                reply(out, entry.key, entry.value);
            }
        });
    } else {
        let visit = |entry: tidewheel_collections::Entry<'_>| reply(out, entry.key, entry.value);
        hash.random_distinct(n, || random.next(), visit);
    }
}
