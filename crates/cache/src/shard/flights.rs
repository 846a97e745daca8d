//! Loads and latches in progress, by key: at most one of either for a key at a time.
//!
//! A *load* is shared by all callers that ask for its key meanwhile. A writer of the key supersedes
//! the load: it takes the load out of the table, and the load's value goes to its waiters but not
//! into the cache. A *latch* keeps the key's writers waiting while a closure computes its next
//! value. An async closure has a flight as a load has: its writers supersede it.
//!
//! Joining, superseding and ending happen under the shard's lock. A flight's own mutex is taken
//! within that lock, never the other way round. Under neither lock is a thread woken, or a waker
//! cloned or dropped.

use std::sync::Arc;

use super::by_hash::ByHash;
use super::flight::{Flight, Phase, Wake};

/// Places that an empty table keeps.
const TABLE_KEPT: usize = 64;

/// The loads and latches in progress in one shard.
pub(crate) struct Flights<K, V> {
    table: ByHash<Entry<K, V>>,
}

/// An entry of the table.
pub(crate) struct Entry<K, V> {
    pub(crate) key: Arc<K>,
    flight: Arc<Flight<V>>,
    /// True if the shard was emptied while the flight was in progress.
    pub(crate) cleared: bool,
}

impl<K, V> Flights<K, V> {
    pub(crate) const fn new() -> Self {
        Self {
            table: ByHash::new(),
        }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// The flight of a key.
    pub(crate) fn find(&self, hash: u64, is: impl Fn(&K) -> bool) -> Option<&Arc<Flight<V>>> {
        if self.is_empty() {
            return None;
        }
        self.table
            .find(hash, |entry| is(&entry.key))
            .map(|entry| &entry.flight)
    }

    /// The latch of a key, if a closure is computing its value; or this thread's own async closure.
    pub(crate) fn latch_of(&self, hash: u64, is: impl Fn(&K) -> bool) -> Option<Arc<Flight<V>>> {
        self.find(hash, is)
            .filter(|flight| flight.stops_writers())
            .map(Arc::clone)
    }

    /// The key of a flight that is still in the table.
    pub(crate) fn key_of(&self, hash: u64, flight: &Arc<Flight<V>>) -> Option<&Arc<K>> {
        self.table
            .find(hash, |entry| Arc::ptr_eq(&entry.flight, flight))
            .map(|entry| &entry.key)
    }

    /// Begins a load of a key that has no flight.
    pub(crate) fn start(&mut self, hash: u64, key: Arc<K>, phase: Phase) -> Arc<Flight<V>> {
        self.add(hash, key, Flight::new(false, phase))
    }

    /// Latches a key that has no flight.
    pub(crate) fn latch(&mut self, hash: u64, key: Arc<K>) -> Arc<Flight<V>> {
        self.add(hash, key, Flight::new(true, Phase::Running))
    }

    fn add(&mut self, hash: u64, key: Arc<K>, flight: Flight<V>) -> Arc<Flight<V>> {
        let flight = Arc::new(flight);
        let entry = Entry {
            key,
            flight: Arc::clone(&flight),
            cleared: false,
        };
        self.table.add(hash, entry);
        flight
    }

    /// Takes a flight out; `None` when it was superseded.
    pub(crate) fn remove(&mut self, hash: u64, flight: &Arc<Flight<V>>) -> Option<Entry<K, V>> {
        let is = |entry: &Entry<K, V>| Arc::ptr_eq(&entry.flight, flight);
        let entry = self.table.take(hash, is)?;
        self.shrink();
        Some(entry)
    }

    /// A writer is about to change the key. If a latch is there, returns it: the writer must wait
    /// for it. (An async closure is returned to a writer within it, who then panics.) If a load or
    /// an async closure is in progress, supersedes it, and pushes its key to `keys`.
    pub(crate) fn writing(
        &mut self,
        hash: u64,
        is: impl Fn(&K) -> bool,
        keys: &mut Vec<Arc<K>>,
    ) -> Option<Arc<Flight<V>>> {
        let flight = Arc::clone(self.find(hash, is)?);
        if flight.stops_writers() {
            return Some(flight);
        }
        keys.extend(self.remove(hash, &flight).map(|ended| ended.key));
        None
    }

    /// Supersedes every load, and tells every latch, that the shard is emptied.
    pub(crate) fn clear(&mut self, keys: &mut Vec<Arc<K>>) {
        let leaves = |entry: &mut Entry<K, V>| {
            entry.cleared = true;
            !entry.flight.is_latch
        };
        self.table.take_all(leaves, |entry| keys.push(entry.key));
        self.shrink();
    }

    /// Ends a leader's turn without an outcome: chooses another if somebody waits, else takes the
    /// flight out. `from` is the phase that the caller believes in; nothing happens in another one.
    /// Call it under the shard's lock, and wake afterwards.
    pub(crate) fn vacate(
        &mut self,
        hash: u64,
        flight: &Arc<Flight<V>>,
        from: Phase,
        keys: &mut Vec<Arc<K>>,
    ) -> Wake {
        let is_in_table = self.key_of(hash, flight).is_some();
        let (wake, is_over) = flight.vacate(from, is_in_table);
        if is_over {
            keys.extend(self.remove(hash, flight).map(|ended| ended.key));
        }
        wake
    }

    /// Gives the memory of a busy hour back.
    fn shrink(&mut self) {
        if self.table.is_empty() && self.table.capacity() > TABLE_KEPT {
            self.table = ByHash::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;
    use crate::shard::flight::WaitEnd;

    #[test]
    fn a_writer_supersedes_a_load_and_waits_for_a_latch() {
        let mut flights = Flights::<u32, u32>::new();
        let mut keys = Vec::new();
        let load = flights.start(7, Arc::new(1), Phase::Running);
        assert!(flights.writing(7, |key| *key == 2, &mut keys).is_none());
        assert!(flights.find(7, |key| *key == 1).is_some());
        assert!(flights.writing(7, |key| *key == 1, &mut keys).is_none());
        assert!(flights.is_empty());
        assert_eq!(keys.len(), 1);
        assert!(flights.remove(7, &load).is_none());
        let latch = flights.latch(7, Arc::new(1));
        assert!(flights.writing(7, |key| *key == 1, &mut keys).is_some());
        flights.clear(&mut keys);
        assert!(flights.remove(7, &latch).expect("stays").cleared);
    }

    #[test]
    fn a_chosen_waiter_that_goes_away_chooses_again() {
        let mut flights = Flights::<u32, u32>::new();
        let mut keys = Vec::new();
        let flight = flights.start(7, Arc::new(1), Phase::Running);
        let (mut first, mut second) = (0, 0);
        for id in [&mut first, &mut second] {
            flight.join();
            assert_eq!(flight.poll(id, Waker::noop()), None);
        }
        let wake = flights.vacate(7, &flight, Phase::Running, &mut keys);
        assert!(matches!(wake, Wake::One(_)));
        assert!(flight.cancel_wait(first), "vacant: must choose again");
        let wake = flights.vacate(7, &flight, Phase::Vacant, &mut keys);
        assert!(matches!(wake, Wake::One(_)));
        assert_eq!(flight.poll(&mut second, Waker::noop()), Some(WaitEnd::Lead));
        assert!(!flight.is_awaited());
        let wake = flights.vacate(7, &flight, Phase::Running, &mut keys);
        assert!(matches!(wake, Wake::All(_)));
        assert!(flights.is_empty() && keys.len() == 1);
    }
}
