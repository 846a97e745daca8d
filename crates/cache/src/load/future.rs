//! `get_or_load` and its kin for tasks of any runtime.

use std::future::{Future, poll_fn};
use std::hash::{BuildHasher, Hash};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use super::sync::never;
use super::{Answer, Claim, Lead, Phase, REENTRY, Request, Said, Turn, value};
use crate::core::flight::Flight;
use crate::core::inner::{Hashed, Inner};
use crate::core::midst::Leading;
use crate::handle::cache::Cache;
use crate::lifetime::Loaded;
use crate::quiet::Quiet;

impl<K, V, S> Cache<K, V, S>
where
    K: Hash + Eq + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
    S: BuildHasher + Send + Sync + 'static,
{
    /// As [`get_or_load`](Self::get_or_load), with a future as the loader; it is polled only if there is
    /// something to load. Tasks and threads share one load.
    ///
    /// Dropping the returned future is safe at any point: if it was the one that loads, one of those who
    /// wait goes on with its own loader.
    ///
    /// # Panics
    ///
    /// If the loader awaits the same key, which would wait for itself; and if the loader panics.
    pub async fn get_or_load_async<F>(&self, key: K, load: F) -> V
    where
        F: Future<Output: Into<Loaded<V>>>,
    {
        let load = async { value(load.await) };
        match self.inner.load_async(key, false, load).await {
            Ok(Some(value)) => value,
            Ok(None) => unreachable!("this loader always has a value"),
            Err(error) => never(&error),
        }
    }

    /// As [`try_get_or_load`](Self::try_get_or_load), with a future as the loader: see
    /// [`get_or_load_async`](Self::get_or_load_async).
    ///
    /// # Errors
    ///
    /// The loader's.
    ///
    /// # Panics
    ///
    /// As [`get_or_load_async`](Self::get_or_load_async).
    pub async fn try_get_or_load_async<F, T, E>(&self, key: K, load: F) -> Result<V, Arc<E>>
    where
        F: Future<Output = Result<T, E>>,
        T: Into<Loaded<V>>,
        E: Send + Sync + 'static,
    {
        let load = async { load.await.map(|loaded| Some(loaded.into())) };
        match self.inner.load_async(key, false, load).await? {
            Some(value) => Ok(value),
            None => unreachable!("this loader has a value or fails"),
        }
    }

    /// As [`optionally_get_or_load`](Self::optionally_get_or_load), with a future as the loader: see
    /// [`get_or_load_async`](Self::get_or_load_async).
    ///
    /// # Panics
    ///
    /// As [`get_or_load_async`](Self::get_or_load_async).
    pub async fn optionally_get_or_load_async<F, T>(&self, key: K, load: F) -> Option<V>
    where
        F: Future<Output = Option<T>>,
        T: Into<Loaded<V>>,
    {
        let load = async { Ok(load.await.map(Into::into)) };
        self.inner
            .load_async(key, true, load)
            .await
            .unwrap_or_else(|error| never(&error))
    }
}

impl<K: Hash + Eq, V: Clone, S: BuildHasher> Inner<K, V, S> {
    async fn load_async<E>(
        &self,
        key: K,
        absent: bool,
        load: impl Future<Output = Said<V, E>>,
    ) -> Answer<V, E>
    where
        E: Send + Sync + 'static,
    {
        let key = Quiet::new(key, &self.counters);
        let hash = self.hash(&*key);
        if let Some(answer) = self.glance(hash, &key, absent, true) {
            return answer;
        }
        let mut request = Request {
            hash,
            key: Some(Quiet::new(Arc::new(key.into_inner()), &self.counters)),
            absent,
            blocks: false,
        };
        let flight = loop {
            match self.claim::<E>(&request) {
                Claim::Lead(flight) => break flight,
                Claim::Reentered => panic!("{REENTRY}"),
                Claim::Suspended => unreachable!("a task blocks nobody"),
                Claim::Join(flight) => {
                    let wait = Wait {
                        inner: self,
                        hash,
                        flight: Arc::clone(&flight),
                        id: 0,
                        over: false,
                    };
                    match wait.await {
                        Turn::Lead => break flight,
                        Turn::Over => {
                            if let Some(answer) = self.heed(&request, &flight) {
                                return answer;
                            }
                        }
                    }
                }
                Claim::Again => {}
            }
            let answer = match &request.key {
                Some(key) => self.glance(hash, key, absent, false),
                None => None,
            };
            if let Some(answer) = answer {
                return answer;
            }
        };
        let key = request.key.take().map(Quiet::into_inner);
        let lead = Lead::new(self, hash, key, flight);
        let said = {
            let mut load = pin!(load);
            poll_fn(|context| {
                let _inside = Inside::enter(self.id(), &lead.flight);
                match catch_unwind(AssertUnwindSafe(|| load.as_mut().poll(context))) {
                    Ok(poll) => poll.map(Ok),
                    Err(panic) => Poll::Ready(Err(panic)),
                }
            })
            .await
        };
        match said {
            Ok(said) => self.lead(|| lead.finish(said)),
            Err(panic) => self.lead(|| {
                lead.give_up();
                resume_unwind(panic)
            }),
        }
    }
}

/// Notes that this thread polls the loader, so that it can tell when that waits for itself.
struct Inside<'a, V> {
    flight: &'a Flight<V>,
    _leading: Leading,
}

impl<'a, V> Inside<'a, V> {
    fn enter(cache: usize, flight: &'a Flight<V>) -> Self {
        flight.resume();
        Self {
            flight,
            _leading: Leading::enter(cache),
        }
    }
}

impl<V> Drop for Inside<'_, V> {
    fn drop(&mut self) {
        self.flight.suspend();
    }
}

/// Waits for a flight that it has joined. Dropped, it passes the lead on if it was chosen.
struct Wait<'a, K: Hash + Eq, V, S: BuildHasher> {
    inner: &'a Inner<K, V, S>,
    hash: Hashed,
    flight: Arc<Flight<V>>,
    id: u64,
    over: bool,
}

impl<K: Hash + Eq, V, S: BuildHasher> Future for Wait<'_, K, V, S> {
    type Output = Turn;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Turn> {
        let wait = &mut *self;
        match wait.flight.poll(&mut wait.id, context.waker()) {
            Some(turn) => {
                wait.over = true;
                Poll::Ready(turn)
            }
            None => Poll::Pending,
        }
    }
}

impl<K: Hash + Eq, V, S: BuildHasher> Drop for Wait<'_, K, V, S> {
    fn drop(&mut self) {
        if !self.over && self.flight.desert(self.id) {
            self.inner.vacate(self.hash, &self.flight, Phase::Vacant);
        }
    }
}
