//! One load, async closure or latch in progress: its leader, its waiters, and its result. A latch
//! is a sync closure that computes a key's next value: writers of the key wait for it.
//!
//! A leader that goes without a result leaves its flight *vacant*: its loader panicked, or its
//! future was dropped. A loader's error is a result: it ends the flight, and all waiters get it.
//! One waiter is chosen and woken. It finds the flight vacant, and leads. If the chosen waiter goes
//! away instead, it chooses another one, so the flight is never left without a leader while
//! somebody waits. A new caller that asks for the key of a vacant flight leads at once. Async
//! closures do not: they take turns, in the order in which they came.
//!
//! [`Flights`] is the table of those in progress: at most one for a key at a time.

use std::any::Any;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};
use std::task::Waker;

use crate::quiet::forget_quietly;
use crate::shard::by_hash::ByHash;
use crate::sync::{Condvar, Mutex, lock, thread_number, wait_on};

/// The result of a load, as its waiters see it.
pub(crate) enum Ending<V> {
    Value(V),
    Negative(Negative),
    /// The loader's value is for its own caller alone: each waiter loads by itself.
    Private,
}

/// A loader's answer that is not a value.
#[derive(Clone)]
pub(crate) enum Negative {
    Absent,
    /// An `Arc<E>` of the loader's error type.
    Error(Arc<dyn Any + Send + Sync>),
}

/// One load or latch.
pub(crate) struct Flight<V> {
    pub(super) is_latch: bool,
    state: Mutex<FlightState>,
    changed: Condvar,
    /// Set at most once, before the phase becomes [`Phase::Over`]. If it is not, waiters look
    /// again.
    ending: OnceLock<Ending<V>>,
}

struct FlightState {
    phase: Phase,
    /// The thread that runs the loader or closure now; 0 for none.
    thread: u64,
    /// The thread that polled the loader last, while it is suspended; 0 for none.
    suspended_by: u64,
    /// The number of threads and futures that wait.
    waiters: u32,
    /// The number of waiting threads.
    sleepers: u32,
    /// The waiting future that leads next, though a thread may come before it; 0 for none.
    chosen: u64,
    /// True if the leader is an async closure that changes the key.
    by_closure: bool,
    /// The wakers of futures that were polled and not woken since. At most one for each waiter.
    wakers: BTreeMap<u64, Waker>,
    next_id: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// A leader runs the loader or closure.
    Running,
    /// No caller leads; the first that finds the flight so may lead it.
    Vacant,
    Over,
}

/// The result of a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WaitEnd {
    /// The flight is over.
    Over,
    /// The waiter leads now.
    Lead,
}

/// The waiters to wake, once no lock is held.
#[must_use]
pub(crate) enum Wake {
    Nobody,
    OneSleeper,
    One(Waker),
    All(BTreeMap<u64, Waker>),
}

/// The last one who knows of the flight drops what it has come to, which is the user's.
impl<V> Drop for Flight<V> {
    fn drop(&mut self) {
        let ending = AssertUnwindSafe(self.ending.take());
        if let Err(panic) = catch_unwind(move || drop(ending)) {
            forget_quietly(panic);
        }
    }
}

impl<V> Flight<V> {
    /// A load that is in no table: nobody else joins it, and its value is not stored.
    pub(crate) fn alone() -> Arc<Self> {
        Arc::new(Self::new(false, Phase::Running))
    }

    pub(super) fn new(is_latch: bool, phase: Phase) -> Self {
        Self {
            is_latch,
            state: Mutex::new(FlightState {
                phase,
                thread: if phase == Phase::Running {
                    thread_number()
                } else {
                    0
                },
                suspended_by: 0,
                waiters: 0,
                sleepers: 0,
                chosen: 0,
                by_closure: false,
                wakers: BTreeMap::new(),
                next_id: 1,
            }),
            changed: Condvar::new(),
            ending: OnceLock::new(),
        }
    }

    /// Returns the result of the load, once it is over.
    pub(crate) fn ending(&self) -> Option<&Ending<V>> {
        self.ending.get()
    }

    /// This thread polls the loader.
    pub(crate) fn resume(&self) {
        let mut state = lock(&self.state);
        state.thread = thread_number();
        state.suspended_by = 0;
    }

    /// Ends this thread's poll of the loader; another thread may poll it next.
    pub(crate) fn suspend(&self) {
        let mut state = lock(&self.state);
        state.suspended_by = std::mem::take(&mut state.thread);
    }

    /// Returns whether the loader is a future that this thread polled last. It makes no progress
    /// while this thread waits.
    pub(crate) fn is_suspended_here(&self) -> bool {
        lock(&self.state).suspended_by == thread_number()
    }

    /// Returns whether this thread would wait for itself.
    pub(crate) fn is_own(&self) -> bool {
        lock(&self.state).thread == thread_number()
    }

    /// Returns whether a writer of the key must wait instead of superseding the flight. That is so
    /// for a latch, and for the async closure that this very thread runs: superseding it would
    /// start it again without end, so such a writer panics where it would wait.
    pub(crate) fn stops_writers(&self) -> bool {
        self.is_latch || {
            let state = lock(&self.state);
            state.by_closure && state.thread == thread_number()
        }
    }

    /// Returns whether anybody waits for the result.
    pub(crate) fn is_awaited(&self) -> bool {
        lock(&self.state).waiters > 0
    }

    /// Takes the lead if no one has it.
    pub(crate) fn take(&self) -> bool {
        lock(&self.state).take()
    }

    /// Takes the lead with an async closure, if no one has it and no one was chosen for it.
    pub(crate) fn take_turn(&self) -> bool {
        let mut state = lock(&self.state);
        let taken = state.chosen == 0 && state.take();
        state.by_closure |= taken;
        taken
    }

    /// The leader is an async closure.
    pub(crate) fn lead_by_closure(&self) {
        lock(&self.state).by_closure = true;
    }

    /// Joins those who wait, under the shard's lock. The wait must follow.
    pub(crate) fn join(&self) {
        lock(&self.state).waiters += 1;
    }

    /// Waits on this thread, after [`join`](Self::join).
    pub(crate) fn wait(&self) -> WaitEnd {
        let mut state = lock(&self.state);
        state.sleepers += 1;
        let turn = loop {
            let phase = state.phase;
            match phase {
                Phase::Over => break WaitEnd::Over,
                Phase::Vacant if state.take() => break WaitEnd::Lead,
                Phase::Vacant | Phase::Running => {
                    state = wait_on(&self.changed, state);
                }
            }
        };
        state.sleepers -= 1;
        state.waiters -= 1;
        turn
    }

    /// Ends a wait, after [`join`](Self::join), if there is nothing to wait for. `id` is that of
    /// its waker.
    pub(crate) fn try_wait(&self, id: u64) -> Option<WaitEnd> {
        let mut state = lock(&self.state);
        let turn = state.try_end(id)?;
        let waker = state.wakers.remove(&id);
        drop(state);
        drop(waker);
        Some(turn)
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
            state = wait_on(&self.changed, state);
        }
    }

    /// One poll of a future that waits, after [`join`](Self::join). `id` names its waker.
    pub(crate) fn poll(&self, id: &mut u64, waker: &Waker) -> Option<WaitEnd> {
        let waker = waker.clone();
        let mut state = lock(&self.state);
        let turn = state.try_end(*id);
        let old = if turn.is_some() {
            state.wakers.remove(id)
        } else {
            if *id == 0 {
                *id = state.next_id;
                state.next_id += 1;
            }
            state.wakers.insert(*id, waker)
        };
        drop(state);
        drop(old);
        turn
    }

    /// Ends a future's wait. Returns whether the flight is vacant and no other future was chosen to
    /// lead it.
    pub(crate) fn cancel_wait(&self, id: u64) -> bool {
        let mut state = lock(&self.state);
        state.waiters -= 1;
        let old = state.wakers.remove(&id);
        let vacant = state.phase == Phase::Vacant && state.may_lead(id);
        drop(state);
        drop(old);
        vacant
    }

    /// Ends the flight. What it has come to, if that is said, is for those who wait.
    pub(crate) fn end(&self, ending: Option<Ending<V>>) {
        if let Some(ending) = ending {
            // Only the leader sets it, and it leads once.
            let set = self.ending.set(ending);
            debug_assert!(set.is_ok(), "a flight ends once");
        }
        let wake = lock(&self.state).end();
        self.wake(wake);
    }

    /// Ends a leader's turn without an outcome: chooses another if somebody waits, else ends the
    /// flight. `from` is the phase that the caller believes in: running, from a leader that goes;
    /// vacant, from a chosen waiter that goes, or a queued refresh that is dropped. Nothing happens
    /// in another one. Tells whether the flight is over by that.
    pub(super) fn vacate(&self, from: Phase, is_in_table: bool) -> (Wake, bool) {
        let mut state = lock(&self.state);
        if state.phase != from {
            return (Wake::Nobody, false);
        }
        // If it was superseded, those who wait look again.
        if is_in_table && state.waiters > 0 && !self.is_latch {
            return (state.choose(), false);
        }
        (state.end(), true)
    }

    /// Wakes the chosen waiters; call it without any lock.
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
pub(crate) const SUSPENDED: &str = "a load would block the thread that polled an unfinished asynchronous load or \
     closure of the same key last, and nobody might go on with that: use `get_or_load_async` there";

// Compiled with programs that load.
impl FlightState {
    #[inline]
    fn take(&mut self) -> bool {
        if self.phase != Phase::Vacant {
            return false;
        }
        self.phase = Phase::Running;
        self.thread = thread_number();
        self.chosen = 0;
        true
    }

    /// Ends the wait of a future, if there is nothing to wait for.
    #[inline]
    fn try_end(&mut self, id: u64) -> Option<WaitEnd> {
        let turn = if self.phase == Phase::Over {
            WaitEnd::Over
        } else if self.may_lead(id) && self.take() {
            WaitEnd::Lead
        } else {
            return None;
        };
        self.waiters -= 1;
        Some(turn)
    }

    /// Returns whether no other future than this one was chosen to lead.
    #[inline]
    fn may_lead(&self, id: u64) -> bool {
        self.chosen == 0 || self.chosen == id
    }

    /// The leader goes.
    #[inline]
    fn leave(&mut self) {
        (self.thread, self.suspended_by, self.chosen) = (0, 0, 0);
        self.by_closure = false;
    }

    #[inline]
    fn end(&mut self) -> Wake {
        self.phase = Phase::Over;
        self.leave();
        Wake::All(std::mem::take(&mut self.wakers))
    }

    /// Chooses who leads next. A chosen future's waker is gone from the list until it is polled.
    #[inline]
    fn choose(&mut self) -> Wake {
        self.phase = Phase::Vacant;
        self.leave();
        if self.sleepers > 0 {
            return Wake::OneSleeper;
        }
        match self.wakers.pop_first() {
            Some((id, waker)) => {
                self.chosen = id;
                Wake::One(waker)
            }
            None => Wake::Nobody,
        }
    }
}

/// Places that an empty table keeps.
const TABLE_KEPT: usize = 64;

/// The loads and latches in progress in one shard.
///
/// A *load* is shared by all callers that ask for its key meanwhile. A writer of the key supersedes
/// the load: it takes the load out of the table, and the load's value goes to its waiters but not
/// into the cache. A *latch* keeps the key's writers waiting while a closure computes its next
/// value. An async closure has a flight as a load has: its writers supersede it.
///
/// Joining, superseding and ending happen under the shard's lock. A flight's own mutex is taken
/// within that lock, never the other way round. Under neither lock is a thread woken, or a waker
/// cloned or dropped.
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
