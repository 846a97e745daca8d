//! Keys of any type: DEL, EXISTS, TOUCH, TYPE, RENAME, COPY, MOVE.

use tidewheel_store::{NewValue, Value};

use crate::context::{Context, Key, Lookup};
use crate::error::CommandError;
use crate::events::Cause;
use crate::shard::Stored;
use crate::snapshot::MovedWalk;
use crate::value::{self, Object};

type Outcome = Result<(), CommandError>;

const SAME_OBJECT: CommandError =
    CommandError::fixed("ERR source and destination objects are the same");

pub(crate) fn del(ctx: &mut Context<'_, '_>) -> Outcome {
    let db = ctx.session.db;
    count(ctx, |ctx, key| {
        let slot = ctx.find_at(key, db);
        if let Some(slot) = slot {
            ctx.remove(key, slot, Cause::Del);
        }
        slot.is_some()
    })
}

pub(crate) fn exists(ctx: &mut Context<'_, '_>) -> Outcome {
    count(ctx, |ctx, key| ctx.find(key, Lookup::Peek).is_some())
}

pub(crate) fn touch(ctx: &mut Context<'_, '_>) -> Outcome {
    count(ctx, |ctx, key| ctx.find(key, Lookup::Touch).is_some())
}

/// Replies with the number of keys for which something holds.
fn count(
    ctx: &mut Context<'_, '_>,
    mut holds: impl FnMut(&mut Context<'_, '_>, Key<'_>) -> bool,
) -> Outcome {
    let mut n = 0;
    for i in 1..ctx.args.len() {
        let key = ctx.key(i);
        n += i64::from(holds(ctx, key));
    }
    ctx.out.integer(n);
    Ok(())
}

pub(crate) fn type_of(ctx: &mut Context<'_, '_>) -> Outcome {
    let key = ctx.key(1);
    let name = match ctx.find(key, Lookup::Peek) {
        Some(slot) => value::type_name(ctx.entries(key).tag(slot)),
        None => "none",
    };
    ctx.out.simple(name);
    Ok(())
}

/// An entry outside the store.
struct MovedEntry {
    tag: u8,
    deadline: Option<u64>,
    access: u32,
    value: MovedValue,
    /// The walk of a snapshot over its members.
    walk: Option<MovedWalk>,
}

enum MovedValue {
    Inline(Vec<u8>),
    Object(Object),
}

impl MovedEntry {
    /// Takes an entry out of the store, as a part of moving it.
    fn take(ctx: &mut Context<'_, '_>, key: Key<'_>, db: u32, slot: tidewheel_store::Slot) -> Self {
        let entries = ctx.entries_at(key, db);
        let (tag, value) = entries.tagged(slot);
        let inline = match value {
            Value::Inline(bytes) => bytes.to_vec(),
            Value::Object(_) => Vec::new(),
        };
        let (deadline, access) = (entries.deadline(slot), entries.access(slot));
        let (at, hold) = ctx.on_any(key, db);
        let walk = hold.before_move(at, slot);
        let object = hold.remove(at, slot, Cause::Silent);
        Self {
            tag,
            deadline,
            access,
            value: object.map_or(MovedValue::Inline(inline), MovedValue::Object),
            walk,
        }
    }

    /// Copies an entry; a large string is shared until one of the two is changed. Its deadline may
    /// be a member's.
    fn copy(ctx: &mut Context<'_, '_>, key: Key<'_>, db: u32, slot: tidewheel_store::Slot) -> Self {
        let now = ctx.now.tick;
        let entries = ctx.entries_at(key, db);
        let value = match entries.value(slot) {
            Value::Inline(bytes) => MovedValue::Inline(bytes.to_vec()),
            Value::Object(object) => MovedValue::Object(object.copy(now)),
        };
        Self {
            tag: entries.tag(slot),
            deadline: entries.deadline(slot),
            access: entries.access(slot),
            value,
            walk: None,
        }
    }

    /// Puts it under a key that does not exist.
    fn put(self, ctx: &mut Context<'_, '_>, key: Key<'_>, db: u32, cause: Cause) {
        let inline;
        let value = match self.value {
            MovedValue::Inline(bytes) => {
                inline = bytes;
                NewValue::Inline(&inline)
            }
            MovedValue::Object(object) => NewValue::Object(object),
        };
        let stored = Stored {
            tag: self.tag,
            value,
            deadline: self.deadline,
        };
        let (at, hold) = ctx.on_any(key, db);
        hold.insert(at, stored, self.access, cause);
        if let Some(walk) = self.walk {
            hold.after_move(at, walk);
        }
    }
}

pub(crate) fn rename(ctx: &mut Context<'_, '_>) -> Outcome {
    rename_unless(ctx, false)?;
    ctx.out.ok();
    Ok(())
}

pub(crate) fn renamenx(ctx: &mut Context<'_, '_>) -> Outcome {
    let renamed = rename_unless(ctx, true)?;
    ctx.out.integer(renamed.into());
    Ok(())
}

fn rename_unless(ctx: &mut Context<'_, '_>, exists: bool) -> Result<bool, CommandError> {
    let (from, to) = (ctx.key(1), ctx.key(2));
    let db = ctx.session.db;
    if ctx.find(from, Lookup::Write).is_none() {
        return Err(CommandError::NO_SUCH_KEY);
    }
    if from.bytes == to.bytes {
        return Ok(false);
    }
    if let Some(target) = ctx.find(to, Lookup::Write) {
        if exists {
            return Ok(false);
        }
        ctx.remove(to, target, Cause::Silent);
    }
    // Looked up again: the removal may have moved it.
    let Some(slot) = ctx.find_at(from, db) else {
        return Err(CommandError::NO_SUCH_KEY);
    };
    let entry = MovedEntry::take(ctx, from, db, slot);
    entry.put(ctx, to, db, Cause::Silent);
    ctx.event(from, Cause::RenameFrom);
    ctx.event(to, Cause::RenameTo);
    Ok(true)
}

pub(crate) fn move_to(ctx: &mut Context<'_, '_>) -> Outcome {
    let target = ctx.database_index(2)?;
    let source = ctx.session.db;
    if target == source {
        return Err(SAME_OBJECT);
    }
    let key = ctx.key(1);
    let moved = match ctx.find(key, Lookup::Write) {
        Some(_) if ctx.find_at(key, target).is_some() => false,
        None => false,
        Some(_) => match ctx.find_at(key, source) {
            None => false,
            Some(slot) => {
                let entry = MovedEntry::take(ctx, key, source, slot);
                entry.put(ctx, key, target, Cause::Silent);
                ctx.event_at(key, source, Cause::MoveFrom);
                ctx.event_at(key, target, Cause::MoveTo);
                true
            }
        },
    };
    ctx.out.integer(moved.into());
    Ok(())
}

pub(crate) fn copy(ctx: &mut Context<'_, '_>) -> Outcome {
    let source = ctx.session.db;
    let (mut target, mut replace) = (source, false);
    let mut i = 3;
    while i < ctx.args.len() {
        if ctx.is(i, "REPLACE") {
            replace = true;
            i += 1;
        } else if ctx.is(i, "DB") && i + 1 < ctx.args.len() {
            target = ctx.database_index(i + 1)?;
            i += 2;
        } else {
            return Err(CommandError::SYNTAX);
        }
    }
    let (from, to) = (ctx.key(1), ctx.key(2));
    if source == target && from.bytes == to.bytes {
        return Err(SAME_OBJECT);
    }
    if ctx.find(from, Lookup::Read).is_none() {
        ctx.out.integer(0);
        return Ok(());
    }
    if let Some(old) = ctx.find_at(to, target) {
        if !replace {
            ctx.out.integer(0);
            return Ok(());
        }
        let (at, hold) = ctx.on_any(to, target);
        if let Some(object) = hold.remove(at, old, Cause::Silent) {
            ctx.drop_object(object);
        }
    }
    // Looked up again: the removal may have moved it.
    let Some(slot) = ctx.find_at(from, source) else {
        ctx.out.integer(0);
        return Ok(());
    };
    let mut entry = MovedEntry::copy(ctx, from, source, slot);
    entry.access = ctx.recency().of_new(ctx.now.time.tick);
    entry.put(ctx, to, target, Cause::CopyTo);
    ctx.record_result(to, target);
    ctx.out.integer(1);
    Ok(())
}
