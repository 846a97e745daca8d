//! A program sets, moves, removes, looks up and drains tasks through the handle of a running
//! scheduler.

use std::fmt;
use std::hash::{BuildHasher, Hash};
use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use equivalent::Equivalent;
use tidewheel_time::{DefaultHashBuilder, Moment, ticks};

use crate::api::stats::{Stats, Window};
use crate::api::when::PointInTime;
use crate::core::routine::CatchUp;
use crate::drive::inner::Inner;
use crate::drive::shards::{Locked, State};
use crate::ground::error::Error;
use crate::ground::panics::give_all;

/// A scheduler, for use anywhere: a clone is cheap and is the same scheduler. A handle may outlive
/// its [`Scheduler`](crate::Scheduler), but then it takes no tasks.
pub struct Handle<K, V, S = DefaultHashBuilder> {
    inner: Arc<Inner<K, V, S>>,
}

impl<K, V, S> Clone for Handle<K, V, S> {
    fn clone(&self) -> Self {
        Self::of(Arc::clone(&self.inner))
    }
}

impl<K, V, S> fmt::Debug for Handle<K, V, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Handle").field(&self.inner).finish()
    }
}

impl<K, V, S> Handle<K, V, S> {
    pub(crate) fn of(inner: Arc<Inner<K, V, S>>) -> Self {
        Self { inner }
    }

    pub(crate) fn inner(&self) -> &Arc<Inner<K, V, S>> {
        &self.inner
    }
}

impl<K: Hash + Eq, V, S: BuildHasher> Handle<K, V, S> {
    /// Sets a task that runs when `delay` has passed. If the key has a pending task, that task gets
    /// value and time, is no longer periodic, and remains one task; its old value is returned.
    ///
    /// A task that is running, or waits for a worker, is not pending: this one is another task.
    ///
    /// # Errors
    ///
    /// [`Error::Stopped`].
    pub fn set(&self, key: K, value: V, delay: Duration) -> Result<Option<V>, Error> {
        self.inner.wait_for_room();
        let now = self.inner.now();
        let put = self.put(key, value, now.deadline(delay), now);
        // If there was an old task, the new key is dropped here: its drop is the user's code, which
        // must not run under a lock.
        let old = put.map_err(|_| Error::Stopped)?;
        Ok(old.map(|(_, value)| value))
    }

    /// Sets a task without waiting for room, and drops nothing: for callers that hold a lock.
    /// Returns the old value, with the key to be dropped. The error is the task itself: the
    /// scheduler is stopped and refuses it.
    pub(crate) fn put(
        &self,
        key: K,
        value: V,
        deadline: u64,
        now: Moment,
    ) -> Result<Option<(K, V)>, (K, V)> {
        let Ok(mut held) = self.lock_for_new(&key) else {
            return Err((key, value));
        };
        held.state.counts.set += 1;
        let old = held.state.tasks.replace(key, value, deadline, now.tick());
        self.unlock(held);
        Ok(old)
    }

    /// Sets a task that runs at a wall time or at an instant; at once if that has passed. The clock
    /// is read once, now: stepping it later moves nothing.
    ///
    /// # Errors
    ///
    /// [`Error::Stopped`].
    pub fn set_at(&self, key: K, value: V, at: impl PointInTime) -> Result<Option<V>, Error> {
        let delay = at.delay(|| self.inner.clock.wall());
        self.set(key, value, delay)
    }

    /// Sets a task that runs after `first` and then every `period`, rounded up to milliseconds,
    /// each time with a copy of its value. It is filed for its next run before a run begins: runs
    /// of one task may overlap when the handler takes longer than the period, and
    /// [`remove`](Self::remove) ends it at any time.
    ///
    /// `Clone` of key and value is called under the shard's lock: let it be cheap (`Arc`).
    ///
    /// # Errors
    ///
    /// [`Error::Stopped`].
    pub fn set_periodic(
        &self,
        key: K,
        value: V,
        first: Duration,
        period: Duration,
        catch_up: CatchUp,
    ) -> Result<Option<V>, Error>
    where
        K: Clone,
        V: Clone,
    {
        self.inner.wait_for_room();
        let now = self.inner.now();
        let put = self.put_periodic(key, value, now.deadline(first), (period, catch_up), now);
        let old = put.map_err(|_| Error::Stopped)?;
        Ok(old.map(|(_, value)| value))
    }

    /// Sets a periodic task, as [`put`](Self::put) sets another.
    pub(crate) fn put_periodic(
        &self,
        key: K,
        value: V,
        first: u64,
        (period, catch_up): (Duration, CatchUp),
        now: Moment,
    ) -> Result<Option<(K, V)>, (K, V)>
    where
        K: Clone,
        V: Clone,
    {
        let period = NonZeroU64::new(ticks(period)).unwrap_or(NonZeroU64::MIN);
        let Ok(mut held) = self.lock_for_new(&key) else {
            return Err((key, value));
        };
        held.state.counts.set += 1;
        let tasks = &mut held.state.tasks;
        let old = tasks.replace_periodic(key, value, first, period, catch_up, now.tick());
        self.unlock(held);
        Ok(old)
    }

    /// Sets another time of a pending task: when `delay` has passed. `false` when none is pending.
    /// `true` means that it runs once, at the new time.
    pub fn move_to<Q: Hash + Equivalent<K> + ?Sized>(&self, key: &Q, delay: Duration) -> bool {
        let now = self.inner.now();
        let mut held = self.inner.shards.of(key);
        let moved = held
            .state
            .tasks
            .move_to(key, now.deadline(delay), now.tick());
        held.state.counts.moved += u64::from(moved);
        self.unlock(held);
        moved
    }

    /// Moves the key's pending task, or sets one with the value of `value`, which is called under
    /// the shard's lock. Tells whether one was moved.
    ///
    /// # Errors
    ///
    /// [`Error::Stopped`].
    pub fn move_or_set(
        &self,
        key: K,
        delay: Duration,
        value: impl FnOnce() -> V,
    ) -> Result<bool, Error> {
        self.inner.wait_for_room();
        let now = self.inner.now();
        let deadline = now.deadline(delay);
        let mut held = self.lock_for_new(&key)?;
        let State { tasks, counts, .. } = &mut *held.state;
        if tasks.move_to(&key, deadline, now.tick()) {
            counts.moved += 1;
            self.unlock(held);
            return Ok(true);
        }
        tasks.replace(key, value(), deadline, now.tick());
        counts.set += 1;
        self.unlock(held);
        Ok(false)
    }

    /// Takes a pending task out. `Some` means that it will never run. A periodic one does not run
    /// again: runs that wait for a worker are not begun, while one that a worker has begun goes on.
    pub fn remove<Q: Hash + Equivalent<K> + ?Sized>(&self, key: &Q) -> Option<V> {
        self.take(key, true).map(|(_, value)| value)
    }

    /// Removes a task as [`remove`](Self::remove) does, and returns the key too. Its drop is the
    /// user's code, and so does not happen under a lock. `recalls` says whether fired runs of a
    /// periodic task are not to begin.
    pub(crate) fn take<Q: Hash + Equivalent<K> + ?Sized>(
        &self,
        key: &Q,
        recalls: bool,
    ) -> Option<(K, V)> {
        let mut held = self.inner.shards.of(key);
        let removed = held.state.tasks.take(key, recalls);
        held.state.counts.removed += u64::from(removed.is_some());
        removed
    }

    /// The time until the key's pending task runs; zero when it is due and waits for room.
    #[must_use]
    pub fn get<Q: Hash + Equivalent<K> + ?Sized>(&self, key: &Q) -> Option<Duration> {
        let deadline = self.inner.shards.of(key).state.tasks.deadline(key)?;
        Some(self.inner.now().until(deadline))
    }

    /// Looks at the value of the key's pending task. `look` is called under the shard's lock and
    /// must not call the scheduler.
    pub fn peek<Q: Hash + Equivalent<K> + ?Sized, R>(
        &self,
        key: &Q,
        look: impl FnOnce(&V) -> R,
    ) -> Option<R> {
        self.inner.shards.of(key).state.tasks.value(key).map(look)
    }

    /// Takes every pending task out and gives it to `take`, in no order and with no lock held: it
    /// may call the scheduler, and what it sets is not drained. Shard after shard: tasks that
    /// others set meanwhile may or may not be among them. Returns how many there were.
    ///
    /// # Panics
    ///
    /// When `take` does, after it got all the other tasks too.
    pub fn drain(&self, mut take: impl FnMut(K, V)) -> usize {
        let shards = &self.inner.shards;
        let taken: Vec<_> = (0..shards.count())
            .map(|at| {
                let mut held = shards.hold(at);
                held.state.counts.removed += held.state.tasks.len() as u64;
                held.state.tasks.recall_all();
                let tasks = held.state.tasks.take_all();
                held.publish();
                tasks
            })
            .collect();
        let mut count = 0;
        give_all(taken.into_iter().flatten(), |(key, value, _)| {
            count += 1;
            take(key, value);
        });
        count
    }

    /// The scheduler's clock.
    #[must_use]
    pub fn now(&self) -> Duration {
        let since = Duration::from_nanos(self.inner.now().0);
        self.inner.clock.first().saturating_add(since)
    }

    /// Tasks that are pending.
    #[must_use]
    pub fn len(&self) -> usize {
        self.inner.shards.len()
    }

    /// True if no task is pending.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of tasks by due time: windows that double, from what is due now on, up to the
    /// last that is not empty. It counts timer records. So a task that was moved may be counted
    /// where it was before (if it was moved earlier, there too), and one that was removed is
    /// counted until its record is swept.
    #[must_use]
    pub fn forecast(&self) -> Vec<Window> {
        let forecast = self.inner.shards.forecast(self.inner.now().tick());
        let used = forecast.iter().rposition(|tasks| *tasks > 0);
        let windows = used.map_or(0, |last| last + 1);
        (0u32..)
            .zip(&forecast[..windows])
            .map(|(window, tasks)| Window {
                within: Duration::from_millis(1u64.checked_shl(window).unwrap_or(u64::MAX)),
                tasks: *tasks,
            })
            .collect()
    }

    /// The statistics. Locks shard after shard.
    #[must_use]
    pub fn stats(&self) -> Stats {
        // In this order: see `Counters`.
        let counters = &self.inner.counters;
        let counted = counters.read();
        let counts = self.inner.shards.counts();
        let (_, _, deferred) = self.inner.queue.load();
        let count = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
        Stats {
            pending: counts.pending,
            queued: count(counted.queued(counts.fired)),
            running: count(counted.running()),
            deferred,
            set: counts.set,
            moved: counts.moved,
            removed: counts.removed,
            fired: counts.fired,
            completed: counted.completed,
            panicked: counted.panicked + counts.uncopied + counters.on_timing.load(Relaxed),
            failed: counters.failed(),
            dropped: counted.dropped,
            recalled: counted.recalled,
            missed: counts.missed,
            lateness: counters.lateness.read(),
        }
    }

    /// Locks a key's shard for a new task.
    fn lock_for_new(&self, key: &K) -> Result<Locked<'_, K, V, S>, Error> {
        let held = self.inner.shards.of(key);
        if held.state.closed {
            return Err(Error::Stopped);
        }
        Ok(held)
    }

    /// Unlocks a shard and wakes the timing thread if it would sleep too long.
    fn unlock(&self, held: Locked<'_, K, V, S>) {
        if let Some(next) = held.publish() {
            self.inner.alarm.lowered(next);
        }
    }
}
