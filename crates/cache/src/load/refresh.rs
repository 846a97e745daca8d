//! The background refresher: entries past their soft deadline are loaded again before they end.
//!
//! Only reads cause refreshes. If every entry were refreshed, a cache would load entries that
//! nobody needs any more, again and again.
//!
//! 1. A read finds an entry past its soft deadline. It files a vacant flight (a load without a
//!    leader) for the key, and puts the key into the refresher's queue. Later reads find the
//!    flight, and queue nothing.
//! 2. The refresher takes the key from the queue, leads the flight, and stores the new value.
//!
//! A writer of the key supersedes the flight like any load. If the entry ends before step 2, the
//! next caller of `get_or_load` leads the flight itself, and does not wait for the queue.

use std::hash::{BuildHasher, Hash};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::slice::from_ref;
use std::sync::Arc;
#[cfg(feature = "system")]
use std::sync::Weak;

use tidewheel_store::Slot;
use tidewheel_time::Moment;

use super::lead::Lead;
use super::run::PollGuard;
use crate::core::hooks::RefreshHook;
#[cfg(feature = "system")]
use crate::core::hooks::Runs;
use crate::core::inner::Inner;
use crate::core::refreshes::{Counted, Job};
#[cfg(feature = "system")]
use crate::core::workers::{WorkerGuard, WorkerKind};
use crate::loaded::{Loaded, LoadedKind, Presence};
use crate::quiet::{Quiet, forget_quietly};
use crate::shard::Shard;
use crate::shard::config::{Load, Refreshed};
use crate::shard::ends::Inherited;
use crate::shard::flight::{Negative, Phase};
use crate::shard::rules::Hashed;
use crate::stats::Count;

impl<K, V, S> RefreshHook<K, V, S>
where
    K: Hash + Eq + Send + Sync + 'static,
    V: Send + Sync + 'static,
    S: BuildHasher + Send + Sync + 'static,
{
    pub(crate) fn new() -> Self {
        Self {
            wanted: Inner::key_to_refresh,
            queue: Inner::queue_refresh,
            stop: Inner::stop_refreshes,
            #[cfg(feature = "system")]
            runs: |inner| {
                let runs: Weak<Inner<K, V, S>> = Arc::downgrade(inner);
                runs
            },
        }
    }
}

impl<K: Hash + Eq, V, S: BuildHasher> Inner<K, V, S> {
    /// The key of a stale entry whose refresh is to be queued.
    fn key_to_refresh(
        &self,
        shard: &Shard<K, V, S>,
        hash: Hashed,
        slot: Slot,
        now: Moment,
    ) -> Option<K> {
        let refresher = self.rules.config.refresher.as_ref()?;
        let key = shard.store.key(slot);
        if !shard.needs_load(hash, key, slot, now) {
            return None;
        }
        if self.refreshes.is_full() {
            self.counters.add(Count::RefreshSkipped, 1);
            return None;
        }
        Some((refresher.clone_key)(key))
    }

    /// Queues the refresh of a stale entry, unless that has been done meanwhile.
    fn queue_refresh(&self, hash: Hashed, key: K) {
        let Some(place) = self.refreshes.reserve() else {
            self.counters.add(Count::RefreshSkipped, 1);
            return;
        };
        let key = Arc::new(key);
        let flight = self.hold_now(self.cell(hash), |shard, now| {
            let slot = shard.find_live(hash, &*key, now)?;
            let wanted = !shard.closed && shard.needs_load(hash, &*key, slot, now);
            wanted.then(|| shard.flights.start(hash.0, Arc::clone(&key), Phase::Vacant))
        });
        self.counters.discard(key);
        let Some(flight) = flight else {
            return;
        };
        match self.refreshes.push(place, Job { hash, flight }) {
            Ok(()) => self.requests.refresh_wanted(self.refreshes_are_async()),
            Err(job) => self.forget(&job),
        }
    }

    /// Does what a job asks for, on this thread, if the refresher blocks. An async one belongs to
    /// the drive future.
    pub(crate) fn refresh(&self, job: Job<V>) {
        self.lead(|| {
            let Some(Load::Blocking(load)) = self.refresher_load() else {
                return self.forget(&job);
            };
            let Some((refresh, old)) = self.begin_refresh(job) else {
                return;
            };
            let answer = catch_unwind(AssertUnwindSafe(|| load(refresh.key(), old)));
            refresh.end(answer);
        });
    }

    /// As [`refresh`](Self::refresh), as a future, for an async refresher. Dropped midway, it
    /// leaves the key to others.
    pub(crate) async fn refresh_async(&self, job: Job<V>) {
        let Some(Load::Async(load)) = self.refresher_load() else {
            return self.forget(&job);
        };
        let Some((refresh, old)) = self.begin_refresh(job) else {
            return;
        };
        let begun = self.lead(|| {
            let _guard = PollGuard::enter(self.id(), from_ref(&refresh.lead.flight));
            catch_unwind(AssertUnwindSafe(|| load(refresh.key(), old)))
        });
        let answer = match begun {
            Ok(mut loading) => {
                let flights = from_ref(&refresh.lead.flight);
                let answer = self.run_inside(flights, loading.as_mut()).await;
                self.counters.discard(loading);
                answer
            }
            Err(panic) => Err(panic),
        };
        self.lead(|| refresh.end(answer));
    }

    pub(crate) fn refreshes_are_async(&self) -> bool {
        matches!(self.refresher_load(), Some(Load::Async(_)))
    }

    fn refresher_load(&self) -> Option<&Load<K, V>> {
        Some(&self.rules.config.refresher.as_ref()?.load)
    }

    /// Leads the flight of a job, with the old value for a refresher that wants it; `None` if that
    /// has no purpose any more, or a panic of the key's `Eq` or the value's `Clone` has ended it.
    fn begin_refresh(&self, job: Job<V>) -> Option<(Refresh<'_, K, V, S>, Option<V>)> {
        let begun = catch_unwind(AssertUnwindSafe(|| {
            // Before the flight is taken: nobody else writes the entry without ending that.
            let old = Quiet::new(self.old_for(&job)?, &self.counters);
            let (key, inherited) = self.take_flight(&job)?;
            Some((key, inherited, old.into_inner()))
        }));
        let Ok(Some((key, inherited, old))) = begun else {
            // It died in the queue, was superseded, or somebody else loads it.
            self.forget(&job);
            if let Err(panic) = begun {
                // The hook has reported it.
                drop(self.tally());
                forget_quietly(panic);
            }
            return None;
        };
        let Job { hash, flight } = job;
        let refresh = Refresh {
            lead: Lead::new(self, hash, Some(key), flight).over(inherited.lend_tags()),
            inherited,
            tally: self.tally(),
        };
        Some((refresh, old))
    }

    /// A copy of the old value, if the refresher wants one; `None` if there is nothing to refresh
    /// any more.
    fn old_for(&self, job: &Job<V>) -> Option<Option<V>> {
        let Some(clone) = self.rules.config.refresher.as_ref()?.clone_old else {
            return Some(None);
        };
        let (shard, now) = self.read_now(self.cell(job.hash));
        let key = shard.flights.key_of(job.hash.0, &job.flight)?;
        let slot = shard.find_live(job.hash, &**key, now)?;
        Some(Some(clone(shard.store.value(slot))))
    }

    /// Takes the lead of a flight: its key, and what the next value has of the entry.
    fn take_flight(&self, job: &Job<V>) -> Option<(Arc<K>, Inherited<'_, K, V, S>)> {
        let Job { hash, flight } = job;
        self.hold_now(self.cell(*hash), |shard, now| {
            let key = Arc::clone(shard.flights.key_of(hash.0, flight)?);
            let slot = shard.find_live(*hash, &*key, now);
            if let Some(slot) = slot.filter(|_| flight.take()) {
                return Some((key, Inherited::of(&self.rules, shard, slot)));
            }
            // The table may let its own go before this one does.
            shard.effects.garbage.keys.push(key);
            None
        })
    }

    /// Counts a refresh as begun; how it ends is counted when this is dropped.
    fn tally(&self) -> Tally<'_, K, V, S> {
        self.counters.add(Count::RefreshBegun, 1);
        Tally {
            inner: self,
            done: false,
            _running: self.refreshes.run(),
        }
    }

    fn stop_refreshes(&self) {
        for job in self.refreshes.stop() {
            self.forget(&job);
        }
    }

    /// Drops a job: the next caller that asks for its key loads it.
    fn forget(&self, job: &Job<V>) {
        self.vacate(job.hash, &job.flight, Phase::Vacant);
    }

    /// A runner's next refresh, on a thread of ours; whether it has another one to run.
    #[cfg(feature = "system")]
    fn run_refresh(&self) -> bool {
        let ran = catch_unwind(AssertUnwindSafe(|| {
            if let Some(job) = self.refreshes.pop() {
                self.refresh(job);
            }
        }));
        if let Err(panic) = ran {
            forget_quietly(panic);
        }
        self.refreshes.continue_runner()
    }
}

#[cfg(feature = "system")]
impl<K, V, S> Runs for Inner<K, V, S>
where
    K: Hash + Eq + Send + Sync + 'static,
    V: Send + Sync + 'static,
    S: BuildHasher + Send + Sync + 'static,
{
    fn begin(&self) -> bool {
        self.refreshes.begin_runner()
    }

    fn run_one(self: Arc<Self>) -> bool {
        let _guard = WorkerGuard::join(&self, WorkerKind::Thread);
        self.run_refresh()
    }
}

/// A refresh that has begun.
struct Refresh<'a, K: Hash + Eq, V, S: BuildHasher> {
    lead: Lead<'a, K, V, S>,
    inherited: Inherited<'a, K, V, S>,
    tally: Tally<'a, K, V, S>,
}

/// Counts how a refresh ends: as failed, unless it was done.
struct Tally<'a, K, V, S> {
    inner: &'a Inner<K, V, S>,
    done: bool,
    _running: Counted<'a>,
}

impl<K, V, S> Drop for Tally<'_, K, V, S> {
    fn drop(&mut self) {
        let count = if self.done {
            Count::RefreshDone
        } else {
            Count::RefreshFailed
        };
        self.inner.counters.add(count, 1);
    }
}

impl<K: Hash + Eq, V, S: BuildHasher> Refresh<'_, K, V, S> {
    fn key(&self) -> &K {
        let key = self.lead.key.as_deref();
        key.expect("the lead has it until the end")
    }

    /// Ends it with what the refresher has answered, or with its panic.
    fn end(mut self, answer: std::thread::Result<Refreshed<V>>) {
        let ended = answer.and_then(|answer| catch_unwind(AssertUnwindSafe(|| self.store(answer))));
        match ended {
            Ok(done) => self.tally.done = done,
            Err(panic) => {
                // The hook has reported it.
                self.tally.inner.counters.add(Count::LoadError, 1);
                self.lead.put_off();
                forget_quietly(panic);
            }
        }
    }

    fn store(&mut self, answer: Refreshed<V>) -> bool {
        #[cfg(feature = "metrics")]
        self.lead.record_duration();
        match answer {
            Ok(Presence::Present(loaded)) => self.store_value(loaded),
            // There is no such thing any more.
            Ok(Presence::Absent) => drop(self.lead.fail(Negative::Absent, None)),
            Ok(Presence::AbsentFor(ttl)) => drop(self.lead.fail(Negative::Absent, Some(ttl))),
            Err(error) => {
                self.lead.fail(error, None);
                return false;
            }
        }
        true
    }

    fn store_value(&mut self, mut loaded: Loaded<V>) {
        if loaded.kind == LoadedKind::Private {
            return self.lead.pass();
        }
        self.inherited.complete(&mut loaded.lifetime);
        self.lead.put(loaded, Some(&self.inherited));
        // Those who wait find the value in the store.
        self.lead.end(None);
    }
}
