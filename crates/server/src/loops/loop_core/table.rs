//! A loop's connections by slot, and the queues of those that need attention.

use std::collections::{BTreeSet, VecDeque};

use tidewheel_keyspace::{Parked, Served};

use crate::clients::connection::Link;
use crate::config::Settings;
use crate::loop_handle::inbox::{Invalidations, Target};

/// What a client is told when its wait was served, or what it has read is invalid. Both stand in
/// one queue: nobody is told that a value is invalid before the value itself.
#[derive(Debug)]
pub(super) enum Answer {
    Served(Box<Served>),
    Invalid(Invalidations),
}

/// All connections of one loop.
#[derive(Debug)]
pub(super) struct ConnectionTable<S> {
    slots: Vec<Option<Box<Link<S>>>>,
    free: Vec<u32>,
    /// Slots vacated in this turn: events of this turn may still name them.
    vacated: Vec<u32>,
    /// Connections that can be served.
    runnable: VecDeque<u32>,
    /// Connections with messages that were not sent yet.
    pub(super) fresh: Vec<u32>,
    /// Connections that CLIENT PAUSE holds back.
    pub(super) paused: Vec<u32>,
    /// Connections that were parked and may go on, a portion in each turn.
    pub(super) going_on: VecDeque<Target>,
    /// Answers for clients, a portion in each turn.
    pub(super) answers: VecDeque<Answer>,
    /// Bytes of the invalidations among them.
    pub(super) invalid_bytes: usize,
    /// The claims of clients that were parked, and have gone on or are gone.
    pub(super) unparked: Vec<Parked>,
    /// Connections whose wait for a key is over, and that CLIENT PAUSE holds back.
    pub(super) held: Vec<u32>,
    /// The ticks at which idle connections need attention: at most one entry for each.
    time_outs: BTreeSet<(u64, u32)>,
}

impl<S> Default for ConnectionTable<S> {
    fn default() -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            vacated: Vec::new(),
            runnable: VecDeque::new(),
            fresh: Vec::new(),
            paused: Vec::new(),
            going_on: VecDeque::new(),
            answers: VecDeque::new(),
            invalid_bytes: 0,
            unparked: Vec::new(),
            held: Vec::new(),
            time_outs: BTreeSet::new(),
        }
    }
}

impl<S> ConnectionTable<S> {
    pub(super) fn get(&mut self, slot: u32) -> Option<&mut Link<S>> {
        self.slots.get_mut(slot as usize)?.as_deref_mut()
    }

    /// Returns the target's connection, if it is still there.
    pub(super) fn find(&mut self, target: Target) -> Option<&mut Link<S>> {
        self.get(target.slot)
            .filter(|link| link.conn.client.id == target.id)
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Link<S>> {
        self.slots.iter_mut().flatten().map(|conn| &mut **conn)
    }

    /// Returns the slot that the next connection gets.
    pub(super) fn next_slot(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            (self.slots.len() - 1) as u32
        })
    }

    /// Gives a slot back that was not used after all.
    pub(super) fn unused(&mut self, slot: u32) {
        self.free.push(slot);
    }

    pub(super) fn put(&mut self, slot: u32, conn: Link<S>) {
        self.slots[slot as usize] = Some(Box::new(conn));
    }

    /// Takes a connection out for a turn.
    pub(super) fn lend(&mut self, slot: u32) -> Option<Box<Link<S>>> {
        self.slots.get_mut(slot as usize)?.take()
    }

    /// Puts a connection back after its turn.
    pub(super) fn give_back(&mut self, slot: u32, link: Box<Link<S>>) {
        self.slots[slot as usize] = Some(link);
    }

    /// Takes a connection out for good.
    pub(super) fn take(&mut self, slot: u32) -> Option<Box<Link<S>>> {
        let link = self.slots.get_mut(slot as usize)?.take()?;
        if let Some(filed) = link.conn.filed {
            self.time_outs.remove(&(filed, slot));
        }
        if link.conn.paused {
            self.paused.retain(|paused| *paused != slot);
        }
        self.vacated.push(slot);
        Some(link)
    }

    /// Frees the slots vacated in the turn that ends: no event can name them any more.
    pub(super) fn end_turn(&mut self) {
        self.free.append(&mut self.vacated);
    }

    /// Queues a connection: it is served in this turn or the next.
    pub(super) fn enqueue(&mut self, slot: u32) {
        if let Some(link) = self.get(slot)
            && !link.conn.queued
        {
            link.conn.queued = true;
            self.runnable.push_back(slot);
        }
    }

    pub(super) fn dequeue(&mut self) -> Option<u32> {
        let slot = self.runnable.pop_front()?;
        if let Some(link) = self.get(slot) {
            link.conn.queued = false;
        }
        Some(slot)
    }

    /// Returns true if CLIENT PAUSE holds a connection back.
    pub(super) fn holds_back(&self) -> bool {
        !self.paused.is_empty() || !self.held.is_empty()
    }

    /// Returns the number of connections that wait to be served.
    pub(super) fn runnable(&self) -> usize {
        self.runnable.len()
    }

    /// Files a connection under the tick of its next time-out. A connection that is filed for an
    /// earlier tick stays there: it is filed again when that tick comes.
    pub(super) fn file(&mut self, slot: u32, settings: &Settings) {
        let Some(link) = self.get(slot) else { return };
        let Some(tick) = link.conn.time_out(settings) else {
            return;
        };
        let filed = link.conn.filed.replace(tick);
        match filed {
            Some(filed) if filed <= tick => link.conn.filed = Some(filed),
            Some(filed) => {
                self.time_outs.remove(&(filed, slot));
                self.time_outs.insert((tick, slot));
            }
            None => {
                self.time_outs.insert((tick, slot));
            }
        }
    }

    /// Returns the number of slots, empty ones included.
    pub(super) fn slots(&self) -> u32 {
        self.slots.len() as u32
    }

    /// Files all connections: time-outs may have become shorter.
    pub(super) fn file_all(&mut self, settings: &Settings) {
        for slot in 0..self.slots() {
            self.file(slot, settings);
        }
    }

    /// Takes the next connection whose tick has come; it is no longer filed.
    pub(super) fn next_due(&mut self, now: u64) -> Option<u32> {
        let &(tick, slot) = self.time_outs.first()?;
        if tick > now {
            return None;
        }
        self.time_outs.pop_first();
        if let Some(link) = self.get(slot) {
            link.conn.filed = None;
        }
        Some(slot)
    }

    /// Returns the first tick under which a connection is filed.
    pub(super) fn first_time_out(&self) -> Option<u64> {
        self.time_outs.first().map(|(tick, _)| *tick)
    }
}
