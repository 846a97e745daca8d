//! `TaskStream` is a stream of due tasks on tokio, for one async task that owns them.

use std::fmt;
use std::future::{Future, poll_fn};
use std::hash::{BuildHasher, Hash};
use std::num::NonZeroU64;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use equivalent::Equivalent;
use futures_core::Stream;
use tidewheel_time::{DefaultHashBuilder, Moment, TICK_NANOS, TokioClock, ticks};
use tokio::time::{Instant, Sleep, sleep_until};

use crate::api::serial::Serial;
use crate::core::routine::CatchUp;
use crate::core::run::Run;
use crate::core::tasks::{Due, Tasks};

/// Timer records that one poll looks at before it lets other tasks run.
const RECORDS_PER_POLL: u32 = 1024;

/// Tasks by key; the stream's items are their runs. It does what otherwise takes a `DelayQueue` of
/// `tokio-util` and a map from keys to the queue's own keys.
///
/// A task can be moved and removed until the stream hands it out. The stream never ends: while
/// nothing is pending it waits for a [`set`](Self::set). Like every stream it belongs to one async
/// task. To set tasks from elsewhere, send them to that task, or use
/// [`Scheduler`](crate::Scheduler).
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// use std::time::Duration;
/// use tidewheel_scheduler::TaskStream;
///
/// let mut tasks: TaskStream<&str, u32> = TaskStream::new();
/// tasks.set("egg", 1, Duration::from_millis(3));
/// let run = tasks.next().await;
/// assert_eq!((run.key, run.value), ("egg", 1));
/// # });
/// ```
pub struct TaskStream<K, V, S = DefaultHashBuilder> {
    tasks: Tasks<K, V, S>,
    clock: TokioClock,
    /// The time until which the stream sleeps; `None` while it does not.
    sleep: Option<Pin<Box<Sleep>>>,
    sleeps_until: u64,
    waker: Option<Waker>,
}

// Nothing in here is pinned in place: the sleep has a box of its own.
impl<K, V, S> Unpin for TaskStream<K, V, S> {}

impl<K, V, S> fmt::Debug for TaskStream<K, V, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskStream")
            .field("len", &self.tasks.len())
            .field("sleeps_until", &self.sleeps_until)
            .finish_non_exhaustive()
    }
}

impl<K, V> TaskStream<K, V> {
    /// No tasks.
    #[must_use]
    pub fn new() -> Self {
        Self::with_hasher(DefaultHashBuilder::default())
    }
}

impl<K, V, S: Default> Default for TaskStream<K, V, S> {
    fn default() -> Self {
        Self::with_hasher(S::default())
    }
}

impl<K, V, S> TaskStream<K, V, S> {
    /// No tasks, keys to be hashed by `hasher`.
    #[must_use]
    pub fn with_hasher(hasher: S) -> Self {
        Self {
            tasks: Tasks::with_hasher(hasher),
            clock: TokioClock::new(),
            sleep: None,
            sleeps_until: u64::MAX,
            waker: None,
        }
    }

    /// Tasks that are pending.
    #[must_use]
    pub fn len(&self) -> usize {
        self.tasks.len()
    }

    /// True if no task is pending.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    /// Takes every task out, in no order.
    pub fn drain(&mut self, take: impl FnMut(K, V)) {
        self.tasks.drain(take);
    }

    fn now(&self) -> Moment {
        self.clock.now()
    }

    /// Wakes the async task if it sleeps for longer than is right now.
    fn wake(&mut self) {
        let next = self.tasks.next_deadline().unwrap_or(u64::MAX);
        if next >= self.sleeps_until {
            return;
        }
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

impl<K: Hash + Eq, V, S: BuildHasher> TaskStream<K, V, S> {
    /// Sets a task: see [`Handle::set`](crate::Handle::set).
    pub fn set(&mut self, key: K, value: V, delay: Duration) -> Option<V> {
        let now = self.now();
        let old = self.tasks.set(key, value, now.deadline(delay), now.tick());
        self.wake();
        old
    }

    /// Sets a periodic task: see [`Handle::set_periodic`](crate::Handle::set_periodic).
    pub fn set_periodic(
        &mut self,
        key: K,
        value: V,
        first: Duration,
        period: Duration,
        catch_up: CatchUp,
    ) -> Option<V>
    where
        K: Clone,
        V: Clone,
    {
        let now = self.now();
        let period = NonZeroU64::new(ticks(period)).unwrap_or(NonZeroU64::MIN);
        let first = now.deadline(first);
        let old = self
            .tasks
            .set_periodic(key, value, first, period, catch_up, now.tick());
        self.wake();
        old
    }

    /// Moves a pending task: see [`Handle::move_to`](crate::Handle::move_to).
    pub fn move_to<Q: Hash + Equivalent<K> + ?Sized>(&mut self, key: &Q, delay: Duration) -> bool {
        let now = self.now();
        let moved = self.tasks.move_to(key, now.deadline(delay), now.tick());
        self.wake();
        moved
    }

    /// Takes a pending task out: see [`Handle::remove`](crate::Handle::remove).
    pub fn remove<Q: Hash + Equivalent<K> + ?Sized>(&mut self, key: &Q) -> Option<V> {
        self.tasks.remove(key)
    }

    /// Sets a task that is due at an instant; at once if that has passed. A `std::time::Instant` is
    /// one too.
    pub fn set_at(&mut self, key: K, value: V, at: impl Into<Instant>) -> Option<V> {
        let delay = self.clock.until(at.into());
        self.set(key, value, delay)
    }

    /// Moves the key's pending task, or sets one with the value of `value`. Tells whether one was
    /// moved.
    pub fn move_or_set(&mut self, key: K, delay: Duration, value: impl FnOnce() -> V) -> bool {
        let now = self.now();
        let moved = self
            .tasks
            .move_or_set(key, now.deadline(delay), now.tick(), value);
        self.wake();
        moved
    }

    /// The value of the key's pending task.
    #[must_use]
    pub fn peek<Q: Hash + Equivalent<K> + ?Sized>(&self, key: &Q) -> Option<&V> {
        self.tasks.value(key)
    }

    /// Waits for the next task that is due, and takes it out. While nothing is pending it waits for
    /// ever, unless another branch of a `select!` ends the wait.
    ///
    /// Dropping the future loses no task.
    pub async fn next(&mut self) -> Run<K, V> {
        poll_fn(|context| self.poll_due(context)).await
    }

    /// The time until the key's pending task runs.
    #[must_use]
    pub fn get<Q: Hash + Equivalent<K> + ?Sized>(&self, key: &Q) -> Option<Duration> {
        Some(self.now().until(self.tasks.deadline(key)?))
    }

    /// The next task that is due, or until when to sleep.
    fn next_due(&mut self, left: &mut u32) -> Result<Due<K, V>, u64> {
        let now = self.now().tick();
        loop {
            let mut due = None;
            // One at a time: what is taken out here cannot be removed any more.
            let progress = self.tasks.advance(now, 1, |task| due = Some(task));
            if let Some(due) = due {
                return Ok(due);
            }
            *left = left.saturating_sub(1);
            if !progress.backlog || *left == 0 {
                return Err(progress.next_deadline.unwrap_or(u64::MAX));
            }
        }
    }

    fn poll_due(&mut self, context: &mut Context<'_>) -> Poll<Run<K, V>> {
        let mut left = RECORDS_PER_POLL;
        loop {
            let until = match self.next_due(&mut left) {
                Ok(due) => {
                    let late = self.now().since(due.deadline);
                    return Poll::Ready(Run {
                        key: due.key,
                        value: due.value,
                        late,
                        missed: due.missed,
                    });
                }
                Err(until) => until,
            };
            if left == 0 {
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            self.sleeps_until = until;
            if until == u64::MAX {
                self.sleep = None;
                self.waker = Some(context.waker().clone());
                return Poll::Pending;
            }
            let at = self.clock.instant(Moment(until.saturating_mul(TICK_NANOS)));
            let sleep = match &mut self.sleep {
                Some(sleep) => {
                    if sleep.deadline() != at {
                        sleep.as_mut().reset(at);
                    }
                    sleep
                }
                None => self.sleep.insert(Box::pin(sleep_until(at))),
            };
            if sleep.as_mut().poll(context).is_pending() {
                self.waker = Some(context.waker().clone());
                return Poll::Pending;
            }
            left = left.saturating_sub(1);
            // A sleep that is over stays so: the next one is another.
            self.sleep = None;
            self.sleeps_until = 0;
        }
    }
}

impl<K: Hash + Eq, V, S: BuildHasher> Stream for TaskStream<K, V, S> {
    type Item = Run<K, V>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.get_mut().poll_due(context).map(Some)
    }
}

impl<V, S: BuildHasher> TaskStream<Serial, V, S> {
    /// Sets a task that has no key of its own, and returns the one that it gets.
    pub fn add(&mut self, value: V, delay: Duration) -> Serial {
        let key = Serial::new();
        self.set(key, value, delay);
        key
    }
}
