//! Sorted sets.

pub(crate) mod blocking;
mod bounds;
pub(crate) mod combine;
pub(crate) mod pop;
pub(crate) mod random;
pub(crate) mod range;
pub(crate) mod read;
pub(crate) mod remove;
mod reply;
mod score;
mod sources;
pub(crate) mod store;
pub(crate) mod write;

use tidewheel_collections::{Change, ZSet, ZSetRef};
use tidewheel_resp::Writer;

use crate::commands::member_scan::{self, Scanned};
use crate::context::{Context, Lookup};
use crate::error::CommandError;
use crate::events::{Cause, NotifyClass};

type Outcome = Result<(), CommandError>;

/// An event of a sorted set.
pub(super) const fn event(name: &'static str) -> Cause {
    Cause::Of(NotifyClass::SortedSet, name)
}

/// The parameters of a change of a sorted set.
pub(super) fn change<'a>(ctx: &Context<'a, '_>) -> Change<'a> {
    ctx.change(ctx.keyspace.rules().packing.zset.get())
}

/// Reads the sorted set of the call's key, and replies.
pub(super) fn one<R>(
    ctx: &mut Context<'_, '_>,
    reply: impl FnOnce(Option<ZSetRef<'_>>, &mut Writer) -> R,
) -> Result<R, CommandError> {
    let key = ctx.key(1);
    ctx.read::<ZSet, _>(key, Lookup::Read, reply)
}

pub(crate) fn zscan(ctx: &mut Context<'_, '_>) -> Outcome {
    member_scan::scan::<ZSet>(ctx)
}

impl Scanned for ZSet {
    type Value<'a> = f64;
    const WITHOUT: &'static str = "NOSCORES";
    const WIDTH: usize = 2;

    fn scan<'a>(
        of: ZSetRef<'a>,
        cursor: u64,
        count: usize,
        mut visit: impl FnMut(&'a [u8], f64),
    ) -> u64 {
        of.scan(cursor, count, |entry| visit(entry.member, entry.score))
    }

    /// As a string in both versions of the protocol.
    fn write(out: &mut Writer, score: f64) {
        out.bulk(tidewheel_resp::format_f64_short(score).as_bytes());
    }
}
