//! EXPIRY FORECAST, FREEZE and RESUME: expiry as a whole.

use tidewheel_resp::Writer;
use tidewheel_store::Forecast;

use crate::budget::Budget;
use crate::context::Context;
use crate::error::CommandError;
use crate::steps::{ShardCursor, Steps, StepsFn};

type Outcome = Result<(), CommandError>;

/// Windows of a forecast: what is due, and one for each power of two of milliseconds.
const WINDOWS: usize = 65;

const BUCKETS_OUT_OF_RANGE: CommandError =
    CommandError::fixed("ERR buckets must be between 1 and 65");

/// Replies with one `[from, to, keys]` for each window, in milliseconds from now: first the keys
/// that are due already, then `[1, 2)`, `[2, 4)`, `[4, 8)` and so on. The argument is the number of
/// windows; the last one includes all later keys and says −1 for its end. Without an argument the
/// windows end with the last one that has keys.
pub(crate) const FORECAST: StepsFn = StepsFn(|ctx| {
    if ctx.args.len() > 3 {
        return Err(CommandError::SYNTAX);
    }
    let wanted = match ctx.args.get(2) {
        None => None,
        Some(_) => match usize::try_from(ctx.integer(2)?) {
            Ok(buckets @ 1..=WINDOWS) => Some(buckets),
            _ => return Err(BUCKETS_OUT_OF_RANGE),
        },
    };
    Ok(Box::new(ForecastSteps {
        wanted,
        place: ShardCursor::default(),
        windows: [0; WINDOWS],
    }))
});

/// EXPIRY FORECAST on its way.
#[derive(Debug)]
struct ForecastSteps {
    wanted: Option<usize>,
    place: ShardCursor,
    windows: Forecast,
}

/// The cost of a shard's forecast: a look at each slot of its wheel.
const FORECAST_COST: usize = 32;

impl Steps for ForecastSteps {
    fn step(&mut self, ctx: &mut Context<'_, '_>, budget: &mut Budget) -> bool {
        let Self { place, windows, .. } = self;
        let (db, now) = (ctx.session.db, ctx.now.tick);
        place.each_shard(ctx, budget, |ctx, budget, _| {
            budget.spend(FORECAST_COST);
            ctx.locked().entries(db).forecast(now, windows);
            None
        })
    }

    fn head(&self, out: &mut Writer) {
        let mut windows = self.windows;
        let used = windows
            .iter()
            .rposition(|&keys| keys > 0)
            .map_or(1, |last| last + 1);
        let shown = self.wanted.unwrap_or(used);
        let beyond: u64 = windows[shown..].iter().sum();
        windows[shown - 1] += beyond;
        out.array(shown);
        for (i, &keys) in windows[..shown].iter().enumerate() {
            let open = self.wanted.is_some() && i + 1 == shown;
            let edge = |power: usize| 1_i64.checked_shl(power as u32).filter(|&edge| edge > 0);
            out.array(3);
            out.integer(if i == 0 {
                0
            } else {
                edge(i - 1).unwrap_or(i64::MAX)
            });
            out.integer(if open { -1 } else { edge(i).unwrap_or(-1) });
            out.integer(i64::try_from(keys).unwrap_or(i64::MAX));
        }
    }
}

pub(crate) fn freeze(ctx: &mut Context<'_, '_>) -> Outcome {
    ctx.keyspace.timeline.freeze(|| ctx.now.time.tick);
    ctx.out.ok();
    Ok(())
}

pub(crate) fn resume(ctx: &mut Context<'_, '_>) -> Outcome {
    ctx.keyspace.timeline.resume(|| ctx.now.time.tick);
    // Threads that sleep until a deadline were told that there is none.
    ctx.keyspace.wake_all();
    ctx.out.ok();
    Ok(())
}
