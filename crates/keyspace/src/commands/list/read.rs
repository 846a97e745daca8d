//! LLEN, LINDEX, LRANGE, LPOS: read a list.

use tidewheel_collections::{List, ListRef, Occurrences};
use tidewheel_resp::{Writer, parse_i64};

use super::{Outcome, position, span};
use crate::commands::arguments::signed_count;
use crate::context::{Context, Lookup};
use crate::error::CommandError;

const ZERO_RANK: CommandError = CommandError::fixed(
    "ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... or use negative to start from \
     the end of the list",
);
const NEGATIVE_COUNT: CommandError = CommandError::fixed("ERR COUNT can't be negative");
const NEGATIVE_MAXLEN: CommandError = CommandError::fixed("ERR MAXLEN can't be negative");

/// The bytes around an element of less than a hundred bytes in a reply.
const BULK_BYTES: usize = 7;

pub(crate) fn llen(ctx: &mut Context<'_, '_>) -> Outcome {
    let key = ctx.key(1);
    ctx.read::<List, _>(key, Lookup::Read, |list, out| {
        out.integer(list.map_or(0, ListRef::len) as i64);
    })
}

pub(crate) fn lindex(ctx: &mut Context<'_, '_>) -> Outcome {
    let (key, index) = (ctx.key(1), ctx.integer(2));
    ctx.read::<List, _>(key, Lookup::Read, |list, out| {
        // The public server looks at the key before it looks at the index.
        let Some(list) = list else {
            out.null();
            return Ok(());
        };
        let at = usize::try_from(position(index?, list.len())).ok();
        match at.and_then(|at| list.get(at)) {
            Some(element) => out.bulk(element),
            None => out.null(),
        }
        Ok(())
    })?
}

pub(crate) fn lrange(ctx: &mut Context<'_, '_>) -> Outcome {
    let (start, end) = (ctx.integer(2)?, ctx.integer(3)?);
    let (key, is_long) = (ctx.key(1), ctx.is_long);
    ctx.read::<List, _>(key, Lookup::Read, |list, out| match list {
        None => out.array(0),
        Some(list) => {
            let (start, count) = span(start, end, list.len());
            // Its writer has nothing else: the reply is not copied while it grows.
            if is_long {
                expect(out, list, count);
            }
            out.array(count);
            let elements = list.forward(start).take(count);
            elements.for_each(|element| out.bulk(element));
        }
    })
}

/// Makes room for the reply of so many elements of usual length, if the limit allows it.
fn expect(out: &mut Writer, list: ListRef<'_>, count: usize) {
    let share = list.bytes() as f64 * (count as f64 / list.len().max(1) as f64);
    let bytes = share as usize + count.saturating_mul(BULK_BYTES);
    if bytes <= out.limit().saturating_sub(out.len()) {
        // It cannot fail.
        let _ = out.reserve(bytes);
    }
}

pub(crate) fn lpos(ctx: &mut Context<'_, '_>) -> Outcome {
    let sought = LposCall::read(ctx)?;
    let (key, args) = (ctx.key(1), ctx.args);
    let element = &args[2];
    ctx.read::<List, _>(key, Lookup::Read, |list, out| match sought.count {
        Some(count) => sought.write_all(list, element, count, out),
        None => match sought.positions(list, element, 1).first() {
            Some(at) => out.integer(*at as i64),
            None => out.null(),
        },
    })
}

/// The arguments of LPOS.
struct LposCall {
    skip: usize,
    from_back: bool,
    /// COUNT, if it was given; 0 for all.
    count: Option<usize>,
    maxlen: usize,
}

impl LposCall {
    fn read(ctx: &Context<'_, '_>) -> Result<Self, CommandError> {
        let mut sought = Self {
            skip: 0,
            from_back: false,
            count: None,
            maxlen: usize::MAX,
        };
        for at in (3..ctx.args.len()).step_by(2) {
            let Some(value) = ctx.args.get(at + 1) else {
                return Err(CommandError::SYNTAX);
            };
            match () {
                () if ctx.is(at, "RANK") => sought.set_rank(signed_count(ctx, at + 1)?)?,
                () if ctx.is(at, "COUNT") => {
                    sought.count = Some(natural(value).ok_or(NEGATIVE_COUNT)?);
                }
                () if ctx.is(at, "MAXLEN") => {
                    let maxlen = natural(value).ok_or(NEGATIVE_MAXLEN)?;
                    sought.maxlen = unlimited_if_zero(maxlen);
                }
                () => return Err(CommandError::SYNTAX),
            }
        }
        Ok(sought)
    }

    fn set_rank(&mut self, rank: i64) -> Outcome {
        let nth = rank.unsigned_abs() as usize;
        self.skip = nth.checked_sub(1).ok_or(ZERO_RANK)?;
        self.from_back = rank < 0;
        Ok(())
    }

    fn positions(&self, list: Option<ListRef<'_>>, element: &[u8], count: usize) -> Vec<usize> {
        let mut found = Vec::new();
        let sought = Occurrences {
            skip: self.skip,
            count,
            elements: self.maxlen,
            from_back: self.from_back,
        };
        if let Some(list) = list {
            list.positions(element, sought, |at| {
                found.push(at);
                true
            });
        }
        found
    }

    fn write_all(&self, list: Option<ListRef<'_>>, element: &[u8], count: usize, out: &mut Writer) {
        let found = self.positions(list, element, unlimited_if_zero(count));
        out.array(found.len());
        found.iter().for_each(|at| out.integer(*at as i64));
    }
}

fn natural(bytes: &[u8]) -> Option<usize> {
    parse_i64(bytes).and_then(|number| usize::try_from(number).ok())
}

fn unlimited_if_zero(number: usize) -> usize {
    if number == 0 { usize::MAX } else { number }
}
