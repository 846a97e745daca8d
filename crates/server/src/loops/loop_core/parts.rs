//! The parts of a loop without its shell, and its interface to the shell.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::sync::Arc;

use super::beside_script::BesideScript;
use super::ending_subscriptions::EndingSubscriptions;
use super::memory_check::MemoryCheck;
use super::shrink::Shrinking;
use super::table::ConnectionTable;
use super::uncounted_copies::UncountedCopies;
use crate::clients::connection::Connection;
use crate::config::Settings;
use crate::loop_handle::LoopHandle;
use crate::loop_handle::inbox::InboxItem;
use crate::loops::worker::Worker;
use crate::net::listener::Accepted;
use crate::state::loop_state::LoopState;
use crate::state::server::Server;
use crate::upkeep::expiry::LoopExpiry;
use crate::upkeep::shards::LoopShards;
use crate::upkeep::tidying::Tidying;

/// The loop's interface to the shell that owns its sockets.
pub(crate) trait Sockets {
    /// A socket that never blocks.
    type Stream: Read + Write;

    /// Starts to report the socket's changes under `slot`.
    fn register(&self, stream: &mut Self::Stream, slot: u32, settings: &Settings)
    -> io::Result<()>;

    /// Ends the reports.
    fn deregister(&self, stream: &mut Self::Stream);

    /// Returns the number that CLIENT LIST shows.
    fn descriptor(&self, stream: &Self::Stream) -> i64;
}

/// What a loop asks of its shell while a script of it runs for long.
pub(crate) trait Shell<S> {
    /// Looks at the sockets without waiting. Tells each that has changed.
    fn look(&mut self, note: &mut dyn FnMut(u32, Readiness));

    /// Adds the new connections of this loop.
    fn accept(&mut self, state: &mut LoopState, accepted: &mut Vec<Accepted<S>>);
}

/// The changes of a socket since the last report.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Readiness {
    pub(crate) readable: bool,
    pub(crate) writable: bool,
    /// The peer sends no more.
    pub(crate) read_closed: bool,
    /// The socket is broken in both directions.
    pub(crate) broken: bool,
}

impl Readiness {
    /// Adds later changes.
    pub(super) fn add(&mut self, later: Self) {
        self.readable |= later.readable;
        self.writable |= later.writable;
        self.read_closed |= later.read_closed;
        self.broken |= later.broken;
    }

    /// Notes the changes at the socket's connection.
    pub(super) fn note(self, conn: &mut Connection) {
        conn.readable |= self.readable;
        conn.ending |= self.read_closed;
        conn.blocked &= !self.writable;
    }
}

/// One loop's state.
#[derive(Debug)]
pub(crate) struct LoopCore<K: Sockets> {
    pub(crate) state: LoopState,
    pub(super) worker: Worker,
    pub(super) expiry: LoopExpiry,
    pub(super) tidying: Tidying,
    pub(super) table: ConnectionTable<K::Stream>,
    pub(super) sockets: K,
    pub(super) beside: BesideScript,
    pub(super) ending: EndingSubscriptions,
    /// New connections for this loop.
    pub(super) arrivals: VecDeque<Box<Accepted>>,
    /// The version of the settings with which connections were filed.
    pub(super) filed_version: u64,
    pub(super) shrinking: Shrinking,
    pub(super) items: Vec<InboxItem>,
    pub(super) memory_check: MemoryCheck,
    pub(super) uncounted: UncountedCopies,
    /// The tick at which the wall clock was looked at, and counters were published.
    pub(super) last_tick: u64,
    /// The tick at which a loop that stops lets its clients go.
    pub(super) drain_ends: Option<u64>,
}

impl<K: Sockets> LoopCore<K> {
    pub(crate) fn new(server: Arc<Server>, index: usize, sockets: K) -> Self {
        let own = LoopShards::of(index, server.loops.len(), server.keyspace.shards());
        let state = LoopState::new(server, index);
        Self {
            filed_version: state.settings_version,
            state,
            worker: Worker::default(),
            expiry: LoopExpiry::new(own),
            tidying: Tidying::new(own),
            table: ConnectionTable::default(),
            sockets,
            beside: BesideScript::default(),
            ending: EndingSubscriptions::default(),
            arrivals: VecDeque::new(),
            shrinking: Shrinking::default(),
            items: Vec::new(),
            memory_check: MemoryCheck::default(),
            uncounted: UncountedCopies::default(),
            last_tick: 0,
            drain_ends: None,
        }
    }

    pub(crate) fn server(&self) -> &Server {
        &self.state.server
    }

    pub(crate) fn handle(&self) -> &LoopHandle {
        self.state.handle()
    }

    pub(crate) fn now(&self) -> u64 {
        self.state.time.tick
    }

    /// Returns the connections, for tests.
    #[cfg(test)]
    pub(crate) fn connections(&mut self) -> impl Iterator<Item = &mut Connection> {
        self.table.iter_mut().map(|link| &mut link.conn)
    }

    /// Describes the work that keeps the loop from sleeping, for tests.
    #[cfg(test)]
    pub(crate) fn why_busy(&self) -> String {
        let (runnable, soonest) = (self.table.runnable(), self.handle().soonest());
        let (now, expiry, tidying) = (self.now(), &self.expiry, &self.tidying);
        format!("at {now}: {runnable} to serve, deadline {soonest}, {expiry:?}, {tidying:?}")
    }
}
