//! XREAD, XREADGROUP: new entries of several streams.

use std::ops::Range;

use tidewheel_collections::{Log, Pending, Stream, StreamId};
use tidewheel_resp::{Args, Protocol, Writer};
use tidewheel_store::Slot;

use super::reply::{self, Span};
use super::{Outcome, event, id};
use crate::commands::blocking;
use crate::context::{Context, Key, Lookup};
use crate::error::CommandError;
use crate::events::Cause;
use crate::value::collection::Collection;
use crate::waiters::{AwaitedKeys, Want};

const NO_GROUP: CommandError = CommandError::fixed(
    "ERR The GROUP option is only supported by XREADGROUP. You called XREAD instead.",
);
const NO_NOACK: CommandError = CommandError::fixed(
    "ERR The NOACK option is only supported by XREADGROUP. You called XREAD instead.",
);
const GROUP_MISSING: CommandError = CommandError::fixed("ERR Missing GROUP option for XREADGROUP");
const NO_LAST: CommandError = CommandError::fixed(
    "ERR The $ ID is meaningless in the context of XREADGROUP: you want to read the history of \
     this consumer by specifying a proper ID, or use the > ID to get new messages. The $ ID would \
     just return an empty result set.",
);
const NO_NEWEST: CommandError = CommandError::fixed(
    "ERR The + ID is meaningless in the context of XREADGROUP: you want to read the history of \
     this consumer by specifying a proper ID, or use the > ID to get new messages. The + ID would \
     just return an empty result set.",
);
const NO_NEW: CommandError = CommandError::fixed(
    "ERR The > ID can be specified only when calling XREADGROUP using the GROUP <group> \
     <consumer> option.",
);
const NOT_MS: CommandError = CommandError::fixed("ERR timeout is not an integer or out of range");
const NEGATIVE: CommandError = CommandError::fixed("ERR timeout is negative");
const TOO_LONG: CommandError = CommandError::fixed("ERR timeout is out of range");

/// The most entries that are counted to know whether a call takes long.
const COUNTED_MAX: usize = 1 << 14;

/// The arguments of XREAD and XREADGROUP.
#[derive(Debug)]
pub(crate) struct ReadCall<'b> {
    /// The position of the first key.
    pub(crate) first: usize,
    /// How many keys there are. Each one's id stands so many arguments behind it.
    pub(crate) keys: usize,
    /// The longest wait in milliseconds, 0 for ever; `None` does not wait.
    pub(crate) block_ms: Option<u64>,
    /// A group and a consumer, if it is XREADGROUP.
    pub(crate) group: Option<(&'b [u8], &'b [u8])>,
    most: usize,
    noack: bool,
}

/// The entries that a call wants of one stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum From {
    /// Those above an id: in a group, those that the consumer has not acknowledged.
    Above(StreamId),
    /// Those that were not given to anybody in the group.
    New,
}

impl<'b> ReadCall<'b> {
    /// Reads all but the ids.
    pub(crate) fn parse(ctx: &Context<'_, 'b>, in_group: bool) -> Result<Self, CommandError> {
        let args = ctx.args;
        let mut call = Self {
            first: 0,
            keys: 0,
            block_ms: None,
            group: None,
            most: usize::MAX,
            noack: false,
        };
        let mut i = 1;
        while i < args.len() && call.first == 0 {
            let more = args.len() - i - 1;
            if ctx.is(i, "BLOCK") && more > 0 {
                call.block_ms = Some(milliseconds(ctx, i + 1)?);
                i += 2;
            } else if ctx.is(i, "COUNT") && more > 0 {
                let count = ctx.integer(i + 1)?;
                call.most = usize::try_from(count)
                    .ok()
                    .filter(|n| *n > 0)
                    .unwrap_or(usize::MAX);
                i += 2;
            } else if ctx.is(i, "STREAMS") && more > 0 {
                if !more.is_multiple_of(2) {
                    return Err(unbalanced(ctx.name(), in_group));
                }
                (call.first, call.keys) = (i + 1, more / 2);
            } else if ctx.is(i, "GROUP") && more >= 2 {
                if !in_group {
                    return Err(NO_GROUP);
                }
                call.group = args.get(i + 1).zip(args.get(i + 2));
                i += 3;
            } else if ctx.is(i, "NOACK") {
                if !in_group {
                    return Err(NO_NOACK);
                }
                call.noack = true;
                i += 1;
            } else {
                return Err(CommandError::SYNTAX);
            }
        }
        if call.first == 0 {
            return Err(CommandError::SYNTAX);
        }
        if in_group && call.group.is_none() {
            return Err(GROUP_MISSING);
        }
        Ok(call)
    }

    /// The positions of the keys.
    fn positions(&self) -> Range<usize> {
        self.first..self.first + self.keys
    }

    /// Replies with the entries of all these streams. False, and nothing is written, if there are
    /// none.
    fn serve_all(
        &self,
        ctx: &mut Context<'_, 'b>,
        streams: impl Iterator<Item = (usize, From)>,
    ) -> Result<bool, CommandError> {
        let (mark, mut served) = (ctx.out.mark(), 0);
        for (at, from) in streams {
            served += usize::from(self.serve(ctx, at, from, |_| {})?);
        }
        if served == 0 {
            return Ok(false);
        }
        // Their number stands in front.
        let body = ctx.out.as_bytes()[mark..].to_vec();
        ctx.out.truncate(mark);
        outer(ctx.out, served);
        ctx.out.raw(&body);
        Ok(true)
    }

    /// The most entries of a key's stream that the call reads, counted up to some thousands.
    pub(crate) fn visited(&self, args: Args<'_>, at: usize, stream: &Stream) -> usize {
        let text = args.get(at + self.keys).unwrap_or_default();
        let group = self
            .group
            .map(|(group, consumer)| (stream.groups.get(group), consumer));
        let above = match (text, group) {
            (b"$", _) => return 0,
            (b"+", _) => return 1,
            (b">", Some((Some(group), _))) => group.last,
            (_, Some((None, _))) => return 0,
            (_, Some((Some(group), consumer))) => {
                let consumer = group.find_consumer(consumer);
                let pending = consumer.map_or(0, |number| group.consumer(number).pending());
                return pending.min(self.most);
            }
            (text, None) => id::parse(text).unwrap_or(StreamId::MAX),
        };
        let Some(start) = above.next() else { return 0 };
        let entries = stream.log.range(start, StreamId::MAX);
        entries.take(self.most.min(COUNTED_MAX)).count()
    }

    /// Waits for entries, if BLOCK says so; else there are none.
    fn wait(&self, ctx: &mut Context<'_, 'b>, froms: &[From]) -> Outcome {
        let Some(ms) = self.block_ms else {
            ctx.out.null_array();
            return Ok(());
        };
        let (mut wants, mut instead) = (Vec::with_capacity(froms.len()), Vec::new());
        for (at, from) in self.positions().zip(froms) {
            wants.push(match (self.group, *from) {
                (None, From::Above(id)) => {
                    let at = at + self.keys;
                    // What they stand for is what they stood for when the command came.
                    if matches!(ctx.args.get(at), Some(b"$" | b"+")) {
                        instead.push((at, id.to_string().into_bytes().into()));
                    }
                    Want::Above(id)
                }
                (group, _) => Want::NewFor(group.map_or(&b""[..], |(group, _)| group).into()),
            });
        }
        let wanted = AwaitedKeys {
            keys: self.positions(),
            also: None,
            ms: (ms > 0).then_some(ms),
            tag: Stream::TAG,
            wants,
            instead,
        };
        blocking::wait(ctx, wanted, Writer::null_array)
    }

    /// Reads the id behind the key at an argument. The key has a stream of its type, and the group.
    pub(crate) fn from(&self, ctx: &mut Context<'_, 'b>, at: usize) -> Result<From, CommandError> {
        let (key, group) = (ctx.key(at), self.group);
        let text = ctx.args.get(at + self.keys).unwrap_or_default();
        ctx.read::<Stream, _>(key, Lookup::Read, |stream, _| {
            if let Some((group, _)) = group
                && stream.is_none_or(|stream| stream.groups.get(group).is_none())
            {
                return Err(no_group(key.bytes, group));
            }
            let log = stream.map(|stream| &stream.log);
            match text {
                b"$" if group.is_some() => Err(NO_LAST),
                b"+" if group.is_some() => Err(NO_NEWEST),
                b"$" => Ok(From::Above(log.map_or(StreamId::MIN, Log::last_id))),
                b"+" => Ok(From::Above(log.map_or(StreamId::MIN, below_newest))),
                b">" if group.is_none() => Err(NO_NEW),
                b">" => Ok(From::New),
                text => match id::parse(text)? {
                    // Nothing is above it: the public servers take it for `>`.
                    StreamId::MAX if group.is_some() => Ok(From::New),
                    id => Ok(From::Above(id)),
                },
            }
        })?
    }

    /// Replies with one stream's entries, if there are any: its key and their array. `first` is
    /// called before.
    pub(crate) fn serve(
        &self,
        ctx: &mut Context<'_, 'b>,
        at: usize,
        from: From,
        first: impl FnOnce(&mut Writer),
    ) -> Result<bool, CommandError> {
        let key = ctx.key(at);
        match (self.group, from) {
            (None, From::Above(above)) => self.read(ctx, key, above, first),
            (None, From::New) => Ok(false),
            (Some(group), from) => self.read_in_group(ctx, key, group, from, first),
        }
    }

    fn read(
        &self,
        ctx: &mut Context<'_, 'b>,
        key: Key<'b>,
        above: StreamId,
        first: impl FnOnce(&mut Writer),
    ) -> Result<bool, CommandError> {
        ctx.read::<Stream, _>(key, Lookup::Write, |stream, out| {
            let Some(log) = stream.map(|stream| &stream.log) else {
                return false;
            };
            let Some(start) = above.next().filter(|start| has_from(log, *start)) else {
                return false;
            };
            first(out);
            head(out, key.bytes);
            self.span(start).write(log, out);
            true
        })
    }

    fn span(&self, start: StreamId) -> Span {
        Span {
            start,
            end: StreamId::MAX,
            reverse: false,
            most: self.most,
        }
    }

    fn read_in_group(
        &self,
        ctx: &mut Context<'_, 'b>,
        key: Key<'b>,
        (group, consumer): (&[u8], &[u8]),
        from: From,
        first: impl FnOnce(&mut Writer),
    ) -> Result<bool, CommandError> {
        let Some(slot) = ctx.find_of::<Stream>(key, Lookup::Write)? else {
            return Ok(false);
        };
        let now_ms = ctx.now.wall_ms();
        let is_new = self.greet(ctx, (key, slot), (group, consumer), now_ms);
        if is_new.ok_or_else(|| no_group(key.bytes, group))? {
            ctx.event(key, event("xgroup-createconsumer"));
        }
        let served = self.read_in_stream(ctx, (key, slot), (group, consumer), from, now_ms, first);
        self.record(ctx, key, (group, consumer), from);
        Ok(served)
    }

    /// Records what was read of one stream: of which ones something was depends on the others.
    fn record(
        &self,
        ctx: &mut Context<'_, 'b>,
        key: Key<'b>,
        (group, consumer): (&[u8], &[u8]),
        from: From,
    ) {
        let id = match from {
            From::Above(id) => id.to_string(),
            From::New => ">".to_owned(),
        };
        let most = self.most.to_string();
        let mut words = vec![&b"XREADGROUP"[..], b"GROUP", group, consumer];
        if self.most != usize::MAX {
            words.extend([&b"COUNT"[..], most.as_bytes()]);
        }
        if self.noack {
            words.push(b"NOACK");
        }
        words.extend([&b"STREAMS"[..], key.bytes, id.as_bytes()]);
        ctx.record_instead(&words);
    }

    fn read_in_stream(
        &self,
        ctx: &mut Context<'_, 'b>,
        (key, slot): (Key<'b>, Slot),
        (group, consumer): (&[u8], &[u8]),
        from: From,
        now_ms: i64,
        first: impl FnOnce(&mut Writer),
    ) -> bool {
        ctx.edit(key, Some(slot), |stream: &mut Stream, out| {
            let Stream { log, groups } = stream;
            let served = groups.edit(group, |group| {
                let (number, _) = group.consumer_or_new(consumer, now_ms);
                match from {
                    From::Above(above) => {
                        first(out);
                        head(out, key.bytes);
                        self.write_history(group, log, (number, above, now_ms), out)
                    }
                    From::New => {
                        let start = group.last.next().filter(|start| has_from(log, *start));
                        let start = start?;
                        first(out);
                        head(out, key.bytes);
                        self.give(group, log, (number, start, now_ms), out);
                        Some(true)
                    }
                }
            });
            match served.flatten() {
                None => (false, None),
                Some(changed) => (true, changed.then_some(Cause::Delivery)),
            }
        })
    }

    /// Notes that a consumer has come. Returns whether it is new; `None` if there is no group.
    fn greet(
        &self,
        ctx: &mut Context<'_, 'b>,
        (key, slot): (Key<'b>, Slot),
        (group, consumer): (&[u8], &[u8]),
        now_ms: i64,
    ) -> Option<bool> {
        ctx.edit(key, Some(slot), |stream: &mut Stream, _| {
            let is_new = stream.groups.edit(group, |group| {
                let (number, is_new) = group.consumer_or_new(consumer, now_ms);
                group.consumer_mut(number).seen_ms = now_ms;
                is_new
            });
            (
                is_new,
                is_new.filter(|is_new| *is_new).map(|_| Cause::Delivery),
            )
        })
    }

    /// Writes entries that are given to a consumer, from an id on.
    fn give(
        &self,
        group: &mut tidewheel_collections::Group,
        log: &Log,
        (number, start, now_ms): (u32, StreamId, i64),
        out: &mut Writer,
    ) {
        let pending = Pending {
            consumer: number,
            delivered_ms: now_ms,
            deliveries: 1,
        };
        let noack = self.noack;
        self.span(start).write_each(log, out, |id| {
            group.advance(log, id);
            if !noack {
                group.assign(id, pending);
            }
        });
        if !noack {
            group.consumer_mut(number).active_ms = Some(now_ms);
        }
    }

    /// Writes entries that a consumer was given before and has not acknowledged. Returns whether
    /// there are any.
    fn write_history(
        &self,
        group: &mut tidewheel_collections::Group,
        log: &Log,
        (number, above, now_ms): (u32, StreamId, i64),
        out: &mut Writer,
    ) -> Option<bool> {
        let start = above.next().unwrap_or(StreamId::MIN);
        let consumer = group.consumer(number);
        let ids: Vec<_> = consumer.pending_from(start).take(self.most).collect();
        out.array(ids.len());
        for id in &ids {
            let Some(entry) = log.get(*id) else {
                out.array(2);
                reply::id(out, *id);
                out.null_array();
                continue;
            };
            reply::entry(out, entry);
            if let Some(pending) = group.pending(*id) {
                group.redeliver(*id, now_ms, pending.deliveries.saturating_add(1));
            }
        }
        Some(!ids.is_empty())
    }
}

/// True if there are entries from an id on. It looks at the newest one: that is O(1).
fn has_from(log: &Log, start: StreamId) -> bool {
    let newest = || log.range_back(StreamId::MIN, StreamId::MAX).next();
    start <= log.last_id() && newest().is_some_and(|newest| start <= newest.id)
}

/// The id below the newest entry's.
fn below_newest(log: &Log) -> StreamId {
    let mut newest = log.range_back(StreamId::MIN, StreamId::MAX);
    let newest = newest.next().and_then(|entry| entry.id.previous());
    newest.unwrap_or_else(|| log.last_id())
}

/// Writes what stands before a stream's entries.
fn head(out: &mut Writer, key: &[u8]) {
    if out.protocol() == Protocol::Resp2 {
        out.array(2);
    }
    out.bulk(key);
}

fn milliseconds(ctx: &Context<'_, '_>, at: usize) -> Result<u64, CommandError> {
    let ms = ctx.integer(at).map_err(|_| NOT_MS)?;
    let ms = u64::try_from(ms).map_err(|_| NEGATIVE)?;
    let most = i64::MAX.saturating_sub(ctx.now.wall_ms().max(0));
    match ms <= most.unsigned_abs() {
        true => Ok(ms),
        false => Err(TOO_LONG),
    }
}

#[cold]
fn unbalanced(name: &str, in_group: bool) -> CommandError {
    let ids = if in_group { " or '>'" } else { ", '+', or '$'" };
    CommandError::quoting(format!(
        "ERR Unbalanced '{name}' list of streams: for each stream key an ID{ids} must be specified."
    ))
}

#[cold]
fn no_group(key: &[u8], group: &[u8]) -> CommandError {
    let (key, group) = (String::from_utf8_lossy(key), String::from_utf8_lossy(group));
    CommandError::quoting(format!(
        "NOGROUP No such key '{key}' or consumer group '{group}' in XREADGROUP with GROUP option"
    ))
}

pub(crate) fn xread(ctx: &mut Context<'_, '_>) -> Outcome {
    run(ctx, false)
}

pub(crate) fn xreadgroup(ctx: &mut Context<'_, '_>) -> Outcome {
    run(ctx, true)
}

fn run(ctx: &mut Context<'_, '_>, in_group: bool) -> Outcome {
    let call = ReadCall::parse(ctx, in_group)?;
    if call.keys == 1 {
        let from = call.from(ctx, call.first)?;
        if !call.serve(ctx, call.first, from, |out| outer(out, 1))? {
            call.wait(ctx, &[from])?;
        }
        return Ok(());
    }
    let mut froms = Vec::with_capacity(call.keys);
    for at in call.positions() {
        froms.push(call.from(ctx, at)?);
    }
    if !call.serve_all(ctx, call.positions().zip(froms.iter().copied()))? {
        call.wait(ctx, &froms)?;
    }
    Ok(())
}

pub(crate) fn serve_xread(ctx: &mut Context<'_, '_>, _: usize) -> Result<bool, CommandError> {
    serve_waiting(ctx, false)
}

pub(crate) fn serve_xreadgroup(ctx: &mut Context<'_, '_>, _: usize) -> Result<bool, CommandError> {
    serve_waiting(ctx, true)
}

/// Replies with what there is in the streams whose shards are locked. Others have nothing: their
/// changes serve for themselves.
fn serve_waiting(ctx: &mut Context<'_, '_>, in_group: bool) -> Result<bool, CommandError> {
    let call = ReadCall::parse(ctx, in_group)?;
    let mut froms = Vec::new();
    for at in call.positions() {
        if !ctx.is_locked(ctx.key(at).shard) {
            continue;
        }
        match call.from(ctx, at) {
            Ok(from) => froms.push((at, from)),
            // It may become a stream again.
            Err(error) if error == CommandError::WRONG_TYPE && !in_group => {}
            Err(error) => return Err(error),
        }
    }
    if !call.serve_all(ctx, froms.into_iter())? {
        ctx.out.null_array();
    }
    Ok(true)
}

/// Writes the head of the reply with so many streams.
fn outer(out: &mut Writer, streams: usize) {
    match out.protocol() {
        Protocol::Resp2 => out.array(streams),
        Protocol::Resp3 => out.map(streams),
    }
}
