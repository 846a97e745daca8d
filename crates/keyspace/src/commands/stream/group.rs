//! XGROUP: groups and their consumers. XACK: entries that a consumer is done with.

use tidewheel_collections::{Stream, StreamId};
use tidewheel_resp::parse_i64;
use tidewheel_store::Slot;

use super::delete::ids;
use super::{Outcome, at, event, id, word};
use crate::context::{Context, Key, Lookup};
use crate::error::CommandError;
use crate::events::Cause;

const NO_KEY: CommandError = CommandError::fixed(
    "ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to use \
     the MKSTREAM option to create an empty stream automatically.",
);
const BUSY: CommandError = CommandError::fixed("BUSYGROUP Consumer Group name already exists");
const NOT_READ: CommandError =
    CommandError::fixed("ERR value for ENTRIESREAD must be positive or -1");

/// The refusal of a subcommand's arguments.
#[cold]
pub(super) fn wrong_arguments(ctx: &Context<'_, '_>) -> CommandError {
    let word = String::from_utf8_lossy(ctx.args.get(1).unwrap_or_default());
    let parent = ctx.name().split('|').next().unwrap_or_default();
    let parent = parent.to_ascii_uppercase();
    CommandError::quoting(format!(
        "ERR unknown subcommand or wrong number of arguments for '{word}'. Try {parent} HELP."
    ))
}

/// The refusal of a group that a stream does not have.
#[cold]
pub(super) fn no_group_of(key: &[u8], group: &[u8]) -> CommandError {
    let (key, group) = (String::from_utf8_lossy(key), String::from_utf8_lossy(group));
    CommandError::quoting(format!(
        "NOGROUP No such consumer group '{group}' for key name '{key}'"
    ))
}

/// The options of XGROUP CREATE and SETID.
struct GroupOptions {
    makes_stream: bool,
    entries_read: Option<u64>,
}

impl GroupOptions {
    fn parse(ctx: &Context<'_, '_>, creates: bool) -> Result<Self, CommandError> {
        let mut options = Self {
            makes_stream: false,
            entries_read: None,
        };
        let mut i = 5;
        while i < ctx.args.len() {
            if creates && ctx.is(i, "MKSTREAM") {
                options.makes_stream = true;
                i += 1;
            } else if let Some(read) = ctx.args.get(i + 1).filter(|_| ctx.is(i, "ENTRIESREAD")) {
                let read = parse_i64(read).ok_or(CommandError::NOT_AN_INTEGER)?;
                if read < -1 {
                    return Err(NOT_READ);
                }
                options.entries_read = u64::try_from(read).ok();
                i += 2;
            } else {
                return Err(wrong_arguments(ctx));
            }
        }
        Ok(options)
    }
}

impl GroupOptions {
    /// How many entries the group has read, at most as many as there were.
    fn entries_read(&self, stream: &Stream) -> Option<u64> {
        let added = stream.log.entries_added();
        self.entries_read.map(|read| read.min(added))
    }
}

/// The call's key, which has a stream.
fn stream<'b>(ctx: &mut Context<'_, 'b>) -> Result<(Key<'b>, Slot), CommandError> {
    let key = ctx.key(2);
    let slot = ctx.find_of::<Stream>(key, Lookup::Write)?;
    slot.map(|slot| (key, slot)).ok_or(NO_KEY)
}

/// The call's key, which has a stream with the group.
fn stream_with_group<'b>(ctx: &mut Context<'_, 'b>) -> Result<(Key<'b>, Slot), CommandError> {
    let (key, slot) = stream(ctx)?;
    let group = word(ctx, 3);
    match at(ctx, key, slot).groups.get(group) {
        Some(_) => Ok((key, slot)),
        None => Err(no_group_of(key.bytes, group)),
    }
}

pub(crate) fn create(ctx: &mut Context<'_, '_>) -> Outcome {
    let options = GroupOptions::parse(ctx, true)?;
    let (key, name, place) = (ctx.key(2), word(ctx, 3), word(ctx, 4));
    let slot = ctx.find_of::<Stream>(key, Lookup::Write)?;
    if slot.is_none() && !options.makes_stream {
        return Err(NO_KEY);
    }
    let last = match (place, slot) {
        (b"$", None) => StreamId::MIN,
        (b"$", Some(slot)) => at(ctx, key, slot).log.last_id(),
        (text, _) => id::parse(text)?,
    };
    let created = ctx.edit(key, slot, |stream: &mut Stream, _| {
        let read = options.entries_read(stream);
        let created = stream.groups.create(name, last, read);
        (created, created.then_some(event("xgroup-create")))
    });
    if !created {
        return Err(BUSY);
    }
    ctx.out.ok();
    Ok(())
}

pub(crate) fn setid(ctx: &mut Context<'_, '_>) -> Outcome {
    let options = GroupOptions::parse(ctx, false)?;
    let (key, slot) = stream_with_group(ctx)?;
    let (name, place) = (word(ctx, 3), word(ctx, 4));
    let last = match place {
        b"$" => at(ctx, key, slot).log.last_id(),
        text => id::parse_any(text, 0)?,
    };
    ctx.edit(key, Some(slot), |stream: &mut Stream, _| {
        let read = options.entries_read(stream);
        stream.groups.edit(name, |group| {
            group.last = last;
            group.entries_read = read;
        });
        ((), Some(event("xgroup-setid")))
    });
    ctx.out.ok();
    Ok(())
}

pub(crate) fn destroy(ctx: &mut Context<'_, '_>) -> Outcome {
    let (key, slot) = stream(ctx)?;
    let name = word(ctx, 3);
    let gone = ctx.edit(key, Some(slot), |stream: &mut Stream, _| {
        let gone = stream.groups.destroy(name).is_some();
        (gone, gone.then_some(event("xgroup-destroy")))
    });
    ctx.out.integer(gone.into());
    Ok(())
}

pub(crate) fn createconsumer(ctx: &mut Context<'_, '_>) -> Outcome {
    let (key, slot) = stream_with_group(ctx)?;
    let (group, name, now_ms) = (word(ctx, 3), word(ctx, 4), ctx.now.wall_ms());
    let created = ctx.edit(key, Some(slot), |stream: &mut Stream, _| {
        let created = stream
            .groups
            .edit(group, |group| group.consumer_or_new(name, now_ms).1)
            .unwrap_or(false);
        (created, created.then_some(event("xgroup-createconsumer")))
    });
    ctx.out.integer(created.into());
    Ok(())
}

pub(crate) fn delconsumer(ctx: &mut Context<'_, '_>) -> Outcome {
    let (key, slot) = stream_with_group(ctx)?;
    let (group, name) = (word(ctx, 3), word(ctx, 4));
    let pending = ctx.edit(key, Some(slot), |stream: &mut Stream, _| {
        let removed = stream
            .groups
            .edit(group, |group| group.remove_consumer(name))
            .flatten();
        let cause = removed.map(|_| event("xgroup-delconsumer"));
        (removed.unwrap_or(0), cause)
    });
    ctx.out.integer(pending as i64);
    Ok(())
}

pub(crate) fn xack(ctx: &mut Context<'_, '_>) -> Outcome {
    let (key, name) = (ctx.key(1), word(ctx, 2));
    let slot = ctx.find_of::<Stream>(key, Lookup::Read)?;
    let has_group = |ctx: &mut Context<'_, '_>, slot| at(ctx, key, slot).groups.get(name).is_some();
    let Some(slot) = slot.filter(|slot| has_group(ctx, *slot)) else {
        ctx.out.integer(0);
        return Ok(());
    };
    let ids = ids(ctx.args.from(3))?;
    let done = ctx.edit(key, Some(slot), |stream: &mut Stream, _| {
        let acknowledged = stream.groups.edit(name, |group| {
            ids.iter().filter(|id| group.acknowledge(**id)).count()
        });
        let done = acknowledged.unwrap_or(0);
        (done, (done > 0).then_some(Cause::Delivery))
    });
    ctx.out.integer(done as i64);
    Ok(())
}
