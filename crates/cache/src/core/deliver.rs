//! Chooses the thread that calls the listener: the one that caused the events, if it may wait, and
//! once it holds no lock.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::task::{Context, Poll};

use crate::core::inner::Inner;
use crate::events::delivery::{Delivered, Tally};
use crate::events::reentrancy::LoaderGuard;
use crate::events::waiting::WaiterSlot;
use crate::shard::effects::Events;
use crate::sync::{Ordering::SeqCst, holds_a_shard};

/// The progress of a delivery over the shards.
#[derive(Default)]
struct Round {
    /// The shard that is next.
    at: usize,
    /// True if any shard had events.
    found: bool,
}

/// Events that one hold of a shard's lock hands over.
const EVENTS_PER_HOLD: usize = 256;

impl<K, V, S> Inner<K, V, S> {
    /// Delivers queued events to the listener, if that is this thread's to do. With `wait` it waits
    /// for its turn, where it may.
    pub(crate) fn deliver(&self, wait: bool) {
        if let Some(hook) = &self.hooks.listener {
            (hook.deliver)(self, wait);
        }
    }

    /// As [`deliver`](Self::deliver), for a cache that has a listener.
    pub(crate) fn tell(&self, mut wait: bool) {
        while self.deliver_some(wait, usize::MAX) == Delivered::Again {
            // Somebody's events may be in shards that were passed. They are the driver's; a closed
            // cache has none any more.
            if !self.closed.load(SeqCst) {
                self.requests.events_missed(&self.delivery.wanted);
                return;
            }
            wait = false;
        }
    }

    /// Delivers up to `budget` events to a listener that blocks.
    pub(crate) fn deliver_some(&self, wait: bool, budget: usize) -> Delivered {
        let mut shards = Round::default();
        self.delivery
            .deliver(self.id(), wait, budget, self.counted_at(), || {
                self.events(&mut shards)
            })
    }

    /// Delivers up to `budget` events to an async listener.
    pub(crate) fn poll_deliver(
        &self,
        budget: usize,
        task: (&mut WaiterSlot, &mut Context<'_>),
    ) -> Poll<Delivered> {
        let mut shards = Round::default();
        self.delivery
            .poll_deliver(self.id(), budget, self.counted_at(), task, || {
                self.events(&mut shards)
            })
    }

    /// The next events of a round over the shards.
    fn events(&self, round: &mut Round) -> Events<K, V> {
        loop {
            if let Some(events) = self.next_events(&mut round.at) {
                round.found = true;
                return events;
            }
            // A listener may have closed the cache: shards that were passed have events again, the
            // last ones. Otherwise a listener that causes events would be called for ever.
            if !round.found || !self.closed.load(SeqCst) {
                return Events::new();
            }
            *round = Round::default();
        }
    }

    /// Takes some events of the first shard from `at` on that has any.
    fn next_events(&self, at: &mut usize) -> Option<Events<K, V>> {
        while let Some(cell) = self.shards.get(*at) {
            let mut shard = cell.lock.write(self.id());
            let outbox = &mut shard.effects.outbox;
            if outbox.is_empty() {
                *at += 1;
                continue;
            }
            let events = outbox.take(EVENTS_PER_HOLD);
            drop(shard);
            for entries in events.shards() {
                self.release_tags(&**entries);
            }
            return Some(events);
        }
        None
    }

    /// Leads loads and holds latches within `act`; afterwards, though that has panicked, this
    /// thread delivers what it could not wait for meanwhile.
    pub(crate) fn lead<R>(&self, act: impl FnOnce() -> R) -> R {
        let leading = LoaderGuard::enter(self.id());
        let result = catch_unwind(AssertUnwindSafe(act));
        drop(leading);
        self.relieve();
        result.unwrap_or_else(|panic| resume_unwind(panic))
    }

    /// Delivers what this thread has caused and did not wait for.
    /// That is so if the queue is full, or the cache is closed and no other thread will deliver.
    #[inline]
    pub(crate) fn relieve(&self) {
        let room = &self.rules.events;
        if !room.has_listener() || room.is_async() {
            return;
        }
        if self.must_help() || room.pending() > 0 && self.closed.load(SeqCst) {
            self.deliver(true);
        }
    }

    /// Returns whether a thread that caused events must deliver some because the queue is full.
    /// Never while it holds a lock of another cache, which the listener may need: then the next
    /// writer delivers.
    #[inline]
    pub(crate) fn must_help(&self) -> bool {
        let room = &self.rules.events;
        room.must_wait() && !room.is_async() && !holds_a_shard()
    }

    fn counted_at(&self) -> Tally<'_> {
        Tally {
            room: &self.rules.events,
            counters: &self.counters,
        }
    }
}
