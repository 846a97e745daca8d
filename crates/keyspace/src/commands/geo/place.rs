//! Positions of members: GEOADD, GEOPOS, GEODIST, GEOHASH.

use tidewheel_collections::ZSetRef;
use tidewheel_resp::Writer;

use super::units::{point, unit};
use super::{Outcome, put_distance, put_point};
use crate::commands::zset::one;
use crate::commands::zset::write::{ZAddRule, write_all};
use crate::context::Context;
use crate::error::CommandError;
use crate::geo::Cell;

pub(crate) fn geoadd(ctx: &mut Context<'_, '_>) -> Outcome {
    let args = ctx.args;
    let (mut rule, mut changed, mut first) = (ZAddRule::default(), false, args.len());
    for (i, word) in args.iter().enumerate().skip(2) {
        let is = |name: &str| word.eq_ignore_ascii_case(name.as_bytes());
        if is("NX") {
            rule.absent = true;
        } else if is("XX") {
            rule.present = true;
        } else if is("CH") {
            changed = true;
        } else {
            first = i;
            break;
        }
    }
    let n = args.len() - first;
    if n == 0 || !n.is_multiple_of(3) || rule.absent && rule.present {
        return Err(CommandError::SYNTAX);
    }
    let mut scored = Vec::with_capacity(n / 3);
    for at in (first..args.len()).step_by(3) {
        let score = Cell::of(point(args, at)?).score();
        scored.push((args.get(at + 2).unwrap_or_default(), score));
    }
    let tally = write_all(ctx, &rule, scored.into_iter())?;
    ctx.out.integer(tally.count(changed));
    Ok(())
}

/// The cell of a member.
fn cell(zset: Option<ZSetRef<'_>>, member: &[u8]) -> Option<Cell> {
    zset?.score(member).map(Cell::of_score)
}

/// Replies with something of each member's cell.
fn each(
    ctx: &mut Context<'_, '_>,
    put: impl Fn(&mut Writer, Cell),
    absent: impl Fn(&mut Writer),
) -> Outcome {
    let members = ctx.args.from(2);
    one(ctx, |zset, out| {
        out.array(members.len());
        for member in members {
            match cell(zset, member) {
                Some(cell) => put(out, cell),
                None => absent(out),
            }
        }
    })
}

pub(crate) fn geopos(ctx: &mut Context<'_, '_>) -> Outcome {
    each(
        ctx,
        |out, cell| put_point(out, cell.middle()),
        Writer::null_array,
    )
}

pub(crate) fn geohash(ctx: &mut Context<'_, '_>) -> Outcome {
    each(ctx, |out, cell| out.bulk(&cell.text()), Writer::null)
}

pub(crate) fn geodist(ctx: &mut Context<'_, '_>) -> Outcome {
    let args = ctx.args;
    let metres = match args.len() {
        4 => 1.0,
        5 => unit(&args[4])?,
        _ => return Err(CommandError::SYNTAX),
    };
    one(ctx, |zset, out| {
        match (cell(zset, &args[2]), cell(zset, &args[3])) {
            (Some(a), Some(b)) => put_distance(out, a.middle().distance(b.middle()) / metres),
            _ => out.null(),
        }
    })
}
