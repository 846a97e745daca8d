//! A cache's time, and the caller as its driver: `advance`, `drive`, `run_refreshes`.

use std::future::Future;
use std::hash::{BuildHasher, Hash};
use std::sync::Arc;
use std::time::Duration;

use crate::core::inner::Inner;
use crate::core::workers::{WorkerGuard, WorkerKind};
use crate::drive::driver::{Driver, SharedDriver};
use crate::drive::driving::Driving;
use crate::drive::group::{TaskTimers, drive_alone};
use crate::drive::step::{Progress, Rounds, TurnBudget};
use crate::error::BuildError;
use crate::handle::cache::Cache;
use crate::sync::{Mutex, try_lock};

/// # Time, and who drives
impl<K: Hash + Eq, V, S: BuildHasher> Cache<K, V, S> {
    /// Returns the time until the earliest deadline, or until the driver wants to work ahead for
    /// it: a lower bound. `None` when nothing has a deadline.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Duration> {
        self.inner
            .next_deadline()
            .map(|tick| self.inner.until(tick))
    }

    /// Time stands still for every entry: nothing expires until [`resume`](Self::resume). For when
    /// the origin is down and old data is better than none. O(1).
    pub fn freeze(&self) {
        self.inner.time.freeze();
    }

    /// Ends a [`freeze`](Self::freeze): every deadline has moved by its length. O(1).
    pub fn resume(&self) {
        self.inner.time.resume();
        self.inner.requests.ask();
    }

    /// The cache's clock, less the time it was frozen. (Of a given clock that was set: as if it had
    /// not been.)
    #[must_use]
    pub fn now(&self) -> Duration {
        let since = Duration::from_nanos(self.inner.now().0);
        self.inner.time.origin().saturating_add(since)
    }

    /// Removes entries whose time is over at `now`, calls the listener, and tidies memory; the
    /// manual driver. `now` is a reading of [`now`](Self::now); a later one counts as that.
    /// `budget` bounds the timer records touched and entries moved.
    #[doc(alias = "run_pending_tasks", alias = "cleanUp")]
    pub fn advance(&self, now: Duration, budget: u32) -> Progress {
        let inner = &*self.inner;
        let mut left = budget;
        let mut rounds = try_lock(&self.owner.rounds);
        let mut progress = inner.advance(rounds.as_deref_mut(), now, &mut left);
        drop(rounds);
        inner.deliver(false);
        progress.next = self.next_deadline();
        progress
    }

    /// Removes everything whose time is over now and everything that was invalidated, delivers the
    /// events, and tidies memory; returns how many entries expired. [`advance`](Self::advance) in
    /// one call and without a budget, for tests:
    ///
    /// ```
    /// use std::time::Duration;
    /// use tidewheel::{Cache, Driver, ManualClock};
    /// # fn main() -> Result<(), tidewheel::BuildError> {
    /// let clock = ManualClock::new();
    /// let cache = Cache::<u32, u32>::builder().unbounded().time_to_live(Duration::from_secs(5))
    ///     .clock(clock.clone()).driver(Driver::Manual).build()?;
    /// cache.insert(1, 1);
    /// clock.advance(Duration::from_secs(5));
    /// assert_eq!((cache.run_due(), cache.len()), (1, 0));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// It ends with more to do only where the listener is being called by another thread, or by
    /// this one, and its queue is full. Refreshes are [`run_refreshes`](Self::run_refreshes)'s.
    #[doc(alias = "run_pending_tasks", alias = "cleanUp")]
    pub fn run_due(&self) -> u64 {
        let mut expired = 0;
        loop {
            let progress = self.advance(self.now(), u32::MAX);
            expired += progress.expired;
            // What has not moved waits for somebody else.
            if !progress.backlog || progress.expired + progress.moved == 0 {
                return expired;
            }
        }
    }

    /// Runs up to `max` of the refreshes that reads have queued, on this thread; returns how many
    /// it took. For drivers other than [`Driver::Thread`](crate::Driver::Thread), which has threads
    /// for it: an async application calls this where blocking is allowed, on several threads if it
    /// likes. Async refreshes are for [`drive`](Self::drive): of them it takes none.
    pub fn run_refreshes(&self, max: usize) -> usize {
        let mut taken = 0;
        while taken < max && !self.inner.refreshes_are_async() {
            let Some(job) = self.inner.refreshes.pop() else {
                break;
            };
            self.inner.refresh(job);
            taken += 1;
        }
        taken
    }
}

/// As a future.
impl<K, V, S> Cache<K, V, S>
where
    K: Hash + Eq + Send + Sync + 'static,
    V: Send + Sync + 'static,
    S: BuildHasher + Send + Sync + 'static,
{
    /// The driver as a future, for [`Driver::Task`](crate::Driver::Task): spawn it on any runtime.
    /// `sleep` is the runtime's timer. It removes what is due, calls the listener (and awaits an
    /// async one), and polls async refreshes.
    ///
    /// It ends when the cache is closed, or its last handle is gone: then it removes the entries
    /// and delivers the last events, though it may not have been polled before. It does not keep
    /// the cache open. Dropped before its end, it can be made anew, and goes on where it was:
    /// refreshes in flight end with it, and are asked for again by the next reads; no event is
    /// lost. One drives at a time, the one that was polled first; another one waits until that ends
    /// or is dropped. (So one that is neither polled nor dropped keeps the cache from being
    /// driven.) Of a cache that threads drive, it ends at once. A panic of `sleep` ends it.
    pub fn drive<T, F>(&self, sleep: T) -> impl Future<Output = ()> + use<T, F, K, V, S>
    where
        T: Fn(Duration) -> F,
        F: Future<Output = ()>,
    {
        let driving = Driving::by_task(Arc::clone(&self.inner), TurnBudget::OWN);
        async move {
            if let Some(driving) = driving {
                drive_alone(driving, TaskTimers::new(sleep)).await;
            }
        }
    }
}

/// The last handle that goes drops it.
pub(super) struct Owner<K, V, S> {
    pub(super) inner: Arc<Inner<K, V, S>>,
    /// [`shut`](Self::shut), for those who do not know that keys can be hashed: a handle's type and
    /// its drop have no bounds, so that neither need the types that hold one.
    close: fn(&Self),
    /// The state of the caller's own passes.
    pub(super) rounds: Mutex<Rounds>,
    /// First told to stop, then without a driver.
    _guard: WorkerGuard,
    /// The driver, unless that is the caller; true if it is the cache's own.
    #[cfg_attr(
        not(feature = "system"),
        allow(dead_code, reason = "kept while there is a handle")
    )]
    driver: Option<(SharedDriver, bool)>,
}

/// Joins a cache to a shared driver. The builder's method that takes one names it.
pub(super) type Join<K, V, S> = fn(&SharedDriver, &Arc<Inner<K, V, S>>) -> Result<(), BuildError>;

impl<K, V, S> Owner<K, V, S>
where
    K: Hash + Eq + Send + Sync + 'static,
    V: Send + Sync + 'static,
    S: BuildHasher + Send + Sync + 'static,
{
    pub(super) fn start(
        inner: &Arc<Inner<K, V, S>>,
        driver: Driver,
        join: Option<Join<K, V, S>>,
    ) -> Result<Self, BuildError> {
        let guard = WorkerGuard::join(inner, WorkerKind::Handles);
        let driver = match driver {
            #[cfg(feature = "system")]
            Driver::Thread => Some((SharedDriver::of_one(inner)?, true)),
            Driver::Shared(shared) => {
                if let Some(join) = join {
                    join(&shared, inner)?;
                }
                Some((shared, false))
            }
            _ => None,
        };
        Ok(Self {
            inner: Arc::clone(inner),
            close: Self::shut,
            rounds: Mutex::new(Rounds::default()),
            _guard: guard,
            driver,
        })
    }

    fn shut(&self) {
        self.inner.close();
        #[cfg(feature = "system")]
        if let Some((driver, true)) = &self.driver {
            if crate::core::reentrancy::is_free() {
                driver.end();
            }
        }
    }
}

impl<K, V, S> Owner<K, V, S> {
    pub(super) fn close(&self) {
        (self.close)(self);
    }
}
