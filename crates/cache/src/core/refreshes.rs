//! The queue of refreshes.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::shard::flight::Flight;
use crate::shard::rules::Hashed;
use crate::sync::{AtomicUsize, Mutex, Ordering::Relaxed, Ordering::SeqCst, lock};

pub(crate) struct Refreshes<V> {
    state: Mutex<RefreshState<V>>,
    /// Places that are taken: those in the queue, and those about to be.
    taken: AtomicUsize,
    running: AtomicUsize,
    limit: usize,
    /// The number of refreshes that may run at a time.
    parallel: usize,
}

struct RefreshState<V> {
    queue: VecDeque<Job<V>>,
    /// True if nothing more is queued.
    stopped: bool,
    /// Runners that have begun and not ended.
    #[cfg(feature = "system")]
    runners: usize,
}

/// The vacant flight of a stale entry.
pub(crate) struct Job<V> {
    pub(crate) hash: Hashed,
    pub(crate) flight: Arc<Flight<V>>,
}

/// One of those that a number counts: a refresh that runs, or a place in the queue that is
/// reserved. Dropped, it is one no longer, also when user code panics.
pub(crate) struct Counted<'a>(&'a AtomicUsize);

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

impl<V> Refreshes<V> {
    pub(crate) fn new(limit: usize, parallel: usize) -> Self {
        Self {
            state: Mutex::new(RefreshState {
                queue: VecDeque::new(),
                stopped: false,
                #[cfg(feature = "system")]
                runners: 0,
            }),
            taken: AtomicUsize::new(0),
            running: AtomicUsize::new(0),
            limit,
            parallel,
        }
    }

    pub(crate) fn parallel(&self) -> usize {
        self.parallel
    }

    pub(crate) fn waiting(&self) -> usize {
        self.taken.load(Relaxed)
    }

    pub(crate) fn running(&self) -> usize {
        self.running.load(Relaxed)
    }

    /// Counts one as running, until that is dropped.
    pub(crate) fn run(&self) -> Counted<'_> {
        self.running.fetch_add(1, SeqCst);
        Counted(&self.running)
    }

    pub(crate) fn is_full(&self) -> bool {
        self.taken.load(Relaxed) >= self.limit
    }

    /// Takes a place, for a job that is about to be pushed.
    pub(crate) fn reserve(&self) -> Option<Counted<'_>> {
        let taken = self.taken.fetch_update(SeqCst, SeqCst, |taken| {
            (taken < self.limit).then_some(taken + 1)
        });
        taken.is_ok().then_some(Counted(&self.taken))
    }

    /// Queues a job in its place; gives it back once the cache is closed.
    pub(crate) fn push(&self, place: Counted<'_>, job: Job<V>) -> Result<(), Job<V>> {
        let mut state = lock(&self.state);
        if state.stopped {
            return Err(job);
        }
        state.queue.push_back(job);
        // The job has the place from now on.
        std::mem::forget(place);
        Ok(())
    }

    pub(crate) fn pop(&self) -> Option<Job<V>> {
        let job = lock(&self.state).queue.pop_front()?;
        drop(Counted(&self.taken));
        Some(job)
    }

    /// Ends what is queued: no more begins. Returns what was in the queue.
    pub(crate) fn stop(&self) -> VecDeque<Job<V>> {
        let mut state = lock(&self.state);
        state.stopped = true;
        let forgotten = std::mem::take(&mut state.queue);
        drop(state);
        self.taken.fetch_sub(forgotten.len(), SeqCst);
        forgotten
    }
}

/// Threads run refreshes as *runners*: each runs one job, and then asks whether there is another.
#[cfg(feature = "system")]
impl<V> Refreshes<V> {
    /// Begins one more runner, if there is work for it and room; returns whether it did.
    pub(crate) fn begin_runner(&self) -> bool {
        let mut state = lock(&self.state);
        let begins = state.runners < self.parallel && !state.queue.is_empty();
        state.runners += usize::from(begins);
        begins
    }

    /// Ends a runner that has run a job, unless another job waits; returns whether it goes on.
    pub(crate) fn continue_runner(&self) -> bool {
        let mut state = lock(&self.state);
        let ends = state.queue.is_empty();
        state.runners -= usize::from(ends);
        !ends
    }
}
