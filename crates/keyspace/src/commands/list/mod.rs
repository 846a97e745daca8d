//! Lists.

pub(crate) mod blocking;
pub(crate) mod pop;
pub(crate) mod push;
pub(crate) mod read;
pub(crate) mod transfer;
pub(crate) mod write;

use tidewheel_collections::ListLimits;

use crate::context::Context;
use crate::error::CommandError;
use crate::events::{Cause, NotifyClass};

type Outcome = Result<(), CommandError>;

/// One end of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ListEnd {
    /// The first element is there.
    Left,
    /// The last element is there.
    Right,
}

impl ListEnd {
    /// Reads LEFT or RIGHT.
    fn of(ctx: &Context<'_, '_>, argument: usize) -> Result<Self, CommandError> {
        match () {
            () if ctx.is(argument, "LEFT") => Ok(Self::Left),
            () if ctx.is(argument, "RIGHT") => Ok(Self::Right),
            () => Err(CommandError::SYNTAX),
        }
    }

    fn pushed(self) -> Cause {
        match self {
            Self::Left => caused("lpush"),
            Self::Right => caused("rpush"),
        }
    }

    fn popped(self) -> Cause {
        match self {
            Self::Left => caused("lpop"),
            Self::Right => caused("rpop"),
        }
    }
}

const fn caused(event: &'static str) -> Cause {
    Cause::Of(NotifyClass::List, event)
}

fn limits(ctx: &Context<'_, '_>) -> ListLimits {
    ctx.keyspace.rules().packing.list()
}

/// An index that may count from the end, as a position: below zero if it lies in front of the list.
fn position(index: i64, len: usize) -> i64 {
    if index < 0 {
        index.saturating_add(len as i64)
    } else {
        index
    }
}

/// The positions from `start` to `end`, both included: the first, and how many.
fn span(start: i64, end: i64, len: usize) -> (usize, usize) {
    let start = position(start, len).max(0);
    let end = position(end, len).min(len as i64 - 1);
    if start > end {
        return (len, 0);
    }
    (start as usize, (end - start + 1) as usize)
}
