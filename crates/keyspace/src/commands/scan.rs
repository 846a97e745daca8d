//! KEYS, SCAN, RANDOMKEY: visit the keys of a database in steps.

use tidewheel_resp::{Writer, parse_u64};

use crate::budget::Budget;
use crate::context::Context;
use crate::error::CommandError;
use crate::glob::glob_match;
use crate::order;
use crate::steps::{ShardCursor, Steps, StepsFn};
use crate::value;
use crate::value::collection::is_due;

/// Entries that one hold of a shard's lock visits.
const STEP: usize = 256;

/// The highest cost of a match while the key's shard is locked.
const MATCH_COST_MAX: usize = 64;

/// Dead keys that RANDOMKEY removes before it gives up.
const RANDOM_TRIES: usize = 4096;

const INVALID_CURSOR: CommandError = CommandError::fixed("ERR invalid cursor");

/// The keys of the reply: those that match.
#[derive(Debug, Default)]
struct MatchingKeys {
    /// `None` is matched by all.
    pattern: Option<Vec<u8>>,
    /// Keys that take long to match. They are matched when no shard is locked, and other commands
    /// run in between.
    aside: Vec<Box<[u8]>>,
    found: usize,
}

impl MatchingKeys {
    fn new(pattern: &[u8]) -> Self {
        Self {
            pattern: (pattern != b"*").then(|| pattern.to_vec()),
            ..Self::default()
        }
    }

    /// The cost of matching a key, beyond the visit.
    fn match_cost(&self, key: &[u8]) -> usize {
        let pattern = self.pattern.as_ref();
        pattern.map_or(0, |pattern| {
            key.len() / 16 + pattern.len().saturating_mul(key.len()) / 4096
        })
    }

    /// Matches a living key, at once or later.
    fn consider(&mut self, key: &[u8], out: &mut Writer, budget: &mut Budget) {
        let cost = self.match_cost(key);
        budget.spend(cost);
        if cost > MATCH_COST_MAX {
            self.aside.push(key.into());
        } else {
            self.add(key, out);
        }
    }

    /// Matches keys that were put aside, until the budget is spent.
    fn match_aside(&mut self, out: &mut Writer, budget: &mut Budget) {
        order::assert_no_shard_is_held();
        while !budget.is_spent()
            && let Some(key) = self.aside.pop()
        {
            budget.spend(self.match_cost(&key));
            self.add(&key, out);
        }
    }

    fn add(&mut self, key: &[u8], out: &mut Writer) {
        let pattern = self.pattern.as_ref();
        if pattern.is_none_or(|pattern| glob_match(pattern, key)) {
            out.bulk(key);
            self.found += 1;
        }
    }

    fn bytes(&self) -> usize {
        let aside: usize = self.aside.iter().map(|key| key.len()).sum();
        aside + self.pattern.as_ref().map_or(0, Vec::len)
    }
}

/// Finds the living ones among keys whose entries are due, and removes dead ones. A key lives while
/// one of its members does.
fn those_alive(
    ctx: &mut Context<'_, '_>,
    due: Vec<Box<[u8]>>,
    budget: &mut Budget,
) -> Vec<(Box<[u8]>, u8)> {
    let db = ctx.session.db;
    let tag = |key: Box<[u8]>| {
        let place = ctx.keyspace.key(&key);
        let slot = ctx.find_draining(place, db, budget)?;
        let tag = ctx.entries_at(place, db).tag(slot);
        Some((key, tag))
    };
    due.into_iter().filter_map(tag).collect()
}

/// KEYS on its way.
#[derive(Debug)]
struct Keys {
    answer: MatchingKeys,
    place: ShardCursor,
}

pub(crate) const KEYS: StepsFn = StepsFn(|ctx| {
    Ok(Box::new(Keys {
        answer: MatchingKeys::new(ctx.args.get(1).unwrap_or_default()),
        place: ShardCursor::default(),
    }))
});

impl Steps for Keys {
    fn step(&mut self, ctx: &mut Context<'_, '_>, budget: &mut Budget) -> bool {
        let (Self { answer, place }, now) = (self, ctx.now);
        answer.match_aside(ctx.out, budget);
        let arrived = place.each_shard(ctx, budget, |ctx, budget, cursor| {
            let (mut visited, mut due) = (0, Vec::new());
            let next = ctx.visit_entries(cursor, |out, entries, slot| {
                visited += 1;
                budget.spend(1);
                let key = entries.key(slot);
                match is_due(entries, slot, &now) {
                    true => due.push(key.into()),
                    false => answer.consider(key, out, budget),
                }
                visited < STEP && !budget.is_spent()
            });
            for (key, _) in those_alive(ctx, due, budget) {
                answer.consider(&key, ctx.out, budget);
            }
            next
        });
        arrived && answer.aside.is_empty()
    }

    fn head(&self, out: &mut Writer) {
        out.array(self.answer.found);
    }

    fn bytes(&self) -> usize {
        self.answer.bytes()
    }
}

#[derive(Debug)]
struct ScanOptions {
    answer: MatchingKeys,
    type_name: Option<Vec<u8>>,
    count: usize,
}

impl ScanOptions {
    /// Elements that a call visits if it does not say.
    const COUNT: usize = 10;

    fn parse(ctx: &Context<'_, '_>) -> Result<Self, CommandError> {
        let mut options = Self {
            answer: MatchingKeys::default(),
            type_name: None,
            count: Self::COUNT,
        };
        let mut i = 2;
        while i < ctx.args.len() {
            let Some(value) = ctx.args.get(i + 1) else {
                return Err(CommandError::SYNTAX);
            };
            if ctx.is(i, "COUNT") {
                let count = ctx.integer(i + 1)?;
                if count < 1 {
                    return Err(CommandError::SYNTAX);
                }
                options.count = usize::try_from(count).unwrap_or(usize::MAX);
            } else if ctx.is(i, "MATCH") {
                options.answer = MatchingKeys::new(value);
            } else if ctx.is(i, "TYPE") {
                options.type_name = Some(value.to_vec());
            } else {
                return Err(CommandError::SYNTAX);
            }
            i += 2;
        }
        Ok(options)
    }

    fn want(&self, tag: u8) -> bool {
        let type_name = value::type_name(tag).as_bytes();
        let wanted = self.type_name.as_ref();
        wanted.is_none_or(|wanted| type_name.eq_ignore_ascii_case(wanted))
    }
}

/// A cursor has the shard in its upper bits, and the place in the shard's hash order in its lower
/// 32.
const PLACE_BITS: u32 = 32;

/// SCAN on its way, which is long for a large COUNT.
#[derive(Debug)]
struct Scan {
    options: ScanOptions,
    place: ShardCursor,
    visited: usize,
    /// The place as the reply says it; 0 at the end.
    cursor: u64,
}

pub(crate) const SCAN: StepsFn = StepsFn(|ctx| {
    let cursor = parse_u64(&ctx.args[1]).ok_or(INVALID_CURSOR)?;
    Ok(Box::new(Scan {
        options: ScanOptions::parse(ctx)?,
        place: ShardCursor {
            shard: usize::try_from(cursor >> PLACE_BITS).unwrap_or(usize::MAX),
            cursor: cursor as u32,
        },
        visited: 0,
        cursor: 0,
    }))
});

impl Steps for Scan {
    fn step(&mut self, ctx: &mut Context<'_, '_>, budget: &mut Budget) -> bool {
        self.options.answer.match_aside(ctx.out, budget);
        while self.place.shard < ctx.keyspace.shards() && self.visited < self.options.count {
            if budget.is_spent() {
                return false;
            }
            budget.spend(ShardCursor::SHARD_COST);
            if ctx.lock_shard(self.place.shard).is_err() {
                return false;
            }
            let next = self.visit(ctx, budget);
            ctx.unlock();
            self.place.advance(next);
        }
        if self.place.shard < ctx.keyspace.shards() {
            let ShardCursor { shard, cursor } = self.place;
            self.cursor = (shard as u64) << PLACE_BITS | u64::from(cursor);
        }
        self.options.answer.aside.is_empty()
    }

    fn head(&self, out: &mut Writer) {
        // The cursor comes first in the reply and is known last.
        out.array(2);
        out.bulk(itoa::Buffer::new().format(self.cursor).as_bytes());
        out.array(self.options.answer.found);
    }

    fn bytes(&self) -> usize {
        self.options.answer.bytes()
    }
}

impl Scan {
    /// Visits entries of the shard that is locked.
    fn visit(&mut self, ctx: &mut Context<'_, '_>, budget: &mut Budget) -> Option<u32> {
        let now = ctx.now;
        let mut due = Vec::new();
        let enough = self.options.count.min(self.visited.saturating_add(STEP));
        let next = ctx.visit_entries(self.place.cursor, |out, entries, slot| {
            self.visited += 1;
            budget.spend(1);
            let key = entries.key(slot);
            if is_due(entries, slot, &now) {
                due.push(key.into());
            } else if self.options.want(entries.tag(slot)) {
                self.options.answer.consider(key, out, budget);
            }
            self.visited < enough && !budget.is_spent()
        });
        for (key, tag) in those_alive(ctx, due, budget) {
            if self.options.want(tag) {
                self.options.answer.consider(&key, ctx.out, budget);
            }
        }
        next
    }
}

/// RANDOMKEY on its way: each try draws a shard in proportion to its keys, and one of its keys.
#[derive(Debug)]
struct RandomKey {
    tries: usize,
}

pub(crate) const RANDOMKEY: StepsFn = StepsFn(|_| {
    Ok(Box::new(RandomKey {
        tries: RANDOM_TRIES,
    }))
});

impl Steps for RandomKey {
    fn step(&mut self, ctx: &mut Context<'_, '_>, budget: &mut Budget) -> bool {
        while self.tries > 0 {
            if budget.is_spent() {
                return false;
            }
            budget.spend(ctx.keyspace.shards() * ShardCursor::SHARD_COST);
            self.tries -= 1;
            match random_shard(ctx).map(|shard| shard.map(|at| random_key(ctx, at, budget))) {
                Ok(Some(Ok(Some(key)))) => {
                    ctx.out.bulk(&key);
                    return true;
                }
                Ok(Some(Ok(None))) => {}
                Ok(None) => break,
                // It is blocked, and draws anew.
                Ok(Some(Err(_))) | Err(_) => return false,
            }
        }
        ctx.out.null();
        true
    }

    fn head(&self, _: &mut Writer) {}
}

/// A key of a shard, if the one that was drawn is alive.
fn random_key(
    ctx: &mut Context<'_, '_>,
    shard: usize,
    budget: &mut Budget,
) -> Result<Option<Box<[u8]>>, CommandError> {
    ctx.lock_shard(shard)?;
    let (db, now) = (ctx.session.db, ctx.now);
    let hold = ctx.locked();
    let random = hold.random.next();
    let entries = hold.entries(db);
    let drawn = entries
        .sample(random)
        .map(|slot| (entries.key(slot).into(), is_due(entries, slot, &now)));
    let alive = match drawn {
        Some((key, true)) => those_alive(ctx, vec![key], budget)
            .pop()
            .map(|(key, _)| key),
        other => other.map(|(key, _)| key),
    };
    ctx.unlock();
    Ok(alive)
}

/// A shard, chosen with a probability in proportion to its keys; `None` if there are none.
fn random_shard(ctx: &mut Context<'_, '_>) -> Result<Option<usize>, CommandError> {
    let db = ctx.session.db;
    let shards = ctx.keyspace.shards();
    let mut ends = Vec::with_capacity(shards);
    let (mut keys, mut random) = (0_u64, 0);
    for shard in 0..shards {
        ctx.lock_shard(shard)?;
        let hold = ctx.locked();
        keys += hold.entries(db).len() as u64;
        random = hold.random.next();
        ctx.unlock();
        ends.push(keys);
    }
    let rank = random.checked_rem(keys);
    Ok(rank.map(|rank| ends.partition_point(|&end| end <= rank)))
}
