//! The lead of a load: what its loader is given, and how it ends with a value, without one, or not
//! at all.

use std::hash::{BuildHasher, Hash};
use std::panic::resume_unwind;
use std::sync::Arc;
use std::time::Duration;

#[cfg(feature = "metrics")]
use tidewheel_time::Moment;

use super::fetched::{Fetched, Outcome};
use super::{Found, LoadError, LoaderAnswer};
use crate::core::inner::Inner;
use crate::loaded::{Loaded, LoadedKind, Presence};
use crate::shard::Shard;
use crate::shard::ends::Inherited;
use crate::shard::flight::{Ending, Flight, Negative, Phase};
use crate::shard::loading::Landing;
use crate::shard::rules::Hashed;
use crate::shard::tags::LentTags;
use crate::stats::Count;

/// The lead of a flight. If it is dropped before the load has ended, another caller leads.
pub(super) struct Lead<'a, K: Hash + Eq, V, S: BuildHasher> {
    inner: &'a Inner<K, V, S>,
    pub(super) hash: Hashed,
    pub(super) key: Option<Arc<K>>,
    pub(super) flight: Arc<Flight<V>>,
    ended: bool,
    /// True if a loader is run, and no async closure.
    is_load: bool,
    /// When that loader began.
    #[cfg(feature = "metrics")]
    begun: Moment,
    /// The tags of the live entry that is loaded again. If one is invalidated meanwhile, what the
    /// loader says may be as old as the entry.
    tags: Option<LentTags<'a>>,
}

impl<'a, K: Hash + Eq, V, S: BuildHasher> Lead<'a, K, V, S> {
    /// The lead of a load.
    pub(super) fn new(
        inner: &'a Inner<K, V, S>,
        hash: Hashed,
        key: Option<Arc<K>>,
        flight: Arc<Flight<V>>,
    ) -> Self {
        Self::of(inner, hash, flight).begin_load(key)
    }

    /// The lead of a flight, for now without a loader.
    pub(super) fn of(inner: &'a Inner<K, V, S>, hash: Hashed, flight: Arc<Flight<V>>) -> Self {
        Self {
            inner,
            hash,
            key: None,
            flight,
            ended: false,
            is_load: false,
            #[cfg(feature = "metrics")]
            begun: Moment(0),
            tags: None,
        }
    }

    /// Adds the tags of the live entry that is loaded again.
    pub(super) fn over(mut self, tags: Option<LentTags<'a>>) -> Self {
        self.tags = tags;
        self
    }

    /// A loader is about to be run.
    pub(super) fn begin_load(mut self, key: Option<Arc<K>>) -> Self {
        self.inner.counters.add(Count::Load, 1);
        (self.key, self.is_load) = (key, true);
        #[cfg(feature = "metrics")]
        {
            self.begun = self.inner.time.unfrozen();
        }
        self
    }

    /// The loader has answered.
    #[cfg(feature = "metrics")]
    pub(super) fn record_duration(&self) {
        let took = self.inner.time.unfrozen().0.saturating_sub(self.begun.0);
        self.inner.counters.load_us.record(took / 1000, 1);
    }
}

impl<'a, K: Hash + Eq, V: Clone, S: BuildHasher> Lead<'a, K, V, S> {
    /// The old value for the loader: past its soft deadline, or past its end and still kept. With
    /// what it leaves to one that is the same.
    pub(super) fn old(&self, is_wanted: bool) -> Option<(V, Inherited<'a, K, V, S>)> {
        let (inner, key) = (self.inner, self.key.as_deref().filter(|_| is_wanted)?);
        let (shard, now) = inner.read_now(inner.cell(self.hash));
        let slot = shard.find(self.hash, key)?;
        if !shard.is_kept(slot, now) {
            return None;
        }
        let inherited = Inherited::of(&inner.rules, &shard, slot);
        Some((shard.store.value(slot).clone(), inherited))
    }

    /// Ends the load with what its loader has answered, or with its panic. The lead is handed over
    /// before the panic goes on: the next leader need not wait for the unwinding.
    pub(super) fn conclude<E: LoadError>(
        self,
        answer: std::thread::Result<LoaderAnswer<V, E>>,
        inherited: Option<&Inherited<'_, K, V, S>>,
    ) -> Found<V, E> {
        match answer {
            Ok(answer) => self.finish(answer.map_err(Arc::new), inherited),
            Err(panic) => {
                self.give_up();
                resume_unwind(panic)
            }
        }
    }

    /// Ends the load with what the loader has answered. `inherited` is of the old value that it may
    /// have been given.
    pub(super) fn finish<E: LoadError>(
        mut self,
        answer: LoaderAnswer<V, Arc<E>>,
        inherited: Option<&Inherited<'_, K, V, S>>,
    ) -> Found<V, E> {
        #[cfg(feature = "metrics")]
        self.record_duration();
        let answer = match answer {
            Ok(Presence::Present(loaded)) => Some(self.finish_loaded(loaded, inherited)),
            Ok(Presence::Absent) => self.fail(Negative::Absent, None),
            Ok(Presence::AbsentFor(ttl)) => self.fail(Negative::Absent, Some(ttl)),
            Err(error) => return self.finish_failed(error),
        };
        Fetched::new(Ok(answer), Outcome::Loaded)
    }

    fn finish_loaded(
        &mut self,
        loaded: Loaded<V>,
        inherited: Option<&Inherited<'_, K, V, S>>,
    ) -> V {
        if loaded.kind == LoadedKind::Private {
            self.pass();
            return loaded.value;
        }
        let value = loaded.value.clone();
        // A new value has nothing of an old one.
        let inherited = inherited.filter(|_| loaded.kind == LoadedKind::Unchanged);
        self.put(loaded, inherited);
        self.end_for_waiters(|| Ending::Value(value.clone()));
        value
    }

    fn finish_failed<E: LoadError>(mut self, error: Arc<E>) -> Found<V, E> {
        let negative = Negative::error(&error);
        let found = match &self.key {
            Some(key) => self
                .inner
                .in_place_of(error, self.hash, &**key, Outcome::Loaded),
            None => Fetched::new(Err(error), Outcome::Loaded),
        };
        self.fail(negative, None);
        found
    }
}

impl<K: Hash + Eq, V, S: BuildHasher> Lead<'_, K, V, S> {
    /// Stores the value, unless the load was superseded or overtaken, and takes the flight out.
    pub(super) fn put(&mut self, loaded: Loaded<V>, inherited: Option<&Inherited<'_, K, V, S>>) {
        let inner = self.inner;
        let hash = self.hash;
        let Some(key) = &self.key else { return };
        let Loaded {
            value,
            lifetime,
            kind,
        } = loaded;
        let lives_on = kind == LoadedKind::Unchanged && inherited.is_some();
        // This may panic: the key stays for `put_off`.
        let mut prepared = inner.prepare(hash, key, &value, &lifetime);
        if let Some(inherited) = inherited.filter(|_| lifetime.tags.is_empty()) {
            prepared.tags = inherited.tags();
            prepared.attributes.label = prepared.tags.label();
        }
        let Some(key) = self.key.take() else { return };
        // What is not stored is dropped after the lock is released.
        let mut value = Some(value);
        let unused = inner.change(inner.cell(hash), |shard, now| {
            prepared.now = now;
            let landing = self.landing();
            shard.land_value(&landing, key, &mut value, &prepared, lives_on)
        });
        inner.counters.discard_pair(unused, value);
    }

    /// Ends the load with a value for this caller alone: an old one goes, and those who wait load
    /// by themselves.
    pub(super) fn pass(&mut self) {
        let inner = self.inner;
        let Some(key) = self.key.take() else { return };
        inner.change(inner.cell(self.hash), |shard, now| {
            shard.land_private(&self.landing(), &key, now);
        });
        inner.counters.discard(key);
        self.end_for_waiters(|| Ending::Private);
    }

    /// Ends the load without a value, which it returns. `absent_for` is how long an absence is to
    /// be remembered.
    pub(super) fn fail(&mut self, negative: Negative, absent_for: Option<Duration>) -> Option<V> {
        let inner = self.inner;
        let hash = self.hash;
        // The user's: this may panic. The key stays for `put_off`.
        let ttl = inner.rules.config.remembered_for(&negative, absent_for);
        if matches!(negative, Negative::Error(_)) {
            inner.counters.add(Count::LoadError, 1);
        }
        let key = self.key.take()?;
        let unused = inner.change(inner.cell(hash), |shard, now| {
            shard.land_negative(&self.landing(), key, &negative, ttl, now)
        });
        inner.counters.discard(unused);
        self.end_for_waiters(|| Ending::Negative(negative));
        None
    }

    /// Ends the load, and tells those who wait for it what it has come to. Where it was overtaken,
    /// they look again: some of them came after the invalidation.
    fn end_for_waiters(&mut self, ending: impl FnOnce() -> Ending<V>) {
        let tells = self.flight.is_awaited() && !self.is_overtaken();
        self.end(tells.then(ending));
    }

    /// Returns whether a tag of the entry that is loaded again was invalidated since the load
    /// began.
    fn is_overtaken(&self) -> bool {
        self.inner.rules.tags.are_overtaken(self.tags.as_ref())
    }

    /// Returns whether no writer has superseded the flight.
    pub(super) fn stands(&self, shard: &Shard<K, V, S>) -> bool {
        shard.flights.key_of(self.hash.0, &self.flight).is_some()
    }

    fn landing(&self) -> Landing<'_, V> {
        Landing {
            hash: self.hash,
            flight: &self.flight,
            tags: self.tags.as_ref(),
        }
    }

    /// The loader has panicked, and the panic was caught: another caller leads.
    pub(super) fn give_up(self) {
        self.inner.counters.add(Count::LoadError, 1);
    }

    /// The refresher, or what its value is weighed or timed with, has panicked, and the panic was
    /// caught: it is called again later.
    pub(super) fn put_off(&self) {
        let Some(key) = &self.key else { return };
        let inner = self.inner;
        inner.change(inner.cell(self.hash), |shard, now| {
            shard.try_later(self.hash, key, now);
        });
    }

    pub(super) fn end(&mut self, ending: Option<Ending<V>>) {
        self.ended = true;
        self.flight.end(ending);
    }
}

impl<K: Hash + Eq, V, S: BuildHasher> Drop for Lead<'_, K, V, S> {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        if self.is_load && std::thread::panicking() {
            self.inner.counters.add(Count::LoadError, 1);
        }
        self.inner.counters.discard(self.key.take());
        self.inner.vacate(self.hash, &self.flight, Phase::Running);
    }
}

impl<K: Hash + Eq, V, S: BuildHasher> Inner<K, V, S> {
    /// Hands a flight without a leader to one of its waiters, or takes it out.
    pub(super) fn vacate(&self, hash: Hashed, flight: &Arc<Flight<V>>, from: Phase) {
        let wake = self.hold(self.cell(hash), |shard| {
            shard
                .flights
                .vacate(hash.0, flight, from, &mut shard.effects.garbage.keys)
        });
        flight.wake(wake);
    }
}
