//! Stores a sorted set that a command has made.

use tidewheel_collections::ZSet;

use crate::context::Context;
use crate::events::Cause;

/// Puts a sorted set under the key at an argument's position, in place of the old value. An empty
/// one removes the key. Returns how many members it has.
pub(crate) fn put(ctx: &mut Context<'_, '_>, argument: usize, result: ZSet, cause: Cause) -> i64 {
    let key = ctx.key(argument);
    ctx.put(key, result, cause) as i64
}
