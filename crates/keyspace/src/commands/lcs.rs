//! LCS: the longest common subsequence of two strings.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use crate::context::{Context, Lookup};
use crate::error::CommandError;
use crate::lcs::{length, runs, table_bytes};
use crate::value;

const NOT_STRINGS: CommandError =
    CommandError::fixed("ERR The specified keys must contain string values");
const BOTH: CommandError =
    CommandError::fixed("ERR If you want both the length and indexes, please just use IDX.");
const TOO_LARGE: CommandError = CommandError::fixed(
    "ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len",
);

#[derive(Default)]
struct LcsOptions {
    len: bool,
    index: bool,
    with_match_len: bool,
    min_match_len: i64,
}

impl LcsOptions {
    fn parse(ctx: &Context<'_, '_>) -> Result<Self, CommandError> {
        let mut options = Self::default();
        let mut i = 3;
        while i < ctx.args.len() {
            if ctx.is(i, "IDX") {
                options.index = true;
            } else if ctx.is(i, "LEN") {
                options.len = true;
            } else if ctx.is(i, "WITHMATCHLEN") {
                options.with_match_len = true;
            } else if ctx.is(i, "MINMATCHLEN") && i + 1 < ctx.args.len() {
                i += 1;
                options.min_match_len = ctx.integer(i)?.max(0);
            } else {
                return Err(CommandError::SYNTAX);
            }
            i += 1;
        }
        if options.index && options.len {
            Err(BOTH)
        } else {
            Ok(options)
        }
    }
}

pub(crate) fn lcs(ctx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    let (a, b) = (operand(ctx, 1)?, operand(ctx, 2)?);
    let options = LcsOptions::parse(ctx)?;
    let limit = ctx.keyspace.rules().proto_max_bulk_len.load(Relaxed);
    if table_bytes(a.len(), b.len()).is_none_or(|bytes| bytes as u64 > limit) {
        return Err(TOO_LARGE);
    }
    // The strings are shared, so that no other command waits for a quadratic algorithm.
    if options.len {
        let len = ctx.outside(|| length(&a, &b));
        ctx.out.integer(len as i64);
    } else {
        let (runs, len) = ctx.outside(|| runs(&a, &b));
        if options.index {
            ctx.out.map(2);
            ctx.out.bulk(b"matches");
            let shown = || {
                runs.iter()
                    .filter(|run| run.len as i64 >= options.min_match_len)
            };
            ctx.out.array(shown().count());
            for run in shown() {
                ctx.out.array(2 + usize::from(options.with_match_len));
                for start in [run.a, run.b] {
                    ctx.out.array(2);
                    ctx.out.integer(start as i64);
                    ctx.out.integer((start + run.len - 1) as i64);
                }
                if options.with_match_len {
                    ctx.out.integer(run.len as i64);
                }
            }
            ctx.out.bulk(b"len");
            ctx.out.integer(len as i64);
        } else {
            let mut text = Vec::with_capacity(len);
            for run in runs.iter().rev() {
                text.extend_from_slice(&a[run.a..run.a + run.len]);
            }
            ctx.out.bulk(&text);
        }
    }
    ctx.let_go(a);
    ctx.let_go(b);
    Ok(())
}

/// A string to compare; a key that does not exist is empty.
fn operand(ctx: &mut Context<'_, '_>, argument: usize) -> Result<Arc<Vec<u8>>, CommandError> {
    let key = ctx.key(argument);
    match ctx.find(key, Lookup::Read) {
        Some(slot) => {
            let value = value::string(ctx.entries(key), slot).map_err(|_| NOT_STRINGS)?;
            Ok(value::shared(&value))
        }
        None => Ok(Arc::default()),
    }
}
