//! Tasks by key in virtual time: the scheduler without clocks, threads and locks.

use std::hash::{BuildHasher, Hash};
use std::num::NonZeroU64;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use equivalent::Equivalent;
use tidewheel_store::{Attributes, Removed, TypedStore};
use tidewheel_time::DefaultHashBuilder;

use crate::core::hash::{hash_of, place};
use crate::core::routine::{CatchUp, Recall, Routine, Routines};

/// Timer records that are taken out before the sink is called for those that were due among them.
const RECORDS_PER_BATCH: u32 = 256;

/// A task whose time has come.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Due<K, V> {
    /// Its key.
    pub key: K,
    /// The value that was set with it.
    pub value: V,
    /// The deadline, in ticks.
    pub deadline: u64,
    /// Runs of a periodic task that are left out after this one, by its [`CatchUp`].
    pub missed: u64,
    /// The flag that says that its periodic task was removed since.
    pub(crate) recall: Recall,
}

/// The result of one call of [`Tasks::advance`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Step {
    /// Tasks that were handed to the sink.
    pub fired: u32,
    /// Timer records that were moved or dropped.
    pub moved: u32,
    /// True if the budget ran out before everything due was handed over: call again.
    pub backlog: bool,
    /// Lower bound of the next deadline, in ticks, as [`Tasks::next_deadline`] gives it.
    pub next_deadline: Option<u64>,
}

/// Tasks by key, in virtual time.
///
/// The caller says what a tick is; it is a millisecond in [`Scheduler`](crate::Scheduler). If `now`
/// goes back, the latest `now` seen counts instead. A task is due when `now >= deadline`, never
/// before. A deadline beyond 2^40 − 2 ticks (34 years of milliseconds) counts as 2^40 − 2.
///
/// A key has at most one task. Every operation is O(1), and memory does not grow when tasks are
/// moved. A task that is moved later keeps its record in the wheel. One that is moved earlier or
/// removed leaves a dead record. Calls that set or move tasks sweep dead records before they
/// outnumber the living; after removals alone they stay until then, or until their time, or until
/// [`maintain`](Tasks::maintain).
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
/// calls. If `Hash` or `Eq` panics, the tasks may be lost.
#[derive(Debug)]
pub struct Tasks<K, V, S = DefaultHashBuilder> {
    store: TypedStore<K, V>,
    hasher: S,
    routines: Routines<K, V>,
    /// Due tasks on their way from the wheel to the sink. So a sink that panics does not do so
    /// inside the wheel.
    batch: Vec<Removed<K, V>>,
}

impl<K, V> Tasks<K, V> {
    /// No tasks. Allocates nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::with_hasher(DefaultHashBuilder::default())
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
        self.store.len() + self.batch.len()
    }

    /// True if no task is pending.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The time from which a call of [`advance`](Tasks::advance) is worth while: never later than
    /// the earliest deadline; `None` when nothing is pending.
    #[inline]
    #[must_use]
    pub fn next_deadline(&self) -> Option<u64> {
        if !self.batch.is_empty() {
            // These were due in a call that panicked.
            return Some(0);
        }
        // Dead records need no call.
        let next = self.store.next_deadline();
        next.filter(|_| !self.store.is_empty())
    }

    /// The number of tasks by deadline, seen from `now`. The first number counts what is due
    /// already, number `i` the deadlines that lie `2^(i-1) ..< 2^i` ticks ahead. It counts timer
    /// records. So a task that was moved may be counted where it was before (if it was moved
    /// earlier, there too), and one that was removed is counted until its record is swept.
    #[must_use]
    pub fn forecast(&self, now: u64) -> [u64; 65] {
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

    /// Takes every task out and hands them to `sink` in no order. Tasks that are set from then on
    /// are new ones. O(n).
    pub fn drain(&mut self, mut sink: impl FnMut(K, V)) {
        for (key, value, _) in self.take_all() {
            sink(key, value);
        }
    }

    /// Visits pending tasks (key, value, deadline) from `cursor` on, which is 0 at first: at least
    /// `count` of them, or all up to the end. Returns the cursor of the next call; `None` at the
    /// end. A task that is pending from the first call to the last is visited exactly once.
    pub fn scan(
        &self,
        cursor: u32,
        count: usize,
        mut visit: impl FnMut(&K, &V, u64),
    ) -> Option<u32> {
        self.store.scan(cursor, count, |slot| {
            let deadline = self.store.deadline(slot).unwrap_or(u64::MAX);
            visit(self.store.key(slot), self.store.value(slot), deadline);
        })
    }

    /// Runs of periodic tasks that have fired are not to begin.
    pub(crate) fn recall_all(&self) {
        self.routines.recall_all();
    }

    /// Takes all tasks, with deadlines: O(1) until the iterator is used.
    pub fn take_all(&mut self) -> impl Iterator<Item = (K, V, u64)> + use<K, V, S> {
        self.routines = Routines::new();
        let kept = std::mem::take(&mut self.batch).into_iter();
        let kept = kept.map(|removed| (removed.key, removed.value, removed.deadline));
        kept.chain(std::mem::take(&mut self.store).into_entries())
            .map(|(key, value, deadline)| (key, value, deadline.unwrap_or(u64::MAX)))
    }
}

impl<K: Hash + Eq, V, S: BuildHasher> Tasks<K, V, S> {
    /// Sets a task that is due at `deadline`; at once if that has passed. If the key has a task,
    /// that task gets the new value and the new deadline and is no longer periodic; the old value
    /// is returned.
    pub fn set(&mut self, key: K, value: V, deadline: u64, now: u64) -> Option<V> {
        let old = self.replace(key, value, deadline, now);
        old.map(|(_, value)| value)
    }

    /// Sets a task as [`set`](Self::set) does, but also returns the new key if the old one stays:
    /// the caller drops it.
    pub(crate) fn replace(&mut self, key: K, value: V, deadline: u64, now: u64) -> Option<(K, V)> {
        let hash = hash_of(&self.hasher, &key);
        self.put(hash, key, value, deadline, 0, now)
    }

    /// Sets a task that is due at `first` and every `period` ticks from then on, and copied for
    /// each run. Replaces as [`set`](Self::set) does.
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
        let old = self.replace_periodic(key, value, first, period, catch_up, now);
        old.map(|(_, value)| value)
    }

    /// Sets a periodic task as [`set_periodic`](Self::set_periodic) does; returns the key as well,
    /// as [`replace`](Self::replace) does.
    pub(crate) fn replace_periodic(
        &mut self,
        key: K,
        value: V,
        first: u64,
        period: NonZeroU64,
        catch_up: CatchUp,
        now: u64,
    ) -> Option<(K, V)>
    where
        K: Clone,
        V: Clone,
    {
        let hash = hash_of(&self.hasher, &key);
        let label = self.routines.add(Routine {
            period,
            catch_up,
            copy: |key, value| (key.clone(), value.clone()),
            recall: Recall::new(),
        });
        self.put(hash, key, value, first, label, now)
    }

    /// Gives a pending task a new deadline and tells whether there was one. A periodic task goes on
    /// from there.
    #[inline]
    pub fn move_to<Q: Hash + Equivalent<K> + ?Sized>(
        &mut self,
        key: &Q,
        deadline: u64,
        now: u64,
    ) -> bool {
        let hash = hash_of(&self.hasher, key);
        let Some(slot) = self
            .store
            .find(place(hash), move |other| key.equivalent(other))
        else {
            return false;
        };
        self.store.set_deadline(slot, Some(deadline), now);
        true
    }

    /// Gives the key's pending task a new deadline, or sets one with the value of `value`. Tells
    /// whether there was one.
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

    /// Takes a pending task out: it will not be due.
    pub fn remove<Q: Hash + Equivalent<K> + ?Sized>(&mut self, key: &Q) -> Option<V> {
        self.take(key, true).map(|(_, value)| value)
    }

    /// Removes a task as [`remove`](Self::remove) does, and returns the key too. Says whether runs
    /// of a periodic task that have fired are recalled.
    pub(crate) fn take<Q: Hash + Equivalent<K> + ?Sized>(
        &mut self,
        key: &Q,
        recalls: bool,
    ) -> Option<(K, V)> {
        let hash = hash_of(&self.hasher, key);
        let slot = self
            .store
            .find(place(hash), move |other| key.equivalent(other))?;
        let removed = self.store.remove(slot, place(hash));
        if recalls {
            self.routines.recall(removed.label);
        }
        self.routines.end(removed.label);
        Some((removed.key, removed.value))
    }

    /// The deadline of the key's task.
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

    /// Hands the tasks that are due at `now` to `sink`, in the order of their deadlines. `budget`
    /// bounds the timer records that are touched, due ones and moved ones alike. If more is due,
    /// the step says `backlog`. A periodic task is filed for its next run before the sink gets this
    /// one.
    ///
    /// A task that was handed over is no longer pending: [`remove`](Self::remove) and
    /// [`move_to`](Self::move_to) do not find it, and [`set`](Self::set) with its key sets another
    /// task.
    ///
    /// If the sink panics, or the copy of a periodic task does, the tasks that were taken out but
    /// not handed over come with the next call. A periodic task whose copy panicked goes on with
    /// its next run.
    pub fn advance(&mut self, now: u64, budget: u32, mut sink: impl FnMut(Due<K, V>)) -> Step {
        let mut total = Step::default();
        let mut budget = budget;
        loop {
            if !self.batch.is_empty() {
                total.fired += self.hand_over_kept(now, &mut budget, &mut sink);
                if budget == 0 {
                    total.next_deadline = self.next_deadline();
                    total.backlog = true;
                    return total;
                }
            }
            let part = budget.min(RECORDS_PER_BATCH);
            let Self {
                store,
                hasher,
                batch,
                ..
            } = self;
            let place_of = |key: &K| place(hash_of(hasher, key));
            let progress = store.expire(now, part, &place_of, |removed| batch.push(removed));
            batch.reverse();
            let mut behind = false;
            while let Some(removed) = self.batch.pop() {
                behind |= self.hand_over(removed, now, &mut sink);
            }
            let backlog = progress.backlog || behind;
            budget -= part.min(progress.fired.saturating_add(progress.moved));
            total.fired += progress.fired;
            total.moved += progress.moved;
            if !backlog || budget == 0 {
                total.next_deadline = self.next_deadline();
                total.backlog = backlog;
                return total;
            }
        }
    }

    /// Hands over what a call that panicked has kept; tells how many tasks that were. The first is
    /// at the batch's end.
    #[cold]
    fn hand_over_kept(
        &mut self,
        now: u64,
        budget: &mut u32,
        sink: &mut impl FnMut(Due<K, V>),
    ) -> u32 {
        let before = *budget;
        while *budget > 0 {
            let Some(removed) = self.batch.pop() else {
                break;
            };
            *budget -= 1;
            self.hand_over(removed, now, sink);
        }
        before - *budget
    }

    /// Hands a due task to the sink. A periodic one is filed for its next run first. Tells whether
    /// that run is due already.
    #[inline]
    fn hand_over(
        &mut self,
        removed: Removed<K, V>,
        now: u64,
        sink: &mut impl FnMut(Due<K, V>),
    ) -> bool {
        if removed.label != 0 {
            return self.hand_over_run(removed, now, sink);
        }
        sink(Due {
            key: removed.key,
            value: removed.value,
            deadline: removed.deadline.unwrap_or(now),
            missed: 0,
            recall: Recall::default(),
        });
        false
    }

    /// Hands over a run of a periodic task. It is apart from [`hand_over`](Self::hand_over), so
    /// that a task that does not repeat takes few instructions.
    #[inline(never)]
    fn hand_over_run(
        &mut self,
        removed: Removed<K, V>,
        now: u64,
        sink: &mut impl FnMut(Due<K, V>),
    ) -> bool {
        let Removed {
            key, value, label, ..
        } = removed;
        let deadline = removed.deadline.unwrap_or(now);
        let routine = self.routines.of(label);
        let recall = routine.map_or_else(Recall::default, |r| r.recall.clone());
        let next = routine.map(|r| (r.next(deadline, now), r.copy));
        let (key, value) = match next {
            Some((next, copy)) => self.file_copy(key, value, copy, next.deadline, label, now),
            None => (key, value),
        };
        sink(Due {
            key,
            value,
            deadline,
            missed: next.map_or(0, |(next, _)| next.missed),
            recall,
        });
        next.is_some_and(|(next, _)| next.deadline <= now)
    }

    /// Files a copy of a periodic task for its next run, and returns the task. If the copy panics,
    /// the task itself is filed, and this run is lost.
    fn file_copy(
        &mut self,
        key: K,
        value: V,
        copy: fn(&K, &V) -> (K, V),
        deadline: u64,
        label: u64,
        now: u64,
    ) -> (K, V) {
        match catch_unwind(AssertUnwindSafe(|| copy(&key, &value))) {
            Ok((key_kept, value_kept)) => {
                self.file(key_kept, value_kept, deadline, label, now);
                (key, value)
            }
            Err(panic) => {
                self.file(key, value, deadline, label, now);
                resume_unwind(panic)
            }
        }
    }

    /// Files a periodic task for its next run. After a call that panicked its key may have another
    /// task by now: then that one stays.
    fn file(&mut self, key: K, value: V, deadline: u64, label: u64, now: u64) {
        let hash = hash_of(&self.hasher, &key);
        if self
            .store
            .find(place(hash), |other| *other == key)
            .is_some()
        {
            self.routines.end(label);
        } else {
            self.put(hash, key, value, deadline, label, now);
        }
    }

    fn put(
        &mut self,
        hash: u64,
        key: K,
        value: V,
        deadline: u64,
        label: u64,
        now: u64,
    ) -> Option<(K, V)> {
        let attributes = Attributes {
            deadline: Some(deadline),
            label,
            ..Attributes::default()
        };
        match self.store.find(place(hash), |other| *other == key) {
            Some(slot) => {
                let old = self.store.label_of(slot);
                let replaced = self.store.replace(slot, value, attributes, now);
                self.routines.end(old);
                Some((key, replaced))
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

    /// Moves tasks together and sweeps dead timer records, about `budget` units of work; tells
    /// whether more is worth doing.
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
        for label in self.store.labels() {
            assert!(self.routines.of(label).is_some(), "a task lost its routine");
            periodic += 1;
        }
        assert_eq!(periodic, self.routines.len(), "a routine outlived its task");
    }
}
