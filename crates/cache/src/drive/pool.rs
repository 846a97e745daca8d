//! A pool of threads that run refreshes. The first is there from the beginning; others come and go
//! with the work.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use crate::core::hooks::Runs;
use crate::sync::{Condvar, Mutex, lock};

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
