//! Reads hashes: HGET, HMGET, HGETALL and their relatives.

use tidewheel_collections::{Hash, HashRef};
use tidewheel_resp::Writer;

use super::Outcome;
use crate::context::{Context, Lookup};

pub(crate) fn hget(ctx: &mut Context<'_, '_>) -> Outcome {
    let field = ctx.args.get(2).unwrap_or_default();
    one(ctx, |hash, out| {
        match hash.and_then(|hash| hash.value(field)) {
            Some(value) => out.bulk(value),
            None => out.null(),
        }
    })
}

pub(crate) fn hmget(ctx: &mut Context<'_, '_>) -> Outcome {
    let fields = ctx.args.from(2);
    one(ctx, |hash, out| {
        out.array(fields.len());
        for field in fields {
            match hash.and_then(|hash| hash.value(field)) {
                Some(value) => out.bulk(value),
                None => out.null(),
            }
        }
    })
}

pub(crate) fn hexists(ctx: &mut Context<'_, '_>) -> Outcome {
    let field = ctx.args.get(2).unwrap_or_default();
    one(ctx, |hash, out| {
        out.integer(hash.is_some_and(|hash| hash.contains(field)).into());
    })
}

pub(crate) fn hstrlen(ctx: &mut Context<'_, '_>) -> Outcome {
    let field = ctx.args.get(2).unwrap_or_default();
    one(ctx, |hash, out| {
        let value = hash.and_then(|hash| hash.value(field));
        out.integer(value.map_or(0, <[u8]>::len) as i64);
    })
}

pub(crate) fn hlen(ctx: &mut Context<'_, '_>) -> Outcome {
    one(ctx, |hash, out| {
        out.integer(hash.map_or(0, HashRef::len) as i64);
    })
}

pub(crate) fn hgetall(ctx: &mut Context<'_, '_>) -> Outcome {
    one(ctx, |hash, out| {
        out.map(hash.map_or(0, HashRef::len));
        for_each(hash, |field, value| {
            out.bulk(field);
            out.bulk(value);
        });
    })
}

pub(crate) fn hkeys(ctx: &mut Context<'_, '_>) -> Outcome {
    one(ctx, |hash, out| {
        out.array(hash.map_or(0, HashRef::len));
        for_each(hash, |field, _| out.bulk(field));
    })
}

pub(crate) fn hvals(ctx: &mut Context<'_, '_>) -> Outcome {
    one(ctx, |hash, out| {
        out.array(hash.map_or(0, HashRef::len));
        for_each(hash, |_, value| out.bulk(value));
    })
}

fn for_each(hash: Option<HashRef<'_>>, mut visit: impl FnMut(&[u8], &[u8])) {
    if let Some(hash) = hash {
        hash.for_each(|entry| visit(entry.key, entry.value));
    }
}

/// Reads the hash of the call's key, and replies.
fn one(ctx: &mut Context<'_, '_>, reply: impl FnOnce(Option<HashRef<'_>>, &mut Writer)) -> Outcome {
    let key = ctx.key(1);
    ctx.read::<Hash, _>(key, Lookup::Read, reply)
}
