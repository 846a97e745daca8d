//! A load as a future, which waits while another caller loads.

use std::future::{Future, poll_fn};
use std::hash::{BuildHasher, Hash};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::slice::from_ref;
use std::sync::Arc;
use std::task::{Context, Poll};

use equivalent::Equivalent;

use super::claim::NextStep;
use super::form::KeyForm;
use super::lead::Lead;
use super::many::Many;
use super::{CallerAnswer, Found, LoaderAnswer};
use crate::core::inner::Inner;
use crate::core::read::Purpose;
use crate::events::reentrancy::LoaderGuard;
use crate::loaded::Loaded;
use crate::quiet::Quiet;
use crate::shard::flight::{Flight, Phase, WaitEnd};
use crate::shard::rules::Hashed;

impl<K: Hash + Eq, V: Clone, S: BuildHasher> Inner<K, V, S> {
    pub(crate) async fn load_async<E>(
        &self,
        key: impl KeyForm<K>,
        absent: bool,
        load: impl Future<Output = LoaderAnswer<V, E>>,
    ) -> Found<V, E>
    where
        E: Send + Sync + 'static,
    {
        let lead = match self.lead_async(key, absent).await {
            Ok(lead) => lead,
            Err(found) => return found,
        };
        let answer = self.run_inside(from_ref(&lead.flight), load).await;
        self.lead(|| lead.conclude(answer, None))
    }

    /// As [`load_async`](Self::load_async), with a loader that is given the old value.
    pub(crate) async fn load_with_old_async<E, F>(
        &self,
        key: impl KeyForm<K>,
        absent: bool,
        load: impl FnOnce(Option<V>) -> F,
    ) -> Found<V, E>
    where
        E: Send + Sync + 'static,
        F: Future<Output = LoaderAnswer<V, E>>,
    {
        let load = Quiet::new(load, &self.counters);
        let lead = match self.lead_async(key, absent).await {
            Ok(lead) => lead,
            Err(found) => return found,
        };
        let (old, inherited) = lead.old().unzip();
        let call = || load.into_inner()(old);
        let answer = self.call_inside(from_ref(&lead.flight), call).await;
        self.lead(|| lead.conclude(answer, inherited.as_ref()))
    }

    /// Looks a key up, and waits until this task leads its load, or there is an answer.
    async fn lead_async<E>(
        &self,
        key: impl KeyForm<K>,
        absent: bool,
    ) -> Result<Lead<'_, K, V, S>, Found<V, E>>
    where
        E: Send + Sync + 'static,
    {
        let key = Quiet::new(key, &self.counters);
        let hash = self.hash(key.sought());
        if let Some(found) = self.look_up(hash, key.sought(), absent, Purpose::Load) {
            return Err(found);
        }
        let mut request = self.request(hash, key.into_inner(), absent, false);
        let mut waited = None;
        loop {
            match self.continue_load(&mut request, waited.take()) {
                NextStep::Answer(found) => return Err(found),
                NextStep::Lead(lead) => return Ok(lead),
                NextStep::Wait(flight) => waited = Some(Wait::new(self, hash, flight).await),
            }
        }
    }

    pub(crate) async fn load_many_async<'q, E, Q, I, T, F>(
        &self,
        keys: impl IntoIterator<Item = &'q Q>,
        mut load: impl FnMut(Vec<K>) -> F,
    ) -> Vec<CallerAnswer<V, E>>
    where
        E: Send + Sync + 'static,
        Q: Hash + Equivalent<K> + ToOwned<Owned = K> + ?Sized + 'q,
        I: IntoIterator<Item = (K, T)>,
        T: Into<Loaded<V>>,
        F: Future<Output = Result<I, E>>,
    {
        let mut many = Many::begin(self, keys, false);
        loop {
            let flights = many.flights();
            if !flights.is_empty() {
                let load = || load(many.keys_to_load());
                let answer = self.call_inside(&flights, load).await;
                self.lead(|| many.end(|| answer));
            } else if let Some((at, wait)) = many.next_wait() {
                many.waited(at, wait.await);
            } else {
                return many.answers();
            }
        }
    }
}

impl<K, V, S> Inner<K, V, S> {
    /// Calls a closure and polls the future that it returns, and catches the panic of either.
    pub(super) async fn call_inside<R: Future>(
        &self,
        flights: &[Arc<Flight<V>>],
        call: impl FnOnce() -> R,
    ) -> std::thread::Result<R::Output> {
        let called = {
            let _guard = PollGuard::enter(self.id(), flights);
            catch_unwind(AssertUnwindSafe(call))
        };
        self.run_inside(flights, called?).await
    }

    /// Polls a loader, or what an async closure has returned, and catches its panic.
    pub(super) async fn run_inside<T>(
        &self,
        flights: &[Arc<Flight<V>>],
        future: impl Future<Output = T>,
    ) -> std::thread::Result<T> {
        let mut future = pin!(future);
        poll_fn(|context| {
            let _guard = PollGuard::enter(self.id(), flights);
            match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context))) {
                Ok(poll) => poll.map(Ok),
                Err(panic) => Poll::Ready(Err(panic)),
            }
        })
        .await
    }
}

/// Notes that this thread polls the loader, so that it can tell when that waits for itself.
pub(super) struct PollGuard<'a, V> {
    flights: &'a [Arc<Flight<V>>],
    _guard: LoaderGuard,
}

impl<'a, V> PollGuard<'a, V> {
    pub(super) fn enter(cache: usize, flights: &'a [Arc<Flight<V>>]) -> Self {
        for flight in flights {
            flight.resume();
        }
        Self {
            flights,
            _guard: LoaderGuard::enter(cache),
        }
    }
}

impl<V> Drop for PollGuard<'_, V> {
    fn drop(&mut self) {
        for flight in self.flights {
            flight.suspend();
        }
    }
}

/// How a wait has ended, and what was waited for.
pub(super) type Waited<V> = (WaitEnd, Arc<Flight<V>>);

/// Waits for a flight that it has joined. Dropped, it passes the lead on if it was chosen.
pub(super) struct Wait<'a, K: Hash + Eq, V, S: BuildHasher> {
    inner: &'a Inner<K, V, S>,
    hash: Hashed,
    flight: Arc<Flight<V>>,
    id: u64,
    over: bool,
}

impl<'a, K: Hash + Eq, V, S: BuildHasher> Wait<'a, K, V, S> {
    pub(super) fn new(inner: &'a Inner<K, V, S>, hash: Hashed, flight: Arc<Flight<V>>) -> Self {
        Self {
            inner,
            hash,
            flight,
            id: 0,
            over: false,
        }
    }

    /// Waits on this thread.
    pub(super) fn block(mut self) -> Waited<V> {
        let end = self.flight.wait();
        self.ended(end)
    }

    /// Ends the wait if there is nothing to wait for.
    pub(super) fn try_end(mut self) -> Result<Waited<V>, Self> {
        match self.flight.try_wait(self.id) {
            Some(end) => Ok(self.ended(end)),
            None => Err(self),
        }
    }

    fn ended(&mut self, end: WaitEnd) -> Waited<V> {
        self.over = true;
        (end, Arc::clone(&self.flight))
    }
}

impl<K: Hash + Eq, V, S: BuildHasher> Future for Wait<'_, K, V, S> {
    type Output = Waited<V>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Waited<V>> {
        let wait = &mut *self;
        match wait.flight.poll(&mut wait.id, context.waker()) {
            Some(end) => Poll::Ready(wait.ended(end)),
            None => Poll::Pending,
        }
    }
}

impl<K: Hash + Eq, V, S: BuildHasher> Drop for Wait<'_, K, V, S> {
    fn drop(&mut self) {
        if !self.over && self.flight.cancel_wait(self.id) {
            self.inner.vacate(self.hash, &self.flight, Phase::Vacant);
        }
    }
}
