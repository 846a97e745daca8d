//! The queues of one shard: tickets that wait for its keys, and keys that are ready to serve them.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use super::Ticket;
use super::ticket::TicketState;
use crate::key::Key;

/// A key that is ready: it has come to hold a value that somebody waits for.
#[derive(Debug)]
pub(crate) struct ReadyKey {
    /// Its place among the notes of all shards.
    pub(crate) number: u64,
    pub(crate) db: u32,
    /// The tag of the type that is waited for.
    pub(crate) tag: u8,
    pub(crate) hash: u64,
    pub(crate) name: Box<[u8]>,
}

/// The keys that are waited for, and who waits.
type Queues = HashMap<Box<[u8]>, Queue>;

/// The queues of one shard.
#[derive(Debug, Default)]
pub(crate) struct Waiters {
    /// Queues by database and by the tag of the type that is waited for.
    queues: HashMap<(u32, u8), Queues>,
    /// Each key once, in the order of the notes.
    ready: VecDeque<ReadyKey>,
}

#[derive(Debug)]
struct Queue {
    hash: u64,
    tickets: BTreeMap<u64, Arc<Ticket>>,
    /// True if the key is among those that are ready.
    is_ready: bool,
}

impl Queue {
    fn new(hash: u64) -> Self {
        Self {
            hash,
            tickets: BTreeMap::new(),
            is_ready: false,
        }
    }
}

impl Waiters {
    pub(crate) fn add(&mut self, key: Key<'_>, ticket: &Arc<Ticket>) {
        let queues = self.queues.entry((ticket.db, ticket.tag)).or_default();
        let queue = match queues.get_mut(key.bytes) {
            Some(queue) => queue,
            None => queues
                .entry(key.bytes.into())
                .or_insert_with(|| Queue::new(key.hash)),
        };
        queue.tickets.insert(ticket.number, Arc::clone(ticket));
    }

    /// Takes a ticket out of a key's queue.
    pub(crate) fn remove(&mut self, key: &[u8], ticket: &Ticket) {
        let of = (ticket.db, ticket.tag);
        let Some(queues) = self.queues.get_mut(&of) else {
            return;
        };
        if let Some(queue) = queues.get_mut(key) {
            queue.tickets.remove(&ticket.number);
            if queue.tickets.is_empty() {
                queues.remove(key);
            }
        }
        if queues.is_empty() {
            self.queues.remove(&of);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.queues.is_empty()
    }

    /// A key has changed. `holds` says whether a key of that hash and name holds something of a
    /// tag; `number` gives the note its place.
    pub(crate) fn note(
        &mut self,
        db: u32,
        key: &[u8],
        holds: impl Fn(u64, &[u8], u8) -> bool,
        number: impl Fn() -> u64,
    ) {
        for ((of, tag), queues) in &mut self.queues {
            if *of == db
                && let Some(queue) = queues.get_mut(key)
                && !queue.is_ready
                && holds(queue.hash, key, *tag)
            {
                queue.is_ready = true;
                let ready = ReadyKey {
                    number: number(),
                    db,
                    tag: *tag,
                    hash: queue.hash,
                    name: key.into(),
                };
                self.ready.push_back(ready);
            }
        }
    }

    /// The keys of a database for which somebody waits.
    pub(crate) fn keys_of(&self, db: u32) -> Vec<Box<[u8]>> {
        let of = self.queues.iter().filter(|((of, _), _)| *of == db);
        of.flat_map(|(_, queues)| queues.keys().cloned()).collect()
    }

    /// The place of the first note.
    pub(crate) fn first_ready(&self) -> Option<u64> {
        self.ready.front().map(|ready| ready.number)
    }

    /// The first of the keys that are ready. Until [`served`](Self::served) it is not noted again.
    pub(crate) fn take_ready(&mut self) -> Option<ReadyKey> {
        self.ready.pop_front()
    }

    /// A key's queue was served as far as it goes.
    pub(crate) fn served(&mut self, ready: &ReadyKey) {
        let queues = self.queues.get_mut(&(ready.db, ready.tag));
        if let Some(queue) = queues.and_then(|queues| queues.get_mut(&ready.name)) {
            queue.is_ready = false;
        }
    }

    /// True if a key for which a ticket waits is ready.
    pub(crate) fn is_ready(&self, key: &[u8], ticket: &Ticket) -> bool {
        let queues = self.queues.get(&(ticket.db, ticket.tag));
        queues
            .and_then(|queues| queues.get(key))
            .is_some_and(|queue| queue.is_ready)
    }

    /// The first that still waits. Those before it that do not are taken out.
    pub(crate) fn first(&mut self, ready: &ReadyKey) -> Option<Arc<Ticket>> {
        loop {
            let queue = self.queues.get(&(ready.db, ready.tag))?.get(&ready.name)?;
            let (_, ticket) = queue.tickets.first_key_value()?;
            let ticket = Arc::clone(ticket);
            if ticket.is(TicketState::Waiting) {
                return Some(ticket);
            }
            if ticket.is(TicketState::HandedBack) {
                return None;
            }
            self.remove(&ready.name, &ticket);
        }
    }
}
