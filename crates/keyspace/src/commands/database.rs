//! Whole databases: SELECT, DBSIZE, FLUSHDB, FLUSHALL, SWAPDB; and TIME.

use tidewheel_resp::Writer;

use crate::budget::Budget;
use crate::context::Context;
use crate::error::CommandError;
use crate::garbage::Garbage;
use crate::steps::{ShardCursor, Steps, StepsFn};

type Outcome = Result<(), CommandError>;

pub(crate) fn select(ctx: &mut Context<'_, '_>) -> Outcome {
    ctx.session.db = ctx.database_index(1)?;
    ctx.out.ok();
    Ok(())
}

/// DBSIZE on its way.
#[derive(Debug, Default)]
struct Size {
    place: ShardCursor,
    keys: usize,
}

pub(crate) const DBSIZE: StepsFn = StepsFn(|_| Ok(Box::new(Size::default())));

impl Steps for Size {
    fn step(&mut self, ctx: &mut Context<'_, '_>, budget: &mut Budget) -> bool {
        let Self { place, keys } = self;
        place.each_shard(ctx, budget, |ctx, _, _| {
            let db = ctx.session.db;
            *keys += ctx.locked().entries(db).len();
            None
        })
    }

    fn head(&self, out: &mut Writer) {
        out.integer(self.keys as i64);
    }
}

pub(crate) fn flushdb(ctx: &mut Context<'_, '_>) -> Outcome {
    let db = ctx.session.db;
    flush(ctx, db..db + 1)
}

pub(crate) fn flushall(ctx: &mut Context<'_, '_>) -> Outcome {
    let databases = ctx.keyspace.databases() as u32;
    flush(ctx, 0..databases)
}

/// Swaps stores for empty ones while no other thread is inside. The old ones are freed afterwards:
/// by this thread for SYNC, else away from the loop.
fn flush(ctx: &mut Context<'_, '_>, databases: std::ops::Range<u32>) -> Outcome {
    let sync = match ctx.args.len() {
        1 => false,
        2 if ctx.is(1, "SYNC") => true,
        2 if ctx.is(1, "ASYNC") => false,
        _ => return Err(CommandError::SYNTAX),
    };
    let mut garbage = Garbage::default();
    for shard in 0..ctx.keyspace.shards() {
        ctx.lock_shard(shard)?;
        let keyspace = ctx.keyspace;
        let hold = ctx.locked();
        for db in databases.clone() {
            if let Some((entries, bytes)) = hold.flush(db, &keyspace.hasher) {
                garbage.add_store(entries, bytes);
            }
        }
        hold.publish_due();
        ctx.unlock();
    }
    ctx.keyspace.shared.expired.flush(databases);
    ctx.drop_stores(garbage, sync);
    ctx.keyspace.tell_all_invalid();
    ctx.out.ok();
    Ok(())
}

const INVALID_FIRST: CommandError = CommandError::fixed("ERR invalid first DB index");
const INVALID_SECOND: CommandError = CommandError::fixed("ERR invalid second DB index");

pub(crate) fn swapdb(ctx: &mut Context<'_, '_>) -> Outcome {
    let index = |argument, invalid: CommandError| {
        let number = ctx
            .integer(argument)
            .ok()
            .and_then(|number| i32::try_from(number).ok());
        number.ok_or(invalid)
    };
    let (first, second) = (index(1, INVALID_FIRST)?, index(2, INVALID_SECOND)?);
    let keyspace = ctx.keyspace;
    let (Some(first), Some(second)) = (
        keyspace.database_index(first.into()),
        keyspace.database_index(second.into()),
    ) else {
        return Err(CommandError::DB_OUT_OF_RANGE);
    };
    if first != second {
        for shard in 0..keyspace.shards() {
            ctx.lock_shard(shard)?;
            ctx.locked().swap(first, second);
            ctx.unlock();
        }
        keyspace.shared.expired.swap(first, second);
        keyspace.tell_all_invalid();
    }
    ctx.out.ok();
    Ok(())
}

pub(crate) fn time(ctx: &mut Context<'_, '_>) -> Outcome {
    ctx.now.time.write(ctx.out);
    Ok(())
}
