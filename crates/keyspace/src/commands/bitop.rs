//! BITOP: a bitwise operation on strings, whose result is stored.
//!
//! Long strings are combined without the lock. The result is stored if no source has changed
//! meanwhile; if one has, the command begins again.

use std::sync::Arc;

use tidewheel_store::{INLINE_MAX, NewValue};

use crate::bits::BitOp;
use crate::commands::change::ASIDE_MAX;
use crate::context::{Context, Lookup};
use crate::error::CommandError;
use crate::events::Cause;
use crate::shard::Stored;
use crate::value::{self, LARGE, Object, TAG_STRING_RAW};

type Outcome = Result<(), CommandError>;

/// The position of the first source.
const SOURCES: usize = 3;

/// The strings that are combined.
type Sources = Vec<Arc<Vec<u8>>>;

pub(crate) fn bitop(ctx: &mut Context<'_, '_>) -> Outcome {
    let op = parse(ctx)?;
    for attempt in 0..=ASIDE_MAX {
        let sources = sources(ctx, Lookup::Read)?;
        let bytes: usize = sources.iter().map(|source| source.len()).sum();
        if bytes <= LARGE || attempt == ASIDE_MAX {
            store(ctx, combine(op, &sources));
            let_go(ctx, sources);
            break;
        }
        if combine_aside(ctx, op, sources)? {
            break;
        }
    }
    Ok(())
}

fn parse(ctx: &Context<'_, '_>) -> Result<BitOp, CommandError> {
    let name = ctx.args.get(1).unwrap_or_default();
    let op = BitOp::of_name(name).ok_or(CommandError::SYNTAX)?;
    let n = ctx.args.len() - SOURCES;
    let number = match op {
        BitOp::Not if n != 1 => "a single source key",
        BitOp::Diff | BitOp::Diff1 | BitOp::AndOr if n < 2 => "at least two source keys",
        _ => return Ok(op),
    };
    let name = op.name();
    let text = format!("ERR BITOP {name} must be called with {number}.");
    Err(CommandError::quoting(text))
}

/// The strings of the sources; one that does not exist is empty.
fn sources(ctx: &mut Context<'_, '_>, lookup: Lookup) -> Result<Sources, CommandError> {
    let mut sources = Vec::with_capacity(ctx.args.len() - SOURCES);
    for argument in SOURCES..ctx.args.len() {
        let key = ctx.key(argument);
        sources.push(match ctx.find(key, lookup) {
            Some(slot) => value::shared(&value::string(ctx.entries(key), slot)?),
            None => Arc::default(),
        });
    }
    Ok(sources)
}

fn combine(op: BitOp, sources: &Sources) -> Vec<u8> {
    let strings: Vec<&[u8]> = sources.iter().map(|source| &source[..]).collect();
    op.combine(&strings)
}

/// Combines without the locks, and stores the result. False if another command has changed a source
/// meanwhile.
#[cold]
fn combine_aside(
    ctx: &mut Context<'_, '_>,
    op: BitOp,
    read: Sources,
) -> Result<bool, CommandError> {
    ctx.step_out();
    let result = combine(op, &read);
    let args = ctx.args;
    ctx.step_in_many((SOURCES - 1..args.len()).filter_map(|at| args.get(at)))?;
    let now = sources(ctx, Lookup::Peek)?;
    let same = read.iter().zip(&now).all(|(a, b)| is_same(a, b));
    let_go(ctx, read);
    let_go(ctx, now);
    if same {
        store(ctx, result);
    } else {
        ctx.let_go(Arc::new(result));
    }
    Ok(same)
}

/// Long strings are shared, and a shared one is not changed in place. Short ones are copies.
fn is_same(a: &Arc<Vec<u8>>, b: &Arc<Vec<u8>>) -> bool {
    Arc::ptr_eq(a, b) || a.len() <= INLINE_MAX && a == b
}

/// If a key is gone by now, this frees its string.
fn let_go(ctx: &mut Context<'_, '_>, sources: Sources) {
    sources
        .into_iter()
        .filter(|source| source.len() > INLINE_MAX)
        .for_each(|source| ctx.let_go(source));
}

/// Stores the result, and replies with its length. An empty one removes the key.
fn store(ctx: &mut Context<'_, '_>, result: Vec<u8>) {
    let key = ctx.key(2);
    let len = result.len();
    let slot = ctx.find_at(key, ctx.session.db);
    let value = if len <= INLINE_MAX {
        NewValue::Inline(&result)
    } else {
        NewValue::Object(Object::new(result))
    };
    let stored = Stored {
        tag: TAG_STRING_RAW,
        value,
        deadline: None,
    };
    match slot {
        Some(slot) if len == 0 => ctx.remove(key, slot, Cause::Del),
        None if len == 0 => {}
        Some(slot) => ctx.replace(key, slot, stored, Cause::Set),
        None => ctx.insert(key, stored, Cause::Set),
    }
    ctx.out.integer(len as i64);
}
