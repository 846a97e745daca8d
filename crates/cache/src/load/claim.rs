//! Claims a key for a load: the caller leads the load, waits for another's, or gets an answer.

use std::hash::{BuildHasher, Hash};
use std::sync::Arc;

use super::Found;
use super::fetched::{Fetched, Outcome};
use super::form::KeyForm;
use super::future::Waited;
use super::lead::Lead;
use crate::core::inner::Inner;
use crate::core::read::Purpose;
use crate::quiet::Quiet;
use crate::shard::flight::{Ending, Flight, WaitEnd};
use crate::shard::loading::{Claim, Claimant};
use crate::shard::rules::Hashed;
use crate::stats::Count;

/// A caller's request for a key, after the first look-up.
pub(super) struct Request<'a, K> {
    pub(super) hash: Hashed,
    /// Taken by the call that leads. Shared with the table of flights only.
    key: Option<Quiet<'a, Arc<K>>>,
    /// True if an absence is an answer.
    absent: bool,
    /// True if the caller blocks its thread while it waits.
    blocks: bool,
    /// True if the caller has waited.
    waited: bool,
}

/// The next step of a caller. Threads and tasks differ only in how they wait.
pub(super) enum NextStep<'a, K: Hash + Eq, V, S: BuildHasher, E> {
    Answer(Found<V, E>),
    Lead(Lead<'a, K, V, S>),
    /// Wait for the flight, which counts on it; then come again.
    Wait(Arc<Flight<V>>),
}

impl<K: Hash + Eq, V, S: BuildHasher> Inner<K, V, S> {
    /// Makes the request of a caller that the first look-up has not answered.
    #[cold]
    pub(super) fn request(
        &self,
        hash: Hashed,
        key: impl KeyForm<K>,
        absent: bool,
        blocks: bool,
    ) -> Request<'_, K> {
        Request {
            hash,
            key: Some(Quiet::new(Arc::new(key.into_key()), &self.counters)),
            absent,
            blocks,
            waited: false,
        }
    }

    /// Returns the next step of a caller without an answer. `waited` is how its wait
    /// has ended.
    pub(super) fn continue_load<'a, E>(
        &'a self,
        request: &mut Request<'a, K>,
        waited: Option<Waited<V>>,
    ) -> NextStep<'a, K, V, S, E>
    where
        V: Clone,
        E: Send + Sync + 'static,
    {
        match waited {
            Some((WaitEnd::Lead, flight)) => {
                request.waited = true;
                let lead = Lead::of(self, request.hash, flight);
                // If an async closure has led before, there may be a value: then the lead is passed
                // on.
                if let Some(found) = self.ask_again(request) {
                    return self.answered(found);
                }
                if lead.stands(&self.read(self.cell(request.hash))) {
                    return NextStep::Lead(lead.begin_load(request.take_key()));
                }
            }
            Some((WaitEnd::Over, flight)) => {
                request.waited = true;
                if matches!(flight.ending(), Some(Ending::Private)) {
                    return NextStep::Lead(self.led(request, Flight::alone()));
                }
                let answer = self.resolve(request, &flight);
                if let Some(answer) = answer.or_else(|| self.ask_again(request)) {
                    return self.answered(answer);
                }
            }
            None => {}
        }
        loop {
            match self.claim::<E>(request) {
                Claim::Lead(flight, tags) => {
                    return NextStep::Lead(self.led(request, flight).over(tags));
                }
                Claim::Join(flight) => return NextStep::Wait(flight),
                Claim::Again => {
                    if let Some(answer) = self.ask_again(request) {
                        return self.answered(answer);
                    }
                }
            }
        }
    }

    fn answered<E>(&self, found: Found<V, E>) -> NextStep<'_, K, V, S, E> {
        if found.outcome == Outcome::Joined {
            self.counters.add(Count::Joined, 1);
        }
        NextStep::Answer(found)
    }

    fn ask_again<E>(&self, request: &Request<'_, K>) -> Option<Found<V, E>>
    where
        V: Clone,
        E: Send + Sync + 'static,
    {
        let key: &Arc<K> = request.key.as_ref()?;
        let found = self.look_up(request.hash, &**key, request.absent, Purpose::LoadStill)?;
        Some(request.adapt(found))
    }

    fn led<'a>(
        &'a self,
        request: &mut Request<'a, K>,
        flight: Arc<Flight<V>>,
    ) -> Lead<'a, K, V, S> {
        Lead::new(self, request.hash, request.take_key(), flight)
    }

    /// Claims the key for a caller without an answer.
    ///
    /// # Panics
    ///
    /// If it would wait for itself, or keep its thread from going on with the load that it waits
    /// for.
    fn claim<E>(&self, request: &Request<'_, K>) -> Claim<'_, V>
    where
        E: Send + Sync + 'static,
    {
        let by = Claimant {
            hash: request.hash,
            key: request.key.as_ref().expect("taken by the call that leads"),
            absent: request.absent,
            blocks: request.blocks,
        };
        let cell = self.cell(by.hash);
        let claim = self.hold_now(cell, |shard, now| {
            shard.claim::<E, _>(&self.rules, &by, now)
        });
        claim.unwrap_or_else(|why| panic!("{why}"))
    }

    /// Converts the result of a flight into the answer of a waiter; `None` means: look again.
    fn resolve<E>(&self, request: &Request<'_, K>, flight: &Flight<V>) -> Option<Found<V, E>>
    where
        V: Clone,
        E: Send + Sync + 'static,
    {
        match flight.ending()? {
            Ending::Value(value) => Some(Fetched::new(Ok(Some(value.clone())), Outcome::Joined)),
            Ending::Negative(negative) if negative.answers::<E>(request.absent) => {
                let key: &Arc<K> = request.key.as_ref()?;
                let found = self.negative_answer(request.hash, &**key, negative)?;
                Some(request.adapt(found))
            }
            Ending::Negative(_) | Ending::Private => None,
        }
    }
}

impl<K> Request<'_, K> {
    /// Returns whether this request is for this key. Not once it leads.
    pub(super) fn asks(&self, hash: Hashed, is: impl Fn(&K) -> bool) -> bool {
        let key: Option<&Arc<K>> = self.key.as_deref();
        self.hash.0 == hash.0 && key.is_some_and(|key| is(key))
    }

    fn take_key(&mut self) -> Option<Arc<K>> {
        self.key.take().map(Quiet::into_inner)
    }

    /// Marks an answer as one that was waited for, if the caller has waited.
    fn adapt<T, E>(&self, mut found: Fetched<T, E>) -> Fetched<T, E> {
        if self.waited {
            found.outcome = found.outcome.after_a_wait();
        }
        found
    }
}
