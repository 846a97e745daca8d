//! The background work of a drive future beside expiry: it tells the listener, and polls refreshes.

use std::future::{Future, poll_fn};
use std::hash::{BuildHasher, Hash};
use std::task::{Context, Poll};

use crate::core::inner::Inner;
use crate::drive::task_set::TaskSet;
use crate::drive::turns::TurnBudget;
use crate::events::delivery::Delivered;
use crate::events::reentrancy;
use crate::events::waiting::WaiterSlot;
use crate::sync::Ordering::SeqCst;

/// The work that goes on while the driver sleeps.
pub(crate) trait BackgroundWork: Send {
    /// True if this work tells the listener.
    const TELLS: bool;

    /// A turn of everything; whether there is more to do at once.
    fn turn(&mut self) -> impl Future<Output = bool> + Send;

    /// Goes on with what can go on; whether there is more to do at once. A listener that blocks is
    /// not called.
    fn poll(&mut self, context: &mut Context<'_>) -> bool;

    /// Drops the refreshes in flight.
    fn cancel_refreshes(&mut self);

    /// Tells the listener of everything that there is.
    fn tell_all(&mut self) -> impl Future<Output = ()> + Send;
}

/// Other threads call the listener and refresh.
#[cfg(feature = "system")]
pub(crate) struct NoBackgroundWork;

#[cfg(feature = "system")]
impl BackgroundWork for NoBackgroundWork {
    const TELLS: bool = false;

    async fn turn(&mut self) -> bool {
        false
    }

    fn poll(&mut self, _context: &mut Context<'_>) -> bool {
        false
    }

    fn cancel_refreshes(&mut self) {}

    async fn tell_all(&mut self) {}
}

/// All background work of a driver that is a task.
pub(crate) struct Background<'a, K, V, S> {
    inner: &'a Inner<K, V, S>,
    budget: TurnBudget,
    /// Among those who wait for the listener.
    place: WaiterSlot<'a>,
    /// Refreshes in flight.
    refreshes: TaskSet<'a>,
}

impl<'a, K, V, S> Background<'a, K, V, S>
where
    K: Hash + Eq + Send + Sync,
    V: Send + Sync,
    S: BuildHasher + Send + Sync,
{
    pub(crate) fn new(inner: &'a Inner<K, V, S>, budget: TurnBudget) -> Self {
        Self {
            inner,
            budget,
            place: inner.delivery.place(),
            refreshes: TaskSet::new(),
        }
    }

    /// Polls the refreshes that can go on, and begins as many as there is room for.
    fn poll_refreshes(&mut self, context: &mut Context<'_>) {
        let inner = self.inner;
        if !inner.refreshes_are_async() {
            return;
        }
        loop {
            self.refreshes.poll(context.waker());
            let mut began = false;
            while self.refreshes.len() < inner.refreshes.parallel() {
                let Some(job) = inner.refreshes.pop() else {
                    break;
                };
                self.refreshes.push(Box::pin(inner.refresh_async(job)));
                began = true;
            }
            if !began {
                return;
            }
        }
    }
}

impl<K, V, S> BackgroundWork for Background<'_, K, V, S>
where
    K: Hash + Eq + Send + Sync,
    V: Send + Sync,
    S: BuildHasher + Send + Sync,
{
    const TELLS: bool = true;

    async fn turn(&mut self) -> bool {
        let told = self.inner.deliver_to_driver(self.budget.events);
        poll_fn(|context| Poll::Ready(self.poll(context) || told == Delivered::Some)).await
    }

    fn poll(&mut self, context: &mut Context<'_>) -> bool {
        self.poll_refreshes(context);
        if !self.inner.rules.events.is_async() || !self.inner.has_events() {
            return false;
        }
        let task = (&mut self.place, &mut *context);
        match self.inner.poll_deliver(self.budget.events, task) {
            Poll::Pending | Poll::Ready(Delivered::All | Delivered::Nothing | Delivered::Busy) => {
                false
            }
            Poll::Ready(Delivered::Some | Delivered::Again) => true,
        }
    }

    fn cancel_refreshes(&mut self) {
        self.refreshes = TaskSet::new();
    }

    async fn tell_all(&mut self) {
        self.inner
            .tell_all(&mut self.place, self.budget.events)
            .await;
    }
}

impl<K, V, S> Inner<K, V, S> {
    /// Returns whether the listener has not been told of everything.
    fn has_events(&self) -> bool {
        self.rules.events.pending() > 0 || self.delivery.wanted.load(SeqCst)
    }

    /// Tells the listener of some events, as the driver. It must look again for events that another
    /// thread has passed, because nothing else wakes it for them.
    fn deliver_to_driver(&self, budget: usize) -> Delivered {
        let told = self.deliver_some(false, budget);
        if told == Delivered::Again {
            return Delivered::Some;
        }
        told
    }

    /// Tells the listener of everything that there is, and waits until that has been done. If this
    /// is polled where somebody may be waiting for this thread, it waits for nothing.
    pub(crate) async fn tell_all(&self, place: &mut WaiterSlot<'_>, budget: usize) {
        poll_fn(|context| self.poll_told(place, context, budget)).await;
    }

    fn poll_told(
        &self,
        place: &mut WaiterSlot<'_>,
        context: &mut Context<'_>,
        budget: usize,
    ) -> Poll<()> {
        place.wait(context.waker());
        let told = if self.rules.events.is_async() {
            match self.poll_deliver(budget, (place, &mut *context)) {
                Poll::Ready(told) => told,
                Poll::Pending => return Poll::Pending,
            }
        } else {
            self.deliver_some(false, budget)
        };
        match told {
            Delivered::All | Delivered::Nothing => Poll::Ready(()),
            Delivered::Busy if reentrancy::is_free() => Poll::Pending,
            Delivered::Busy => Poll::Ready(()),
            Delivered::Again | Delivered::Some => {
                context.waker().wake_by_ref();
                Poll::Pending
            }
        }
    }
}
