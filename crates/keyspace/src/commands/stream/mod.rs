//! Streams.

pub(crate) mod add;
mod append;
pub(crate) mod claim;
pub(crate) mod delete;
pub(crate) mod group;
mod id;
pub(crate) mod info;
pub(crate) mod pending;
pub(crate) mod range;
pub(crate) mod read;
mod references;
mod reply;
pub(crate) mod trim;

pub(crate) use self::append::{AppendFn, append_to_stream};
use tidewheel_collections::{Stream, StreamLimits};
use tidewheel_resp::Writer;
use tidewheel_store::Slot;

use crate::context::{Context, Key, Lookup};
use crate::error::CommandError;
use crate::events::{Cause, NotifyClass};
use crate::value::collection;

type Outcome = Result<(), CommandError>;

/// An event of a stream.
const fn event(name: &'static str) -> Cause {
    Cause::Of(NotifyClass::Stream, name)
}

fn limits(ctx: &Context<'_, '_>) -> StreamLimits {
    ctx.keyspace.rules().packing.stream()
}

/// Reads the stream of the call's first key, and replies.
fn one<R>(
    ctx: &mut Context<'_, '_>,
    reply: impl FnOnce(Option<&Stream>, &mut Writer) -> R,
) -> Result<R, CommandError> {
    let key = ctx.key(1);
    ctx.read::<Stream, _>(key, Lookup::Read, reply)
}

/// An argument, which the row's arity says is there.
fn word<'b>(ctx: &Context<'_, 'b>, at: usize) -> &'b [u8] {
    ctx.args.get(at).unwrap_or_default()
}

/// The stream of a key that was found.
fn at<'c>(ctx: &'c mut Context<'_, '_>, key: Key<'_>, slot: Slot) -> &'c Stream {
    let entries = ctx.entries(key);
    match collection::read::<Stream>(entries, slot) {
        Ok(stream) => stream,
        Err(_) => unreachable!("its type was looked at"),
    }
}

pub(crate) fn xlen(ctx: &mut Context<'_, '_>) -> Outcome {
    one(ctx, |stream, out| {
        out.integer(stream.map_or(0, |stream| stream.log.len()) as i64);
    })
}
