//! The interface between a driver and what it drives.

use std::task::Waker;
use std::time::Duration;

/// Work that is done in turns, each when the one before has asked for it or a waker was called.
pub(crate) trait Driven: Send {
    /// Does what there is to do. `waker` asks for the next turn, from any thread. `slept` tells
    /// whether the sleep is over that the last turn has asked for.
    fn turn(&mut self, waker: &Waker, slept: bool) -> Turn;
}

/// The end of a turn: what is to come next.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Another turn, once others had theirs.
    Again,
    /// A turn after this time, or when woken; `Duration::MAX` is for ever.
    Sleep(Duration),
    /// The sleep goes on that an earlier turn has begun.
    StillAsleep,
    /// Nothing any more.
    Over,
}
