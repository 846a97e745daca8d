//! The builder sets the options of a worker, and starts it.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use tidewheel_scheduler::{Builder, Error, ManualClock, Scheduler};
use tidewheel_time::{Clock, SystemClock};

use super::Worker;
use super::around::{Around, Arounds};
use super::engine_loop::{EngineLoop, Next};
use super::manual::ManualWorker;
use super::run::{Handler, Run};
use super::settings::Settings;
use super::shared::{AnyClock, Shared, Wheel};
use super::turns;
use crate::shape::outcome::IntoOutcome;
use crate::shape::queue::check_queue;
use crate::shape::retry::Retry;
use crate::store::TaskStore;

/// The shortest and the longest pause between two questions for claims.
const POLL_MIN: Duration = Duration::from_millis(1);
const POLL_MAX: Duration = Duration::from_secs(3600);

/// A run of an async handler, as an executor takes it.
pub type RunFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Options of a [`Worker`].
pub struct WorkerBuilder<S> {
    store: S,
    settings: Settings,
    threads: Option<usize>,
    clock: Option<AnyClock>,
    around: Arounds,
}

impl<S> fmt::Debug for WorkerBuilder<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("WorkerBuilder")
            .field(&self.settings)
            .finish()
    }
}

impl<S: TaskStore> Worker<S> {
    /// Options, all of them with defaults.
    #[must_use]
    pub fn builder(store: S) -> WorkerBuilder<S> {
        WorkerBuilder {
            store,
            settings: Settings::default(),
            threads: None,
            clock: None,
            around: Arounds::default(),
        }
    }
}

impl<S: TaskStore> WorkerBuilder<S> {
    /// Sets its name, for people who look into the engine, and the label of metrics (default: the
    /// number of the process).
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.settings.name = name.into();
        self
    }

    /// Threads that run handlers (default: one for each core). A due claim that none of them begins
    /// within a second is given back, so that another worker can have it. When all of them have
    /// been busy with the same runs for half a second, what is due within the next second is given
    /// back at once.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads);
        self
    }

    /// Sets how far ahead tasks are claimed (default 10 s): longer than the engine's fail-over.
    #[must_use]
    pub fn lookahead(mut self, lookahead: Duration) -> Self {
        self.settings.lookahead = lookahead;
        self
    }

    /// Sets how long a claim lasts unless it is extended (default 8 s). That is longer than the
    /// engine's fail-over, during which nothing is extended. It is shorter than `lookahead`, so
    /// most tasks of a worker that dies are claimed by others before they are due.
    #[must_use]
    pub fn lease(mut self, lease: Duration) -> Self {
        self.settings.lease = lease;
        self
    }

    /// Claims that it holds at most, those that run included (default 10,000).
    #[must_use]
    pub fn held(mut self, held: usize) -> Self {
        self.settings.held = held;
        self
    }

    /// Sets the queues that it claims from (default: all). [`Task::queue`](crate::Task::queue) says
    /// what a name may be; the default queue's is empty.
    #[must_use]
    pub fn queues(mut self, queues: impl IntoIterator<Item: Into<String>>) -> Self {
        self.settings.queues = queues.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the time from one question for claims to the next (default 0.5 s, a millisecond at
    /// least, an hour at most), while the engine has not announced an arrival.
    #[must_use]
    pub fn poll(mut self, poll: Duration) -> Self {
        self.settings.poll = poll.clamp(POLL_MIN, POLL_MAX);
        self
    }

    /// Sets the time limit of a call of the engine (default 2 s).
    #[must_use]
    pub fn limit(mut self, limit: Duration) -> Self {
        self.settings.limit = limit;
        self
    }

    /// Sets how runs that failed are retried.
    #[must_use]
    pub fn retry(mut self, retry: Retry) -> Self {
        self.settings.retry = retry;
        self
    }

    /// Asks the engine before each run whether the task was cancelled or moved. That is one round
    /// trip, by which the run is later.
    #[must_use]
    pub fn strict(mut self, strict: bool) -> Self {
        self.settings.strict = strict;
        self
    }

    /// Adds what is done around each run. Of several the first is the outermost: its
    /// [`before`](Around::before) is called first, its [`after`](Around::after) last.
    #[must_use]
    pub fn around(mut self, around: impl Around) -> Self {
        self.around.add(around);
        self
    }

    /// Sets another clock than the system's. Its wall time is only compared with the engine's.
    #[must_use]
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Some(AnyClock(Arc::new(clock)));
        self
    }

    /// Starts the threads. `handler` runs on as many of them as there are.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] for a number out of range, [`Error::Thread`] when a thread cannot be
    /// started.
    pub fn start<R: IntoOutcome>(
        mut self,
        handler: impl Fn(&Run) -> R + Send + Sync + 'static,
    ) -> Result<Worker<S>, Error> {
        self.settings.threads = Some(self.threads.unwrap_or_else(cores));
        self.start_boxed(synchronous(handler))
    }

    /// Starts the worker with an async handler: `spawn` gives its runs to an executor, such as
    /// `move |run| { runtime.spawn(run); }`. So many run at the same time as are held. A run whose
    /// future panics or is dropped has failed.
    ///
    /// # Errors
    ///
    /// As `start`.
    pub fn start_async<F>(
        self,
        spawn: impl Fn(RunFuture) + Send + Sync + 'static,
        handler: impl Fn(Run) -> F + Send + Sync + 'static,
    ) -> Result<Worker<S>, Error>
    where
        F: Future<Output: IntoOutcome> + Send + 'static,
    {
        self.start_boxed(Box::new(move |run: Run| {
            let going = run.slot.clone().guard();
            let future = handler(run);
            spawn(Box::pin(async move {
                let outcome = future.await.into_outcome();
                going.end(outcome);
            }));
        }))
    }

    fn start_boxed(self, handler: Handler) -> Result<Worker<S>, Error> {
        let clock = self.clock.clone();
        let clock = clock.unwrap_or_else(|| AnyClock(Arc::new(SystemClock::new())));
        let (name, threads) = (self.settings.name.clone(), self.threads);
        let shared = self.shared(clock.clone(), handler)?;
        let mut wheel = wheel_builder(&name);
        if let Some(threads) = threads {
            wheel = wheel.workers(threads);
        }
        let wheel = wheel.clock(clock).start(fires(&shared))?;
        let engine_loop = start_engine_loop(&shared, wheel.handle())?;
        let mut worker = Worker {
            shared,
            wheel,
            engine_loop: Some(engine_loop),
            turns: None,
        };
        worker.turns = Some(turns::start(&worker.shared, worker.wheel.handle())?);
        Ok(worker)
    }

    /// A worker without threads, in the time of `clock`: calls of [`ManualWorker::turn`] do
    /// everything. For tests.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] for a number out of range.
    pub fn manual<R: IntoOutcome>(
        self,
        clock: &ManualClock,
        handler: impl Fn(&Run) -> R + Send + Sync + 'static,
    ) -> Result<ManualWorker<S>, Error> {
        let wheel = wheel_builder(&self.settings.name);
        let any = AnyClock(Arc::new(clock.clone()));
        let shared = self.shared(any, synchronous(handler))?;
        let wheel = wheel.manual(clock, fires(&shared))?;
        Ok(ManualWorker::new(shared, wheel))
    }

    fn shared(self, clock: AnyClock, handler: Handler) -> Result<Arc<Shared<S>>, Error> {
        let settings = &self.settings;
        if settings.name.contains('\0') {
            return Err(Error::Config("a worker's name has no zero byte"));
        }
        if settings
            .queues
            .iter()
            .any(|queue| check_queue(queue).is_err())
        {
            return Err(Error::Config("a queue has no such name"));
        }
        if settings.held == 0 {
            return Err(Error::Config("a worker holds at least one claim"));
        }
        if settings.lease < Duration::from_millis(100) {
            return Err(Error::Config("a lease lasts a tenth of a second at least"));
        }
        if settings.limit < Duration::from_millis(1) {
            return Err(Error::Config("a call may take a millisecond at least"));
        }
        let shared = Arc::new(Shared::new(
            self.store,
            self.settings,
            clock,
            (handler, self.around),
        ));
        let mailbox = Arc::downgrade(&shared);
        shared.store.on_arrival(Arc::new(move || {
            if let Some(shared) = Weak::upgrade(&mailbox) {
                shared.mailbox.arrived();
            }
        }));
        Ok(shared)
    }
}

fn cores() -> usize {
    thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get)
}

fn wheel_builder(name: &str) -> Builder<u64, ()> {
    Scheduler::builder().name(name)
}

fn synchronous<R: IntoOutcome>(handler: impl Fn(&Run) -> R + Send + Sync + 'static) -> Handler {
    Box::new(move |run: Run| run.slot.clone().of(|| handler(&run)))
}

/// The wheel's handler, which fires the claims that are due.
fn fires<S: TaskStore>(
    shared: &Arc<Shared<S>>,
) -> impl Fn(&Wheel, tidewheel_scheduler::Run<u64, ()>) + Send + Sync + 'static {
    let shared = Arc::clone(shared);
    move |wheel, run| shared.fire(wheel, run.key)
}

fn start_engine_loop<S: TaskStore>(
    shared: &Arc<Shared<S>>,
    wheel: Wheel,
) -> Result<thread::JoinHandle<()>, Error> {
    let shared = Arc::clone(shared);
    let name = format!("{}-engine", shared.settings.name);
    let engine_loop = thread::Builder::new().name(name);
    let engine_loop = engine_loop.spawn(move || {
        let mut engine_loop = EngineLoop::new(&shared);
        while let Next::Turn(sleep) = engine_loop.turn(&shared, &wheel) {
            engine_loop.wait(&shared, sleep);
        }
    });
    engine_loop.map_err(Error::Thread)
}
