//! XCLAIM, XAUTOCLAIM: give pending entries to another consumer.

use tidewheel_collections::{Group, Log, Pending, Stream, StreamId};
use tidewheel_resp::{Writer, parse_i64};
use tidewheel_store::Slot;

use super::pending::no_group;
use super::{Outcome, at, event, id, reply, word};
use crate::context::{Context, Key, Lookup};
use crate::error::CommandError;
use crate::events::Cause;

const BAD_IDLE_OF_CLAIM: CommandError =
    CommandError::fixed("ERR Invalid min-idle-time argument for XCLAIM");
const BAD_IDLE_OF_AUTOCLAIM: CommandError =
    CommandError::fixed("ERR Invalid min-idle-time argument for XAUTOCLAIM");
const BAD_IDLE: CommandError = CommandError::fixed("ERR Invalid IDLE option argument for XCLAIM");
const BAD_TIME: CommandError = CommandError::fixed("ERR Invalid TIME option argument for XCLAIM");
const BAD_RETRIES: CommandError =
    CommandError::fixed("ERR Invalid RETRYCOUNT option argument for XCLAIM");
const BAD_COUNT: CommandError = CommandError::fixed("ERR COUNT must be > 0");

/// How many pending entries XAUTOCLAIM looks at for each that it may give.
const ATTEMPTS: usize = 10;

/// The most entries that a call of XAUTOCLAIM may ask for.
const COUNT_MAX: i64 = i64::MAX / 16;

/// The call's key, which has a stream with the group that the second argument names.
fn stream_with_group<'b>(ctx: &mut Context<'_, 'b>) -> Result<(Key<'b>, Slot), CommandError> {
    let (key, group) = (ctx.key(1), word(ctx, 2));
    let slot = ctx.find_of::<Stream>(key, Lookup::Read)?;
    let has = |ctx: &mut Context<'_, '_>, slot| at(ctx, key, slot).groups.get(group).is_some();
    let slot = slot.filter(|slot| has(ctx, *slot));
    slot.map(|slot| (key, slot))
        .ok_or_else(|| no_group(key.bytes, group))
}

/// How a claimed entry is written, and what is noted of it.
#[derive(Debug, Clone, Copy)]
struct Claim {
    number: u32,
    now_ms: i64,
    least_idle_ms: i64,
    delivered_ms: i64,
    /// The number of deliveries, if the call says it.
    deliveries: Option<u64>,
    just_id: bool,
}

impl Claim {
    /// True if an entry was not given to anybody for long enough.
    fn is_idle(&self, pending: &Pending) -> bool {
        let idle_ms = self.now_ms.saturating_sub(pending.delivered_ms);
        self.least_idle_ms == 0 || idle_ms >= self.least_idle_ms
    }

    /// Gives an entry to the consumer.
    fn take(&self, group: &mut Group, id: StreamId, deliveries: u64) {
        let more = u64::from(!self.just_id);
        let deliveries = self.deliveries.unwrap_or(deliveries.saturating_add(more));
        group.assign(
            id,
            Pending {
                consumer: self.number,
                delivered_ms: self.delivered_ms,
                deliveries,
            },
        );
        group.consumer_mut(self.number).active_ms = Some(self.now_ms);
    }

    fn write(&self, log: &Log, ids: &[StreamId], out: &mut Writer) {
        out.array(ids.len());
        for id in ids {
            match log.get(*id) {
                Some(entry) if !self.just_id => reply::entry(out, entry),
                _ => reply::id(out, *id),
            }
        }
    }
}

/// Changes the group that the second argument names, for the consumer that the third one names.
fn edit_as_consumer<R>(
    ctx: &mut Context<'_, '_>,
    (key, slot): (Key<'_>, Slot),
    change: impl FnOnce(&mut Group, &Log, u32, &mut Writer) -> (R, bool),
) -> Option<R> {
    let (name, consumer, now_ms) = (word(ctx, 2), word(ctx, 3), ctx.now.wall_ms());
    let (done, is_new) = ctx.edit(key, Some(slot), |stream: &mut Stream, out| {
        let Stream { log, groups } = stream;
        let done = groups.edit(name, |group| {
            let (number, is_new) = group.consumer_or_new(consumer, now_ms);
            group.consumer_mut(number).seen_ms = now_ms;
            let (result, changed) = change(group, log, number, out);
            (result, changed || is_new, is_new)
        });
        match done {
            None => ((None, false), None),
            Some((result, changed, is_new)) => {
                ((Some(result), is_new), changed.then_some(Cause::Delivery))
            }
        }
    });
    if is_new {
        ctx.event(key, event("xgroup-createconsumer"));
    }
    done
}

/// The words of XCLAIM behind its ids.
#[derive(Default)]
struct ClaimOptions {
    delivered_ms: Option<i64>,
    deliveries: Option<u64>,
    force: bool,
    just_id: bool,
    last: StreamId,
}

impl ClaimOptions {
    fn parse(ctx: &Context<'_, '_>, mut i: usize) -> Result<Self, CommandError> {
        let (mut options, now_ms) = (Self::default(), ctx.now.wall_ms());
        while let Some(word) = ctx.args.get(i) {
            let next = ctx.args.get(i + 1);
            let number = |error| next.and_then(parse_i64).ok_or(error);
            match next {
                _ if ctx.is(i, "FORCE") => options.force = true,
                _ if ctx.is(i, "JUSTID") => options.just_id = true,
                Some(_) if ctx.is(i, "IDLE") => {
                    let idle_ms: i64 = number(BAD_IDLE)?;
                    options.delivered_ms = Some(now_ms.wrapping_sub(idle_ms));
                    i += 1;
                }
                Some(_) if ctx.is(i, "TIME") => {
                    options.delivered_ms = Some(number(BAD_TIME)?);
                    i += 1;
                }
                Some(_) if ctx.is(i, "RETRYCOUNT") => {
                    options.deliveries = u64::try_from(number(BAD_RETRIES)?).ok();
                    i += 1;
                }
                Some(text) if ctx.is(i, "LASTID") => {
                    options.last = id::parse(text)?;
                    i += 1;
                }
                _ => {
                    let word = String::from_utf8_lossy(word);
                    let text = format!("ERR Unrecognized XCLAIM option '{word}'");
                    return Err(CommandError::quoting(text));
                }
            }
            i += 1;
        }
        Ok(options)
    }
}

pub(crate) fn xclaim(ctx: &mut Context<'_, '_>) -> Outcome {
    let place = stream_with_group(ctx)?;
    let now_ms = ctx.now.wall_ms();
    let least_idle_ms = ctx.args.get(4).and_then(parse_i64);
    let least_idle_ms = least_idle_ms.ok_or(BAD_IDLE_OF_CLAIM)?.max(0);
    let words = ctx.args.from(5);
    let ids: Vec<_> = words
        .iter()
        .map_while(|word| id::parse(word).ok())
        .collect();
    let options = ClaimOptions::parse(ctx, 5 + ids.len())?;
    let delivered_ms = options.delivered_ms.filter(|ms| (0..=now_ms).contains(ms));
    edit_as_consumer(ctx, place, |group, log, number, out| {
        let claim = Claim {
            number,
            now_ms,
            least_idle_ms,
            delivered_ms: delivered_ms.unwrap_or(now_ms),
            deliveries: options.deliveries,
            just_id: options.just_id,
        };
        let mut changed = options.last > group.last;
        group.last = group.last.max(options.last);
        let mut taken = Vec::new();
        for id in ids {
            let pending = group.pending(id);
            if !log.contains(id) {
                changed |= group.acknowledge(id);
                continue;
            }
            let deliveries = match pending {
                Some(pending) if claim.is_idle(&pending) => pending.deliveries,
                None if options.force => 1,
                _ => continue,
            };
            claim.take(group, id, deliveries);
            taken.push(id);
        }
        claim.write(log, &taken, out);
        ((), changed || !taken.is_empty())
    });
    Ok(())
}

pub(crate) fn xautoclaim(ctx: &mut Context<'_, '_>) -> Outcome {
    let least_idle_ms = ctx.args.get(4).and_then(parse_i64);
    let least_idle_ms = least_idle_ms.ok_or(BAD_IDLE_OF_AUTOCLAIM)?.max(0);
    let start = id::parse_start(word(ctx, 5))?;
    let (mut count, mut just_id) = (100, false);
    let mut i = 6;
    while i < ctx.args.len() {
        if let Some(number) = ctx.args.get(i + 1).filter(|_| ctx.is(i, "COUNT")) {
            let number = parse_i64(number).filter(|n| (1..=COUNT_MAX).contains(n));
            count = usize::try_from(number.ok_or(BAD_COUNT)?).unwrap_or(usize::MAX);
            i += 1;
        } else if ctx.is(i, "JUSTID") {
            just_id = true;
        } else {
            return Err(CommandError::SYNTAX);
        }
        i += 1;
    }
    let place = stream_with_group(ctx)?;
    let now_ms = ctx.now.wall_ms();
    edit_as_consumer(ctx, place, |group, log, number, out| {
        let claim = Claim {
            number,
            now_ms,
            least_idle_ms,
            delivered_ms: now_ms,
            deliveries: None,
            just_id,
        };
        let swept = claim.sweep(group, log, start, count);
        out.array(3);
        reply::id(out, swept.next);
        claim.write(log, &swept.taken, out);
        out.array(swept.gone.len());
        swept.gone.iter().for_each(|id| reply::id(out, *id));
        ((), !(swept.taken.is_empty() && swept.gone.is_empty()))
    });
    Ok(())
}

/// The outcome of XAUTOCLAIM.
struct Swept {
    taken: Vec<StreamId>,
    /// Pending entries that are no entries any more.
    gone: Vec<StreamId>,
    /// The first pending entry that it has not looked at.
    next: StreamId,
}

impl Claim {
    /// Takes up to `count` pending entries from an id on.
    fn sweep(&self, group: &mut Group, log: &Log, start: StreamId, count: usize) -> Swept {
        let mut swept = Swept {
            taken: Vec::new(),
            gone: Vec::new(),
            next: StreamId::MIN,
        };
        let (mut taken, mut attempts) = (Vec::new(), count.saturating_mul(ATTEMPTS));
        for (id, pending) in group.pending_from(start) {
            if attempts == 0 || taken.len() + swept.gone.len() == count {
                swept.next = id;
                break;
            }
            attempts -= 1;
            if !log.contains(id) {
                swept.gone.push(id);
            } else if self.is_idle(&pending) {
                taken.push((id, pending.deliveries));
            }
        }
        for id in &swept.gone {
            group.acknowledge(*id);
        }
        for (id, deliveries) in taken {
            self.take(group, id, deliveries);
            swept.taken.push(id);
        }
        swept
    }
}
