//! Runs loaders: on this thread, which sleeps while another caller loads, or as futures, which
//! wait.

use std::future::{Future, poll_fn};
use std::hash::{BuildHasher, Hash};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::slice::from_ref;
use std::sync::Arc;
use std::task::Poll;

use equivalent::Equivalent;

use super::claim::{NextStep, Request, Wait};
use super::form::KeyForm;
use super::many::Many;
use super::{CallerAnswer, Found, LoadError, LoaderAnswer};
use crate::core::inner::Inner;
use crate::core::read::Purpose;
use crate::core::reentrancy::LoaderGuard;
use crate::loaded::Loaded;
use crate::quiet::Quiet;
use crate::shard::flight::Flight;

impl<K: Hash + Eq, V: Clone, S: BuildHasher> Inner<K, V, S> {
    /// Looks a key up, and loads it if it is missing. The loader is given the old value if it
    /// `wants_old`.
    #[inline(always)]
    pub(crate) fn load<E: LoadError>(
        &self,
        key: impl KeyForm<K>,
        absent: bool,
        wants_old: bool,
        load: impl FnOnce(Option<V>) -> LoaderAnswer<V, E>,
    ) -> Found<V, E> {
        let load = Quiet::new(load, &self.counters);
        let key = Quiet::new(key, &self.counters);
        let hash = self.hash(key.sought());
        if let Some(found) = self.look_up(hash, key.sought(), absent, Purpose::Load) {
            return found;
        }
        let request = self.request(hash, key.into_inner(), absent, true);
        self.load_missing(request, wants_old, load)
    }

    #[cold]
    fn load_missing<'a, E: LoadError>(
        &'a self,
        mut request: Request<'a, K>,
        wants_old: bool,
        load: Quiet<'_, impl FnOnce(Option<V>) -> LoaderAnswer<V, E>>,
    ) -> Found<V, E> {
        let mut waited = None;
        let lead = loop {
            match self.continue_load(&mut request, waited.take()) {
                NextStep::Answer(found) => return found,
                NextStep::Lead(lead) => break lead,
                NextStep::Wait(flight) => waited = Some((flight.wait(), flight)),
            }
        };
        self.lead(|| {
            let (old, inherited) = lead.old(wants_old).unzip();
            let answer = catch_unwind(AssertUnwindSafe(|| load.into_inner()(old)));
            lead.conclude(answer, inherited.as_ref())
        })
    }

    /// As [`load`](Self::load), with a loader that returns a future.
    pub(crate) async fn load_async<E: LoadError, F>(
        &self,
        key: impl KeyForm<K>,
        absent: bool,
        wants_old: bool,
        load: impl FnOnce(Option<V>) -> F,
    ) -> Found<V, E>
    where
        F: Future<Output = LoaderAnswer<V, E>>,
    {
        let load = Quiet::new(load, &self.counters);
        let key = Quiet::new(key, &self.counters);
        let hash = self.hash(key.sought());
        if let Some(found) = self.look_up(hash, key.sought(), absent, Purpose::Load) {
            return found;
        }
        let mut request = self.request(hash, key.into_inner(), absent, false);
        let mut waited = None;
        let lead = loop {
            match self.continue_load(&mut request, waited.take()) {
                NextStep::Answer(found) => return found,
                NextStep::Lead(lead) => break lead,
                NextStep::Wait(flight) => waited = Some(Wait::new(self, hash, flight).await),
            }
        };
        let (old, inherited) = lead.old(wants_old).unzip();
        let call = || load.into_inner()(old);
        let answer = self.call_inside(from_ref(&lead.flight), call).await;
        self.lead(|| lead.conclude(answer, inherited.as_ref()))
    }

    pub(crate) fn load_many<'q, E, Q, I, T>(
        &self,
        keys: impl IntoIterator<Item = &'q Q>,
        mut load: impl FnMut(Vec<K>) -> Result<I, E>,
    ) -> Vec<CallerAnswer<V, E>>
    where
        E: LoadError,
        Q: Hash + Equivalent<K> + ToOwned<Owned = K> + ?Sized + 'q,
        I: IntoIterator<Item = (K, T)>,
        T: Into<Loaded<V>>,
    {
        let mut many = Many::begin(self, keys, true);
        loop {
            let keys = many.keys_to_load();
            if !keys.is_empty() {
                self.lead(|| many.end(|| Ok(load(keys))));
            } else if let Some((at, wait)) = many.next_wait() {
                many.waited(at, wait.block());
            } else {
                return many.answers();
            }
        }
    }

    pub(crate) async fn load_many_async<'q, E, Q, I, T, F>(
        &self,
        keys: impl IntoIterator<Item = &'q Q>,
        mut load: impl FnMut(Vec<K>) -> F,
    ) -> Vec<CallerAnswer<V, E>>
    where
        E: LoadError,
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
