//! The queues of one shard: tickets that wait for its keys, and keys that are ready to serve them.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use super::readers::{Readers, stream_of};
use super::ticket::TicketState;
use super::{Change, Ticket};
use crate::key::Key;
use crate::value::Entries;
use crate::value::collection::untimed;

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
    queues: BTreeMap<(u32, u8), Queues>,
    /// Each key once, in the order of the notes.
    ready: VecDeque<ReadyKey>,
    /// The keys since [`take_growth`](Self::take_growth).
    growth: AwaitedCount,
}

/// Numbers of keys that somebody waits for, or by how much they have grown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct AwaitedCount {
    pub(crate) keys: isize,
    /// Those of which some end the wait when the key is gone.
    pub(crate) ending: isize,
}

#[derive(Debug)]
struct Queue {
    hash: u64,
    tickets: Tickets,
    /// True if the key is among those that are ready.
    is_ready: bool,
}

/// Those who wait for one key.
#[derive(Debug)]
enum Tickets {
    /// Each takes something. They are in the order in which they came.
    Takers(BTreeMap<u64, Arc<Ticket>>),
    Readers(Box<Readers>),
}

impl Tickets {
    /// One if some of them end the wait when the key is gone.
    fn end_without_key(&self) -> isize {
        match self {
            Self::Takers(_) => 0,
            Self::Readers(readers) => isize::from(readers.has_groups()),
        }
    }
}

impl Queue {
    fn new(hash: u64, reads: bool) -> Self {
        Self {
            hash,
            tickets: match reads {
                true => Tickets::Readers(Box::default()),
                false => Tickets::Takers(BTreeMap::new()),
            },
            is_ready: false,
        }
    }

    /// Its key has changed. True if it is not known yet that somebody can be served.
    fn becomes_ready(&mut self, key: &[u8], tag: u8, entries: &Entries, change: Change) -> bool {
        match &mut self.tickets {
            Tickets::Takers(_) => {
                let holds = || {
                    let slot = entries.find(self.hash, key);
                    slot.is_some_and(|slot| untimed(entries.tag(slot)) == tag)
                };
                !self.is_ready && holds()
            }
            Tickets::Readers(readers) => {
                let stream = stream_of(entries, self.hash, key);
                if change == Change::Any {
                    readers.look_anew(stream);
                }
                !self.is_ready && readers.next(stream).is_some()
            }
        }
    }
}

impl Waiters {
    /// Puts a ticket into the queue of its key at an argument's position.
    pub(crate) fn add(&mut self, key: Key<'_>, at: usize, ticket: &Arc<Ticket>) {
        let is_new = !self.has(ticket.db, key.bytes);
        self.growth.keys += isize::from(is_new);
        let queues = self.queues.entry((ticket.db, ticket.tag)).or_default();
        let queue = match queues.get_mut(key.bytes) {
            Some(queue) => queue,
            None => queues
                .entry(key.bytes.into())
                .or_insert_with(|| Queue::new(key.hash, !ticket.takes())),
        };
        let before = queue.tickets.end_without_key();
        match (&mut queue.tickets, ticket.want(at)) {
            (Tickets::Readers(readers), Some(want)) => readers.add(want, ticket),
            (Tickets::Takers(takers), None) => {
                takers.insert(ticket.number, Arc::clone(ticket));
            }
            _ => unreachable!("nobody takes from a stream, or reads anything else"),
        }
        self.growth.ending += queue.tickets.end_without_key() - before;
    }

    /// True if somebody waits for a key.
    fn has(&self, db: u32, key: &[u8]) -> bool {
        let mut of = self.queues.range((db, 0)..=(db, u8::MAX));
        of.any(|(_, queues)| queues.contains_key(key))
    }

    /// By how much the keys have grown since the last call.
    pub(crate) fn take_growth(&mut self) -> AwaitedCount {
        std::mem::take(&mut self.growth)
    }

    /// Takes a ticket out of the queue of its key at an argument's position.
    pub(crate) fn remove(&mut self, at: usize, ticket: &Ticket) {
        self.remove_from(ticket.key(at), ticket, |readers| {
            if let Some(want) = ticket.want(at) {
                readers.remove(want, ticket);
            }
        });
    }

    fn remove_from(&mut self, key: &[u8], ticket: &Ticket, remove: impl FnOnce(&mut Readers)) {
        let of = (ticket.db, ticket.tag);
        let Some(queues) = self.queues.get_mut(&of) else {
            return;
        };
        let mut is_gone = false;
        if let Some(queue) = queues.get_mut(key) {
            let before = queue.tickets.end_without_key();
            let is_empty = match &mut queue.tickets {
                Tickets::Takers(takers) => {
                    takers.remove(&ticket.number);
                    takers.is_empty()
                }
                Tickets::Readers(readers) => {
                    remove(readers);
                    readers.is_empty()
                }
            };
            self.growth.ending += queue.tickets.end_without_key() - before;
            if is_empty {
                queues.remove(key);
                is_gone = true;
            }
        }
        if queues.is_empty() {
            self.queues.remove(&of);
        }
        if is_gone && !self.has(ticket.db, key) {
            self.growth.keys -= 1;
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.queues.is_empty()
    }

    /// A key has changed. `number` gives its note a place.
    pub(crate) fn note(
        &mut self,
        db: u32,
        key: &[u8],
        entries: &Entries,
        change: Change,
        number: impl Fn() -> u64,
    ) {
        for ((_, tag), queues) in self.queues.range_mut((db, 0)..=(db, u8::MAX)) {
            if let Some(queue) = queues.get_mut(key)
                && queue.becomes_ready(key, *tag, entries, change)
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
        let of = self.queues.range((db, 0)..=(db, u8::MAX));
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

    /// A key's queue was served in part: it is the first to go on.
    pub(crate) fn put_back(&mut self, ready: ReadyKey) {
        self.ready.push_front(ready);
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

    /// The next that can be served. Those before it that do not wait any more are taken out.
    pub(crate) fn next(&mut self, ready: &ReadyKey, entries: &Entries) -> Option<Arc<Ticket>> {
        loop {
            let queues = self.queues.get_mut(&(ready.db, ready.tag))?;
            let queue = queues.get_mut(&ready.name)?;
            let takers = match &mut queue.tickets {
                Tickets::Takers(takers) => takers,
                Tickets::Readers(readers) => {
                    let before = readers.has_groups();
                    let next = readers.next(stream_of(entries, ready.hash, &ready.name));
                    self.growth.ending -= isize::from(before && !readers.has_groups());
                    return next;
                }
            };
            let (_, ticket) = takers.first_key_value()?;
            let ticket = Arc::clone(ticket);
            if ticket.is(TicketState::Waiting) {
                return Some(ticket);
            }
            if ticket.is(TicketState::HandedBack) {
                return None;
            }
            self.remove_from(&ready.name, &ticket, |_| {});
        }
    }
}
