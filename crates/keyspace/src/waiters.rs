//! Clients that wait until a key holds something, each served once. Those who take what they wait
//! for are served in the order in which they came. Readers of streams take nothing: see `readers`.
//!
//! 1. A blocking command that finds nothing leaves a [`Ticket`] in the queue of each of its keys,
//!    under the locks with which it looked.
//! 2. The funnel notes each key that comes to hold what somebody waits for, with a number: the
//!    notes of all shards are in one order.
//! 3. Whoever has changed such keys serves their queues before it unlocks: key by key in the order
//!    of the notes, each from the front, as long as the key holds something. The replies are posted
//!    when nothing is locked any more. Between portions of [`PORTION`] readers it unlocks, and who
//!    comes then goes on with the rest, too. Those who take something are served in one hold: who
//!    comes then would take it before them.
//! 4. A command that needs another shard too locks it if nobody else has it. Otherwise it is handed
//!    back to the client's own thread. It keeps its place at the front meanwhile, and those behind
//!    it wait.
//!
//! A ticket is waiting until somebody claims it: the one who serves it, or the one who ends it,
//! because its time is over or its client is gone. Claiming is one compare-and-swap, so only one of
//! them wins.
//!
//! While a pause holds back all that changes data, the notes stay, and nobody is served.

mod queues;
mod readers;
mod ticket;

use std::ops::Range;
use std::sync::Arc;

use tidewheel_collections::StreamId;
use tidewheel_resp::Writer;

pub(crate) use self::queues::{AwaitedCount, ReadyKey, Waiters};
pub use self::ticket::Ticket;
pub(crate) use self::ticket::TicketState;
pub use crate::session::Waiter;
use crate::value::collection::Collection;

/// The outcome of serving a ticket.
#[derive(Debug)]
pub enum Served {
    /// Its command has run.
    Reply {
        /// The command.
        ticket: Arc<Ticket>,
        /// Its reply, within the limit of the buffer that it would have been written to at first.
        reply: Writer,
        /// The nanoseconds that it ran.
        ns: u64,
    },
    /// Its own thread is to call [`Keyspace::retry`](crate::Keyspace::retry).
    Retry(Arc<Ticket>),
}

/// The readers that are served in one hold of the locks.
pub(crate) const PORTION: usize = 256;

/// What of a key a command waits for that takes nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Want {
    /// An entry of a stream above this id.
    Above(StreamId),
    /// An entry that this group has not delivered. It also ends when there is no such group.
    NewFor(Arc<[u8]>),
}

/// What a change of a key may do to those who wait for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    /// It removes no group of a stream, and sets none back.
    KeepsGroups,
    Any,
}

/// The keys and the type that a blocking command waits for.
pub(crate) struct AwaitedKeys {
    /// The positions of its keys.
    pub(crate) keys: Range<usize>,
    /// The position of another key whose shard it needs.
    pub(crate) also: Option<usize>,
    /// The longest wait in milliseconds; `None` for ever.
    pub(crate) ms: Option<u64>,
    /// The tag of the type that it takes or reads.
    pub(crate) tag: u8,
    /// What it waits for in each key, if it takes nothing.
    pub(crate) wants: Vec<Want>,
    /// Words that stand in place of arguments when it is served.
    pub(crate) instead: Vec<(usize, Box<[u8]>)>,
}

impl AwaitedKeys {
    pub(crate) fn of<C: Collection>(keys: Range<usize>, ms: Option<u64>) -> Self {
        Self {
            keys,
            also: None,
            ms,
            tag: C::TAG,
            wants: Vec::new(),
            instead: Vec::new(),
        }
    }
}
