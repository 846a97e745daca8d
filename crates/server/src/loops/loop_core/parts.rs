//! The parts of a loop without its shell.

use std::collections::VecDeque;
use std::sync::Arc;

use super::beside_script::BesideScript;
use super::ending_subscriptions::EndingSubscriptions;
use super::memory_check::MemoryCheck;
use super::shrink::Shrinking;
use super::sockets::Sockets;
use super::table::ConnectionTable;
use super::uncounted_copies::UncountedCopies;
#[cfg(test)]
use crate::clients::connection::Connection;
use crate::loop_handle::LoopHandle;
use crate::loop_handle::inbox::InboxItem;
use crate::loops::worker::Worker;
use crate::net::listener::Accepted;
use crate::state::loop_state::LoopState;
use crate::state::server::Server;
use crate::upkeep::expiry::LoopExpiry;
use crate::upkeep::forgetting::Forgetting;
use crate::upkeep::shards::LoopShards;
use crate::upkeep::snapshot::LoopSnapshot;
use crate::upkeep::tidying::Tidying;

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
    pub(super) forgetting: Forgetting,
    pub(super) snapshot: LoopSnapshot,
    /// What was on disk when connections that wait for the log were looked at, and whether replies
    /// wait.
    pub(super) log_seen: (u64, bool),
    pub(super) items: Vec<InboxItem>,
    pub(super) memory_check: MemoryCheck,
    pub(super) uncounted: UncountedCopies,
    /// The tick at which the wall clock was looked at, and counters were published.
    pub(super) last_tick: u64,
    /// The engine microsecond at which the turn began.
    pub(super) woken_us: u64,
    /// The tick at which a loop that stops lets its clients go.
    pub(super) drain_ends: Option<u64>,
}

impl<K: Sockets> LoopCore<K> {
    pub(crate) fn new(server: Arc<Server>, index: usize, sockets: K) -> Self {
        let own = LoopShards::of(index, server.loops.len(), server.keyspace.shards());
        let snapshot = LoopSnapshot::new(own, server.snapshots.begun());
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
            forgetting: Forgetting::default(),
            snapshot,
            log_seen: (0, false),
            items: Vec::new(),
            memory_check: MemoryCheck::default(),
            uncounted: UncountedCopies::default(),
            last_tick: 0,
            woken_us: 0,
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
