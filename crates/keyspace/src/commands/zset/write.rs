//! ZADD, ZINCRBY, ZREM: write and remove members.

use tidewheel_collections::{Change, NewDeadline, ZSet};
use tidewheel_resp::Args;

use super::score::parse_score;
use super::{Outcome, change, event};
use crate::context::{Context, Lookup};
use crate::error::CommandError;
use crate::events::Cause;

const NX_XX: CommandError =
    CommandError::fixed("ERR XX and NX options at the same time are not compatible");
const GT_LT_NX: CommandError =
    CommandError::fixed("ERR GT, LT, and/or NX options at the same time are not compatible");
const ONE_PAIR: CommandError =
    CommandError::fixed("ERR INCR option supports a single increment-element pair");
const NOT_A_NUMBER: CommandError = CommandError::fixed("ERR resulting score is not a number (NaN)");

/// The rule by which ZADD writes members and scores.
#[derive(Default)]
pub(crate) struct ZAddRule {
    /// Members that are there stay as they are.
    pub(crate) absent: bool,
    /// Members that are not there are not added.
    pub(crate) present: bool,
    greater: bool,
    less: bool,
    increment: bool,
}

/// The outcome for all pairs of a call.
#[derive(Default)]
pub(crate) struct ZAddTally {
    added: u32,
    updated: u32,
    /// The last pair's score, written or there already; `None` if the rule refused it.
    score: Option<f64>,
}

impl ZAddRule {
    /// The score that a member gets, which may be NaN; `None` if it is not touched.
    fn score(&self, old: Option<f64>, given: f64) -> Option<f64> {
        let Some(old) = old else {
            return (!self.present).then_some(given);
        };
        let new = if self.increment { old + given } else { given };
        let refused = self.absent || self.less && new >= old || self.greater && new <= old;
        (!refused).then_some(new)
    }

    /// Writes a member. Its deadline stays.
    #[inline]
    pub(crate) fn write(
        &self,
        zset: &mut ZSet,
        member: &[u8],
        given: f64,
        change: &Change<'_>,
        tally: &mut ZAddTally,
    ) {
        let mut score = None;
        let done = zset.update(member, NewDeadline::Keep, change, |old| {
            score = self.score(old, given);
            score.filter(|new| old != Some(*new))
        });
        tally.score = score;
        if done.new.is_some() {
            match done.old {
                None => tally.added += 1,
                Some(_) => tally.updated += 1,
            }
        }
    }
}

impl ZAddTally {
    pub(crate) fn cause(&self, cause: Cause) -> Option<Cause> {
        (self.added + self.updated > 0).then_some(cause)
    }

    /// The number in the reply.
    pub(crate) fn count(&self, changed: bool) -> i64 {
        let updated = if changed { self.updated } else { 0 };
        i64::from(self.added) + i64::from(updated)
    }
}

pub(crate) fn zadd(ctx: &mut Context<'_, '_>) -> Outcome {
    let (rule, changed, first) = parse(ctx.args);
    let pairs = ctx.args.from(first);
    if pairs.is_empty() || !pairs.len().is_multiple_of(2) {
        return Err(CommandError::SYNTAX);
    }
    if rule.absent && rule.present {
        return Err(NX_XX);
    }
    if rule.greater && rule.less || rule.absent && (rule.greater || rule.less) {
        return Err(GT_LT_NX);
    }
    if rule.increment {
        if pairs.len() > 2 {
            return Err(ONE_PAIR);
        }
        return increment(ctx, &rule, first);
    }
    let tally = add(ctx, &rule, pairs)?;
    ctx.out.integer(tally.count(changed));
    Ok(())
}

/// The rule, whether changed members are counted, and where the pairs begin.
fn parse(args: Args<'_>) -> (ZAddRule, bool, usize) {
    let (mut rule, mut changed) = (ZAddRule::default(), false);
    for (i, word) in args.iter().enumerate().skip(2) {
        let flag = match word {
            _ if word.eq_ignore_ascii_case(b"NX") => &mut rule.absent,
            _ if word.eq_ignore_ascii_case(b"XX") => &mut rule.present,
            _ if word.eq_ignore_ascii_case(b"GT") => &mut rule.greater,
            _ if word.eq_ignore_ascii_case(b"LT") => &mut rule.less,
            _ if word.eq_ignore_ascii_case(b"CH") => &mut changed,
            _ if word.eq_ignore_ascii_case(b"INCR") => &mut rule.increment,
            _ => return (rule, changed, i),
        };
        *flag = true;
    }
    (rule, changed, args.len())
}

fn add(
    ctx: &mut Context<'_, '_>,
    rule: &ZAddRule,
    pairs: Args<'_>,
) -> Result<ZAddTally, CommandError> {
    // All of them are looked at before one is written. Most calls have one pair.
    let first = parse_score(&pairs[0])?;
    for i in (2..pairs.len()).step_by(2) {
        parse_score(&pairs[i])?;
    }
    let member = |i| pairs.get(i + 1).unwrap_or_default();
    let others = (2..pairs.len()).step_by(2);
    let others = others.map(|i| (member(i), parse_score(&pairs[i]).unwrap_or_default()));
    let all = std::iter::once((member(0), first)).chain(others);
    write_all(ctx, rule, all)
}

/// Writes members and their scores.
#[inline]
pub(crate) fn write_all<'m>(
    ctx: &mut Context<'_, '_>,
    rule: &ZAddRule,
    pairs: impl Iterator<Item = (&'m [u8], f64)>,
) -> Result<ZAddTally, CommandError> {
    let key = ctx.key(1);
    let slot = ctx.find_of::<ZSet>(key, Lookup::Write)?;
    let change = change(ctx);
    let tally = ctx.edit(key, slot, |zset: &mut ZSet, _| {
        let mut tally = ZAddTally::default();
        for (member, score) in pairs {
            rule.write(zset, member, score, &change, &mut tally);
        }
        let cause = tally.cause(event("zadd"));
        (tally, cause)
    });
    Ok(tally)
}

pub(crate) fn zincrby(ctx: &mut Context<'_, '_>) -> Outcome {
    let rule = ZAddRule {
        increment: true,
        ..ZAddRule::default()
    };
    increment(ctx, &rule, 2)
}

/// Adds to one member's score; the pair stands at `at`.
fn increment(ctx: &mut Context<'_, '_>, rule: &ZAddRule, at: usize) -> Outcome {
    let (key, args) = (ctx.key(1), ctx.args);
    let (by, member) = (parse_score(&args[at])?, &args[at + 1]);
    let slot = ctx.find_of::<ZSet>(key, Lookup::Write)?;
    let change = change(ctx);
    let score = ctx.edit(key, slot, |zset: &mut ZSet, _| {
        let mut tally = ZAddTally::default();
        rule.write(zset, member, by, &change, &mut tally);
        (tally.score, tally.cause(event("zincr")))
    });
    match score {
        Some(score) if score.is_nan() => return Err(NOT_A_NUMBER),
        Some(score) => ctx.out.double(score),
        None => ctx.out.null(),
    }
    Ok(())
}

pub(crate) fn zrem(ctx: &mut Context<'_, '_>) -> Outcome {
    let (key, members) = (ctx.key(1), ctx.args.from(2));
    let slot = ctx.find_of::<ZSet>(key, Lookup::Write)?;
    let gone = ctx.edit(key, slot, |zset: &mut ZSet, _| {
        let gone = members
            .iter()
            .filter(|member| zset.remove(member).is_some())
            .count();
        (gone as i64, (gone > 0).then_some(event("zrem")))
    });
    ctx.out.integer(gone);
    Ok(())
}
