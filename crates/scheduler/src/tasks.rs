//! Tasks by key in virtual time: the scheduler without clocks, threads and locks.

use std::hash::{BuildHasher, Hash};
use std::num::NonZeroU64;

use equivalent::Equivalent;
use tidewheel_store::{Attributes, Forecast, Progress, Removed, TypedStore};

use crate::hash::{hash_of, place};
use crate::routine::{CatchUp, Routine, Routines};

/// Timer records that are taken out before the sink is called for those that were due among them.
const RECORDS_PER_BATCH: u32 = 256;

/// A task whose time has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Due<K, V> {
    /// Its key.
    pub key: K,
    /// What was set with it.
    pub value: V,
    /// When it was to run, in ticks.
    pub deadline: u64,
    /// Runs of a periodic task that are left out after this one, by its [`CatchUp`].
    pub missed: u64,
}

/// Tasks by key, in virtual time.
///
/// A tick is whatever the caller says, a millisecond in [`Scheduler`](crate::Scheduler); `now` never goes
/// back (if it does, it counts as the latest one seen). A task is due when `now >= deadline`, never before.
/// Deadlines beyond 2^40 − 2 ticks count as that (34 years of milliseconds).
///
/// A key has at most one task. Every operation is O(1), and none needs memory for what it replaces: a
/// task that is moved later keeps its record in the wheel, one that is moved earlier or removed leaves a dead
/// record, and dead records are swept before they outnumber the living.
///
/// ```
/// use tidewheel_scheduler::Tasks;
///
/// let mut tasks: Tasks<&str, u32> = Tasks::new();
/// tasks.set("tea", 1, 180, 0);
/// tasks.set("egg", 2, 300, 0);
/// assert!(tasks.move_to("egg", 240, 10));
///
/// let mut due = Vec::new();
/// tasks.advance(239, u32::MAX, |task| due.push(task.key));
/// assert_eq!(due, ["tea"]);
/// tasks.advance(240, u32::MAX, |task| due.push(task.key));
/// assert_eq!(due, ["tea", "egg"]);
/// ```
///
/// `Hash` and `Eq` of the key, and `Clone` of periodic tasks, are the caller's code within these
/// calls: should `Hash` or `Eq` panic, the tasks are as good as lost.
#[derive(Debug)]
pub struct Tasks<K, V, S = foldhash::quality::RandomState> {
    store: TypedStore<K, V>,
    hasher: S,
    routines: Routines<K, V>,
    /// What was due, between wheel and sink: a sink that panics must not stand within the wheel.
    batch: Vec<Removed<K, V>>,
}

impl<K, V> Tasks<K, V> {
    /// No tasks. Allocates nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::with_hasher(foldhash::quality::RandomState::default())
    }
}

impl<K, V, S: Default> Default for Tasks<K, V, S> {
    fn default() -> Self {
        Self::with_hasher(S::default())
    }
}

impl<K, V, S> Tasks<K, V, S> {
    /// No tasks, keys to be hashed by `hasher`.
    #[must_use]
    pub fn with_hasher(hasher: S) -> Self {
        Self {
            store: TypedStore::new(),
            hasher,
            routines: Routines::new(),
            batch: Vec::new(),
        }
    }

    /// Tasks that are pending.
    #[must_use]
    pub fn len(&self) -> usize {
        self.store.len()
    }

    /// Whether none is pending.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.store.is_empty()
    }

    /// When [`advance`](Tasks::advance) is worth calling: never later than the earliest deadline; `None` when
    /// nothing is pending.
    #[inline]
    #[must_use]
    pub fn next_deadline(&self) -> Option<u64> {
        self.store.next_deadline()
    }

    /// How many tasks are due when: windows that double, seen from `now` (see [`Forecast`]). A task that was
    /// moved later may be counted where it was before.
    #[must_use]
    pub fn forecast(&self, now: u64) -> Forecast {
        let mut forecast = [0; 65];
        self.store.forecast(now, &mut forecast);
        forecast
    }

    /// Heap bytes held, without what keys and values point to.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.store.held_bytes()
            + self.routines.bytes()
            + self.batch.capacity() * size_of::<Removed<K, V>>()
    }

    /// Takes every task out and hands them to `sink` in no order. Tasks that are set from then on are new
    /// ones. O(n).
    pub fn drain(&mut self, mut sink: impl FnMut(K, V)) {
        for (key, value, _) in self.take_all() {
            sink(key, value);
        }
    }

    /// As [`drain`](Self::drain), with deadlines: O(1) until the iterator is used.
    pub fn take_all(&mut self) -> impl Iterator<Item = (K, V, u64)> + use<K, V, S> {
        self.routines = Routines::new();
        let left_over = std::mem::take(&mut self.batch).into_iter();
        let left_over = left_over.map(|removed| (removed.key, removed.value, removed.deadline));
        left_over
            .chain(std::mem::take(&mut self.store).into_entries())
            .map(|(key, value, deadline)| (key, value, deadline.unwrap_or(u64::MAX)))
    }
}

impl<K: Hash + Eq, V, S: BuildHasher> Tasks<K, V, S> {
    /// Sets a task that is due at `deadline`; at once if that has passed. If the key has a task, that task
    /// gets the new value and the new deadline and is no longer periodic; the old value is returned.
    pub fn set(&mut self, key: K, value: V, deadline: u64, now: u64) -> Option<V> {
        let hash = hash_of(&self.hasher, &key);
        self.put(hash, key, value, deadline, 0, now)
    }

    /// Sets a task that is due at `first` and every `period` ticks from then on, and copied for each run.
    /// Replaces as [`set`](Self::set) does.
    pub fn set_periodic(
        &mut self,
        key: K,
        value: V,
        first: u64,
        period: NonZeroU64,
        catch_up: CatchUp,
        now: u64,
    ) -> Option<V>
    where
        K: Clone,
        V: Clone,
    {
        let hash = hash_of(&self.hasher, &key);
        let word = self.routines.add(Routine {
            period,
            catch_up,
            copy: |key, value| (key.clone(), value.clone()),
        });
        self.put(hash, key, value, first, word, now)
    }

    /// Gives a pending task a new deadline and tells whether there was one. A periodic task goes on from
    /// there.
    #[inline]
    pub fn move_to<Q: Hash + Equivalent<K> + ?Sized>(
        &mut self,
        key: &Q,
        deadline: u64,
        now: u64,
    ) -> bool {
        let hash = hash_of(&self.hasher, key);
        let Some(slot) = self.store.find(place(hash), |other| key.equivalent(other)) else {
            return false;
        };
        self.store.set_deadline(slot, Some(deadline), now);
        true
    }

    /// Gives the key's pending task a new deadline, or sets one with the value of `value`. Tells whether
    /// there was one.
    pub fn move_or_set(
        &mut self,
        key: K,
        deadline: u64,
        now: u64,
        value: impl FnOnce() -> V,
    ) -> bool {
        let moved = self.move_to(&key, deadline, now);
        if !moved {
            let value = value();
            self.set(key, value, deadline, now);
        }
        moved
    }

    /// Takes a pending task out. From then on it is nobody's: it will not be due.
    pub fn remove<Q: Hash + Equivalent<K> + ?Sized>(&mut self, key: &Q) -> Option<V> {
        let hash = hash_of(&self.hasher, key);
        let slot = self
            .store
            .find(place(hash), |other| key.equivalent(other))?;
        let removed = self.store.remove(slot, place(hash));
        self.routines.end(removed.tag);
        Some(removed.value)
    }

    /// When the key's task is due.
    #[must_use]
    pub fn deadline<Q: Hash + Equivalent<K> + ?Sized>(&self, key: &Q) -> Option<u64> {
        let hash = hash_of(&self.hasher, key);
        let found = self
            .store
            .look(place(hash), |other| key.equivalent(other))?;
        found.deadline()
    }

    /// The value of the key's task.
    #[must_use]
    pub fn value<Q: Hash + Equivalent<K> + ?Sized>(&self, key: &Q) -> Option<&V> {
        let hash = hash_of(&self.hasher, key);
        let found = self
            .store
            .look(place(hash), |other| key.equivalent(other))?;
        Some(found.value())
    }

    /// Hands the tasks that are due at `now` to `sink` in the order of their deadlines. `budget` bounds the
    /// timer records that are touched, due ones and moved ones alike; what is left is the progress's
    /// `backlog`. A periodic task is filed for its next run before the sink has this one.
    ///
    /// A task that was handed over is nobody's any more: [`remove`](Self::remove) and
    /// [`move_to`](Self::move_to) do not find it, and a [`set`](Self::set) of its key is another task.
    ///
    /// Should the sink panic, what was taken out for it and not handed over comes with the next call.
    pub fn advance(&mut self, now: u64, budget: u32, mut sink: impl FnMut(Due<K, V>)) -> Progress {
        let mut total = Progress::default();
        let mut left = budget;
        loop {
            // Left from a call whose sink panicked, or empty.
            let mut behind = self.hand_over(now, &mut sink);
            let part = left.min(RECORDS_PER_BATCH);
            let Self {
                store,
                hasher,
                batch,
                ..
            } = self;
            let place_of = |key: &K| place(hash_of(hasher, key));
            let progress = store.expire(now, part, &place_of, |removed| batch.push(removed));
            batch.reverse();
            behind |= self.hand_over(now, &mut sink);
            let backlog = progress.backlog || behind;
            left -= part.min(progress.fired.saturating_add(progress.moved));
            total.fired += progress.fired;
            total.moved += progress.moved;
            if !backlog || left == 0 {
                total.next_deadline = self.store.next_deadline();
                total.backlog = backlog;
                return total;
            }
        }
    }

    /// Empties the batch, whose first is at its end. Tells whether a periodic task has runs to make up.
    fn hand_over(&mut self, now: u64, sink: &mut impl FnMut(Due<K, V>)) -> bool {
        let mut behind = false;
        while let Some(removed) = self.batch.pop() {
            let (due, next) = self.due(removed, now);
            behind |= next.is_some_and(|next| next <= now);
            sink(due);
        }
        behind
    }

    /// Makes a task due; files a periodic one anew and tells for when.
    fn due(&mut self, removed: Removed<K, V>, now: u64) -> (Due<K, V>, Option<u64>) {
        let Removed {
            key, value, tag, ..
        } = removed;
        let deadline = removed.deadline.unwrap_or(now);
        let Some(routine) = self.routines.of(tag) else {
            let due = Due {
                key,
                value,
                deadline,
                missed: 0,
            };
            return (due, None);
        };
        let next = routine.next(deadline, now);
        let (key_kept, value_kept) = (routine.copy)(&key, &value);
        let hash = hash_of(&self.hasher, &key_kept);
        let is_set_anew = |other: &K| *other == key_kept;
        if self.store.find(place(hash), is_set_anew).is_some() {
            // Only after a sink has panicked: the newer task stays.
            self.routines.end(tag);
        } else {
            self.put(hash, key_kept, value_kept, next.deadline, tag, now);
        }
        let due = Due {
            key,
            value,
            deadline,
            missed: next.missed,
        };
        (due, Some(next.deadline))
    }

    fn put(
        &mut self,
        hash: u64,
        key: K,
        value: V,
        deadline: u64,
        word: u64,
        now: u64,
    ) -> Option<V> {
        let attributes = Attributes {
            deadline: Some(deadline),
            tag: word,
            ..Attributes::default()
        };
        match self.store.find(place(hash), |other| *other == key) {
            Some(slot) => {
                let old = self.store.tag_of(slot);
                let replaced = self.store.replace(slot, value, attributes, now);
                self.routines.end(old);
                Some(replaced)
            }
            None => {
                let hasher = &self.hasher;
                let place_of = |key: &K| place(hash_of(hasher, key));
                self.store.insert(
                    place(hash),
                    key,
                    value,
                    attributes,
                    now,
                    u64::MAX,
                    &place_of,
                );
                None
            }
        }
    }

    /// Moves tasks together and sweeps dead timer records, about `budget` units of work; tells whether
    /// more is worth doing.
    pub fn maintain(&mut self, budget: u32) -> bool {
        let hasher = &self.hasher;
        self.store
            .maintain(budget, &|key: &K| place(hash_of(hasher, key)))
    }

    /// Walks the whole structure and panics with a message if it is broken. O(n).
    pub fn validate(&self) {
        let hasher = &self.hasher;
        self.store.validate(&|key: &K| place(hash_of(hasher, key)));
        let mut periodic = 0;
        for word in self.store.tags() {
            assert!(self.routines.of(word).is_some(), "a task lost its routine");
            periodic += 1;
        }
        assert_eq!(periodic, self.routines.len(), "a routine outlived its task");
    }
}
