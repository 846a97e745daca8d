//! Loads and latches in progress, by key: at most one of either for a key at a time.
//!
//! A *load* is shared by all callers that ask for its key meanwhile. A writer of the key supersedes the load: it takes
//! the load out of the table, and the load's value goes to its waiters but not into the cache. A *latch* keeps the
//! key's writers waiting while a closure computes its next value.
//!
//! Joining, superseding and ending happen under the shard's lock. A flight's own mutex is taken within that lock,
//! never the other way round. Under neither lock is a thread woken, or a waker cloned or dropped.
//!
//! A leader that fails leaves its flight *vacant*. One waiter is chosen and woken. It finds the flight vacant, and
//! leads. If the chosen waiter goes away instead, it chooses another one, so the flight is never left without a
//! leader while somebody waits. A new caller that asks for the key of a vacant flight leads at once.

use std::any::Any;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};
use std::task::Waker;

use hashbrown::HashTable;

use crate::quiet::forget_quietly;
use crate::sync::{Condvar, Mutex, lock, thread_number};

/// What is in progress in one shard.
#[derive(Debug)]
pub(crate) struct Flights<K, V> {
    table: HashTable<Entry<K, V>>,
}

#[derive(Debug)]
struct Entry<K, V> {
    hash: u64,
    key: Arc<K>,
    flight: Arc<Flight<V>>,
    /// Whether the shard was emptied meanwhile.
    cleared: bool,
}

/// An entry of the table that was taken out.
#[derive(Debug)]
pub(crate) struct Ended<K> {
    pub(crate) key: Arc<K>,
    pub(crate) cleared: bool,
}

/// What an ended load tells those who waited for it.
#[derive(Debug)]
pub(crate) enum Outcome<V> {
    Value(V),
    Negative(Negative),
}

/// A loader's answer that is not a value.
#[derive(Debug, Clone)]
pub(crate) enum Negative {
    Absent,
    /// An `Arc<E>` of the loader's error type.
    Error(Arc<dyn Any + Send + Sync>),
}

/// One load or latch.
#[derive(Debug)]
pub(crate) struct Flight<V> {
    is_latch: bool,
    state: Mutex<State>,
    changed: Condvar,
    /// Set at most once, before the phase becomes [`Phase::Over`]. If it is not, waiters look again.
    outcome: OnceLock<Outcome<V>>,
}

#[derive(Debug)]
struct State {
    phase: Phase,
    /// The thread that runs the loader or closure now; 0 for none.
    thread: u64,
    /// The thread that polled the loader last, while it is suspended; 0 for none.
    suspended_by: u64,
    /// Who waits: threads and futures.
    waiters: u32,
    /// How many of them are threads.
    sleepers: u32,
    /// The wakers of futures that were polled and not woken since. At most one for each waiter.
    wakers: BTreeMap<u64, Waker>,
    next_id: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Somebody leads.
    Running,
    /// Nobody does; who finds it so may.
    Vacant,
    Over,
}

/// How a wait has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    /// The flight is over.
    Over,
    /// The waiter leads now.
    Lead,
}

/// Whom to wake, once no lock is held.
#[derive(Debug)]
#[must_use]
pub(crate) enum Wake {
    Nobody,
    OneSleeper,
    One(Waker),
    All(BTreeMap<u64, Waker>),
}

/// The last one who knows of the flight drops its outcome, which is the user's.
impl<V> Drop for Flight<V> {
    fn drop(&mut self) {
        let outcome = AssertUnwindSafe(self.outcome.take());
        if let Err(panic) = catch_unwind(move || drop(outcome)) {
            forget_quietly(panic);
        }
    }
}

impl<V> Flight<V> {
    fn new(is_latch: bool, phase: Phase) -> Self {
        Self {
            is_latch,
            state: Mutex::new(State {
                phase,
                thread: if phase == Phase::Running {
                    thread_number()
                } else {
                    0
                },
                suspended_by: 0,
                waiters: 0,
                sleepers: 0,
                wakers: BTreeMap::new(),
                next_id: 1,
            }),
            changed: Condvar::new(),
            outcome: OnceLock::new(),
        }
    }

    /// What the load has come to, once it is over.
    pub(crate) fn outcome(&self) -> Option<&Outcome<V>> {
        self.outcome.get()
    }

    /// This thread polls the loader.
    pub(crate) fn resume(&self) {
        let mut state = lock(&self.state);
        state.thread = thread_number();
        state.suspended_by = 0;
    }

    /// It has done so; the next poll may be another thread's.
    pub(crate) fn suspend(&self) {
        let mut state = lock(&self.state);
        state.suspended_by = std::mem::take(&mut state.thread);
    }

    /// Whether the loader is a future that this thread polled last, and that would stay as it is while this
    /// thread waits.
    pub(crate) fn is_suspended_here(&self) -> bool {
        lock(&self.state).suspended_by == thread_number()
    }

    /// Whether this thread would wait for itself.
    pub(crate) fn is_own(&self) -> bool {
        lock(&self.state).thread == thread_number()
    }

    /// Whether anybody waits for the outcome.
    pub(crate) fn is_awaited(&self) -> bool {
        lock(&self.state).waiters > 0
    }

    /// Leads, if nobody does.
    pub(crate) fn take(&self) -> bool {
        lock(&self.state).take()
    }

    /// Joins those who wait, under the shard's lock. The wait must follow.
    pub(crate) fn join(&self) {
        lock(&self.state).waiters += 1;
    }

    /// Waits on this thread, after [`join`](Self::join).
    pub(crate) fn wait(&self) -> Turn {
        let mut state = lock(&self.state);
        state.sleepers += 1;
        let turn = loop {
            let phase = state.phase;
            match phase {
                Phase::Over => break Turn::Over,
                Phase::Vacant if state.take() => break Turn::Lead,
                Phase::Vacant | Phase::Running => {
                    state = self
                        .changed
                        .wait(state)
                        .unwrap_or_else(std::sync::PoisonError::into_inner);
                }
            }
        };
        state.sleepers -= 1;
        state.waiters -= 1;
        turn
    }

    /// Waits until a latch is open, as a writer of its key.
    ///
    /// # Panics
    ///
    /// If this thread runs the latch's closure.
    pub(crate) fn wait_open(&self) {
        assert!(!self.is_own(), "{REENTRY}");
        let mut state = lock(&self.state);
        while state.phase != Phase::Over {
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(std::sync::PoisonError::into_inner);
        }
    }

    /// One poll of a future that waits, after [`join`](Self::join). `id` names its waker.
    pub(crate) fn poll(&self, id: &mut u64, waker: &Waker) -> Option<Turn> {
        let waker = waker.clone();
        let mut state = lock(&self.state);
        let phase = state.phase;
        let turn = match phase {
            Phase::Over => Turn::Over,
            Phase::Vacant if state.take() => Turn::Lead,
            Phase::Vacant | Phase::Running => {
                if *id == 0 {
                    *id = state.next_id;
                    state.next_id += 1;
                }
                let old = state.wakers.insert(*id, waker);
                drop(state);
                drop(old);
                return None;
            }
        };
        state.waiters -= 1;
        let old = state.wakers.remove(id);
        drop(state);
        drop(old);
        Some(turn)
    }

    /// A future no longer waits. Whether the flight is vacant: then it may be this waiter that was chosen.
    pub(crate) fn cancel_wait(&self, id: u64) -> bool {
        let mut state = lock(&self.state);
        state.waiters -= 1;
        let old = state.wakers.remove(&id);
        let vacant = state.phase == Phase::Vacant;
        drop(state);
        drop(old);
        vacant
    }

    /// Ends the flight. The outcome, if there is one, is for those who wait.
    pub(crate) fn end(&self, outcome: Option<Outcome<V>>) {
        if let Some(outcome) = outcome {
            // Only the leader sets it, and it leads once.
            let set = self.outcome.set(outcome);
            debug_assert!(set.is_ok(), "a flight has one outcome");
        }
        let wake = lock(&self.state).end();
        self.wake(wake);
    }

    /// Wakes whom the flight has chosen; call it without any lock.
    pub(crate) fn wake(&self, wake: Wake) {
        match wake {
            Wake::Nobody => {}
            Wake::OneSleeper => self.changed.notify_one(),
            Wake::One(waker) => waker.wake(),
            Wake::All(wakers) => {
                self.changed.notify_all();
                for waker in wakers.into_values() {
                    waker.wake();
                }
            }
        }
    }
}

/// Why a call panics rather than wait for itself.
pub(crate) const REENTRY: &str =
    "a loader or closure asked for, or changed, the key that it is about to supply";

/// Why a call panics rather than block the thread that is to go on with an asynchronous load.
pub(crate) const SUSPENDED: &str = "a load would block the thread that polled an unfinished asynchronous load of \
     the same key last, and nobody might go on with that: use `get_or_load_async` there";

impl State {
    fn take(&mut self) -> bool {
        if self.phase != Phase::Vacant {
            return false;
        }
        self.phase = Phase::Running;
        self.thread = thread_number();
        true
    }

    fn end(&mut self) -> Wake {
        self.phase = Phase::Over;
        (self.thread, self.suspended_by) = (0, 0);
        Wake::All(std::mem::take(&mut self.wakers))
    }

    /// Chooses who leads next. A chosen future's waker is gone from the list until it is polled.
    fn choose(&mut self) -> Wake {
        self.phase = Phase::Vacant;
        (self.thread, self.suspended_by) = (0, 0);
        if self.sleepers > 0 {
            return Wake::OneSleeper;
        }
        match self.wakers.pop_first() {
            Some((_, waker)) => Wake::One(waker),
            None => Wake::Nobody,
        }
    }
}

impl<K, V> Flights<K, V> {
    pub(crate) const fn new() -> Self {
        Self {
            table: HashTable::new(),
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
            .find(hash, |entry| entry.is(hash, &is))
            .map(|entry| &entry.flight)
    }

    /// The latch of a key, if a closure is computing its value.
    pub(crate) fn latch_of(&self, hash: u64, is: impl Fn(&K) -> bool) -> Option<Arc<Flight<V>>> {
        self.find(hash, is)
            .filter(|flight| flight.is_latch)
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
            hash,
            key,
            flight: Arc::clone(&flight),
            cleared: false,
        };
        self.table.insert_unique(hash, entry, |entry| entry.hash);
        flight
    }

    /// Takes a flight out; `None` when it was superseded.
    pub(crate) fn remove(&mut self, hash: u64, flight: &Arc<Flight<V>>) -> Option<Ended<K>> {
        let found = self
            .table
            .find_entry(hash, |entry| Arc::ptr_eq(&entry.flight, flight));
        let (entry, _) = found.ok()?.remove();
        self.shrink();
        Some(Ended {
            key: entry.key,
            cleared: entry.cleared,
        })
    }

    /// A writer is about to change the key. If a latch is there, returns it: the writer must wait for it. If a load is
    /// in progress, supersedes it, and pushes its key to `keys`.
    pub(crate) fn writing(
        &mut self,
        hash: u64,
        is: impl Fn(&K) -> bool,
        keys: &mut Vec<Arc<K>>,
    ) -> Option<Arc<Flight<V>>> {
        let found = self
            .table
            .find_entry(hash, |entry| entry.is(hash, &is))
            .ok()?;
        if found.get().flight.is_latch {
            return Some(Arc::clone(&found.get().flight));
        }
        let (entry, _) = found.remove();
        self.shrink();
        keys.push(entry.key);
        None
    }

    /// Supersedes every load, and tells every latch, that the shard is emptied.
    pub(crate) fn clear(&mut self, keys: &mut Vec<Arc<K>>) {
        for entry in self
            .table
            .extract_if(|entry| !entry.flight.is_latch || entry.mark_cleared())
        {
            keys.push(entry.key);
        }
        self.shrink();
    }

    /// Ends a leader's turn without an outcome: chooses another if somebody waits, else takes the flight
    /// out. `from` is the phase that the caller believes in; nothing happens in another one. Call it under
    /// the shard's lock, and wake afterwards.
    pub(crate) fn vacate(
        &mut self,
        hash: u64,
        flight: &Arc<Flight<V>>,
        from: Phase,
        keys: &mut Vec<Arc<K>>,
    ) -> Wake {
        let mut state = lock(&flight.state);
        if state.phase != from {
            return Wake::Nobody;
        }
        let Ok(found) = self
            .table
            .find_entry(hash, |entry| Arc::ptr_eq(&entry.flight, flight))
        else {
            // Superseded: those who wait look again.
            return state.end();
        };
        if state.waiters > 0 && !flight.is_latch {
            return state.choose();
        }
        let (entry, _) = found.remove();
        let wake = state.end();
        drop(state);
        self.shrink();
        keys.push(entry.key);
        wake
    }

    /// Gives the memory of a busy hour back.
    fn shrink(&mut self) {
        if self.table.is_empty() && self.table.capacity() > TABLE_KEPT {
            self.table = HashTable::new();
        }
    }
}

/// Places that an empty table keeps.
const TABLE_KEPT: usize = 64;

impl<K, V> Entry<K, V> {
    fn is(&self, hash: u64, is: impl Fn(&K) -> bool) -> bool {
        self.hash == hash && is(&self.key)
    }

    /// Notes that the shard was emptied; `false`: the latch stays.
    fn mark_cleared(&mut self) -> bool {
        self.cleared = true;
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(flight.poll(&mut second, Waker::noop()), Some(Turn::Lead));
        assert!(!flight.is_awaited());
        let wake = flights.vacate(7, &flight, Phase::Running, &mut keys);
        assert!(matches!(wake, Wake::All(_)));
        assert!(flights.is_empty() && keys.len() == 1);
    }
}
