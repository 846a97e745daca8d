//! DEBUG OBJECT, LISTPACK, DIGEST and DIGEST-VALUE: the inside of values, for tests.

use tidewheel_store::{Slot, Value};

use crate::access::Recency;
use crate::context::Context;
use crate::digest::{self, Digest};
use crate::dump;
use crate::error::CommandError;
use crate::time::Now;
use crate::value::collection;
use crate::value::{self, Entries, Object};

type Outcome = Result<(), CommandError>;

/// Bytes of a payload besides the value: its type, its version and its checksum.
const ENVELOPE: usize = 11;

const NOT_PACKED: CommandError = CommandError::fixed("ERR Not a listpack encoded object.");

fn check_access(ctx: &Context<'_, '_>) -> Outcome {
    match ctx.session.may_debug {
        true => Ok(()),
        false => Err(CommandError::DEBUG_REFUSED),
    }
}

/// Values have no address and no count of references that a client could use.
pub(crate) fn object(ctx: &mut Context<'_, '_>) -> Outcome {
    check_access(ctx)?;
    let (key, db) = (ctx.key(2), ctx.session.db);
    let slot = ctx.find_at(key, db).ok_or(CommandError::NO_SUCH_KEY)?;
    let tick = ctx.now.time.tick;
    let entries = ctx.entries(key);
    let encoding = collection::encoding(entries, slot);
    let length = length(entries, slot);
    let lru = entries.access(slot);
    let idle_s = Recency::idle_seconds(lru, tick);
    ctx.out.simple(&format!(
        "Value at:0x0 refcount:1 encoding:{encoding} serializedlength:{length} lru:{lru} lru_seconds_idle:{idle_s}"
    ));
    Ok(())
}

/// The size of a packed collection. Redis writes its elements to the standard output; here every
/// command shows them.
pub(crate) fn listpack(ctx: &mut Context<'_, '_>) -> Outcome {
    check_access(ctx)?;
    let (key, db) = (ctx.key(2), ctx.session.db);
    let slot = ctx.find_at(key, db).ok_or(CommandError::NO_SUCH_KEY)?;
    let entries = ctx.entries(key);
    if collection::encoding(entries, slot) != "listpack" {
        return Err(NOT_PACKED);
    }
    let bytes = length(entries, slot);
    ctx.out.simple(&format!("Listpack of {bytes} bytes"));
    Ok(())
}

/// The bytes that DUMP would write of a string's value. For a collection, the bytes that it takes
/// in memory.
fn length(entries: &Entries, slot: Slot) -> usize {
    match value::string(entries, slot) {
        Ok(string) => dump::of_string(value::bytes(&string)).len() - ENVELOPE,
        Err(_) => match entries.value(slot) {
            Value::Inline(bytes) => bytes.len(),
            Value::Object(object) => Object::bytes(object),
        },
    }
}

pub(crate) fn digest_value(ctx: &mut Context<'_, '_>) -> Outcome {
    check_access(ctx)?;
    let db = ctx.session.db;
    ctx.out.array(ctx.args.len() - 2);
    for at in 2..ctx.args.len() {
        let key = ctx.key(at);
        let slot = ctx.find_at(key, db);
        let now = ctx.now;
        let digest = slot.map(|slot| digest::of_value(ctx.entries(key), slot, &now));
        ctx.out.simple(&digest.unwrap_or_default().to_string());
    }
    Ok(())
}

/// The keyspace is locked for as long as it takes.
pub(crate) fn digest(ctx: &mut Context<'_, '_>) -> Outcome {
    check_access(ctx)?;
    let (mut sum, own) = (Digest::default(), ctx.session.db);
    for db in 0..ctx.keyspace.databases() as u32 {
        ctx.session.db = db;
        for shard in 0..ctx.keyspace.shards() {
            if let Err(blocked) = ctx.lock_shard(shard) {
                ctx.session.db = own;
                return Err(blocked);
            }
            add_shard(ctx, db, &mut sum);
            ctx.unlock();
        }
    }
    ctx.session.db = own;
    ctx.out.simple(&sum.to_string());
    Ok(())
}

fn add_shard(ctx: &mut Context<'_, '_>, db: u32, sum: &mut Digest) {
    let (now, mut cursor, mut due) = (ctx.now, Some(0), Vec::new());
    while let Some(from) = cursor {
        cursor = ctx.visit_entries(from, |_, entries, slot| {
            match collection::is_due(entries, slot, &now) {
                true => due.push(Box::<[u8]>::from(entries.key(slot))),
                false => sum.add(&of_entry(entries, slot, db, &now)),
            }
            true
        });
    }
    for key in due {
        let key = ctx.keyspace.key(&key);
        if let Some(slot) = ctx.find_at(key, db) {
            sum.add(&of_entry(ctx.entries_at(key, db), slot, db, &now));
        }
    }
}

fn of_entry(entries: &Entries, slot: Slot, db: u32, now: &Now) -> Digest {
    let mut digest = Digest::default();
    digest.mix(&db.to_le_bytes());
    digest.mix(entries.key(slot));
    digest.mix_digest(&digest::of_value(entries, slot, now));
    digest
}
