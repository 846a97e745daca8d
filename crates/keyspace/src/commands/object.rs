//! OBJECT and MEMORY: look into entries.

use crate::access::Recency;
use crate::context::{Context, Key, Lookup};
use crate::error::CommandError;
use crate::value::collection;
use crate::value::{self, Object};

type Outcome = Result<(), CommandError>;

const NO_FREQUENCY: CommandError = CommandError::fixed(
    "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that when \
     switching between policies at runtime LRU and LFU data will take some time to adjust.",
);
const NO_IDLE_TIME: CommandError = CommandError::fixed(
    "ERR An LFU maxmemory policy is selected, idle time not tracked. Please note that when switching \
     between policies at runtime LRU and LFU data will take some time to adjust.",
);

/// The reference count that is reported for small integers, which the public servers share.
const SHARED_REFERENCES: i64 = i32::MAX as i64;
/// The first integer that they do not share.
const SHARED_END: i64 = 10_000;

/// Runs `reply` on a key's slot, or replies nil. No access, no announcement of a miss.
fn inspect(
    ctx: &mut Context<'_, '_>,
    reply: impl FnOnce(&mut Context<'_, '_>, Key<'_>, tidewheel_store::Slot) -> Outcome,
) -> Outcome {
    let key = ctx.key(2);
    match ctx.find(key, Lookup::Inspect) {
        Some(slot) => reply(ctx, key, slot),
        None => {
            ctx.out.null();
            Ok(())
        }
    }
}

pub(crate) fn encoding(ctx: &mut Context<'_, '_>) -> Outcome {
    inspect(ctx, |ctx, key, slot| {
        let entries = ctx.entries(key);
        let name = collection::encoding(entries, slot);
        ctx.out.bulk(name.as_bytes());
        Ok(())
    })
}

pub(crate) fn freq(ctx: &mut Context<'_, '_>) -> Outcome {
    inspect(ctx, |ctx, key, slot| {
        if matches!(ctx.recency(), Recency::Clock) {
            return Err(NO_FREQUENCY);
        }
        let access = ctx.entries(key).access(slot);
        ctx.out
            .integer(ctx.recency().frequency(access, ctx.now.time.tick).into());
        Ok(())
    })
}

pub(crate) fn idletime(ctx: &mut Context<'_, '_>) -> Outcome {
    inspect(ctx, |ctx, key, slot| {
        if matches!(ctx.recency(), Recency::Frequency { .. }) {
            return Err(NO_IDLE_TIME);
        }
        let access = ctx.entries(key).access(slot);
        ctx.out
            .integer(Recency::idle_seconds(access, ctx.now.time.tick).into());
        Ok(())
    })
}

/// Nothing is shared here; small integers answer as they do elsewhere, since clients compare.
pub(crate) fn refcount(ctx: &mut Context<'_, '_>) -> Outcome {
    inspect(ctx, |ctx, key, slot| {
        let policy = ctx.keyspace.rules().policy();
        let entries = ctx.entries(key);
        let small = collection::encoding(entries, slot) == "int"
            && tidewheel_resp::parse_i64(value::bytes(&entries.value(slot)))
                .is_some_and(|n| (0..SHARED_END).contains(&n));
        let per_key_history = policy.uses_idle_time() || policy.counts_frequency();
        ctx.out.integer(if small && !per_key_history {
            SHARED_REFERENCES
        } else {
            1
        });
        Ok(())
    })
}

pub(crate) fn memory_usage(ctx: &mut Context<'_, '_>) -> Outcome {
    match ctx.args.len() {
        3 => {}
        5 if ctx.is(3, "SAMPLES") => {
            // Strings have nothing to sample; the number is checked all the same.
            if ctx.integer(4)? < 0 {
                return Err(CommandError::SYNTAX);
            }
        }
        _ => return Err(CommandError::SYNTAX),
    }
    let key = ctx.key(2);
    let Some(slot) = ctx.find_at(key, ctx.session.db) else {
        ctx.out.null();
        return Ok(());
    };
    let entries = ctx.entries(key);
    let object = match entries.value(slot) {
        tidewheel_store::Value::Inline(_) => 0,
        tidewheel_store::Value::Object(object) => Object::allocated_bytes(object),
    };
    let bytes = entries.entry_bytes(slot) + object;
    ctx.out.integer(bytes as i64);
    Ok(())
}
