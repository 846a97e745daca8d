//! The worker threads of one cache or many: one for expiry, one for listeners, some for refreshes.

use std::hash::{BuildHasher, Hash};
use std::io;
use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle};

use crate::core::hooks::Runs;
use crate::core::inner::Inner;
use crate::core::requests::Requests;
use crate::core::workers::{WorkerGuard, WorkerKind};
use crate::drive::driving::Driving;
use crate::drive::pool::Pool;
use crate::drive::step::TurnBudget;
use crate::drive::thread::DrivingThread;
use crate::events::reentrancy;
use crate::sync::{Mutex, lock};

/// The threads of one driver. They start when a cache joins that needs them.
pub(crate) struct WorkerThreads(Arc<SharedState>);

/// The state that the threads share: what they drive, their pool, and their handles.
struct SharedState {
    name: String,
    expiry: DrivingThread,
    events: DrivingThread,
    refreshes: Pool,
    threads: Mutex<Threads>,
}

#[derive(Default)]
struct Threads {
    expiry: bool,
    events: bool,
    handles: Vec<JoinHandle<()>>,
}

impl WorkerThreads {
    pub(crate) fn new(name: &str, refresh_threads: usize) -> Self {
        Self(Arc::new(SharedState {
            name: name.to_string(),
            expiry: DrivingThread::new(),
            events: DrivingThread::new(),
            refreshes: Pool::new(refresh_threads),
            threads: Mutex::new(Threads::default()),
        }))
    }

    /// Works for a cache from now on, until that is closed.
    pub(crate) fn join<K, V, S>(
        &self,
        inner: &Arc<Inner<K, V, S>>,
        budget: TurnBudget,
    ) -> io::Result<()>
    where
        K: Hash + Eq + Send + Sync + 'static,
        V: Send + Sync + 'static,
        S: BuildHasher + Send + Sync + 'static,
    {
        let (listener, refresh) = (&inner.hooks.listener, &inner.hooks.refresh);
        self.0.start(listener.is_some(), refresh.is_some())?;
        inner.requests.work_by_threads();
        if let Some(refresh) = refresh {
            self.refresh(&inner.requests, (refresh.runs)(inner));
        }
        if let Some(listener) = listener {
            let guard = WorkerGuard::join(inner, WorkerKind::Thread);
            let work = (listener.drive)(Arc::clone(inner), budget.events, guard);
            self.0.events.join(work);
        }
        let work = Driving::by_thread(Arc::clone(inner), budget);
        self.0.expiry.join(Box::new(work));
        Ok(())
    }

    /// Runs the cache's refreshes on these threads.
    fn refresh(&self, requests: &Requests, cache: Weak<dyn Runs>) {
        let shared = Arc::clone(&self.0);
        requests.tell_of_refreshes(move || {
            let Some(cache) = cache.upgrade() else { return };
            if cache.begin() && shared.refreshes.push(cache) {
                // Not started here: a read has caused this.
                shared.expiry.ask();
            }
        });
    }

    /// The threads end once the caches that they work for have.
    pub(crate) fn end(&self) {
        self.0.expiry.end();
        self.0.events.end();
        self.0.refreshes.end();
    }

    /// Waits until they have.
    pub(crate) fn wait(&self) {
        let handles = std::mem::take(&mut lock(&self.0.threads).handles);
        for handle in handles {
            // A panic there was reported by its hook.
            let _ = handle.join();
        }
    }
}

impl Drop for WorkerThreads {
    fn drop(&mut self) {
        self.end();
    }
}

impl SharedState {
    /// Starts the threads that are needed and not there yet.
    fn start(self: &Arc<Self>, listens: bool, refreshes: bool) -> io::Result<()> {
        let mut threads = lock(&self.threads);
        if !threads.expiry {
            let shared = Arc::clone(self);
            let work = move || shared.expiry.run(&|| shared.start_refreshing());
            self.spawn(&mut threads, "expiry", Box::new(work))?;
            threads.expiry = true;
        }
        if listens && !threads.events {
            let shared = Arc::clone(self);
            let work = move || shared.events.run(&|| ());
            self.spawn(&mut threads, "events", Box::new(work))?;
            threads.events = true;
        }
        if refreshes && self.refreshes.begin_thread(true) {
            self.spawn_refresher(&mut threads, true)?;
        }
        Ok(())
    }

    /// Starts threads for refreshes as they are wanted.
    fn start_refreshing(self: &Arc<Self>) {
        while self.refreshes.begin_thread(false) {
            let mut threads = lock(&self.threads);
            threads.handles.retain(|handle| !handle.is_finished());
            if self.spawn_refresher(&mut threads, false).is_err() {
                // There is the first one.
                return;
            }
        }
    }

    fn spawn_refresher(self: &Arc<Self>, threads: &mut Threads, is_first: bool) -> io::Result<()> {
        let shared = Arc::clone(self);
        let started = self.spawn(
            threads,
            "refresh",
            Box::new(move || shared.refreshes.work(is_first)),
        );
        if started.is_err() {
            self.refreshes.end_thread();
        }
        started
    }

    fn spawn(
        &self,
        threads: &mut Threads,
        role: &str,
        work: Box<dyn FnOnce() + Send>,
    ) -> io::Result<()> {
        if self.name.contains('\0') {
            // The standard library panics.
            let why = "its name has a NUL character";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        let builder = thread::Builder::new().name(format!("{}-{role}", self.name));
        threads.handles.push(builder.spawn(|| {
            reentrancy::work_for_caches();
            work();
        })?);
        Ok(())
    }
}
