//! DUMP and RESTORE: a value as bytes in the public format.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use tidewheel_store::INLINE_MAX;

use crate::access::Recency;
use crate::context::{Context, Key, Lookup};
use crate::dump::{self, Loaded};
use crate::error::CommandError;
use crate::events::Cause;
use crate::shard::Stored;
use crate::time::{Base, Unit};
use crate::value::{self, LARGE, Object, TAG_STRING};

type Outcome = Result<(), CommandError>;

const BUSY_KEY: CommandError = CommandError::fixed("BUSYKEY Target key name already exists.");
const BAD_TTL: CommandError = CommandError::fixed("ERR Invalid TTL value, must be >= 0");
const BAD_IDLE_TIME: CommandError = CommandError::fixed("ERR Invalid IDLETIME value, must be >= 0");
const BAD_FREQUENCY: CommandError =
    CommandError::fixed("ERR Invalid FREQ value, must be >= 0 and <= 255");
const BAD_ENVELOPE: CommandError =
    CommandError::fixed("ERR DUMP payload version or checksum are wrong");
const BAD_VALUE: CommandError = CommandError::fixed("ERR Bad data format");

pub(crate) fn dump(ctx: &mut Context<'_, '_>) -> Outcome {
    let key = ctx.key(1);
    let Some(slot) = ctx.find(key, Lookup::Read) else {
        ctx.out.null();
        return Ok(());
    };
    let value = value::string(ctx.entries(key), slot)?;
    let bytes = value::bytes(&value);
    let payload = if bytes.len() <= LARGE {
        dump::of_string(bytes)
    } else {
        let bytes = value::shared(&value);
        let payload = ctx.outside(|| dump::of_string(&bytes));
        ctx.let_go(bytes);
        payload
    };
    ctx.out.bulk(&payload);
    Ok(())
}

/// RESTORE's options.
#[derive(Default)]
struct Options {
    replace: bool,
    absolute: bool,
    access: Option<Access>,
}

/// What the key's access history is to say.
enum Access {
    IdleSeconds(u64),
    Frequency(u8),
}

impl Options {
    fn parse(ctx: &Context<'_, '_>) -> Result<Self, CommandError> {
        let mut options = Self::default();
        let mut i = 4;
        while i < ctx.args.len() {
            let has_number = i + 1 < ctx.args.len();
            if ctx.is(i, "REPLACE") {
                options.replace = true;
            } else if ctx.is(i, "ABSTTL") {
                options.absolute = true;
            } else if ctx.is(i, "IDLETIME") && has_number && !options.has_frequency() {
                i += 1;
                let seconds = u64::try_from(ctx.integer(i)?).map_err(|_| BAD_IDLE_TIME)?;
                options.access = Some(Access::IdleSeconds(seconds));
            } else if ctx.is(i, "FREQ") && has_number && !options.has_idle_time() {
                i += 1;
                let frequency = u8::try_from(ctx.integer(i)?).map_err(|_| BAD_FREQUENCY)?;
                options.access = Some(Access::Frequency(frequency));
            } else {
                return Err(CommandError::SYNTAX);
            }
            i += 1;
        }
        Ok(options)
    }

    fn has_frequency(&self) -> bool {
        matches!(self.access, Some(Access::Frequency(_)))
    }

    fn has_idle_time(&self) -> bool {
        matches!(self.access, Some(Access::IdleSeconds(_)))
    }

    /// The access history of the new key. What the policy in force does not record is ignored.
    fn history(&self, ctx: &Context<'_, '_>) -> u32 {
        let (recency, clock) = (ctx.recency(), ctx.now.time.tick);
        match (&self.access, recency) {
            (Some(Access::IdleSeconds(seconds)), Recency::Clock) => {
                Recency::of_idle(*seconds, clock)
            }
            (Some(Access::Frequency(frequency)), Recency::Frequency { .. }) => {
                Recency::of_frequency(*frequency, clock)
            }
            _ => recency.of_new(clock),
        }
    }

    /// The deadline that the second argument means; 0 is none.
    fn deadline(&self, ctx: &Context<'_, '_>) -> Result<Option<u64>, CommandError> {
        let number = ctx.integer(2)?;
        if number < 0 {
            return Err(BAD_TTL);
        }
        let base = match self.absolute {
            true => Base::Epoch,
            false => Base::Now,
        };
        let deadline = ctx.now.positive_deadline(number, Unit::Milliseconds, base);
        if number > 0 && deadline.is_none() {
            return Err(BAD_TTL);
        }
        Ok(deadline)
    }
}

pub(crate) fn restore(ctx: &mut Context<'_, '_>) -> Outcome {
    let options = Options::parse(ctx)?;
    let key = ctx.key(1);
    refuse_busy(ctx, key, &options)?;
    let deadline = options.deadline(ctx)?;
    let loaded = load(ctx, key)?;
    refuse_busy(ctx, key, &options)?;
    let history = options.history(ctx);
    store(ctx, key, loaded, deadline, history);
    ctx.out.ok();
    Ok(())
}

fn refuse_busy(ctx: &mut Context<'_, '_>, key: Key<'_>, options: &Options) -> Outcome {
    if !options.replace && ctx.find(key, Lookup::Write).is_some() {
        return Err(BUSY_KEY);
    }
    Ok(())
}

/// Reads the payload; a large one without the lock.
fn load(ctx: &mut Context<'_, '_>, key: Key<'_>) -> Result<Loaded, CommandError> {
    let payload = ctx.args.get(3).unwrap_or_default();
    let rules = ctx.keyspace.rules();
    let checked = !rules.skip_checksums.load(Relaxed);
    let longest = rules.proto_max_bulk_len.load(Relaxed) as usize;
    let read = || {
        let value = dump::open(payload, checked).ok_or(BAD_ENVELOPE)?;
        let Loaded::String(bytes) = dump::load(value).map_err(|_| BAD_VALUE)?;
        if bytes.len() > longest {
            return Err(BAD_VALUE);
        }
        Ok(Loaded::String(bytes))
    };
    if dump::measure(payload) <= LARGE {
        return read();
    }
    ctx.step_out();
    let loaded = read();
    ctx.step_in(key.bytes);
    loaded
}

/// Stores a value in place of any other one. If its deadline is reached, the key is only removed.
fn store(
    ctx: &mut Context<'_, '_>,
    key: Key<'_>,
    loaded: Loaded,
    deadline: Option<u64>,
    history: u32,
) {
    let db = ctx.session.db;
    let old = ctx.find_at(key, db);
    let dead = deadline.is_some_and(|deadline| ctx.now.reached(deadline));
    if let Some(slot) = old {
        let cause = if dead { Cause::Del } else { Cause::Silent };
        ctx.remove(key, slot, cause);
    }
    let Loaded::String(bytes) = loaded;
    if dead {
        return ctx.let_go(Arc::new(bytes));
    }
    let value = if bytes.len() <= INLINE_MAX {
        tidewheel_store::NewValue::Inline(&bytes)
    } else {
        tidewheel_store::NewValue::Object(Object::new(bytes))
    };
    let stored = Stored {
        tag: TAG_STRING,
        value,
        deadline,
    };
    ctx.insert_at(key, db, stored, history, Cause::Restore);
}
