//! Loads: who leads one, who waits for it, and how it ends.
//!
//! A caller first glances at the shard under the reader lock. If that does not answer it, it claims the key
//! under the writer's: it leads a new flight (or one whose leader has failed), or joins the one there is. A
//! leader runs its loader without any lock and then ends the flight: under one hold of the lock the flight
//! leaves the table and the value enters the store, so nobody can miss both.

mod future;
pub(crate) mod refresh;
pub(crate) mod settle;
mod sync;

use std::convert::Infallible;
use std::hash::{BuildHasher, Hash};
use std::sync::Arc;

use tidewheel_store::Attributes;

use self::settle::AfterRead;
use crate::core::flight::{Flight, Negative, Outcome, Phase, REENTRY, SUSPENDED, Turn};
use crate::core::fresh::Heritage;
use crate::core::hash::Hashed;
use crate::core::inner::Inner;
use crate::core::insert::own;
use crate::core::removal::RemovalCause;
use crate::core::shard::Shard;
use crate::lifetime::{Lifetime, Loaded};
use crate::quiet::Quiet;
use crate::stats::Count;

/// What a caller gets: `Ok(None)` is an absence.
pub(crate) type Answer<V, E> = Result<Option<V>, Arc<E>>;

/// What a loader says.
pub(crate) type Said<V, E> = Result<Option<Loaded<V>>, E>;

/// A caller's question, after the first glance.
struct Request<'a, K> {
    hash: Hashed,
    /// Taken by whoever leads. Shared with the table of flights alone.
    key: Option<Quiet<'a, Arc<K>>>,
    /// Whether an absence is an answer.
    absent: bool,
    /// Whether it blocks its thread while it waits.
    blocks: bool,
}

/// What has come of a question at the first glance.
enum Asked<'a, K, V, E> {
    Answer(Answer<V, E>),
    Request(Request<'a, K>),
}

/// What a caller is to do next, on a thread or as a task: these differ in how they wait alone.
enum Step<'a, K: Hash + Eq, V, S: BuildHasher, E> {
    Answer(Answer<V, E>),
    Lead(Lead<'a, K, V, S>),
    /// Wait for the flight, which counts on it; then come again.
    Wait(Arc<Flight<V>>),
}

/// What a caller has of a key.
enum Claim<V> {
    /// Glance again: there is an answer now.
    Again,
    Lead(Arc<Flight<V>>),
    /// Wait; the flight counts on it.
    Join(Arc<Flight<V>>),
}

impl Negative {
    /// Whether this answers a caller whose loader fails with `E`.
    fn answers<E: Send + Sync + 'static>(&self, absent: bool) -> bool {
        match self {
            Self::Absent => absent,
            Self::Error(_) => self.is_error::<E>(),
        }
    }
}

impl<K: Hash + Eq, V, S: BuildHasher> Inner<K, V, S> {
    /// Looks for an answer under the reader lock. Counts the lookup if it is the first one.
    fn glance<E>(&self, hash: Hashed, key: &K, absent: bool, first: bool) -> Option<Answer<V, E>>
    where
        V: Clone,
        E: Send + Sync + 'static,
    {
        let mut after = AfterRead::new();
        let mut remembered = None;
        let found = {
            let shard = self.read(self.cell(hash));
            match Self::find(&shard, hash, key) {
                Some(slot) if self.is_live(&shard.store, slot) => {
                    let mut serve = true;
                    if self.is_stale(&shard.store, slot) {
                        after.refresh = self.refresh_wanted(&shard, hash, slot);
                        serve = self.config.refresher.is_some()
                            || self.is_being_loaded(&shard, hash, key);
                        after.stale = serve;
                    }
                    if serve {
                        shard.store.hit(slot);
                        after.renewal = self.used(&shard, slot);
                    }
                    serve.then(|| shard.store.value(slot).clone())
                }
                _ => {
                    remembered = shard
                        .negatives
                        .find(hash.place(), |stored| stored == key, &self.time)
                        .filter(|negative| negative.answers::<E>(absent))
                        .cloned();
                    None
                }
            }
        };
        if first {
            self.count_lookup(found.is_some());
        }
        self.settle(hash, key, after);
        match (found, remembered) {
            (Some(value), _) => Some(Ok(Some(value))),
            (None, Some(negative)) => self.negative_answer(hash, key, &negative),
            (None, None) => None,
        }
    }

    /// Whether a key's next value is on its way, or was asked for in vain a moment ago.
    fn is_being_loaded(&self, shard: &Shard<K, V>, hash: Hashed, key: &K) -> bool {
        shard.flights.find(hash.0, |stored| stored == key).is_some()
            || shard
                .negatives
                .find(hash.place(), |stored| stored == key, &self.time)
                .is_some()
    }

    /// An error or absence as an answer; in place of an error the old value, if it may still be served.
    fn negative_answer<E>(&self, hash: Hashed, key: &K, negative: &Negative) -> Option<Answer<V, E>>
    where
        V: Clone,
        E: Send + Sync + 'static,
    {
        match negative {
            Negative::Absent => Some(Ok(None)),
            Negative::Error(error) => {
                let error = Arc::clone(error).downcast::<E>().ok()?;
                Some(self.old_value(hash, key).map(Some).ok_or(error))
            }
        }
    }

    /// The old value for the case that a loader has failed, until its hard deadline.
    fn old_value(&self, hash: Hashed, key: &K) -> Option<V>
    where
        V: Clone,
    {
        let old = {
            let shard = self.read(self.cell(hash));
            let store = &shard.store;
            let slot = Self::find(&shard, hash, key)?;
            let over = store
                .deadline(slot)
                .is_some_and(|deadline| self.time.reached(deadline));
            if over || !self.tags.is_current(store.tag_of(slot)) {
                return None;
            }
            store.value(slot).clone()
        };
        self.counters.add(Count::Stale, 1);
        Some(old)
    }

    /// The first glance, counted as a lookup.
    fn begin_load<E>(&self, key: K, absent: bool, blocks: bool) -> Asked<'_, K, V, E>
    where
        V: Clone,
        E: Send + Sync + 'static,
    {
        let key = Quiet::new(key, &self.counters);
        let hash = self.hash(&*key);
        if let Some(answer) = self.glance(hash, &key, absent, true) {
            return Asked::Answer(answer);
        }
        Asked::Request(Request {
            hash,
            key: Some(Quiet::new(Arc::new(key.into_inner()), &self.counters)),
            absent,
            blocks,
        })
    }

    /// The next step of a caller whom the first glance has not answered. `waited` is how its wait has ended.
    fn continue_load<'a, E>(
        &'a self,
        request: &mut Request<'a, K>,
        waited: Option<(Turn, Arc<Flight<V>>)>,
    ) -> Step<'a, K, V, S, E>
    where
        V: Clone,
        E: Send + Sync + 'static,
    {
        match waited {
            Some((Turn::Lead, flight)) => return Step::Lead(self.led(request, flight)),
            Some((Turn::Over, flight)) => {
                let answer = self.resolve(request, &flight);
                if let Some(answer) = answer.or_else(|| self.glance_again(request)) {
                    return Step::Answer(answer);
                }
            }
            None => {}
        }
        loop {
            match self.claim::<E>(request) {
                Claim::Lead(flight) => return Step::Lead(self.led(request, flight)),
                Claim::Join(flight) => return Step::Wait(flight),
                Claim::Again => {
                    if let Some(answer) = self.glance_again(request) {
                        return Step::Answer(answer);
                    }
                }
            }
        }
    }

    fn glance_again<E>(&self, request: &Request<'_, K>) -> Option<Answer<V, E>>
    where
        V: Clone,
        E: Send + Sync + 'static,
    {
        let key = request.key.as_ref()?;
        self.glance(request.hash, key, request.absent, false)
    }

    fn led<'a>(
        &'a self,
        request: &mut Request<'a, K>,
        flight: Arc<Flight<V>>,
    ) -> Lead<'a, K, V, S> {
        let key = request.key.take().map(Quiet::into_inner);
        Lead::new(self, request.hash, key, flight)
    }

    /// Decides what a caller does whom a glance has not answered.
    ///
    /// # Panics
    ///
    /// If it would wait for itself, or keep its thread from going on with the load that it waits for.
    fn claim<E>(&self, request: &Request<'_, K>) -> Claim<V>
    where
        E: Send + Sync + 'static,
    {
        let hash = request.hash;
        let shared: &Arc<K> = request.key.as_ref().expect("taken by whoever leads");
        let key = &**shared;
        let claim = self.hold(self.cell(hash), |shard| {
            let slot =
                Self::find(shard, hash, key).filter(|slot| self.is_live(&shard.store, *slot));
            let flight = shard.flights.find(hash.0, |stored| stored == key).cloned();
            if let Some(slot) = slot {
                if flight.is_some() || !self.is_stale(&shard.store, slot) {
                    return Ok(Claim::Again);
                }
            } else if shard
                .negatives
                .find(hash.place(), |stored| stored == key, &self.time)
                .is_some_and(|negative| negative.answers::<E>(request.absent))
            {
                return Ok(Claim::Again);
            }
            match flight {
                None => Ok(Claim::Lead(shard.flights.start(
                    hash.0,
                    Arc::clone(shared),
                    Phase::Running,
                ))),
                Some(flight) if flight.take() => Ok(Claim::Lead(flight)),
                Some(flight) if flight.is_own() => Err(REENTRY),
                Some(flight) if request.blocks && flight.is_suspended_here() => Err(SUSPENDED),
                Some(flight) => {
                    flight.join();
                    Ok(Claim::Join(flight))
                }
            }
        });
        claim.unwrap_or_else(|why| panic!("{why}"))
    }

    /// What the end of a flight means to one who has waited for it; `None`: look again.
    fn resolve<E>(&self, request: &Request<'_, K>, flight: &Flight<V>) -> Option<Answer<V, E>>
    where
        V: Clone,
        E: Send + Sync + 'static,
    {
        match flight.outcome()? {
            Outcome::Value(value) => Some(Ok(Some(value.clone()))),
            Outcome::Negative(negative) if negative.answers::<E>(request.absent) => {
                self.negative_answer(request.hash, request.key.as_ref()?, negative)
            }
            Outcome::Negative(_) => None,
        }
    }
}

/// The lead of a flight. If it is dropped before the load has ended, another caller leads.
struct Lead<'a, K: Hash + Eq, V, S: BuildHasher> {
    inner: &'a Inner<K, V, S>,
    hash: Hashed,
    key: Option<Arc<K>>,
    flight: Arc<Flight<V>>,
    ended: bool,
}

impl<'a, K: Hash + Eq, V, S: BuildHasher> Lead<'a, K, V, S> {
    fn new(
        inner: &'a Inner<K, V, S>,
        hash: Hashed,
        key: Option<Arc<K>>,
        flight: Arc<Flight<V>>,
    ) -> Self {
        inner.counters.add(Count::Load, 1);
        Self {
            inner,
            hash,
            key,
            flight,
            ended: false,
        }
    }
}

impl<K: Hash + Eq, V, S: BuildHasher> Lead<'_, K, V, S> {
    /// Ends the load with what the loader has said.
    fn finish<E>(mut self, said: Said<V, E>) -> Answer<V, E>
    where
        V: Clone,
        E: Send + Sync + 'static,
    {
        match said {
            Ok(Some(Loaded { value, lifetime })) => {
                self.put(value.clone(), &lifetime, None);
                let awaited = self.flight.is_awaited();
                let outcome = awaited.then(|| Outcome::Value(value.clone()));
                self.end(outcome);
                Ok(Some(value))
            }
            Ok(None) => {
                self.fail(Negative::Absent);
                Ok(None)
            }
            Err(error) => {
                let error = Arc::new(error);
                let old = self
                    .key
                    .as_ref()
                    .and_then(|key| self.inner.old_value(self.hash, key));
                self.fail(Negative::error(&error));
                old.map(Some).ok_or(error)
            }
        }
    }

    /// Stores the value, unless the load was superseded, and takes the flight out.
    fn put(&mut self, value: V, lifetime: &Lifetime, heritage: Option<&Heritage<'_, K, V, S>>) {
        let inner = self.inner;
        let hash = self.hash;
        let Some(key) = &self.key else { return };
        // This may panic: the key stays for `put_off`.
        let mut prepared = inner.prepare(hash, key, &value, lifetime);
        if let Some(heritage) = heritage.filter(|_| lifetime.tags.is_empty()) {
            let tags = heritage.tags();
            let tag = tags.word();
            prepared.become_as(
                Attributes {
                    tag,
                    ..prepared.attributes
                },
                tags,
            );
        }
        let Some(key) = self.key.take() else { return };
        // What is not stored is dropped after the lock is released.
        let mut value = Some(value);
        let unused = inner.write(inner.cell(hash), |shard| {
            if !self.is_listed(shard, &key) {
                return Some(key);
            }
            let (key, new) = match own(key, &mut value) {
                Ok(entry) => entry,
                Err(key) => return Some(key),
            };
            shard.forget_negative(hash, |stored| *stored == key);
            inner.put(shard, hash, key, new, &prepared);
            None
        });
        inner.counters.discard_pair(unused, value);
    }

    /// Ends the load without a value.
    fn fail(&mut self, negative: Negative) {
        let inner = self.inner;
        let hash = self.hash;
        if matches!(negative, Negative::Error(_)) {
            inner.counters.add(Count::LoadError, 1);
        }
        let now = inner.time.now();
        let Some(key) = self.key.take() else { return };
        let unused = inner.write(inner.cell(hash), |shard| {
            if !self.is_listed(shard, &key) {
                return Some(key);
            }
            match negative {
                Negative::Absent => inner.absent(shard, hash, &key, now.tick()),
                Negative::Error(_) => inner.try_later(shard, hash, &key, now.tick()),
            }
            let Some(ttl) = inner.config.negative_ttl else {
                return Some(key);
            };
            if shard.closed {
                return Some(key);
            }
            let key = Arc::into_inner(key)?;
            let deadline = now.end(ttl);
            shard.forget_negative(hash, |stored| *stored == key);
            let evicted = shard.negatives.remember(
                hash.place(),
                key,
                negative.clone(),
                deadline,
                now.tick(),
                &|key| inner.place_of(key),
            );
            shard.garbage.forgotten(evicted);
            shard.scheduled(Some(deadline));
            None
        });
        inner.counters.discard(unused);
        let awaited = self.flight.is_awaited();
        self.end(awaited.then_some(Outcome::Negative(negative)));
    }

    /// Takes the flight out of the table; `false` when it was superseded.
    fn is_listed(&self, shard: &mut Shard<K, V>, key: &Arc<K>) -> bool {
        let Some(ended) = shard.flights.remove(self.hash.0, &self.flight) else {
            return false;
        };
        // The table's is the same key, or that of the first leader.
        if !Arc::ptr_eq(&ended.key, key) {
            shard.garbage.keys.push(ended.key);
        }
        true
    }

    /// The loader has panicked, and the panic was caught: another caller leads.
    fn give_up(self) {
        self.inner.counters.add(Count::LoadError, 1);
    }

    /// The refresher, or what its value is weighed or timed with, has panicked, and the panic was caught: it is
    /// called again later.
    fn put_off(&self) {
        let Some(key) = &self.key else { return };
        let now = self.inner.time.now().tick();
        self.inner.write(self.inner.cell(self.hash), |shard| {
            self.inner.try_later(shard, self.hash, key, now);
        });
    }

    fn end(&mut self, outcome: Option<Outcome<V>>) {
        self.ended = true;
        self.flight.end(outcome);
    }
}

impl<K: Hash + Eq, V, S: BuildHasher> Inner<K, V, S> {
    /// The loader says that there is no such thing: an old value goes.
    fn absent(&self, shard: &mut Shard<K, V>, hash: Hashed, key: &K, now: u64) {
        if let Some((old, dead_by)) = self.take(shard, hash, key) {
            self.file_removal(shard, old, dead_by.unwrap_or(RemovalCause::Removed), now);
        }
    }

    /// A refresh has failed: a stale entry counts as fresh for a while.
    fn try_later(&self, shard: &mut Shard<K, V>, hash: Hashed, key: &K, now: u64) {
        if let Some(slot) = Self::find(shard, hash, key)
            && self.is_live(&shard.store, slot)
            && self.is_stale(&shard.store, slot)
        {
            self.config.put_off(&mut shard.store, slot, now);
        }
    }
}

impl<K: Hash + Eq, V, S: BuildHasher> Drop for Lead<'_, K, V, S> {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        if std::thread::panicking() {
            self.inner.counters.add(Count::LoadError, 1);
        }
        self.inner.counters.discard(self.key.take());
        self.inner.vacate(self.hash, &self.flight, Phase::Running);
    }
}

impl<K: Hash + Eq, V, S: BuildHasher> Inner<K, V, S> {
    /// Hands a flight that nobody leads to one who waits for it, or takes it out.
    pub(crate) fn vacate(&self, hash: Hashed, flight: &Arc<Flight<V>>, from: Phase) {
        let wake = self.hold(self.cell(hash), |shard| {
            shard
                .flights
                .vacate(hash.0, flight, from, &mut shard.garbage.keys)
        });
        flight.wake(wake);
    }
}

/// A loader's answer of any of the three kinds.
pub(crate) fn value<V, E>(loaded: impl Into<Loaded<V>>) -> Said<V, E> {
    Ok(Some(loaded.into()))
}

/// The error of a loader that has none.
pub(crate) fn never<T>(error: &Infallible) -> T {
    match *error {}
}
