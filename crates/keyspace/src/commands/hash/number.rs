//! Fields that are numbers: HINCRBY, HINCRBYFLOAT.

use tidewheel_collections::{Hash, NewDeadline};
use tidewheel_resp::{SumError, parse_i64, sum_floats};

use super::Outcome;
use crate::context::{Context, Lookup};
use crate::error::CommandError;
use crate::events::{Cause, NotifyClass};

const HINCRBY: Cause = Cause::Of(NotifyClass::Hash, "hincrby");
const HINCRBYFLOAT: Cause = Cause::Of(NotifyClass::Hash, "hincrbyfloat");

const NOT_AN_INTEGER: CommandError = CommandError::fixed("ERR hash value is not an integer");
const OVERFLOW: CommandError = CommandError::fixed("ERR increment or decrement would overflow");

pub(crate) fn hincrby(ctx: &mut Context<'_, '_>) -> Outcome {
    let by = ctx.integer(3)?;
    let sum = change(ctx, HINCRBY, |old| {
        let old = match old {
            Some(old) => parse_i64(old).ok_or(NOT_AN_INTEGER)?,
            None => 0,
        };
        let sum = old.checked_add(by).ok_or(OVERFLOW)?;
        Ok((itoa::Buffer::new().format(sum).to_owned(), sum))
    })?;
    ctx.out.integer(sum);
    Ok(())
}

pub(crate) fn hincrbyfloat(ctx: &mut Context<'_, '_>) -> Outcome {
    let by = ctx.args.get(3).unwrap_or_default();
    // The number itself is looked at first, whatever the field holds.
    sum_floats(b"0", by).map_err(|why| match why {
        SumError::NotFinite => CommandError::fixed("ERR value is NaN or Infinity"),
        other => refused(other),
    })?;
    let sum = change(ctx, HINCRBYFLOAT, |old| {
        let sum = sum_floats(old.unwrap_or(b"0"), by).map_err(|why| match why {
            SumError::NotAFloat => CommandError::fixed("ERR hash value is not a float"),
            other => refused(other),
        })?;
        Ok((sum.clone(), sum))
    })?;
    ctx.out.bulk(sum.as_bytes());
    Ok(())
}

fn refused(why: SumError) -> CommandError {
    CommandError::quoting(format!("ERR {why}"))
}

/// Writes what `sum` makes of a field. The field keeps its deadline.
fn change<R>(
    ctx: &mut Context<'_, '_>,
    cause: Cause,
    sum: impl FnOnce(Option<&[u8]>) -> Result<(String, R), CommandError>,
) -> Result<R, CommandError> {
    let (key, args) = (ctx.key(1), ctx.args);
    let field = args.get(2).unwrap_or_default();
    let slot = ctx.find_of::<Hash>(key, Lookup::Write)?;
    let change = ctx.change(ctx.keyspace.rules().packing.hash.get());
    ctx.edit(key, slot, |hash: &mut Hash, _| {
        match sum(hash.get().value(field)) {
            Err(why) => (Err(why), None),
            Ok((text, sum)) => {
                hash.insert(field, text.as_bytes(), NewDeadline::Keep, &change);
                (Ok(sum), Some(cause))
            }
        }
    })
}
