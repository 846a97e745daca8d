//! Delivers events to the listener: in order for each key, by one thread or task at a time, and
//! with no lock held. The thread that caused them delivers them, if it may wait.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use crate::core::inner::Inner;
use crate::core::reentrancy::{self, ListenerGuard, LoaderGuard};
use crate::core::waiting::{WaiterSlot, Waiting};
use crate::quiet::forget_quietly;
use crate::removal::Removal;
use crate::shard::effects::Events;
use crate::stats::Count;
use crate::sync::{AtomicBool, Condvar, Mutex, Ordering::SeqCst, lock, wait_on};

/// Events that one hold of a shard's lock hands over.
const EVENTS_PER_HOLD: usize = 256;

/// An async listener's answer to one event.
pub(crate) type ListenerFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The listener that the builder was given.
pub(crate) enum Listener<K, V> {
    Blocking(Box<dyn Fn(Removal<K, V>) + Send + Sync>),
    Async(Box<dyn Fn(Removal<K, V>) -> ListenerFuture + Send + Sync>),
}

impl<K, V> Listener<K, V> {
    pub(crate) fn is_async(&self) -> bool {
        matches!(self, Self::Async(_))
    }
}

/// The listener, and who is delivering to it.
pub(crate) struct Delivery<K, V> {
    listener: Option<Listener<K, V>>,
    turns: Mutex<TurnState<K, V>>,
    /// The turn has become free.
    freed: Condvar,
    /// Tasks that wait for the turn, or for the async listener's answer.
    waiting: Arc<Waiting>,
    /// True if the delivering thread or task was told that events wait.
    pub(crate) wanted: AtomicBool,
}

/// Whose turn it is to deliver.
struct TurnState<K, V> {
    taken: bool,
    /// True if another thread asked for the turn while it was taken. Its events may be left to
    /// deliver.
    missed: bool,
    /// The events with which the next turn goes on.
    batch: EventBatch<K, V>,
}

/// Events that have left the shards and that the listener has not seen. They pass from one who
/// delivers to the next.
struct EventBatch<K, V> {
    events: Events<K, V>,
    /// The async listener's answer to the event before all these, while it is awaited.
    answer: Option<ListenerFuture>,
}

impl<K, V> EventBatch<K, V> {
    const fn new() -> Self {
        Self {
            events: Events::new(),
            answer: None,
        }
    }
}

impl<K, V> Delivery<K, V> {
    pub(crate) fn new(listener: Option<Listener<K, V>>) -> Self {
        Self {
            listener,
            turns: Mutex::new(TurnState {
                taken: false,
                missed: false,
                batch: EventBatch::new(),
            }),
            freed: Condvar::new(),
            waiting: Waiting::new(),
            wanted: AtomicBool::new(false),
        }
    }

    /// A task's place among those who wait for the turn, or for the listener's answer.
    pub(crate) fn place(&self) -> WaiterSlot {
        self.waiting.place()
    }
}

/// The progress of a delivery over the shards.
#[derive(Default)]
struct Round {
    /// The shard that is next.
    at: usize,
    /// True if any shard had events.
    found: bool,
}

/// The turn of one thread, so that one key's events keep their order.
struct DeliveryTurn<'a, K, V, S> {
    inner: &'a Inner<K, V, S>,
    batch: EventBatch<K, V>,
    round: Round,
    over: bool,
}

impl<K, V, S> DeliveryTurn<'_, K, V, S> {
    /// The next event: of the batch, or of the shards.
    fn next_event(&mut self) -> Option<Removal<K, V>> {
        let events = &mut self.batch.events;
        events.next().or_else(|| {
            *events = self.inner.events(&mut self.round);
            events.next()
        })
    }

    /// Ends the turn, as all events were delivered. Another thread may have asked for it meanwhile.
    fn end(mut self) -> Delivered {
        self.over = true;
        match self.free() {
            true => Delivered::Again,
            false => Delivered::All,
        }
    }

    fn free(&mut self) -> bool {
        let batch = std::mem::replace(&mut self.batch, EventBatch::new());
        let delivery = &self.inner.delivery;
        let mut turns = lock(&delivery.turns);
        turns.taken = false;
        // The one that stays there is empty.
        turns.batch = batch;
        let missed = std::mem::take(&mut turns.missed);
        drop(turns);
        delivery.freed.notify_one();
        if missed {
            delivery.waiting.wake_all();
        }
        missed
    }
}

impl<K, V, S> Drop for DeliveryTurn<'_, K, V, S> {
    fn drop(&mut self) {
        if !self.over {
            self.free();
        }
    }
}

/// The result of an attempt to deliver.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Delivered {
    /// This thread may not deliver.
    Nothing,
    /// Everything that was there.
    All,
    /// Everything that was there; another thread asked for the turn meanwhile, so there may be more
    /// events.
    Again,
    /// As much as it was to deliver in one go.
    Some,
    /// Nothing, because another thread or task has the turn.
    Busy,
}

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

    /// Delivers up to `budget` events to a listener that blocks. Only one thread delivers at a
    /// time; with `wait` this one waits for its turn, unless somebody may be waiting for it.
    pub(crate) fn deliver_some(&self, wait: bool, budget: usize) -> Delivered {
        let Some(Listener::Blocking(listener)) = &self.delivery.listener else {
            return Delivered::Nothing;
        };
        let Some(_guard) = self.enter_listener() else {
            return Delivered::Nothing;
        };
        let Some(mut turn) = self.turn(wait && reentrancy::may_wait()) else {
            return Delivered::Busy;
        };
        for _ in 0..budget {
            let Some(removal) = turn.next_event() else {
                return turn.end();
            };
            self.told(catch_unwind(AssertUnwindSafe(|| listener(removal))));
        }
        Delivered::Some
    }

    /// As [`deliver_some`](Self::deliver_some), to an async listener, by a task: pending while its
    /// answer is awaited or it is somebody else's turn. `place` is the task's.
    pub(crate) fn poll_deliver(
        &self,
        budget: usize,
        (place, context): (&mut WaiterSlot, &mut Context<'_>),
    ) -> Poll<Delivered> {
        let Some(Listener::Async(listener)) = &self.delivery.listener else {
            return Poll::Ready(Delivered::Nothing);
        };
        let Some(_guard) = self.enter_listener() else {
            return Poll::Ready(Delivered::Nothing);
        };
        // First known, then a look: who frees the turn, or ends the wait for an answer, wakes this
        // task.
        place.wait(context.waker());
        let Some(mut turn) = self.turn(false) else {
            return Poll::Pending;
        };
        for _ in 0..budget {
            if self.poll_answer(&mut turn.batch).is_pending() {
                return Poll::Pending;
            }
            let Some(removal) = turn.next_event() else {
                let told = turn.end();
                self.wake_others(place);
                return Poll::Ready(told);
            };
            match catch_unwind(AssertUnwindSafe(|| listener(removal))) {
                Ok(answer) => turn.batch.answer = Some(answer),
                Err(panic) => self.told(Err(panic)),
            }
        }
        drop(turn);
        self.wake_others(place);
        Poll::Ready(Delivered::Some)
    }

    /// Notes that this thread delivers this cache's events, if it may. Where the listener has
    /// called the cache, the caller of the listener goes on delivering.
    fn enter_listener(&self) -> Option<ListenerGuard> {
        if LoaderGuard::is_in(self.id()) {
            return None;
        }
        let guard = ListenerGuard::enter(self.id())?;
        // What comes from here on is wanted again.
        self.delivery.wanted.store(false, SeqCst);
        Some(guard)
    }

    /// The turn, at once or after a wait.
    fn turn(&self, wait: bool) -> Option<DeliveryTurn<'_, K, V, S>> {
        let mut turns = lock(&self.delivery.turns);
        while turns.taken {
            if !wait {
                turns.missed = true;
                return None;
            }
            turns = wait_on(&self.delivery.freed, turns);
        }
        turns.taken = true;
        Some(DeliveryTurn {
            inner: self,
            batch: std::mem::replace(&mut turns.batch, EventBatch::new()),
            round: Round::default(),
            over: false,
        })
    }

    /// Wakes the other waiting tasks. This task may have taken the answer that they wait for before
    /// its waker was called, and then nothing else wakes them.
    fn wake_others(&self, place: &WaiterSlot) {
        place.leave();
        self.delivery.waiting.wake_all();
    }

    /// Polls the answer that is awaited, if there is one. All who wait for it are woken: any of
    /// them goes on.
    fn poll_answer(&self, batch: &mut EventBatch<K, V>) -> Poll<()> {
        let Some(answer) = &mut batch.answer else {
            return Poll::Ready(());
        };
        let waker = Waker::from(Arc::clone(&self.delivery.waiting));
        let mut context = Context::from_waker(&waker);
        let polled = catch_unwind(AssertUnwindSafe(|| answer.as_mut().poll(&mut context)));
        let told = match polled {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(())) => Ok(()),
            Err(panic) => Err(panic),
        };
        self.counters.discard(batch.answer.take());
        self.told(told);
        Poll::Ready(())
    }

    /// The listener was told of one event, which may have made it panic.
    fn told(&self, told: std::thread::Result<()>) {
        self.rules.events.told();
        if let Err(panic) = told {
            self.counters.add(Count::ListenerPanic, 1);
            forget_quietly(panic);
        }
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
}
