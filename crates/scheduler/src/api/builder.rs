//! The builder sets the options of a scheduler: workers, queue, back-pressure, shards, clock.

use std::fmt;
use std::hash::{BuildHasher, Hash};
use std::marker::PhantomData;
use std::num::NonZeroUsize;
use std::sync::{Arc, OnceLock};
use std::thread;

use tidewheel_time::{Alarm, Clock, DefaultHashBuilder, ManualClock, Readings};

use crate::api::handle::Handle;
use crate::api::scheduler::Scheduler;
use crate::core::run::Run;
use crate::drive::inner::{Counters, Handler, Inner};
use crate::drive::queue::{BackPressure, Queue};
use crate::drive::shards::Shards;
use crate::drive::threads::Threads;
use crate::ground::error::Error;

/// Most workers of one scheduler.
const WORKERS_MAX: usize = 4096;

/// Most tasks that may wait for a worker.
const QUEUE_MAX: usize = 1 << 24;

/// Runs that may be unfinished at the same time, unless somebody says another number.
const IN_FLIGHT: usize = 1024;

/// Most shards.
const SHARDS_MAX: usize = 1024;

/// Options of a [`Scheduler`].
pub struct Builder<K, V, S = DefaultHashBuilder> {
    name: String,
    workers: usize,
    queue: usize,
    back_pressure: BackPressure,
    shards: usize,
    /// Runs that may be unfinished, those of the workers included.
    in_flight: usize,
    clock: Option<Box<dyn Clock>>,
    hasher: S,
    tasks: PhantomData<fn(K, V)>,
}

impl<K, V, S> fmt::Debug for Builder<K, V, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("name", &self.name)
            .field("workers", &self.workers)
            .field("queue", &self.queue)
            .field("back_pressure", &self.back_pressure)
            .field("shards", &self.shards)
            .finish_non_exhaustive()
    }
}

impl<K, V> Default for Builder<K, V> {
    fn default() -> Self {
        let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
        Self {
            name: "tidewheel".to_owned(),
            workers: cores,
            queue: 4096,
            back_pressure: BackPressure::default(),
            in_flight: IN_FLIGHT,
            shards: (4 * cores).next_power_of_two().min(SHARDS_MAX),
            clock: None,
            hasher: DefaultHashBuilder::default(),
            tasks: PhantomData,
        }
    }
}

impl<K: Hash + Eq, V> Scheduler<K, V> {
    /// Options, all of them with defaults.
    #[must_use]
    pub fn builder() -> Builder<K, V> {
        Builder::default()
    }
}

impl<K, V, S> Builder<K, V, S> {
    /// Bounds the runs that are unfinished at the same time (default 1,024, and no fewer than there
    /// are workers): handlers that run, and futures of [`start_async`](Self::start_async). When
    /// there are so many, due tasks wait for a worker.
    #[must_use]
    pub fn in_flight(mut self, runs: usize) -> Self {
        self.in_flight = runs;
        self
    }
}

impl<K, V, S: BuildHasher + Clone> Builder<K, V, S> {
    /// Sets the beginning of the threads' names, and the label of metrics (default `tidewheel`).
    /// With a NUL character no thread can be started.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Threads that run handlers, so handlers that run at the same time (default: one for each
    /// core).
    #[must_use]
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = workers;
        self
    }

    /// Due tasks that may wait for a worker (default 4096).
    #[must_use]
    pub fn queue(mut self, queue: usize) -> Self {
        self.queue = queue;
        self
    }

    /// Sets what happens to due tasks when the queue is full (default [`BackPressure::RunLate`]).
    #[must_use]
    pub fn back_pressure(mut self, back_pressure: BackPressure) -> Self {
        self.back_pressure = back_pressure;
        self
    }

    /// Locks among which keys are spread: a power of two (default: four for each core). Tasks run
    /// in the order of their deadlines within a shard.
    #[must_use]
    pub fn shards(mut self, shards: usize) -> Self {
        self.shards = shards;
        self
    }

    /// Sets another clock than the system's.
    #[must_use]
    pub fn clock(mut self, clock: impl Clock + 'static) -> Self {
        self.clock = Some(Box::new(clock));
        self
    }

    /// Sets another hasher.
    #[must_use]
    pub fn hasher<T: BuildHasher + Clone>(self, hasher: T) -> Builder<K, V, T> {
        Builder {
            name: self.name,
            workers: self.workers,
            queue: self.queue,
            back_pressure: self.back_pressure,
            shards: self.shards,
            in_flight: self.in_flight,
            clock: self.clock,
            hasher,
            tasks: PhantomData,
        }
    }

    /// Starts the timing thread and the workers. `handler` runs on them, and may call the scheduler
    /// by the handle that it gets.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] for a number out of range, [`Error::Thread`] when a thread cannot be
    /// started.
    pub fn start(
        self,
        handler: impl Fn(&Handle<K, V, S>, Run<K, V>) + Send + Sync + 'static,
    ) -> Result<Scheduler<K, V, S>, Error>
    where
        K: Hash + Eq + Send + 'static,
        V: Send + 'static,
        S: Send + Sync + 'static,
    {
        if self.workers == 0 || self.workers > WORKERS_MAX {
            return Err(Error::Config("the number of workers lies in 1..=4096"));
        }
        let (name, workers) = (self.name.clone(), self.workers);
        let inner = self.inner(boxed(handler), None)?;
        let handle = Handle::of(inner);
        let threads = Threads::start(handle.inner(), &name, workers)?;
        Ok(Scheduler::new(handle, threads))
    }

    /// A scheduler without threads, in the time of `clock`: calls of [`Scheduler::advance`] run
    /// what is due, on the caller's thread. The options of workers, queue and back-pressure have no
    /// effect.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] for a number out of range.
    pub fn manual(
        self,
        clock: &ManualClock,
        handler: impl Fn(&Handle<K, V, S>, Run<K, V>) + Send + Sync + 'static,
    ) -> Result<Scheduler<K, V, S>, Error>
    where
        K: Hash + Eq,
    {
        let inner = self.inner(boxed(handler), Some(clock.clone()))?;
        Ok(Scheduler::new(Handle::of(inner), Threads::default()))
    }

    fn inner(
        self,
        handler: Box<Handler<K, V, S>>,
        manual: Option<ManualClock>,
    ) -> Result<Arc<Inner<K, V, S>>, Error> {
        if self.queue == 0 || self.queue > QUEUE_MAX {
            return Err(Error::Config("the queue's length lies in 1..=2^24"));
        }
        if !self.shards.is_power_of_two() || self.shards > SHARDS_MAX {
            return Err(Error::Config(
                "the number of shards is a power of two, 1024 at most",
            ));
        }
        Ok(Arc::new(Inner {
            shards: Shards::new(self.shards, self.hasher),
            alarm: Arc::new(Alarm::new()),
            timing_thread: OnceLock::new(),
            queue: Queue::new(self.queue, self.in_flight.max(self.workers)),
            back_pressure: self.back_pressure,
            manual: manual.is_some(),
            clock: match (manual, self.clock) {
                (Some(clock), _) => Readings::given(Box::new(clock)),
                (None, Some(clock)) => Readings::given(clock),
                (None, None) => Readings::system(),
            },
            counters: Counters::default(),
            handler,
            #[cfg(feature = "metrics")]
            published: (self.name, Default::default()),
        }))
    }
}

/// The user's handler as the scheduler's threads call it: each call gets a handle.
fn boxed<K, V, S>(
    handler: impl Fn(&Handle<K, V, S>, Run<K, V>) + Send + Sync + 'static,
) -> Box<Handler<K, V, S>> {
    Box::new(move |inner, run| handler(&Handle::of(Arc::clone(inner)), run))
}
