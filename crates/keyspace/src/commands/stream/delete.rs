//! XDEL, XDELEX, XACKDEL: delete entries by their ids.

use tidewheel_collections::{Needed, Stream, StreamId};
use tidewheel_resp::{Args, Writer, parse_i64};

use super::references::References;
use super::{Outcome, at, event, id, word};
use crate::context::{Context, Lookup};
use crate::error::CommandError;
use crate::events::Cause;

/// Reads ids, all of them before anything is done.
pub(super) fn ids(args: Args<'_>) -> Result<Vec<StreamId>, CommandError> {
    args.iter().map(id::parse).collect()
}

pub(crate) fn xdel(ctx: &mut Context<'_, '_>) -> Outcome {
    let key = ctx.key(1);
    let slot = ctx.find_of::<Stream>(key, Lookup::Write)?;
    let Some(slot) = slot else {
        ctx.out.integer(0);
        return Ok(());
    };
    let ids = ids(ctx.args.from(2))?;
    let gone = ctx.edit(key, Some(slot), |stream: &mut Stream, _| {
        let gone = ids.into_iter().filter(|id| stream.log.delete(*id)).count();
        (gone, (gone > 0).then_some(event("xdel")))
    });
    ctx.out.integer(gone as i64);
    Ok(())
}

const NOT_A_NUMBER: CommandError =
    CommandError::fixed("ERR Number of IDs must be a positive integer");
const WRONG_NUMBER: CommandError =
    CommandError::fixed("ERR The `numids` parameter must match the number of arguments");

/// The reply for an entry that is not there.
const ABSENT: i64 = -1;
/// For one that was deleted.
const DELETED: i64 = 1;
/// For one that some group needs.
const NEEDED: i64 = 2;

/// The words of XDELEX and XACKDEL: how references are treated, and the ids.
struct DeleteWords<'b> {
    references: References,
    ids: Args<'b>,
    count: usize,
}

impl<'b> DeleteWords<'b> {
    fn parse(args: Args<'b>) -> Result<Self, CommandError> {
        let (mut references, mut ids) = (None, None);
        let mut i = 0;
        while let Some(word) = args.get(i) {
            if word.eq_ignore_ascii_case(b"IDS") && ids.is_none() && i + 1 < args.len() {
                let count = parse_i64(&args[i + 1]).filter(|count| *count > 0);
                let count = usize::try_from(count.ok_or(NOT_A_NUMBER)?).unwrap_or(usize::MAX);
                let rest = args.from(i + 2);
                if count > rest.len() {
                    return Err(WRONG_NUMBER);
                }
                ids = Some((rest, count));
                i += 2 + count;
            } else if let Some(of) = References::of(word).filter(|_| references.is_none()) {
                references = Some(of);
                i += 1;
            } else {
                return Err(CommandError::SYNTAX);
            }
        }
        let (ids, count) = ids.ok_or(CommandError::SYNTAX)?;
        Ok(Self {
            references: references.unwrap_or_default(),
            ids,
            count,
        })
    }

    /// Reads the ids.
    fn ids(&self) -> Result<Vec<StreamId>, CommandError> {
        self.ids.iter().take(self.count).map(id::parse).collect()
    }

    /// Replies that no entry is there.
    fn none(&self, out: &mut Writer) {
        out.array(self.count);
        (0..self.count).for_each(|_| out.integer(ABSENT));
    }
}

pub(crate) fn xdelex(ctx: &mut Context<'_, '_>) -> Outcome {
    let words = DeleteWords::parse(ctx.args.from(2))?;
    let key = ctx.key(1);
    let Some(slot) = ctx.find_of::<Stream>(key, Lookup::Write)? else {
        words.none(ctx.out);
        return Ok(());
    };
    let ids = words.ids()?;
    ctx.edit(key, Some(slot), |stream: &mut Stream, out| {
        out.array(ids.len());
        // References of entries that were deleted before leave too.
        let (needed, changed) = release(stream, &ids, words.references);
        let mut deleted = false;
        for id in ids {
            let of = delete(stream, id, &needed);
            deleted |= of == DELETED;
            out.integer(of);
        }
        let cause = match deleted {
            true => Some(event("xdel")),
            false => changed.then_some(Cause::Delivery),
        };
        ((), cause)
    });
    Ok(())
}

/// Does with the groups' notes of entries what is asked. Returns the entries that must stay, and
/// whether a note has left.
fn release(
    stream: &mut Stream,
    ids: &[StreamId],
    references: References,
) -> (Option<Needed>, bool) {
    if references == References::Keep {
        return (None, false);
    }
    let mut ordered = ids.to_vec();
    ordered.sort_unstable();
    match references {
        References::Acked => (Some(stream.groups.needed_among(&ordered)), false),
        _ => (None, stream.groups.forget_all(&ordered)),
    }
}

/// Deletes an entry, unless it is needed. Returns the reply for it.
fn delete(stream: &mut Stream, id: StreamId, needed: &Option<Needed>) -> i64 {
    if needed.as_ref().is_some_and(|needed| needed.has(id)) {
        return NEEDED;
    }
    match stream.log.delete(id) {
        true => DELETED,
        false => ABSENT,
    }
}

pub(crate) fn xackdel(ctx: &mut Context<'_, '_>) -> Outcome {
    let words = DeleteWords::parse(ctx.args.from(3))?;
    let (key, name) = (ctx.key(1), word(ctx, 2));
    let slot = ctx.find_of::<Stream>(key, Lookup::Write)?;
    let has_group = |ctx: &mut Context<'_, '_>, slot| at(ctx, key, slot).groups.get(name).is_some();
    let Some(slot) = slot.filter(|slot| has_group(ctx, *slot)) else {
        words.none(ctx.out);
        return Ok(());
    };
    let ids = words.ids()?;
    ctx.edit(key, Some(slot), |stream: &mut Stream, out| {
        out.array(ids.len());
        let acknowledged = stream.groups.edit(name, |group| {
            let each = ids.iter().map(|id| group.acknowledge(*id));
            each.collect::<Vec<bool>>()
        });
        let acknowledged = acknowledged.unwrap_or_default();
        let those = ids.iter().zip(&acknowledged).filter(|(_, was)| **was);
        let released: Vec<StreamId> = those.map(|(id, _)| *id).collect();
        let len = stream.log.len();
        let (needed, _) = release(stream, &released, words.references);
        for (id, acknowledged) in ids.iter().zip(&acknowledged) {
            out.integer(match acknowledged {
                false => ABSENT,
                true if delete(stream, *id, &needed) == NEEDED => NEEDED,
                true => DELETED,
            });
        }
        let changed = !released.is_empty();
        let cause = match stream.log.len() < len {
            true => Some(event("xdel")),
            false => changed.then_some(Cause::Delivery),
        };
        ((), cause)
    });
    Ok(())
}
