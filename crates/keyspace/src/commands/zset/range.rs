//! A range of members, by rank, by score or by member: ZRANGE and its relatives.

use std::ops::Range;

use tidewheel_collections::{NewDeadline, Scored, ZSet, ZSetRef};
use tidewheel_resp::{Args, Writer, parse_i64};
use tidewheel_store::Slot;

use super::bounds::{LexRange, ScoreRange};
use super::reply::Layout;
use super::{Outcome, change, event, one, store};
use crate::commands::arguments::range_of_places;
use crate::context::{Context, Lookup};
use crate::error::CommandError;
use crate::rows::cost::{RangeBy, RangeForm};
use crate::value::Entries;
use crate::value::collection;

const LIMIT_OF_RANKS: CommandError = CommandError::fixed(
    "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX",
);
const SCORES_BY_LEX: CommandError =
    CommandError::fixed("ERR syntax error, WITHSCORES not supported in combination with BYLEX");

/// The range that a command means, unless its words say more.
#[derive(Clone, Copy)]
struct RangeDefaults {
    /// `None`: the call may say it.
    by: Option<RangeBy>,
    /// `None`: the call may say it.
    reverse: Option<bool>,
    /// The members are stored and not replied.
    stores: bool,
}

const OPEN: RangeDefaults = RangeDefaults {
    by: None,
    reverse: None,
    stores: false,
};

const fn fixed(by: RangeBy, reverse: bool) -> RangeDefaults {
    RangeDefaults {
        by: Some(by),
        reverse: Some(reverse),
        stores: false,
    }
}

pub(crate) fn zrange(ctx: &mut Context<'_, '_>) -> Outcome {
    reply(ctx, OPEN)
}

pub(crate) fn zrevrange(ctx: &mut Context<'_, '_>) -> Outcome {
    reply(ctx, fixed(RangeBy::Rank, true))
}

pub(crate) fn zrangebyscore(ctx: &mut Context<'_, '_>) -> Outcome {
    reply(ctx, fixed(RangeBy::Score, false))
}

pub(crate) fn zrevrangebyscore(ctx: &mut Context<'_, '_>) -> Outcome {
    reply(ctx, fixed(RangeBy::Score, true))
}

pub(crate) fn zrangebylex(ctx: &mut Context<'_, '_>) -> Outcome {
    reply(ctx, fixed(RangeBy::Lex, false))
}

pub(crate) fn zrevrangebylex(ctx: &mut Context<'_, '_>) -> Outcome {
    reply(ctx, fixed(RangeBy::Lex, true))
}

fn reply(ctx: &mut Context<'_, '_>, form: RangeDefaults) -> Outcome {
    let query = RangeQuery::parse(ctx.args.from(2), form)?;
    one(ctx, |zset, out| match zset {
        Some(zset) => query.reply(zset, out),
        None => out.array(0),
    })
}

pub(crate) fn zrangestore(ctx: &mut Context<'_, '_>) -> Outcome {
    let stores = RangeDefaults {
        stores: true,
        ..OPEN
    };
    let query = RangeQuery::parse(ctx.args.from(3), stores)?;
    let (source, change) = (ctx.key(2), change(ctx));
    let mut result = ZSet::new();
    ctx.read::<ZSet, _>(source, Lookup::Read, |zset, _| {
        if let Some(zset) = zset {
            query.for_each(zset, |Scored { member, score, .. }| {
                result.insert(member, score, NewDeadline::None, &change);
            });
        }
    })?;
    let stored = store::put(ctx, 1, result, event("zrangestore"));
    ctx.out.integer(stored);
    Ok(())
}

/// The number of members that a call visits. `args` are its arguments from the range's ends on.
pub(crate) fn count_in_range(
    entries: &Entries,
    slot: Slot,
    range: RangeForm,
    args: Args<'_>,
) -> usize {
    let form = RangeDefaults {
        by: range.by,
        reverse: range.reverse,
        stores: false,
    };
    let (Ok(query), Ok(zset)) = (
        RangeQuery::parse(args, form),
        collection::read::<ZSet>(entries, slot),
    ) else {
        return 0;
    };
    query.ranks(zset).len()
}

/// The two ends of a range.
enum RangeEnds<'b> {
    Ranks(i64, i64),
    Scores(ScoreRange),
    Members(LexRange<'b>),
}

/// The arguments of a call.
struct RangeQuery<'b> {
    ends: RangeEnds<'b>,
    reverse: bool,
    /// The number of members to skip, and the most that follow.
    limit: (i64, i64),
    scores: bool,
}

/// The words behind the ends.
struct Words {
    by: Option<RangeBy>,
    reverse: Option<bool>,
    limit: (i64, i64),
    scores: bool,
}

impl Words {
    fn parse(words: Args<'_>, form: RangeDefaults) -> Result<Self, CommandError> {
        let mut parsed = Self {
            by: form.by,
            reverse: form.reverse,
            limit: (0, -1),
            scores: false,
        };
        let mut i = 0;
        while let Some(word) = words.get(i) {
            let is = |name: &str| word.eq_ignore_ascii_case(name.as_bytes());
            if is("WITHSCORES") && !form.stores {
                parsed.scores = true;
            } else if is("LIMIT") && i + 2 < words.len() {
                parsed.limit = (integer(&words[i + 1])?, integer(&words[i + 2])?);
                i += 2;
            } else if is("REV") && parsed.reverse.is_none() {
                parsed.reverse = Some(true);
            } else if is("BYLEX") && parsed.by.is_none() {
                parsed.by = Some(RangeBy::Lex);
            } else if is("BYSCORE") && parsed.by.is_none() {
                parsed.by = Some(RangeBy::Score);
            } else {
                return Err(CommandError::SYNTAX);
            }
            i += 1;
        }
        Ok(parsed)
    }
}

fn integer(text: &[u8]) -> Result<i64, CommandError> {
    parse_i64(text).ok_or(CommandError::NOT_AN_INTEGER)
}

impl<'b> RangeQuery<'b> {
    /// Reads the two ends and the words behind them.
    fn parse(args: Args<'b>, form: RangeDefaults) -> Result<Self, CommandError> {
        let words = Words::parse(args.from(2), form)?;
        let reverse = words.reverse.unwrap_or(false);
        let (first, last) = (
            args.get(0).unwrap_or_default(),
            args.get(1).unwrap_or_default(),
        );
        // A call that goes down names the upper end first.
        let (min, max) = if reverse {
            (last, first)
        } else {
            (first, last)
        };
        let ends = match words.by.unwrap_or(RangeBy::Rank) {
            RangeBy::Rank if words.limit.1 != -1 => return Err(LIMIT_OF_RANKS),
            RangeBy::Lex if words.scores => return Err(SCORES_BY_LEX),
            RangeBy::Rank => RangeEnds::Ranks(integer(first)?, integer(last)?),
            RangeBy::Score => RangeEnds::Scores(ScoreRange::parse(min, max)?),
            RangeBy::Lex => RangeEnds::Members(LexRange::parse(min, max)?),
        };
        Ok(Self {
            ends,
            reverse,
            limit: words.limit,
            scores: words.scores,
        })
    }

    /// The ranks of the members in the range.
    fn ranks(&self, zset: ZSetRef<'_>) -> Range<usize> {
        let within = match &self.ends {
            RangeEnds::Ranks(start, end) => {
                let len = zset.len();
                let places = range_of_places(*start, *end, len);
                return match self.reverse {
                    true => len - places.end..len - places.start,
                    false => places,
                };
            }
            RangeEnds::Scores(range) => range.ranks(zset),
            RangeEnds::Members(range) => range.ranks(zset),
        };
        self.limited(within)
    }

    fn limited(&self, ranks: Range<usize>) -> Range<usize> {
        let (skipped, most) = self.limit;
        let skipped = usize::try_from(skipped).map_or(ranks.len(), |n| n.min(ranks.len()));
        let left = ranks.len() - skipped;
        let taken = usize::try_from(most).map_or(left, |most| most.min(left));
        if self.reverse {
            let end = ranks.end - skipped;
            end - taken..end
        } else {
            let start = ranks.start + skipped;
            start..start + taken
        }
    }

    fn for_each<'a>(&self, zset: ZSetRef<'a>, visit: impl FnMut(Scored<'a>)) {
        visit_ranks(zset, self.ranks(zset), self.reverse, visit);
    }

    fn reply(&self, zset: ZSetRef<'_>, out: &mut Writer) {
        let ranks = self.ranks(zset);
        let layout = Layout::new(out, self.scores);
        layout.head(out, ranks.len());
        visit_ranks(zset, ranks, self.reverse, |entry| {
            layout.put(out, entry.member, entry.score);
        });
    }
}

/// Visits the members of some ranks, the first or the last one first.
fn visit_ranks<'a>(
    zset: ZSetRef<'a>,
    ranks: Range<usize>,
    reverse: bool,
    visit: impl FnMut(Scored<'a>),
) {
    let n = ranks.len();
    if n == 0 {
        return;
    }
    match reverse {
        true => zset.backward(ranks.end - 1).take(n).for_each(visit),
        false => zset.forward(ranks.start).take(n).for_each(visit),
    }
}
