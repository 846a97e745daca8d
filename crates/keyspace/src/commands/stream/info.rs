//! XINFO: what is known of a stream, its groups and their consumers.

use tidewheel_collections::{Consumer, Group, Log, Stream, StreamId};
use tidewheel_resp::Writer;

use super::group::{no_group_of, wrong_arguments};
use super::reply::{self, Span};
use super::{Outcome, word};
use crate::context::{Context, Lookup};
use crate::error::CommandError;

/// Entries of each kind that the full form shows unless the call says how many.
const SHOWN: usize = 10;

/// Reads the call's stream, and replies.
fn one(ctx: &mut Context<'_, '_>, reply: impl FnOnce(&Stream, &mut Writer) -> Outcome) -> Outcome {
    let key = ctx.key(2);
    ctx.read::<Stream, _>(key, Lookup::Read, |stream, out| {
        reply(stream.ok_or(CommandError::NO_SUCH_KEY)?, out)
    })?
}

/// How many entries of each kind the full form shows; `None` of the short form.
fn shown(ctx: &Context<'_, '_>) -> Result<Option<usize>, CommandError> {
    match ctx.args.len() {
        3 => Ok(None),
        4 if ctx.is(3, "FULL") => Ok(Some(SHOWN)),
        6 if ctx.is(3, "FULL") && ctx.is(4, "COUNT") => Ok(Some(match ctx.integer(5)? {
            0 => usize::MAX,
            count => usize::try_from(count).unwrap_or(SHOWN),
        })),
        _ => Err(wrong_arguments(ctx)),
    }
}

pub(crate) fn stream(ctx: &mut Context<'_, '_>) -> Outcome {
    let shown = shown(ctx)?;
    one(ctx, |stream, out| {
        let log = &stream.log;
        out.map(if shown.is_some() { 9 } else { 10 });
        number(out, "length", log.len());
        // An index has a node for each part of the entries, and one in front.
        number(out, "radix-tree-keys", log.chunks() as u64);
        number(out, "radix-tree-nodes", log.chunks() as u64 + 1);
        named_id(out, "last-generated-id", log.last_id());
        named_id(out, "max-deleted-entry-id", log.max_deleted_id());
        number(out, "entries-added", log.entries_added());
        named_id(out, "recorded-first-entry-id", log.first_id());
        match shown {
            Some(shown) => full(stream, shown, out),
            None => short(stream, out),
        }
        Ok(())
    })
}

fn short(stream: &Stream, out: &mut Writer) {
    let log = &stream.log;
    number(out, "groups", stream.groups.iter().len() as u64);
    let first = log.range(StreamId::MIN, StreamId::MAX).next();
    let last = log.range_back(StreamId::MIN, StreamId::MAX).next();
    for (name, entry) in [("first-entry", first), ("last-entry", last)] {
        out.bulk(name.as_bytes());
        match entry {
            Some(entry) => reply::entry(out, entry),
            None => out.null(),
        }
    }
}

fn full(stream: &Stream, shown: usize, out: &mut Writer) {
    let log = &stream.log;
    out.bulk(b"entries");
    let span = Span {
        start: StreamId::MIN,
        end: StreamId::MAX,
        reverse: false,
        most: shown,
    };
    span.write(log, out);
    out.bulk(b"groups");
    out.array(stream.groups.iter().len());
    for group in stream.groups.iter() {
        full_group(group, log, shown, out);
    }
}

fn full_group(group: &Group, log: &Log, shown: usize, out: &mut Writer) {
    out.map(7);
    text(out, "name", group.name());
    place(group, log, out);
    number(out, "pel-count", group.pending_len() as u64);
    out.bulk(b"pending");
    out.array(group.pending_len().min(shown));
    for (id, pending) in group.pending_from(StreamId::MIN).take(shown) {
        out.array(4);
        reply::id(out, id);
        out.bulk(group.consumer(pending.consumer).name());
        out.integer(pending.delivered_ms);
        out.integer(pending.deliveries as i64);
    }
    out.bulk(b"consumers");
    out.array(group.consumers().len());
    for consumer in group.consumers() {
        full_consumer(group, consumer, shown, out);
    }
}

fn full_consumer(group: &Group, consumer: &Consumer, shown: usize, out: &mut Writer) {
    out.map(5);
    text(out, "name", consumer.name());
    out.bulk(b"seen-time");
    out.integer(consumer.seen_ms);
    out.bulk(b"active-time");
    out.integer(consumer.active_ms.unwrap_or(-1));
    number(out, "pel-count", consumer.pending() as u64);
    out.bulk(b"pending");
    out.array(consumer.pending().min(shown));
    for id in consumer.pending_from(StreamId::MIN).take(shown) {
        let Some(pending) = group.pending(id) else {
            unreachable!("a consumer's entry is the group's");
        };
        out.array(3);
        reply::id(out, id);
        out.integer(pending.delivered_ms);
        out.integer(pending.deliveries as i64);
    }
}

/// Writes how far a group has come.
fn place(group: &Group, log: &Log, out: &mut Writer) {
    named_id(out, "last-delivered-id", group.last);
    let counts = [
        ("entries-read", group.entries_read),
        ("lag", group.lag(log)),
    ];
    for (name, count) in counts {
        match count {
            Some(count) => number(out, name, count),
            None => {
                out.bulk(name.as_bytes());
                out.null();
            }
        }
    }
}

pub(crate) fn groups(ctx: &mut Context<'_, '_>) -> Outcome {
    one(ctx, |stream, out| {
        out.array(stream.groups.iter().len());
        for group in stream.groups.iter() {
            out.map(6);
            text(out, "name", group.name());
            number(out, "consumers", group.consumers().len() as u64);
            number(out, "pending", group.pending_len() as u64);
            place(group, &stream.log, out);
        }
        Ok(())
    })
}

pub(crate) fn consumers(ctx: &mut Context<'_, '_>) -> Outcome {
    let (key, name, now_ms) = (word(ctx, 2), word(ctx, 3), ctx.now.wall_ms());
    one(ctx, |stream, out| {
        let group = stream.groups.get(name);
        let group = group.ok_or_else(|| no_group_of(key, name))?;
        out.array(group.consumers().len());
        for consumer in group.consumers() {
            let since = |ms: i64| now_ms.saturating_sub(ms).max(0);
            out.map(4);
            text(out, "name", consumer.name());
            number(out, "pending", consumer.pending() as u64);
            out.bulk(b"idle");
            out.integer(since(consumer.seen_ms));
            out.bulk(b"inactive");
            out.integer(consumer.active_ms.map_or(-1, since));
        }
        Ok(())
    })
}

fn number(out: &mut Writer, name: &str, number: u64) {
    out.bulk(name.as_bytes());
    out.integer(number as i64);
}

fn named_id(out: &mut Writer, name: &str, id: StreamId) {
    out.bulk(name.as_bytes());
    reply::id(out, id);
}

fn text(out: &mut Writer, name: &str, text: &[u8]) {
    out.bulk(name.as_bytes());
    out.bulk(text);
}
