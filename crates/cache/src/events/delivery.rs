//! Delivers events to the listener: in order for each key, by one thread or task at a time, and
//! with no lock held.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use super::reentrancy::{self, ListenerGuard, LoaderGuard};
use super::waiting::{WaiterSlot, Waiting};
use crate::quiet::forget_quietly;
use crate::removal::Removal;
use crate::shard::effects::Events;
use crate::shard::rules::EventRoom;
use crate::stats::{Count, Counters};
use crate::sync::{AtomicBool, Condvar, Mutex, Ordering::SeqCst, lock};

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

/// The turn of one thread, so that one key's events keep their order.
struct DeliveryTurn<'a, K, V> {
    delivery: &'a Delivery<K, V>,
    batch: EventBatch<K, V>,
    over: bool,
}

impl<K, V> DeliveryTurn<'_, K, V> {
    /// The next event: of the batch, or of those that `take` hands out.
    fn next_event(&mut self, take: &mut impl FnMut() -> Events<K, V>) -> Option<Removal<K, V>> {
        let events = &mut self.batch.events;
        events.next().or_else(|| {
            *events = take();
            events.next()
        })
    }

    /// Ends the turn. Tells whether another thread asked for it meanwhile.
    fn end(mut self) -> bool {
        self.over = true;
        self.free()
    }

    fn free(&mut self) -> bool {
        let batch = std::mem::replace(&mut self.batch, EventBatch::new());
        let mut turns = lock(&self.delivery.turns);
        turns.taken = false;
        // The one that stays there is empty.
        turns.batch = batch;
        let missed = std::mem::take(&mut turns.missed);
        drop(turns);
        self.delivery.freed.notify_one();
        if missed {
            self.delivery.waiting.wake_all();
        }
        missed
    }
}

impl<K, V> Drop for DeliveryTurn<'_, K, V> {
    fn drop(&mut self) {
        if !self.over {
            self.free();
        }
    }
}

/// Where a delivery is counted.
#[derive(Clone, Copy)]
pub(crate) struct Tally<'a> {
    pub(crate) room: &'a EventRoom,
    pub(crate) counters: &'a Counters,
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

    /// Delivers what `take` hands out until it hands out nothing, `budget` events at most. Only one
    /// thread delivers at a time; with `wait` this one waits for its turn, unless somebody may be
    /// waiting for it. `cache` is whose events these are.
    pub(crate) fn deliver(
        &self,
        cache: usize,
        wait: bool,
        budget: usize,
        tally: Tally<'_>,
        mut take: impl FnMut() -> Events<K, V>,
    ) -> Delivered {
        let Some(Listener::Blocking(listener)) = &self.listener else {
            return Delivered::Nothing;
        };
        let Some(_guard) = enter(cache) else {
            return Delivered::Nothing;
        };
        // What comes from here on is wanted again.
        self.wanted.store(false, SeqCst);
        let Some(mut turn) = self.turn(wait && reentrancy::may_wait()) else {
            return Delivered::Busy;
        };
        for _ in 0..budget {
            let Some(removal) = turn.next_event(&mut take) else {
                return Self::all_told(turn);
            };
            self.told(catch_unwind(AssertUnwindSafe(|| listener(removal))), tally);
        }
        Delivered::Some
    }

    /// As [`deliver`](Self::deliver), to an async listener, by a task: pending while its answer is
    /// awaited or it is somebody else's turn. `place` is the task's.
    pub(crate) fn poll_deliver(
        &self,
        cache: usize,
        budget: usize,
        tally: Tally<'_>,
        (place, context): (&mut WaiterSlot, &mut Context<'_>),
        mut take: impl FnMut() -> Events<K, V>,
    ) -> Poll<Delivered> {
        let Some(Listener::Async(listener)) = &self.listener else {
            return Poll::Ready(Delivered::Nothing);
        };
        let Some(_guard) = enter(cache) else {
            return Poll::Ready(Delivered::Nothing);
        };
        self.wanted.store(false, SeqCst);
        // First known, then a look: who frees the turn, or ends the wait for an answer, wakes this
        // task.
        place.wait(context.waker());
        let Some(mut turn) = self.turn(false) else {
            return Poll::Pending;
        };
        for _ in 0..budget {
            if self.poll_answer(&mut turn.batch, tally).is_pending() {
                return Poll::Pending;
            }
            let Some(removal) = turn.next_event(&mut take) else {
                let told = Self::all_told(turn);
                self.wake_others(place);
                return Poll::Ready(told);
            };
            match catch_unwind(AssertUnwindSafe(|| listener(removal))) {
                Ok(answer) => turn.batch.answer = Some(answer),
                Err(panic) => self.told(Err(panic), tally),
            }
        }
        drop(turn);
        self.wake_others(place);
        Poll::Ready(Delivered::Some)
    }

    /// Wakes the other waiting tasks. This task may have taken the answer that they wait for before
    /// its waker was called, and then nothing else wakes them.
    fn wake_others(&self, place: &WaiterSlot) {
        place.leave();
        self.waiting.wake_all();
    }

    /// Polls the answer that is awaited, if there is one. All who wait for it are woken: any of
    /// them goes on.
    fn poll_answer(&self, batch: &mut EventBatch<K, V>, tally: Tally<'_>) -> Poll<()> {
        let Some(answer) = &mut batch.answer else {
            return Poll::Ready(());
        };
        let waker = Waker::from(Arc::clone(&self.waiting));
        let mut context = Context::from_waker(&waker);
        let polled = catch_unwind(AssertUnwindSafe(|| answer.as_mut().poll(&mut context)));
        let told = match polled {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(())) => Ok(()),
            Err(panic) => Err(panic),
        };
        tally.counters.discard(batch.answer.take());
        self.told(told, tally);
        Poll::Ready(())
    }

    fn all_told(turn: DeliveryTurn<'_, K, V>) -> Delivered {
        if turn.end() {
            Delivered::Again
        } else {
            Delivered::All
        }
    }

    /// The listener was told of one event, which may have made it panic.
    fn told(&self, told: std::thread::Result<()>, tally: Tally<'_>) {
        tally.room.told();
        if let Err(panic) = told {
            tally.counters.add(Count::ListenerPanic, 1);
            forget_quietly(panic);
        }
    }

    /// The turn, at once or after a wait.
    fn turn(&self, wait: bool) -> Option<DeliveryTurn<'_, K, V>> {
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
        Some(DeliveryTurn {
            delivery: self,
            batch: std::mem::replace(&mut turns.batch, EventBatch::new()),
            over: false,
        })
    }
}

/// Notes that this thread delivers a cache's events, if it may. Where the listener has called the
/// cache, the caller of the listener goes on delivering.
fn enter(cache: usize) -> Option<ListenerGuard> {
    if LoaderGuard::is_in(cache) {
        return None;
    }
    ListenerGuard::enter(cache)
}
