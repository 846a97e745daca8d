//! Serves the other clients of a loop while a script of it runs for long.
//!
//! The loop is inside the script, which asks now and then whether it may go on. Then the loop looks
//! at its sockets, as it does between two turns, and takes in new connections. What clients send is
//! refused, but for a few commands that look at no keys: SCRIPT KILL is one. Keys of shards that
//! the script has not locked expire.
//!
//! A loop does the same while a script of another loop has the whole keyspace for long.
//!
//! What a command outside a script might do is put off until the script has ended: a connection is
//! closed then, and one whose command is unfinished goes on then.
//!
//! The script's turn has lent its own connection, its buffers and its notes. So the others are
//! served by a worker of their own, for which there are no others ([`Nobody`]).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::adopt::adopt;
use super::sockets::{Readiness, Shell, Sockets};
use super::table::ConnectionTable;
use crate::commands::turn::{Nobody, Others};
use crate::loops::worker::{NextAction, Worker};
use crate::state::loop_state::LoopState;
use crate::upkeep::expiry::LoopExpiry;

/// What a loop needs beside a long script, and leaves for later.
#[derive(Debug, Default)]
pub(crate) struct BesideScript {
    /// Serves the others. Made at first use.
    worker: Option<Box<Worker>>,
    /// Changes of sockets that are noted when the script has ended.
    pub(super) notes: BTreeMap<u32, Readiness>,
    /// Connections that are closed then.
    pub(super) closing: BTreeSet<u32>,
    ready: Vec<(u32, Readiness)>,
    again: Vec<u32>,
}

/// What of a loop the turn of one connection leaves free.
pub(super) struct Attendance<'a, K: Sockets> {
    pub(super) table: &'a mut ConnectionTable<K::Stream>,
    pub(super) sockets: &'a K,
    pub(super) expiry: &'a mut LoopExpiry,
    pub(super) beside: &'a mut BesideScript,
    pub(super) shell: &'a mut dyn Shell<K::Stream>,
}

impl<K: Sockets> fmt::Debug for Attendance<'_, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Attendance").finish_non_exhaustive()
    }
}

impl<K: Sockets> Others for Attendance<'_, K> {
    fn attend(&mut self, state: &mut LoopState) {
        // The script's time stands still.
        let time = state.time;
        state.refresh_time();
        state.beside_script = true;
        self.take_news(state);
        for _ in 0..self.table.runnable() {
            let Some(slot) = self.table.dequeue() else {
                break;
            };
            self.serve(state, slot);
        }
        for slot in self.beside.again.drain(..) {
            self.table.enqueue(slot);
        }
        if let Some(worker) = &mut self.beside.worker {
            worker.notes.publish_counters(state);
        }
        if !state.seat.is_shut_out() {
            self.expiry.expire(state);
        }
        state.beside_script = false;
        state.time = time;
    }
}

impl<K: Sockets> Attendance<'_, K> {
    /// Notes which sockets are ready, and takes in new connections.
    fn take_news(&mut self, state: &mut LoopState) {
        let BesideScript { ready, notes, .. } = &mut *self.beside;
        let mut note = |slot, readiness| ready.push((slot, readiness));
        self.shell.look(&mut note);
        for (slot, readiness) in ready.drain(..) {
            match self.table.get(slot) {
                // The end of one whose command waits ends that command.
                Some(link)
                    if !(readiness.broken || readiness.read_closed && link.conn.is_held_up()) =>
                {
                    readiness.note(&mut link.conn);
                    self.table.enqueue(slot);
                }
                _ => notes.entry(slot).or_default().add(readiness),
            }
        }
        let mut accepted = Vec::new();
        self.shell.accept(state, &mut accepted);
        for accepted in accepted {
            adopt(state, self.table, self.sockets, accepted);
        }
    }

    fn serve(&mut self, state: &mut LoopState, slot: u32) {
        let Some(link) = self.table.get(slot) else {
            return;
        };
        let conn = &mut link.conn;
        if conn.is_held_up() {
            return self.beside.again.push(slot);
        }
        let ends = self.beside.closing.contains(&slot)
            || conn.is_killed()
            || link.send_output(state).is_err()
            || link.conn.closing && link.conn.output.is_empty();
        if ends {
            self.beside.closing.insert(slot);
            return;
        }
        if !link.conn.has_work() {
            return;
        }
        let worker = self.beside.worker.get_or_insert_default();
        let next = worker.serve(state, link, &mut Nobody);
        if link.conn.paused {
            self.table.paused.push(slot);
        }
        match next {
            NextAction::Close => {
                self.beside.closing.insert(slot);
            }
            NextAction::Again => self.beside.again.push(slot),
            NextAction::Rest => {}
        }
        self.table.file(slot, &state.settings);
    }
}
