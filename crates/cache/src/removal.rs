//! Why entries leave, and how the listener is told: in order for each key, outside every lock.

use std::any::Any;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use tidewheel_store::{Removed, TypedStore};

use crate::flight::Negative;
use crate::inner::RECORDS_PER_HOLD;
use crate::midst::{self, Leading, Telling};
use crate::stats::{Count, Counters};
use crate::sync::{
    AtomicBool, AtomicUsize, Condvar, Mutex, Ordering::Relaxed, Ordering::SeqCst, lock,
};

/// Why an entry is no longer in the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RemovalCause {
    /// Its time was over.
    Expired,
    /// Room was needed, or it was heavier than the whole capacity.
    Evicted,
    /// A new value took its place.
    Replaced,
    /// The caller removed it by its key.
    Removed,
    /// The caller invalidated it by a predicate or a tag.
    Invalidated,
    /// The caller emptied the cache.
    Cleared,
    /// The cache was closed.
    Closed,
}

impl RemovalCause {
    /// Whether the cache removed the entry of its own accord.
    #[must_use]
    pub fn is_automatic(self) -> bool {
        matches!(self, Self::Expired | Self::Evicted)
    }
}

/// An entry that has left the cache, as the listener gets it.
#[derive(Debug)]
#[non_exhaustive]
pub struct Removal<K, V> {
    /// Its key.
    pub key: K,
    /// Its value.
    pub value: V,
    /// Why.
    pub cause: RemovalCause,
    /// For expired entries: how long after its deadline it was removed, in whole milliseconds.
    pub lateness: Option<Duration>,
}

/// What happens when the listener's queue is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum OnFull {
    /// Nothing is lost. Whoever causes an event calls the listener for all that is in the queue before it
    /// returns, or waits until another thread has done so; the driver removes no more until there is room
    /// (what is due stays invisible).
    ///
    /// Who may be waited for does not wait: a listener, and a loader or closure (of
    /// [`Cache::get_or_load`](crate::Cache::get_or_load), [`Cache::update`](crate::Cache::update) and their
    /// kin), goes on when it writes at a full queue, and does so when it is over. So the queue is over its
    /// limit by at most what the listener, loaders and closures that run now have caused, and by the events
    /// of one operation for each other thread.
    #[default]
    Wait,
    /// The event is dropped and counted.
    Drop,
}

pub(crate) type Listener<K, V> = Box<dyn Fn(Removal<K, V>) + Send + Sync>;

/// Events of one shard, pushed under its lock, in the order in which things happened.
#[derive(Debug)]
pub(crate) struct Outbox<K, V> {
    events: VecDeque<Event<K, V>>,
}

#[derive(Debug)]
pub(crate) enum Event<K, V> {
    One(Removal<K, V>),
    /// A whole shard, taken out in one step; boxed, since every event would be as large.
    All(Box<TypedStore<K, V>>, RemovalCause),
}

impl<K, V> Outbox<K, V> {
    pub(crate) const fn new() -> Self {
        Self {
            events: VecDeque::new(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// The words of entries that have left, and whose tags are released when they are announced.
    pub(crate) fn tags(&self) -> impl Iterator<Item = u64> + '_ {
        self.events.iter().flat_map(|event| match event {
            Event::One(_) => None.into_iter().flatten(),
            Event::All(store, _) => Some(store.tags()).into_iter().flatten(),
        })
    }

    /// Takes up to `limit` events.
    pub(crate) fn take(&mut self, limit: usize) -> VecDeque<Event<K, V>> {
        if self.events.len() <= limit {
            std::mem::take(&mut self.events)
        } else {
            self.events.drain(..limit).collect()
        }
    }
}

/// What is left to drop once the shard's lock is released.
#[derive(Debug)]
pub(crate) struct Garbage<K, V> {
    pub(crate) pairs: Vec<(K, V)>,
    pub(crate) one: Option<(K, V)>,
    pub(crate) stores: Vec<TypedStore<K, V>>,
    /// Keys of loads that were superseded.
    pub(crate) keys: Vec<Arc<K>>,
    /// Forgotten errors and absences.
    pub(crate) negatives: Vec<Removed<K, Negative>>,
    pub(crate) negative_stores: Vec<TypedStore<K, Negative>>,
}

impl<K, V> Garbage<K, V> {
    pub(crate) const fn new() -> Self {
        Self {
            pairs: Vec::new(),
            one: None,
            stores: Vec::new(),
            keys: Vec::new(),
            negatives: Vec::new(),
            negative_stores: Vec::new(),
        }
    }

    /// Drops everything, outside all locks; the panics of what is dropped are counted and go no further.
    pub(crate) fn discard(self, counters: &Counters) {
        let Self {
            pairs,
            one,
            stores,
            keys,
            negatives,
            negative_stores,
        } = self;
        if std::mem::needs_drop::<(K, V)>() {
            if let Some((key, value)) = one {
                counters.discard_pair(key, value);
            }
            if !pairs.is_empty() {
                counters.discard_pairs(pairs.into_iter());
            }
            for store in stores {
                counters.discard_pairs(store.into_entries().map(|(key, value, _)| (key, value)));
            }
        }
        for key in keys {
            counters.discard(key);
        }
        for Removed { key, value, .. } in negatives {
            counters.discard_pair(key, value);
        }
        for store in negative_stores {
            counters.discard_pairs(store.into_entries().map(|(key, value, _)| (key, value)));
        }
    }

    /// The first pair needs no allocation; those after it need one for all that a hold of the driver brings.
    #[inline]
    fn push(&mut self, key: K, value: V) {
        if self.one.is_none() {
            self.one = Some((key, value));
            return;
        }
        if self.pairs.len() == self.pairs.capacity() {
            self.make_room();
        }
        self.pairs.push((key, value));
    }

    #[cold]
    fn make_room(&mut self) {
        self.pairs.reserve(RECORDS_PER_HOLD as usize);
    }
}

/// The listener's queue: how much is in it, who is delivering.
pub(crate) struct Delivery<K, V> {
    listener: Option<Listener<K, V>>,
    limit: usize,
    on_full: OnFull,
    pending: AtomicUsize,
    turns: Mutex<Turns>,
    /// The turn has become free.
    freed: Condvar,
    /// Whether whoever delivers was told that there is something to deliver.
    pub(crate) wanted: AtomicBool,
}

/// Whose turn it is to deliver.
#[derive(Debug, Default)]
struct Turns {
    taken: bool,
    /// Whether somebody came in vain while it was taken: events may be behind whoever has it.
    missed: bool,
}

/// The turn of one thread, so that one key's events keep their order.
struct Turn<'a> {
    turns: &'a Mutex<Turns>,
    freed: &'a Condvar,
    over: bool,
}

impl Turn<'_> {
    /// Ends the turn; tells whether somebody came in vain meanwhile.
    fn end(mut self) -> bool {
        self.over = true;
        self.free()
    }

    fn free(&self) -> bool {
        let mut turns = lock(self.turns);
        turns.taken = false;
        let missed = std::mem::take(&mut turns.missed);
        drop(turns);
        self.freed.notify_one();
        missed
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if !self.over {
            self.free();
        }
    }
}

/// How an attempt to deliver has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Delivered {
    /// It is not this thread's to do.
    Nothing,
    /// Everything that was there.
    All,
    /// The same, but somebody came in vain meanwhile: there may be more.
    Again,
}

impl<K, V> std::fmt::Debug for Delivery<K, V> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Delivery")
            .field("listener", &self.listener.is_some())
            .field("limit", &self.limit)
            .field("on_full", &self.on_full)
            .field("pending", &self.pending)
            .finish_non_exhaustive()
    }
}

impl<K, V> Delivery<K, V> {
    pub(crate) fn new(listener: Option<Listener<K, V>>, limit: usize, on_full: OnFull) -> Self {
        Self {
            listener,
            limit,
            on_full,
            pending: AtomicUsize::new(0),
            turns: Mutex::new(Turns::default()),
            freed: Condvar::new(),
            wanted: AtomicBool::new(false),
        }
    }

    pub(crate) fn has_listener(&self) -> bool {
        self.listener.is_some()
    }

    pub(crate) fn pending(&self) -> usize {
        self.pending.load(Relaxed)
    }

    /// Whether the queue is full and nothing may be lost.
    pub(crate) fn must_wait(&self) -> bool {
        self.listener.is_some() && self.on_full == OnFull::Wait && self.pending() >= self.limit
    }

    /// Whether whoever leaves a loader or closure has events to deliver: the queue is full, or the cache is
    /// closed and nobody else will.
    #[inline]
    pub(crate) fn is_behind(&self, is_closed: impl Fn() -> bool) -> bool {
        self.listener.is_some() && (self.must_wait() || self.pending() > 0 && is_closed())
    }

    /// Files an entry that has left: for the listener, or to be dropped outside the lock.
    #[inline]
    pub(crate) fn left(
        &self,
        outbox: &mut Outbox<K, V>,
        garbage: &mut Garbage<K, V>,
        removed: Removed<K, V>,
        cause: RemovalCause,
        now: u64,
        counters: &Counters,
    ) {
        let Removed {
            key,
            value,
            deadline,
            ..
        } = removed;
        if self.listener.is_none() {
            garbage.push(key, value);
            return;
        }
        if self.on_full == OnFull::Drop && self.pending() >= self.limit {
            counters.add(Count::EventDropped, 1);
            garbage.push(key, value);
            return;
        }
        let lateness = match (cause, deadline) {
            (RemovalCause::Expired, Some(deadline)) => {
                Some(Duration::from_millis(now.saturating_sub(deadline)))
            }
            _ => None,
        };
        outbox.events.push_back(Event::One(Removal {
            key,
            value,
            cause,
            lateness,
        }));
        self.pending.fetch_add(1, Relaxed);
    }

    /// Files a whole shard's entries.
    pub(crate) fn all_left(
        &self,
        outbox: &mut Outbox<K, V>,
        garbage: &mut Garbage<K, V>,
        store: TypedStore<K, V>,
        cause: RemovalCause,
    ) {
        if self.listener.is_none() || store.is_empty() {
            garbage.stores.push(store);
            return;
        }
        self.pending.fetch_add(store.len(), Relaxed);
        outbox.events.push_back(Event::All(Box::new(store), cause));
    }

    /// Delivers what `take` hands out until it hands out nothing. Only one thread delivers at a time; with
    /// `wait` this one waits for its turn, unless somebody may be waiting for it. `cache` is whose events
    /// these are.
    pub(crate) fn deliver(
        &self,
        cache: usize,
        wait: bool,
        counters: &Counters,
        mut take: impl FnMut() -> VecDeque<Event<K, V>>,
    ) -> Delivered {
        let Some(listener) = &self.listener else {
            return Delivered::Nothing;
        };
        if Leading::is_in(cache) {
            return Delivered::Nothing;
        }
        // The listener calls the cache: whoever called the listener goes on delivering.
        let Some(_telling) = Telling::enter(cache) else {
            return Delivered::Nothing;
        };
        // What comes from here on is wanted anew.
        self.wanted.store(false, SeqCst);
        let Some(turn) = self.turn(wait && midst::may_wait()) else {
            return Delivered::Nothing;
        };
        loop {
            let events = take();
            if events.is_empty() {
                return if turn.end() {
                    Delivered::Again
                } else {
                    Delivered::All
                };
            }
            for event in events {
                self.tell_all(listener, event, counters);
            }
        }
    }

    /// The turn, at once or after a wait.
    fn turn(&self, wait: bool) -> Option<Turn<'_>> {
        let mut turns = lock(&self.turns);
        while turns.taken {
            if !wait {
                turns.missed = true;
                return None;
            }
            turns = self
                .freed
                .wait(turns)
                .unwrap_or_else(std::sync::PoisonError::into_inner);
        }
        turns.taken = true;
        drop(turns);
        Some(Turn {
            turns: &self.turns,
            freed: &self.freed,
            over: false,
        })
    }

    fn tell_all(&self, listener: &Listener<K, V>, event: Event<K, V>, counters: &Counters) {
        match event {
            Event::One(removal) => self.tell(listener, removal, counters),
            Event::All(store, cause) => {
                for (key, value, _) in store.into_entries() {
                    let removal = Removal {
                        key,
                        value,
                        cause,
                        lateness: None,
                    };
                    self.tell(listener, removal, counters);
                }
            }
        }
    }

    fn tell(&self, listener: &Listener<K, V>, removal: Removal<K, V>, counters: &Counters) {
        let told = catch_unwind(AssertUnwindSafe(|| listener(removal)));
        self.pending.fetch_sub(1, Relaxed);
        if let Err(panic) = told {
            counters.add(Count::ListenerPanic, 1);
            forget_quietly(panic);
        }
    }
}

/// Drops a panic's payload, which may panic in turn.
pub(crate) fn forget_quietly(panic: Box<dyn Any + Send>) {
    if let Err(again) = catch_unwind(AssertUnwindSafe(|| drop(panic))) {
        std::mem::forget(again);
    }
}
