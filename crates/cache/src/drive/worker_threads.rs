//! The worker threads of one cache or many: one for expiry, one for listeners, some for refreshes.

use std::collections::VecDeque;
use std::hash::{BuildHasher, Hash};
use std::io;
use std::sync::{Arc, OnceLock, Weak};
use std::task::Waker;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tidewheel_time::waker_of;

use crate::core::delivery::Delivered;
use crate::core::hooks::Runs;
use crate::core::inner::Inner;
use crate::core::reentrancy;
use crate::core::requests::Requests;
use crate::core::workers::{Driven, Turn, WorkerGuard, WorkerKind};
use crate::drive::driving::Driving;
use crate::drive::group::{Group, ThreadTimers};
use crate::drive::step::TurnBudget;
use crate::sync::{Condvar, Mutex, Ordering::SeqCst, lock};

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

/// A thread as others see it: any thread may give it something to drive.
pub(crate) struct DrivingThread {
    inbox: Mutex<Inbox>,
    thread: OnceLock<thread::Thread>,
}

struct Inbox {
    joined: Vec<Box<dyn Driven>>,
    /// True if nothing more will join.
    over: bool,
    /// True if the inbox changed since the thread looked.
    news: bool,
}

impl DrivingThread {
    pub(crate) fn new() -> Self {
        Self {
            inbox: Mutex::new(Inbox {
                joined: Vec::new(),
                over: false,
                news: false,
            }),
            thread: OnceLock::new(),
        }
    }

    /// Lets the thread drive something to its end.
    pub(crate) fn join(&self, work: Box<dyn Driven>) {
        self.tell(|inbox| inbox.joined.push(work));
    }

    /// The thread ends once all that it drives has.
    pub(crate) fn end(&self) {
        self.tell(|inbox| inbox.over = true);
    }

    /// Makes the thread look at everything again.
    pub(crate) fn ask(&self) {
        self.tell(|_| ());
    }

    fn tell(&self, change: impl FnOnce(&mut Inbox)) {
        let mut inbox = lock(&self.inbox);
        change(&mut inbox);
        inbox.news = true;
        drop(inbox);
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }

    /// The thread. `errand` is what it does beside, whenever it wakes.
    pub(crate) fn run(&self, errand: &dyn Fn()) {
        let own = thread::current();
        let waker = waker_of(own.clone());
        // Whoever comes before this is seen by the first look.
        let _ = self.thread.set(own);
        let mut group = Group::new(ThreadTimers::new());
        loop {
            let over = self.look(&mut group);
            errand();
            group.poll(&waker);
            if over && group.len() == 0 {
                return;
            }
            let next = group.fire();
            // A look just before the sleep: user code may have used up the call that was to prevent
            // it.
            if group.is_woken() || lock(&self.inbox).news {
                continue;
            }
            match next {
                Some(left) => thread::park_timeout(left),
                None => thread::park(),
            }
        }
    }

    /// Takes what has come; whether that was all.
    fn look(&self, group: &mut Group<ThreadTimers>) -> bool {
        let mut inbox = lock(&self.inbox);
        inbox.news = false;
        let joined = std::mem::take(&mut inbox.joined);
        let over = inbox.over;
        drop(inbox);
        joined.into_iter().for_each(|work| group.push(work));
        over
    }
}

/// The time that a thread other than the first waits for work before it ends.
const IDLE: Duration = Duration::from_secs(10);

/// Threads and their work. A cache is in the queue as often as it may run one more refresh at a
/// time, and goes to the end of the queue after each: caches that share the threads take turns.
pub(crate) struct Pool {
    state: Mutex<PoolState>,
    arrived: Condvar,
    /// Threads at most.
    limit: usize,
}

struct PoolState {
    queue: VecDeque<Arc<dyn Runs>>,
    threads: usize,
    /// Threads that wait for work.
    idle: usize,
    over: bool,
}

impl Pool {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            state: Mutex::new(PoolState {
                queue: VecDeque::new(),
                threads: 0,
                idle: 0,
                over: false,
            }),
            arrived: Condvar::new(),
            limit,
        }
    }

    /// Queues one refresh of a cache; whether another thread is wanted for it.
    pub(crate) fn push(&self, cache: Arc<dyn Runs>) -> bool {
        let mut state = lock(&self.state);
        state.queue.push_back(cache);
        let wants = state.wants_thread(self.limit);
        drop(state);
        self.arrived.notify_one();
        wants
    }

    /// Counts one more thread, if one is needed, or as the first one; the caller starts it.
    pub(crate) fn begin_thread(&self, is_first: bool) -> bool {
        let mut state = lock(&self.state);
        let begins = match is_first {
            true => state.threads == 0,
            false => state.wants_thread(self.limit),
        };
        state.threads += usize::from(begins);
        begins
    }

    /// A thread that was to be started has not, or has ended.
    pub(crate) fn end_thread(&self) {
        lock(&self.state).threads -= 1;
    }

    /// Ends the threads after what they are doing.
    pub(crate) fn end(&self) {
        let mut state = lock(&self.state);
        state.over = true;
        let left = std::mem::take(&mut state.queue);
        drop(state);
        drop(left);
        self.arrived.notify_all();
    }

    /// A thread: runs what there is until there is no more for a while, or, as the first one, to
    /// the end.
    pub(crate) fn work(&self, is_first: bool) {
        while let Some(cache) = self.next(is_first) {
            if Arc::clone(&cache).run_one() {
                // This thread, if no other, comes to it.
                self.push(cache);
            }
        }
        self.end_thread();
    }

    fn next(&self, is_first: bool) -> Option<Arc<dyn Runs>> {
        let mut state = lock(&self.state);
        loop {
            if let Some(cache) = state.queue.pop_front() {
                return Some(cache);
            }
            if state.over {
                return None;
            }
            state.idle += 1;
            let (waited, timeout) = self
                .arrived
                .wait_timeout(state, IDLE)
                .unwrap_or_else(std::sync::PoisonError::into_inner);
            state = waited;
            state.idle -= 1;
            if timeout.timed_out() && !is_first && state.queue.is_empty() {
                return None;
            }
        }
    }
}

impl PoolState {
    /// Returns whether more jobs wait than threads.
    fn wants_thread(&self, limit: usize) -> bool {
        !self.over && self.threads < limit && self.queue.len() > self.idle
    }
}

/// Tells the listener whenever there is something to tell, until the cache is closed and all is
/// told.
pub(crate) struct Telling<K, V, S> {
    inner: Arc<Inner<K, V, S>>,
    /// Calls of the listener in one turn.
    budget: usize,
    /// It leaves last.
    _guard: WorkerGuard,
}

impl<K, V, S> Telling<K, V, S> {
    pub(crate) fn new(inner: Arc<Inner<K, V, S>>, budget: usize, guard: WorkerGuard) -> Self {
        Self {
            inner,
            budget,
            _guard: guard,
        }
    }
}

impl<K, V, S> Driven for Telling<K, V, S>
where
    K: Hash + Eq + Send + Sync,
    V: Send + Sync,
    S: BuildHasher + Send + Sync,
{
    fn turn(&mut self, waker: &Waker, _slept: bool) -> Turn {
        let inner = &*self.inner;
        let emptied = inner.requests.emptied.load(SeqCst);
        // It does not wait for its turn: whoever has it sees that, and wakes this one afterwards.
        match inner.deliver_some(false, self.budget) {
            Delivered::Some | Delivered::Again => return Turn::Again,
            Delivered::Nothing | Delivered::All | Delivered::Busy if emptied => return Turn::Over,
            Delivered::Nothing | Delivered::All | Delivered::Busy => {}
        }
        // First known, then a look: who has something to tell is seen, or wakes this one.
        inner.requests.wake_for_events(waker);
        let wanted = inner.delivery.wanted.load(SeqCst);
        if wanted || inner.requests.emptied.load(SeqCst) {
            return Turn::Again;
        }
        Turn::Sleep(Duration::MAX)
    }
}
