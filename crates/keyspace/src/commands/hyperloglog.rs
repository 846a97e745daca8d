//! HyperLogLogs: PFADD, PFCOUNT, PFMERGE, PFDEBUG, PFSELFTEST.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use tidewheel_resp::Args;
use tidewheel_store::{Slot, Value};

use crate::commands::change::put;
use crate::context::{Context, Key, Lookup};
use crate::error::CommandError;
use crate::events::Cause;
use crate::hyperloglog::{self as hll, Corrupt, Encoding, Rank, Registers};
use crate::value::{self, Object, TAG_STRING_RAW};

type Outcome = Result<(), CommandError>;

const NOT_ONE: CommandError =
    CommandError::fixed("WRONGTYPE Key is not a valid HyperLogLog string value.");
const CORRUPT: CommandError = CommandError::fixed("INVALIDOBJ Corrupted HLL object detected");
const NO_KEY: CommandError = CommandError::fixed("ERR The specified key does not exist");
const NOT_SPARSE: CommandError = CommandError::fixed("ERR HLL encoding is not sparse");
const SELF_TEST_FAILED: CommandError =
    CommandError::fixed("ERR TESTFAILED The estimate is too far from the number of elements");

impl From<Corrupt> for CommandError {
    fn from(_: Corrupt) -> Self {
        CORRUPT
    }
}

/// The bytes of a HyperLogLog, and their encoding.
fn bytes_of<'v>(value: &Value<'v, Object>) -> Result<(&'v [u8], Encoding), CommandError> {
    let bytes = value::bytes(value);
    let encoding = hll::encoding(bytes).ok_or(NOT_ONE)?;
    Ok((bytes, encoding))
}

fn sparse_max(ctx: &Context<'_, '_>) -> usize {
    let packing = &ctx.keyspace.rules().packing;
    packing.hll_sparse_bytes.load(Relaxed) as usize
}

pub(crate) fn pfadd(ctx: &mut Context<'_, '_>) -> Outcome {
    let (key, elements) = (ctx.key(1), ctx.args.from(2));
    let sparse_max = sparse_max(ctx);
    let slot = ctx.find(key, Lookup::Write);
    let changed = match slot {
        None => {
            let mut bytes = hll::empty();
            add(&mut bytes, elements, sparse_max)?;
            hll::invalidate(&mut bytes);
            put(ctx, key, None, &mut bytes, TAG_STRING_RAW, Cause::PfAdd);
            true
        }
        Some(slot) => add_to(ctx, key, slot, elements, sparse_max)?,
    };
    ctx.out.integer(changed.into());
    Ok(())
}

/// Adds elements to a key that exists. Returns whether a register has changed.
fn add_to(
    ctx: &mut Context<'_, '_>,
    key: Key<'_>,
    slot: Slot,
    elements: Args<'_>,
    sparse_max: usize,
) -> Result<bool, CommandError> {
    let value = value::string(ctx.entries(key), slot)?;
    let (bytes, encoding) = bytes_of(&value)?;
    if encoding == Encoding::Dense {
        let mut ranks = elements.iter().map(Rank::of);
        if !ranks.any(|new| hll::is_lower(bytes, new)) {
            return Ok(false);
        }
        change_in_place(ctx, key, slot, Cause::PfAdd, |bytes| {
            add(bytes, elements, sparse_max)?;
            hll::invalidate(bytes);
            Ok(())
        })?;
        return Ok(true);
    }
    let mut bytes = bytes.to_vec();
    let changed = add(&mut bytes, elements, sparse_max)?;
    if changed {
        hll::invalidate(&mut bytes);
        put(
            ctx,
            key,
            Some(slot),
            &mut bytes,
            TAG_STRING_RAW,
            Cause::PfAdd,
        );
    }
    Ok(changed)
}

/// Adds elements. Returns whether a register has changed.
fn add(bytes: &mut Vec<u8>, elements: Args<'_>, sparse_max: usize) -> Result<bool, Corrupt> {
    let mut changed = false;
    for element in elements.iter() {
        let encoding = hll::encoding(bytes).ok_or(Corrupt)?;
        changed |= hll::raise(bytes, encoding, Rank::of(element), sparse_max)?;
    }
    Ok(changed)
}

/// Changes a string where it lies, at the same length.
fn change_in_place(
    ctx: &mut Context<'_, '_>,
    key: Key<'_>,
    slot: Slot,
    cause: Cause,
    change: impl FnOnce(&mut Vec<u8>) -> Result<(), Corrupt>,
) -> Result<(), Corrupt> {
    let value = ctx.entries(key).value(slot);
    if let Value::Inline(bytes) = value {
        let mut bytes = bytes.to_vec();
        change(&mut bytes)?;
        let seen = ctx.entries(key).seen(slot);
        let (at, hold) = ctx.on(key);
        hold.overwrite(at, &seen, &bytes, cause);
        return Ok(());
    }
    let (at, hold) = ctx.on(key);
    let changed = hold.change_bytes(at, slot, cause, |bytes| change(Arc::make_mut(bytes)));
    changed.unwrap_or(Ok(()))
}

pub(crate) fn pfcount(ctx: &mut Context<'_, '_>) -> Outcome {
    let count = match ctx.args.len() {
        2 => count_one(ctx)?,
        _ => count_union(ctx)?,
    };
    ctx.out.integer(count as i64);
    Ok(())
}

/// The estimate of one key, which is kept until a register changes.
fn count_one(ctx: &mut Context<'_, '_>) -> Result<u64, CommandError> {
    let key = ctx.key(1);
    let Some(slot) = ctx.find(key, Lookup::Read) else {
        return Ok(0);
    };
    let value = value::string(ctx.entries(key), slot)?;
    let (bytes, encoding) = bytes_of(&value)?;
    if let Some(count) = hll::cached(bytes) {
        return Ok(count);
    }
    let count = hll::count(bytes, encoding)?;
    change_in_place(ctx, key, slot, Cause::Silent, |bytes| {
        hll::remember(bytes, count);
        Ok(())
    })?;
    Ok(count)
}

/// The estimate of the union of several keys, which are merged without the locks.
fn count_union(ctx: &mut Context<'_, '_>) -> Result<u64, CommandError> {
    let (mut all, mut names) = (Vec::new(), HashSet::new());
    for argument in 1..ctx.args.len() {
        let key = ctx.key(argument);
        let found = ctx.find(key, Lookup::Read);
        // A key that is named again adds nothing.
        if let Some(slot) = found.filter(|_| names.insert(key.bytes)) {
            let value = value::string(ctx.entries(key), slot)?;
            let (_, encoding) = bytes_of(&value)?;
            all.push((value::shared(&value), encoding));
        }
    }
    let merged = ctx.outside(|| {
        let mut registers = Registers::default();
        let mut merges = all.iter();
        merges.try_for_each(|(bytes, encoding)| registers.merge(bytes, *encoding))?;
        Ok(registers.count())
    });
    all.into_iter().for_each(|(bytes, _)| ctx.let_go(bytes));
    merged.map_err(|Corrupt| CORRUPT)
}

pub(crate) fn pfmerge(ctx: &mut Context<'_, '_>) -> Outcome {
    let mut registers = Registers::default();
    let mut dense = false;
    for argument in 1..ctx.args.len() {
        let key = ctx.key(argument);
        if let Some(slot) = ctx.find(key, Lookup::Read) {
            let value = value::string(ctx.entries(key), slot)?;
            let (bytes, encoding) = bytes_of(&value)?;
            registers.merge(bytes, encoding)?;
            dense |= encoding == Encoding::Dense;
        }
    }
    let sparse_max = (!dense).then(|| sparse_max(ctx));
    let key = ctx.key(1);
    let slot = ctx.find(key, Lookup::Write);
    let mut bytes = registers.encode(sparse_max);
    put(ctx, key, slot, &mut bytes, TAG_STRING_RAW, Cause::PfAdd);
    ctx.out.ok();
    Ok(())
}

pub(crate) fn pfdebug(ctx: &mut Context<'_, '_>) -> Outcome {
    let key = ctx.key(2);
    let slot = ctx.find(key, Lookup::Write).ok_or(NO_KEY)?;
    let value = value::string(ctx.entries(key), slot)?;
    let (_, encoding) = bytes_of(&value)?;
    let bytes = value::shared(&value);
    if ctx.is(1, "GETREG") {
        reply_registers(ctx, &bytes, encoding)?;
    } else if ctx.is(1, "DECODE") {
        if encoding == Encoding::Dense {
            return Err(NOT_SPARSE);
        }
        ctx.out.bulk(hll::describe(&bytes)?.as_bytes());
    } else if ctx.is(1, "ENCODING") {
        ctx.out.simple(match encoding {
            Encoding::Dense => "dense",
            Encoding::Sparse => "sparse",
        });
    } else if ctx.is(1, "TODENSE") {
        let sparse = encoding == Encoding::Sparse;
        if sparse {
            let mut bytes = hll::to_dense(&bytes)?;
            put(
                ctx,
                key,
                Some(slot),
                &mut bytes,
                TAG_STRING_RAW,
                Cause::Silent,
            );
        }
        ctx.out.integer(sparse.into());
    } else {
        return Err(unknown_subcommand(ctx));
    }
    ctx.let_go(bytes);
    Ok(())
}

fn reply_registers(
    ctx: &mut Context<'_, '_>,
    bytes: &[u8],
    encoding: Encoding,
) -> Result<(), Corrupt> {
    let mut registers = Registers::default();
    registers.merge(bytes, encoding)?;
    ctx.out.array(registers.as_slice().len());
    let ranks = registers.as_slice().iter();
    ranks.for_each(|rank| ctx.out.integer((*rank).into()));
    Ok(())
}

#[cold]
fn unknown_subcommand(ctx: &Context<'_, '_>) -> CommandError {
    let name = String::from_utf8_lossy(ctx.args.get(1).unwrap_or_default());
    CommandError::quoting(format!("ERR Unknown PFDEBUG subcommand '{name}'"))
}

/// Elements that PFSELFTEST adds.
const SELF_TEST_ELEMENTS: u64 = 100_000;

/// The estimate may be off by four standard errors.
const SELF_TEST_ERROR: f64 = 4.0 * 1.04 / 128.0;

/// Adds elements, and looks at the estimate now and then.
pub(crate) fn pfselftest(ctx: &mut Context<'_, '_>) -> Outcome {
    let sparse_max = sparse_max(ctx);
    let passed = ctx.outside(|| {
        let (mut bytes, mut checked) = (hll::empty(), 1);
        for i in 1..=SELF_TEST_ELEMENTS {
            add(
                &mut bytes,
                Args::from_slices(&[&i.to_le_bytes()]),
                sparse_max,
            )?;
            if i == checked {
                let encoding = hll::encoding(&bytes).ok_or(Corrupt)?;
                let count = hll::count(&bytes, encoding)?;
                if count.abs_diff(i) as f64 > SELF_TEST_ERROR * i as f64 {
                    return Ok(false);
                }
                checked *= 3;
            }
        }
        Ok(true)
    });
    match passed {
        Ok(true) => ctx.out.ok(),
        Ok(false) => return Err(SELF_TEST_FAILED),
        Err(Corrupt) => return Err(CORRUPT),
    }
    Ok(())
}
