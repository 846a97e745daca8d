//! XADD: appends an entry. XSETID: sets what is known of those that were there.

use tidewheel_collections::{Log, Stream, StreamId};
use tidewheel_resp::{Args, parse_i64};

use super::id::{self, NewId};
use super::trim::{TrimWords, Trimming};
use super::{Outcome, at, event, limits, reply};
use crate::context::{Context, Lookup};
use crate::error::CommandError;

const ZERO: CommandError =
    CommandError::fixed("ERR The ID specified in XADD must be greater than 0-0");
const EXHAUSTED: CommandError = CommandError::fixed(
    "ERR The stream has exhausted the last possible ID, unable to add more items",
);
const NOT_GREATER: CommandError = CommandError::fixed(
    "ERR The ID specified in XADD is equal or smaller than the target stream top item",
);
const TOO_LARGE: CommandError = CommandError::fixed("ERR Elements are too large to be stored");

/// The most bytes of an entry's names and values.
const BYTES_MAX: usize = 1 << 30;

/// The arguments of XADD.
struct AddCall<'b> {
    must_exist: bool,
    trimming: Option<Trimming>,
    id: NewId,
    /// Names and values in turn.
    words: Args<'b>,
}

impl<'b> AddCall<'b> {
    fn parse(ctx: &Context<'_, 'b>) -> Result<Self, CommandError> {
        let args = ctx.args;
        let (mut must_exist, mut id) = (false, None);
        let mut trim = TrimWords::default();
        let mut i = 2;
        while let Some(word) = args.get(i) {
            if word == b"*" {
                id = Some(NewId::Any);
                break;
            } else if let Some(taken) = trim.take(args.from(i))? {
                i += taken;
            } else if word.eq_ignore_ascii_case(b"NOMKSTREAM") {
                must_exist = true;
                i += 1;
            } else {
                id = Some(id::parse_new(word)?);
                break;
            }
        }
        let trimming = trim.trimming(ctx)?;
        let words = args.from(i + 1);
        if words.is_empty() || !words.len().is_multiple_of(2) {
            return Err(CommandError::wrong_arity("xadd"));
        }
        let id = id.unwrap_or(NewId::Any);
        if id == NewId::This(StreamId::MIN) {
            return Err(ZERO);
        }
        Ok(Self {
            must_exist,
            trimming,
            id,
            words,
        })
    }
}

/// The id of a new entry behind the last one.
fn new_id(wanted: NewId, log: &Log, wall_ms: i64) -> Result<StreamId, CommandError> {
    let last = log.last_id();
    if last == StreamId::MAX {
        return Err(EXHAUSTED);
    }
    let id = match wanted {
        NewId::Any => log.next_id(u64::try_from(wall_ms).unwrap_or(0)),
        NewId::Within(ms) if ms == last.ms => last.next().filter(|id| id.ms == ms),
        NewId::Within(ms) => Some(StreamId::new(ms, 0)),
        NewId::This(id) => Some(id),
    };
    id.filter(|id| *id > last).ok_or(NOT_GREATER)
}

pub(crate) fn xadd(ctx: &mut Context<'_, '_>) -> Outcome {
    let call = AddCall::parse(ctx)?;
    let key = ctx.key(1);
    let slot = ctx.find_of::<Stream>(key, Lookup::Write)?;
    if slot.is_none() && call.must_exist {
        ctx.out.null();
        return Ok(());
    }
    let wall_ms = ctx.now.wall_ms();
    let id = match slot {
        Some(slot) => new_id(call.id, &at(ctx, key, slot).log, wall_ms),
        None => new_id(call.id, &Log::default(), wall_ms),
    }?;
    if call.words.bytes() > BYTES_MAX {
        return Err(TOO_LARGE);
    }
    let limits = limits(ctx);
    let trimmed = ctx.edit(key, slot, |stream: &mut Stream, out| {
        stream.log.append(id, call.words.iter(), &limits);
        reply::id(out, id);
        let trimmed = call.trimming.map(|trimming| trimming.run(stream));
        (trimmed, Some(event("xadd")))
    });
    if let Some(trimmed) = trimmed {
        if trimmed.entries > 0 {
            ctx.event(key, event("xtrim"));
        }
        if trimmed.is_approximate()
            && let Some(trimming) = call.trimming
        {
            let id = id.to_string();
            let words = [b"XADD", key.bytes, id.as_bytes()].into_iter();
            let words: Vec<_> = words.chain(call.words.iter()).collect();
            ctx.record_instead(&words);
            trimmed.record(ctx, key, trimming.references());
        }
        trimmed.drop(ctx);
    }
    Ok(())
}

const SMALLER_THAN_DELETED: CommandError = CommandError::fixed(
    "ERR The ID specified in XSETID is smaller than current max_deleted_entry_id",
);
const SMALLER_THAN_GIVEN: CommandError = CommandError::fixed(
    "ERR The ID specified in XSETID is smaller than the provided max_deleted_entry_id",
);
const SMALLER_THAN_TOP: CommandError = CommandError::fixed(
    "ERR The ID specified in XSETID is smaller than the target stream top item",
);
const TOO_FEW: CommandError = CommandError::fixed(
    "ERR The entries_added specified in XSETID is smaller than the target stream length",
);
const NOT_POSITIVE: CommandError = CommandError::fixed("ERR entries_added must be positive");

pub(crate) fn xsetid(ctx: &mut Context<'_, '_>) -> Outcome {
    let args = ctx.args;
    let id = id::parse(&args[2])?;
    let (mut added, mut deleted) = (None, StreamId::MIN);
    let mut i = 3;
    while i < args.len() {
        match args.get(i + 1) {
            Some(number) if ctx.is(i, "ENTRIESADDED") => {
                let number = parse_i64(number).ok_or(CommandError::NOT_AN_INTEGER)?;
                added = Some(u64::try_from(number).map_err(|_| NOT_POSITIVE)?);
            }
            Some(text) if ctx.is(i, "MAXDELETEDID") => {
                deleted = id::parse(text)?;
                if id < deleted {
                    return Err(SMALLER_THAN_GIVEN);
                }
            }
            _ => return Err(CommandError::SYNTAX),
        }
        i += 2;
    }
    let key = ctx.key(1);
    let slot = ctx.find_of::<Stream>(key, Lookup::Write)?;
    let slot = slot.ok_or(CommandError::NO_SUCH_KEY)?;
    let log = &at(ctx, key, slot).log;
    if id < log.max_deleted_id() {
        return Err(SMALLER_THAN_DELETED);
    }
    if let Some(top) = log.range_back(StreamId::MIN, StreamId::MAX).next() {
        if id < top.id {
            return Err(SMALLER_THAN_TOP);
        }
        if added.is_some_and(|added| added < log.len()) {
            return Err(TOO_FEW);
        }
    }
    set(ctx, slot, id, added, deleted);
    ctx.out.ok();
    Ok(())
}

fn set(
    ctx: &mut Context<'_, '_>,
    slot: tidewheel_store::Slot,
    id: StreamId,
    added: Option<u64>,
    deleted: StreamId,
) {
    let key = ctx.key(1);
    ctx.edit(key, Some(slot), |stream: &mut Stream, _| {
        stream.log.set_last_id(id);
        if let Some(added) = added {
            stream.log.set_entries_added(added);
        }
        if deleted != StreamId::MIN {
            stream.log.set_max_deleted_id(deleted);
        }
        ((), Some(event("xsetid")))
    });
}
