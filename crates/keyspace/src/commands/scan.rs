//! Walking over all keys of a database: KEYS, SCAN, RANDOMKEY.

use tidewheel_resp::parse_u64;

use crate::command::CommandError;
use crate::context::Context;
use crate::glob::glob_match;
use crate::value;

type Outcome = Result<(), CommandError>;

/// Entries that one hold of a shard's lock visits.
const STEP: usize = 256;

/// Dead keys that RANDOMKEY removes before it gives up.
const RANDOM_TRIES: usize = 4096;

const INVALID_CURSOR: CommandError = CommandError::fixed("ERR invalid cursor");

pub(crate) fn keys(ctx: &mut Context<'_, '_>) -> Outcome {
    let pattern = ctx.args.get(1).unwrap_or_default();
    let all = pattern == b"*";
    let mark = ctx.out.mark();
    let (mut found, now) = (0, ctx.now);
    for shard in 0..ctx.keyspace.shards() {
        let mut cursor = Some(0);
        while let Some(from) = cursor {
            ctx.lock_shard(shard);
            cursor = ctx.walk(from, STEP, |out, entries, slot| {
                let key = entries.key(slot);
                let dead = entries
                    .deadline(slot)
                    .is_some_and(|deadline| now.reached(deadline));
                if !dead && (all || glob_match(pattern, key)) {
                    out.bulk(key);
                    found += 1;
                }
            });
            ctx.unlock();
        }
    }
    ctx.out.array_at(mark, found);
    Ok(())
}

struct ScanOptions<'b> {
    pattern: Option<&'b [u8]>,
    type_name: Option<&'b [u8]>,
    count: usize,
}

impl<'b> ScanOptions<'b> {
    /// Elements that a call visits unless it is told otherwise.
    const COUNT: usize = 10;

    fn parse(ctx: &Context<'_, 'b>) -> Result<Self, CommandError> {
        let mut options = Self {
            pattern: None,
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
                options.pattern = (value != b"*").then_some(value);
            } else if ctx.is(i, "TYPE") {
                options.type_name = Some(value);
            } else {
                return Err(CommandError::SYNTAX);
            }
            i += 2;
        }
        Ok(options)
    }
}

/// A cursor is the shard above and the place in its hash order below 32 bits.
const PLACE_BITS: u32 = 32;

pub(crate) fn scan(ctx: &mut Context<'_, '_>) -> Outcome {
    let cursor = parse_u64(&ctx.args[1]).ok_or(INVALID_CURSOR)?;
    let options = ScanOptions::parse(ctx)?;
    let now = ctx.now;
    let mark = ctx.out.mark();
    let (mut found, mut visited) = (0, 0);
    let mut dead: Vec<Box<[u8]>> = Vec::new();
    let mut shard = usize::try_from(cursor >> PLACE_BITS).unwrap_or(usize::MAX);
    let mut place = cursor as u32;
    while shard < ctx.keyspace.shards() && visited < options.count {
        ctx.lock_shard(shard);
        let step = (options.count - visited).min(STEP);
        let next = ctx.walk(place, step, |out, entries, slot| {
            visited += 1;
            let key = entries.key(slot);
            if entries
                .deadline(slot)
                .is_some_and(|deadline| now.reached(deadline))
            {
                dead.push(key.into());
                return;
            }
            let type_name = value::type_name(entries.tag(slot)).as_bytes();
            if options
                .pattern
                .is_none_or(|pattern| glob_match(pattern, key))
                && options
                    .type_name
                    .is_none_or(|wanted| type_name.eq_ignore_ascii_case(wanted))
            {
                out.bulk(key);
                found += 1;
            }
        });
        for key in dead.drain(..) {
            let key = ctx.keyspace.key(&key);
            ctx.find_at(key, ctx.session.db);
        }
        ctx.unlock();
        (shard, place) = match next {
            Some(next) => (shard, next),
            None => (shard + 1, 0),
        };
    }
    let next = if shard < ctx.keyspace.shards() {
        (shard as u64) << PLACE_BITS | u64::from(place)
    } else {
        0
    };
    ctx.out.array_at(mark, found);
    // The cursor comes first in the reply and is known last.
    let page = ctx.out.as_bytes()[mark..].to_vec();
    ctx.out.truncate(mark);
    ctx.out.array(2);
    ctx.out.bulk(itoa::Buffer::new().format(next).as_bytes());
    ctx.out.raw(&page);
    Ok(())
}

pub(crate) fn randomkey(ctx: &mut Context<'_, '_>) -> Outcome {
    for _ in 0..RANDOM_TRIES {
        let Some(shard) = random_shard(ctx) else {
            break;
        };
        ctx.lock_shard(shard);
        let (db, now) = (ctx.session.db, ctx.now);
        let hold = ctx.locked();
        let random = hold.random.next();
        let entries = hold.entries(db);
        let Some(slot) = entries.sample(random) else {
            ctx.unlock();
            continue;
        };
        let key = entries.key(slot).to_vec();
        let dead = entries
            .deadline(slot)
            .is_some_and(|deadline| now.reached(deadline));
        if dead {
            let key = ctx.keyspace.key(&key);
            ctx.find_at(key, db);
        }
        ctx.unlock();
        if !dead {
            ctx.out.bulk(&key);
            return Ok(());
        }
    }
    ctx.out.null();
    Ok(())
}

/// A shard, chosen with a probability in proportion to its keys; `None` if there are none.
fn random_shard(ctx: &mut Context<'_, '_>) -> Option<usize> {
    let db = ctx.session.db;
    let shards = ctx.keyspace.shards();
    let mut ends = Vec::with_capacity(shards);
    let (mut keys, mut random) = (0_u64, 0);
    for shard in 0..shards {
        ctx.lock_shard(shard);
        let hold = ctx.locked();
        keys += hold.entries(db).len() as u64;
        random = hold.random.next();
        ctx.unlock();
        ends.push(keys);
    }
    let rank = random.checked_rem(keys)?;
    Some(ends.partition_point(|&end| end <= rank))
}
