//! How the listener is told: in order for each key, by one thread at a time, outside every lock.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use tidewheel_store::{Removed, TypedStore};

use crate::core::midst::{self, Leading, Telling};
use crate::core::removal::{Event, Garbage, Listener, OnFull, Outbox, Removal, RemovalCause};
use crate::quiet::forget_quietly;
use crate::stats::{Count, Counters};
use crate::sync::{
    AtomicBool, AtomicUsize, Condvar, Mutex, Ordering::Relaxed, Ordering::SeqCst, holds_a_shard,
    lock,
};

/// The listener's queue: how much is in it, who is delivering.
pub(crate) struct Delivery<K, V> {
    listener: Option<Listener<K, V>>,
    limit: usize,
    on_full: OnFull,
    pending: AtomicUsize,
    turns: Mutex<Turns>,
    /// The turn has become free.
    freed: Condvar,
    /// Whether the delivering thread or task was told that there is something to deliver.
    pub(crate) wanted: AtomicBool,
}

/// Whose turn it is to deliver.
#[derive(Debug, Default)]
struct Turns {
    taken: bool,
    /// Whether another thread asked for the turn while it was taken: it may have left events to be delivered.
    missed: bool,
}

/// The turn of one thread, so that one key's events keep their order.
struct Turn<'a> {
    turns: &'a Mutex<Turns>,
    freed: &'a Condvar,
    over: bool,
}

impl Turn<'_> {
    /// Ends the turn. Tells whether another thread asked for it meanwhile.
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
    /// The same, but another thread asked for the turn meanwhile: there may be more events.
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

    /// Whether a thread that has caused events must deliver some, because the queue is full. Never while it holds a
    /// lock of another cache, which the listener may need: then the next writer delivers.
    #[inline]
    pub(crate) fn must_help(&self) -> bool {
        self.must_wait() && !holds_a_shard()
    }

    /// Whether a thread that leaves a loader or closure has events to deliver: the queue is full, or the cache is
    /// closed and no other thread will deliver.
    #[inline]
    pub(crate) fn is_behind(&self, is_closed: impl Fn() -> bool) -> bool {
        self.listener.is_some() && (self.must_help() || self.pending() > 0 && is_closed())
    }

    /// Whether the queue is full and what comes is lost.
    fn is_full_and_lossy(&self) -> bool {
        self.on_full == OnFull::Drop && self.pending() >= self.limit
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
        if self.is_full_and_lossy() {
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

    /// Files a whole shard's entries: all of them, or none where the queue is full and loses what comes.
    pub(crate) fn all_left(
        &self,
        outbox: &mut Outbox<K, V>,
        garbage: &mut Garbage<K, V>,
        store: TypedStore<K, V>,
        cause: RemovalCause,
        counters: &Counters,
    ) {
        if self.listener.is_none() || store.is_empty() || self.is_full_and_lossy() {
            if self.listener.is_some() {
                counters.add(Count::EventDropped, store.len() as u64);
            }
            garbage.rare().stores.push(store);
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
        // The listener calls the cache: the thread that called the listener goes on delivering.
        let Some(_telling) = Telling::enter(cache) else {
            return Delivered::Nothing;
        };
        // What comes from here on is wanted again.
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
