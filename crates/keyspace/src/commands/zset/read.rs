//! ZSCORE, ZRANK, ZCARD, ZCOUNT and their relatives: single members, and counts.

use tidewheel_collections::ZSetRef;
use tidewheel_resp::Writer;

use super::bounds::{LexRange, ScoreRange};
use super::{Outcome, one};
use crate::context::Context;
use crate::error::CommandError;

pub(crate) fn zcard(ctx: &mut Context<'_, '_>) -> Outcome {
    one(ctx, |zset, out| {
        out.integer(zset.map_or(0, ZSetRef::len) as i64);
    })
}

pub(crate) fn zscore(ctx: &mut Context<'_, '_>) -> Outcome {
    let member = ctx.args.get(2).unwrap_or_default();
    one(ctx, |zset, out| put_score(zset, member, out))
}

pub(crate) fn zmscore(ctx: &mut Context<'_, '_>) -> Outcome {
    let members = ctx.args.from(2);
    one(ctx, |zset, out| {
        out.array(members.len());
        for member in members {
            put_score(zset, member, out);
        }
    })
}

fn put_score(zset: Option<ZSetRef<'_>>, member: &[u8], out: &mut Writer) {
    match zset.and_then(|zset| zset.score(member)) {
        Some(score) => out.double(score),
        None => out.null(),
    }
}

pub(crate) fn zrank(ctx: &mut Context<'_, '_>) -> Outcome {
    rank(ctx, |_, rank| rank)
}

pub(crate) fn zrevrank(ctx: &mut Context<'_, '_>) -> Outcome {
    rank(ctx, |len, rank| len - 1 - rank)
}

fn rank(ctx: &mut Context<'_, '_>, count: impl FnOnce(usize, usize) -> usize) -> Outcome {
    let with_score = match ctx.args.len() {
        3 => false,
        4 if ctx.is(3, "WITHSCORE") => true,
        5.. => return Err(CommandError::wrong_arity(ctx.name())),
        _ => return Err(CommandError::SYNTAX),
    };
    let member = ctx.args.get(2).unwrap_or_default();
    one(ctx, |zset, out| {
        let found = zset.and_then(|zset| Some((zset.rank(member)?, zset.len())));
        match found {
            Some(((rank, score), len)) => {
                if with_score {
                    out.array(2);
                }
                out.integer(count(len, rank) as i64);
                if with_score {
                    out.double(score);
                }
            }
            None if with_score => out.null_array(),
            None => out.null(),
        }
    })
}

pub(crate) fn zcount(ctx: &mut Context<'_, '_>) -> Outcome {
    let range = ScoreRange::parse(&ctx.args[2], &ctx.args[3])?;
    one(ctx, |zset, out| {
        let count = zset.map_or(0, |zset| range.ranks(zset).len());
        out.integer(count as i64);
    })
}

pub(crate) fn zlexcount(ctx: &mut Context<'_, '_>) -> Outcome {
    let args = ctx.args;
    let range = LexRange::parse(&args[2], &args[3])?;
    one(ctx, |zset, out| {
        let count = zset.map_or(0, |zset| range.ranks(zset).len());
        out.integer(count as i64);
    })
}
