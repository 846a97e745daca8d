//! XPENDING: entries that consumers have not acknowledged.

use tidewheel_collections::{Group, Stream, StreamId};
use tidewheel_resp::{Args, Writer, parse_i64};
use tidewheel_store::Slot;

use super::{Outcome, id, one, reply, word};
use crate::context::Context;
use crate::error::CommandError;
use crate::rows::cost::PendingPart;
use crate::value::{Entries, collection};

/// The refusal of a group that is not there, where the key may be the reason.
#[cold]
pub(super) fn no_group(key: &[u8], group: &[u8]) -> CommandError {
    let (key, group) = (String::from_utf8_lossy(key), String::from_utf8_lossy(group));
    CommandError::quoting(format!(
        "NOGROUP No such key '{key}' or consumer group '{group}'"
    ))
}

/// The entries that the long form asks for.
struct PendingQuery<'b> {
    least_idle_ms: i64,
    start: StreamId,
    end: StreamId,
    most: usize,
    consumer: Option<&'b [u8]>,
}

impl<'b> PendingQuery<'b> {
    /// `None` of the short form.
    fn parse(ctx: &Context<'_, 'b>) -> Result<Option<Self>, CommandError> {
        let args: Args<'b> = ctx.args;
        match args.len() {
            3 => return Ok(None),
            6..=9 => {}
            _ => return Err(CommandError::SYNTAX),
        }
        let (mut at, mut least_idle_ms) = (3, 0);
        if ctx.is(3, "IDLE") {
            least_idle_ms = ctx.integer(4)?;
            if args.len() < 8 {
                return Err(CommandError::SYNTAX);
            }
            at = 5;
        }
        let most = usize::try_from(ctx.integer(at + 2)?).unwrap_or(0);
        Ok(Some(Self {
            least_idle_ms,
            start: id::parse_start(&args[at])?,
            end: id::parse_end(&args[at + 1])?,
            most,
            consumer: args.get(at + 3),
        }))
    }

    fn reply(&self, group: &Group, now_ms: i64, out: &mut Writer) {
        let idle_ms = |delivered_ms: i64| now_ms.saturating_sub(delivered_ms);
        let wanted = |(id, pending): &(StreamId, tidewheel_collections::Pending)| {
            *id <= self.end
                && (self.least_idle_ms == 0 || idle_ms(pending.delivered_ms) >= self.least_idle_ms)
        };
        let found: Vec<_> = match self.consumer {
            None => {
                let all = group.pending_from(self.start);
                let all = all.take_while(|(id, _)| *id <= self.end);
                all.filter(wanted).take(self.most).collect()
            }
            Some(name) => {
                let Some(number) = group.find_consumer(name) else {
                    return out.array(0);
                };
                let ids = group.consumer(number).pending_from(self.start);
                let ids = ids.take_while(|id| *id <= self.end);
                let all = ids.filter_map(|id| Some((id, group.pending(id)?)));
                all.filter(wanted).take(self.most).collect()
            }
        };
        out.array(found.len());
        for (id, pending) in found {
            out.array(4);
            reply::id(out, id);
            out.bulk(group.consumer(pending.consumer).name());
            out.integer(idle_ms(pending.delivered_ms).max(0));
            out.integer(pending.deliveries as i64);
        }
    }
}

/// The most entries of a group that a call visits which are not acknowledged.
pub(crate) fn count_of_pending(
    entries: &Entries,
    slot: Slot,
    part: PendingPart,
    args: Args<'_>,
) -> usize {
    let at = match part {
        PendingPart::Queried => 2,
        PendingPart::OfGroup | PendingPart::OfConsumer => 3,
    };
    let stream = collection::read::<Stream>(entries, slot).ok();
    let group = stream
        .zip(args.get(at))
        .and_then(|(stream, name)| stream.groups.get(name));
    let Some(group) = group else { return 0 };
    let of_consumer = |at: usize| {
        let number = args.get(at).and_then(|name| group.find_consumer(name));
        number.map_or(0, |number| group.consumer(number).pending())
    };
    let is_idle = |word: &[u8]| word.eq_ignore_ascii_case(b"IDLE");
    match part {
        PendingPart::OfGroup => group.pending_len(),
        PendingPart::OfConsumer => of_consumer(4),
        // The summary counts consumers only.
        PendingPart::Queried if args.len() == 3 => 0,
        PendingPart::Queried if args.get(3).is_some_and(is_idle) => match args.len() {
            9 => of_consumer(8),
            _ => group.pending_len(),
        },
        PendingPart::Queried => {
            let most = args.get(5).and_then(parse_i64).unwrap_or(0);
            let most = usize::try_from(most).unwrap_or(0);
            most.min(group.pending_len())
        }
    }
}

pub(crate) fn xpending(ctx: &mut Context<'_, '_>) -> Outcome {
    let query = PendingQuery::parse(ctx)?;
    let (key, name, now_ms) = (word(ctx, 1), word(ctx, 2), ctx.now.wall_ms());
    one(ctx, |stream, out| {
        let group = stream.and_then(|stream| stream.groups.get(name));
        let group = group.ok_or_else(|| no_group(key, name))?;
        match query {
            Some(query) => query.reply(group, now_ms, out),
            None => summary(group, out),
        }
        Ok(())
    })?
}

/// Their number, the lowest and the highest, and who has them.
fn summary(group: &Group, out: &mut Writer) {
    out.array(4);
    out.integer(group.pending_len() as i64);
    let Some((first, last)) = group.pending_ends() else {
        out.null();
        out.null();
        return out.null_array();
    };
    reply::id(out, first);
    reply::id(out, last);
    let owners = || group.consumers().filter(|consumer| consumer.pending() > 0);
    out.array(owners().count());
    for consumer in owners() {
        out.array(2);
        out.bulk(consumer.name());
        out.bulk(itoa::Buffer::new().format(consumer.pending()).as_bytes());
    }
}
