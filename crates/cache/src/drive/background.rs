//! The work of a driver that is a task, beside expiry: it tells the listener, and polls refreshes.

use std::future::poll_fn;
use std::hash::{BuildHasher, Hash};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use crate::core::delivery::Delivered;
use crate::core::inner::Inner;
use crate::core::reentrancy;
use crate::core::waiting::WaiterSlot;
use crate::drive::group::{Group, NoTimers, Polled};
use crate::sync::Ordering::SeqCst;

/// The background work of one cache, as its driver sees it. With a driver of threads, other threads
/// do it: a program that has no other driver does not contain this.
pub(crate) trait Aside<K, V, S>: Send {
    /// Drops the refreshes in flight.
    fn cancel_refreshes(&mut self);

    /// A turn of everything; whether there is more to do at once.
    fn turn(&mut self, inner: &Arc<Inner<K, V, S>>, waker: &Waker) -> bool;

    /// Goes on with what can go on; whether there is more to do at once. A listener that blocks is
    /// not called.
    fn go_on(&mut self, inner: &Arc<Inner<K, V, S>>, waker: &Waker) -> bool;

    /// Tells the listener of everything that there is; pending until that has been done.
    fn tell_all(&mut self, inner: &Inner<K, V, S>, waker: &Waker) -> Poll<()>;
}

/// The background work that the driver itself does.
pub(crate) struct Background {
    /// Calls of the listener in one turn.
    events: usize,
    /// Among those who wait for the listener.
    place: WaiterSlot,
    /// Refreshes in flight.
    refreshes: Group<NoTimers>,
}

impl Background {
    pub(crate) fn new<K, V, S>(inner: &Inner<K, V, S>, events: usize) -> Self {
        Self {
            events,
            place: inner.delivery.place(),
            refreshes: Group::new(NoTimers),
        }
    }

    /// Polls the refreshes that can go on, and begins as many as there is room for.
    fn poll_refreshes<K, V, S>(&mut self, inner: &Arc<Inner<K, V, S>>, waker: &Waker)
    where
        K: Hash + Eq + Send + Sync + 'static,
        V: Send + Sync + 'static,
        S: BuildHasher + Send + Sync + 'static,
    {
        if !inner.refreshes_are_async() {
            return;
        }
        loop {
            self.refreshes.poll(waker);
            let mut began = false;
            while self.refreshes.len() < inner.refreshes.parallel() {
                let Some(job) = inner.refreshes.pop() else {
                    break;
                };
                let inner = Arc::clone(inner);
                let refresh = async move { inner.refresh_async(job).await };
                self.refreshes.push(Box::new(Polled(Box::pin(refresh))));
                began = true;
            }
            if !began {
                return;
            }
        }
    }
}

impl<K, V, S> Aside<K, V, S> for Background
where
    K: Hash + Eq + Send + Sync + 'static,
    V: Send + Sync + 'static,
    S: BuildHasher + Send + Sync + 'static,
{
    fn cancel_refreshes(&mut self) {
        self.refreshes = Group::new(NoTimers);
    }

    fn turn(&mut self, inner: &Arc<Inner<K, V, S>>, waker: &Waker) -> bool {
        let told = inner.deliver_some(false, self.events);
        // Events that another thread has passed are for this one: nothing else wakes it for them.
        self.go_on(inner, waker) || matches!(told, Delivered::Some | Delivered::Again)
    }

    fn go_on(&mut self, inner: &Arc<Inner<K, V, S>>, waker: &Waker) -> bool {
        self.poll_refreshes(inner, waker);
        if !inner.rules.events.is_async() || !inner.has_events() {
            return false;
        }
        let mut context = Context::from_waker(waker);
        match inner.poll_deliver(self.events, (&mut self.place, &mut context)) {
            Poll::Pending | Poll::Ready(Delivered::All | Delivered::Nothing | Delivered::Busy) => {
                false
            }
            Poll::Ready(Delivered::Some | Delivered::Again) => true,
        }
    }

    fn tell_all(&mut self, inner: &Inner<K, V, S>, waker: &Waker) -> Poll<()> {
        inner.poll_told(
            &mut self.place,
            &mut Context::from_waker(waker),
            self.events,
        )
    }
}

impl<K, V, S> Inner<K, V, S> {
    /// Returns whether the listener has not been told of everything.
    fn has_events(&self) -> bool {
        self.rules.events.pending() > 0 || self.delivery.wanted.load(SeqCst)
    }

    /// Tells the listener of everything that there is, and waits until that has been done. If this
    /// is polled where somebody may be waiting for this thread, it waits for nothing.
    pub(crate) async fn tell_all(&self, budget: usize) {
        let mut place = self.delivery.place();
        poll_fn(|context| self.poll_told(&mut place, context, budget)).await;
    }

    fn poll_told(
        &self,
        place: &mut WaiterSlot,
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
