//! Several sorted sets as one: union, intersection, difference. Sets take part too: each of their
//! members has the score 1.

use tidewheel_collections::{NewDeadline, Set, ZSet};
use tidewheel_resp::Args;

use super::reply::Layout;
use super::score::parse_score;
use super::sources::{
    Aggregate, Source, SourceMembers, SourceScores, count_of_common, difference, intersection,
    union,
};
use super::{Outcome, change, event, store};
use crate::commands::arguments::limit_of_count;
use crate::context::{Context, Lookup};
use crate::error::CommandError;
use crate::value::collection;

const NOT_A_WEIGHT: CommandError = CommandError::fixed("ERR weight value is not a float");

/// The operation on the sources.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ZSetOperation {
    Union,
    Inter,
    Diff,
}

impl ZSetOperation {
    fn apply<'a>(self, mut sources: Vec<Source<'a>>, aggregate: Aggregate) -> SourceScores<'a> {
        match self {
            Self::Diff => difference(&sources),
            Self::Union => {
                sources.sort_by_key(|source| source.of.len());
                union(&sources, aggregate)
            }
            Self::Inter => {
                sources.sort_by_key(|source| source.of.len());
                intersection(&sources, aggregate)
            }
        }
    }
}

/// The use of the result.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ResultUse {
    Reply,
    Count,
    Store(&'static str),
}

pub(crate) fn zunion(ctx: &mut Context<'_, '_>) -> Outcome {
    combine(ctx, ZSetOperation::Union, ResultUse::Reply)
}

pub(crate) fn zinter(ctx: &mut Context<'_, '_>) -> Outcome {
    combine(ctx, ZSetOperation::Inter, ResultUse::Reply)
}

pub(crate) fn zdiff(ctx: &mut Context<'_, '_>) -> Outcome {
    combine(ctx, ZSetOperation::Diff, ResultUse::Reply)
}

pub(crate) fn zintercard(ctx: &mut Context<'_, '_>) -> Outcome {
    combine(ctx, ZSetOperation::Inter, ResultUse::Count)
}

pub(crate) fn zunionstore(ctx: &mut Context<'_, '_>) -> Outcome {
    combine(ctx, ZSetOperation::Union, ResultUse::Store("zunionstore"))
}

pub(crate) fn zinterstore(ctx: &mut Context<'_, '_>) -> Outcome {
    combine(ctx, ZSetOperation::Inter, ResultUse::Store("zinterstore"))
}

pub(crate) fn zdiffstore(ctx: &mut Context<'_, '_>) -> Outcome {
    combine(ctx, ZSetOperation::Diff, ResultUse::Store("zdiffstore"))
}

fn combine(ctx: &mut Context<'_, '_>, op: ZSetOperation, used: ResultUse) -> Outcome {
    // The key of the result comes first.
    let counted = if matches!(used, ResultUse::Store(_)) {
        2
    } else {
        1
    };
    let n = count_of_sources(ctx, counted)?;
    let alive = find_sources(ctx, counted + 1, n)?;
    let words = ctx.args.from(counted + 1 + n);
    let options = CombineOptions::parse(words, n, op, used)?;
    let (change, args, keyspace) = (change(ctx), ctx.args, ctx.keyspace);
    let (several, out) = ctx.apart();
    let mut sources = Vec::with_capacity(n);
    for (i, alive) in alive.into_iter().enumerate() {
        let key = keyspace.key(&args[counted + 1 + i]);
        let entries = several.entries(key);
        let slot = if alive {
            entries.find(key.hash, key.bytes)
        } else {
            None
        };
        sources.push(Source {
            of: SourceMembers::of(entries, slot),
            weight: options.weights.get(i).copied(),
        });
    }
    if used == ResultUse::Count {
        out.integer(count_of_common(sources, options.limit) as i64);
        return Ok(());
    }
    let mut result = op.apply(sources, options.aggregate);
    let ResultUse::Store(name) = used else {
        result.sort_unstable_by(|a, b| a.1.total_cmp(&b.1).then_with(|| a.0.cmp(b.0)));
        let layout = Layout::new(out, options.scores);
        layout.head(out, result.len());
        for (member, score) in result {
            layout.put(out, member, score);
        }
        return Ok(());
    };
    let mut zset = ZSet::new();
    for (member, score) in result {
        zset.insert(member, score, NewDeadline::None, &change);
    }
    let stored = store::put(ctx, 1, zset, event(name));
    ctx.out.integer(stored);
    Ok(())
}

/// The argument that says how many sources follow it.
fn count_of_sources(ctx: &Context<'_, '_>, at: usize) -> Result<usize, CommandError> {
    let n = ctx.integer(at)?;
    if n < 1 {
        let name = ctx.name();
        let text = format!("ERR at least 1 input key is needed for '{name}' command");
        return Err(CommandError::quoting(text));
    }
    let n = usize::try_from(n).unwrap_or(usize::MAX);
    if n > ctx.args.len() - (at + 1) {
        return Err(CommandError::SYNTAX);
    }
    Ok(n)
}

/// Finds the sources that exist, after their due members were removed.
fn find_sources(
    ctx: &mut Context<'_, '_>,
    first: usize,
    n: usize,
) -> Result<Vec<bool>, CommandError> {
    let mut alive = Vec::with_capacity(n);
    for argument in first..first + n {
        let key = ctx.key(argument);
        let slot = ctx.find(key, Lookup::Read);
        if let Some(slot) = slot {
            let tag = ctx.entries(key).tag(slot);
            if !collection::is::<ZSet>(tag) && !collection::is::<Set>(tag) {
                return Err(CommandError::WRONG_TYPE);
            }
        }
        alive.push(slot.is_some());
    }
    Ok(alive)
}

/// The words behind the keys.
struct CombineOptions {
    /// One for each source, or none.
    weights: Vec<f64>,
    aggregate: Aggregate,
    scores: bool,
    /// The most members that are counted.
    limit: usize,
}

impl CombineOptions {
    fn parse(
        words: Args<'_>,
        n: usize,
        op: ZSetOperation,
        used: ResultUse,
    ) -> Result<Self, CommandError> {
        let mut options = Self {
            weights: Vec::new(),
            aggregate: Aggregate::Sum,
            scores: false,
            limit: usize::MAX,
        };
        let joins = op != ZSetOperation::Diff && used != ResultUse::Count;
        let mut i = 0;
        while let Some(word) = words.get(i) {
            let is = |name: &str| word.eq_ignore_ascii_case(name.as_bytes());
            let left = words.len() - i - 1;
            i += 1;
            if joins && left >= n && is("WEIGHTS") {
                let weights = words.from(i).into_iter().take(n);
                let weights = weights.map(|weight| parse_score(weight).map_err(|_| NOT_A_WEIGHT));
                options.weights = weights.collect::<Result<_, _>>()?;
                i += n;
            } else if joins && left >= 1 && is("AGGREGATE") {
                options.aggregate = Aggregate::parse(&words[i]).ok_or(CommandError::SYNTAX)?;
                i += 1;
            } else if used == ResultUse::Reply && is("WITHSCORES") {
                options.scores = true;
            } else if used == ResultUse::Count && left >= 1 && is("LIMIT") {
                options.limit = limit_of_count(&words[i])?;
                i += 1;
            } else {
                return Err(CommandError::SYNTAX);
            }
        }
        Ok(options)
    }
}
