//! A caller's way to an answer: it looks a key up; if that does not answer it, it claims the key,
//! and then leads the load or waits for another's.

use std::future::Future;
use std::hash::{BuildHasher, Hash};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use equivalent::Equivalent;

use super::fetched::{Fetched, Outcome};
use super::form::KeyForm;
use super::lead::Lead;
use super::{Found, LoadError};
use crate::core::inner::Inner;
use crate::core::read::Purpose;
use crate::quiet::Quiet;
use crate::shard::flight::{Ending, Flight, Negative, Phase, WaitEnd};
use crate::shard::loading::{Claim, Claimant};
use crate::shard::rules::Hashed;
use crate::shard::sight::StandIn;
use crate::stats::Count;

impl<K: Hash + Eq, V: Clone, S: BuildHasher> Inner<K, V, S> {
    /// Looks for an answer, under the reader lock if it takes that. Counts the lookup if it is the
    /// first one.
    // Where it is first asked for, so that a hit is as quick as `get`.
    #[inline(always)]
    pub(super) fn look_up<E: LoadError, Q: Equivalent<K> + ?Sized>(
        &self,
        hash: Hashed,
        key: &Q,
        absent: bool,
        purpose: Purpose,
    ) -> Option<Found<V, E>> {
        let clock = |cell: &_| self.time_in(cell);
        let found = self.read_value(hash, key, clock, purpose, |value, stale| {
            let outcome = if stale { Outcome::Stale } else { Outcome::Hit };
            Fetched::new(Ok(Some(value)), outcome)
        });
        match found {
            Some(found) => Some(found),
            None => self.answer_without_entry(hash, key, absent),
        }
    }

    /// Answers for a key without a live entry: with the old value if the last load has just failed,
    /// or with a remembered error or absence.
    #[cold]
    fn answer_without_entry<E: LoadError, Q: Equivalent<K> + ?Sized>(
        &self,
        hash: Hashed,
        key: &Q,
        absent: bool,
    ) -> Option<Found<V, E>> {
        let (shard, now) = self.read_now(self.cell(hash));
        let negative = match shard.stand_in::<E, _>(hash, key, absent, now)? {
            StandIn::Old(slot, error) => {
                let old = shard.store.value(slot).clone();
                let error = error.and_then(Negative::as_error);
                drop(shard);
                self.count_stale_on_error();
                return Some(Fetched::stale(Ok(Some(old)), error));
            }
            StandIn::Remembered(negative) => negative.clone(),
        };
        drop(shard);
        self.counters.add(Count::NegativeHit, 1);
        self.negative_answer(hash, key, &negative)
    }

    /// An error or absence as an answer; in place of an error the old value, if it may still be
    /// served.
    pub(super) fn negative_answer<E: LoadError, Q: Equivalent<K> + ?Sized>(
        &self,
        hash: Hashed,
        key: &Q,
        negative: &Negative,
    ) -> Option<Found<V, E>> {
        match negative {
            Negative::Absent => Some(Fetched::new(Ok(None), Outcome::Negative)),
            Negative::Error(_) => {
                let error = negative.as_error()?;
                Some(self.in_place_of(error, hash, key, Outcome::Negative))
            }
        }
    }

    /// The old value, if it may be served in place of a loader's error, or else the error, which
    /// comes from `outcome`.
    pub(super) fn in_place_of<E, Q: Equivalent<K> + ?Sized>(
        &self,
        error: Arc<E>,
        hash: Hashed,
        key: &Q,
        outcome: Outcome,
    ) -> Found<V, E> {
        match self.old_value(hash, key) {
            Some(old) => Fetched::stale(Ok(Some(old)), Some(error)),
            None => Fetched::new(Err(error), outcome),
        }
    }

    /// The old value for the case that a loader has failed, until its hard deadline.
    fn old_value<Q: Equivalent<K> + ?Sized>(&self, hash: Hashed, key: &Q) -> Option<V> {
        let old = {
            let (shard, now) = self.read_now(self.cell(hash));
            let slot = shard.find(hash, key)?;
            if !shard.is_kept(slot, now) {
                return None;
            }
            shard.store.value(slot).clone()
        };
        self.count_stale_on_error();
        Some(old)
    }

    fn count_stale_on_error(&self) {
        self.counters.add(Count::Stale, 1);
        self.counters.add(Count::StaleOnError, 1);
    }
}

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

impl<K: Hash + Eq, V: Clone, S: BuildHasher> Inner<K, V, S> {
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
    pub(super) fn continue_load<'a, E: LoadError>(
        &'a self,
        request: &mut Request<'a, K>,
        waited: Option<Waited<V>>,
    ) -> NextStep<'a, K, V, S, E> {
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

    fn ask_again<E: LoadError>(&self, request: &Request<'_, K>) -> Option<Found<V, E>> {
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
    fn claim<E: LoadError>(&self, request: &Request<'_, K>) -> Claim<'_, V> {
        let by = Claimant {
            hash: request.hash,
            key: request.key.as_ref().expect("taken by the call that leads"),
            absent: request.absent,
            blocks: request.blocks,
        };
        let cell = self.cell(by.hash);
        let claim = self.hold_now(cell, |shard, now| {
            shard.claim::<E>(&self.rules.tags, &by, now)
        });
        claim.unwrap_or_else(|why| panic!("{why}"))
    }

    /// Converts the result of a flight into the answer of a waiter; `None` means: look again.
    fn resolve<E: LoadError>(
        &self,
        request: &Request<'_, K>,
        flight: &Flight<V>,
    ) -> Option<Found<V, E>> {
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
