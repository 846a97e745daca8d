//! Due tasks wait for the workers in a queue of bounded length.

use std::collections::VecDeque;
use std::time::Duration;

use crate::core::tasks::Due;
use crate::ground::sync::{Condvar, Mutex, MutexGuard, lock};
use tidewheel_time::{Clock, SystemClock};

/// The treatment of due tasks when handlers are slower than they become due, and the queue is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum BackPressure {
    /// Due tasks stay pending (they can still be moved and removed) and run as soon as there is
    /// room.
    #[default]
    RunLate,
    /// The same, and a call that sets a task waits until there is room. Handlers do not wait.
    /// Nobody waits while as many runs are unfinished as [`in_flight`](crate::Builder::in_flight)
    /// allows and a future is among them: the caller may be that future. What is set without
    /// waiting is pending, so only the callers bound how much that is, as under `RunLate`.
    Wait,
    /// Due tasks that do not fit are dropped and counted. Their `Drop` runs on the timing thread,
    /// so it should be cheap.
    Drop,
}

/// The tasks that wait, and the counts of workers and runs.
struct State<K, V> {
    tasks: VecDeque<Due<K, V>>,
    /// Handlers that are running.
    running: usize,
    /// Runs that go on after their handler.
    deferred: usize,
    /// True if nothing more will come.
    closed: bool,
    /// The timing thread found no room, and has left due tasks in their shards.
    starved: bool,
}

/// The queue between the timing thread and the workers.
pub(crate) struct Queue<K, V> {
    state: Mutex<State<K, V>>,
    capacity: usize,
    /// The bound of unfinished runs, deferred ones included.
    runs_max: usize,
    /// A task has come, or none will.
    work: Condvar,
    /// A task was taken out of a full queue, the workers wait for a future, or the queue was
    /// closed.
    room: Condvar,
    /// Signals that nothing waits and nothing runs.
    idle: Condvar,
}

impl<K, V> State<K, V> {
    fn is_idle(&self) -> bool {
        self.running + self.deferred == 0 && self.tasks.is_empty()
    }

    /// True if as many runs are unfinished as may be, and a future has to end one of them.
    fn hangs_on_a_future(&self, runs_max: usize) -> bool {
        self.deferred > 0 && self.running + self.deferred >= runs_max
    }
}

impl<K, V> Queue<K, V> {
    pub(crate) fn new(capacity: usize, runs_max: usize) -> Self {
        Self {
            runs_max,
            state: Mutex::new(State {
                tasks: VecDeque::new(),
                running: 0,
                deferred: 0,
                closed: false,
                starved: false,
            }),
            capacity,
            work: Condvar::new(),
            room: Condvar::new(),
            idle: Condvar::new(),
        }
    }

    /// The number of tasks that still fit. If none does, the timing thread is woken when the queue
    /// is half empty.
    pub(crate) fn room(&self) -> usize {
        let mut state = lock(&self.state);
        let room = self.capacity - state.tasks.len().min(self.capacity);
        state.starved = room == 0;
        room
    }

    /// Adds tasks while there is room and returns what did not fit in `tasks`.
    pub(crate) fn push(&self, tasks: &mut Vec<Due<K, V>>) {
        let mut state = lock(&self.state);
        let room = self.capacity - state.tasks.len().min(self.capacity);
        let count = tasks.len().min(room);
        state.tasks.extend(tasks.drain(..count));
        drop(state);
        match count {
            0 => {}
            1 => self.work.notify_one(),
            _ => self.work.notify_all(),
        }
    }

    /// Waits for a task; `None` when none will come any more. It comes with whether the timing
    /// thread waits for room, and there is enough now.
    pub(crate) fn take(&self) -> Option<(Due<K, V>, bool)> {
        let mut state = lock(&self.state);
        loop {
            let may_run = state.running + state.deferred < self.runs_max;
            let task = if may_run {
                state.tasks.pop_front()
            } else {
                None
            };
            if let Some(task) = task {
                state.running += 1;
                let waiting = state.tasks.len();
                let wake_timing = state.starved && waiting <= self.capacity / 2;
                state.starved &= !wake_timing;
                let hangs = state.hangs_on_a_future(self.runs_max);
                drop(state);
                if hangs || waiting + 1 == self.capacity {
                    self.room.notify_all();
                }
                return Some((task, wake_timing));
            }
            if state.closed && state.tasks.is_empty() {
                return None;
            }
            state = self
                .work
                .wait(state)
                .unwrap_or_else(std::sync::PoisonError::into_inner);
        }
    }

    /// A handler has come back.
    pub(crate) fn done(&self) {
        let mut state = lock(&self.state);
        state.running -= 1;
        self.less_runs(state);
    }

    /// A run goes on after its handler.
    pub(crate) fn defer(&self) {
        let mut state = lock(&self.state);
        state.deferred += 1;
        let hangs = state.hangs_on_a_future(self.runs_max);
        drop(state);
        if hangs {
            self.room.notify_all();
        }
    }

    /// A run that went on after its handler has ended.
    pub(crate) fn ended(&self) {
        let mut state = lock(&self.state);
        state.deferred -= 1;
        self.less_runs(state);
    }

    fn less_runs(&self, state: MutexGuard<'_, State<K, V>>) {
        let is_idle = state.is_idle();
        let was_full = state.running + state.deferred + 1 >= self.runs_max;
        drop(state);
        if was_full {
            self.work.notify_one();
        }
        if is_idle {
            self.idle.notify_all();
        }
    }

    /// The number of runs that may still begin: for a scheduler without threads.
    pub(crate) fn runs_left(&self) -> usize {
        let state = lock(&self.state);
        self.runs_max.saturating_sub(state.running + state.deferred)
    }

    /// Waits until a task would fit, or the queue is closed; not while the workers wait for a
    /// future, which may be the caller.
    pub(crate) fn wait_for_room(&self) {
        let mut state = lock(&self.state);
        while state.tasks.len() >= self.capacity
            && !state.closed
            && !state.hangs_on_a_future(self.runs_max)
        {
            state = self
                .room
                .wait(state)
                .unwrap_or_else(std::sync::PoisonError::into_inner);
        }
    }

    /// Waiting, running and deferred tasks.
    pub(crate) fn load(&self) -> (usize, usize, usize) {
        let state = lock(&self.state);
        (state.tasks.len(), state.running, state.deferred)
    }

    /// Closes the queue: workers end when it is empty.
    pub(crate) fn close(&self) {
        lock(&self.state).closed = true;
        self.work.notify_all();
        self.room.notify_all();
    }

    /// Waits until nothing waits and nothing runs; `false` if that takes longer than `limit`.
    pub(crate) fn wait_idle(&self, limit: Duration) -> bool {
        let clock = SystemClock::new();
        // The origin of the clock lies a little before its making.
        let start = clock.now();
        let mut state = lock(&self.state);
        while !state.is_idle() {
            let Some(left) = limit
                .checked_sub(clock.now() - start)
                .filter(|left| !left.is_zero())
            else {
                return false;
            };
            (state, _) = self
                .idle
                .wait_timeout(state, left)
                .unwrap_or_else(std::sync::PoisonError::into_inner);
        }
        true
    }

    /// Takes what still waits.
    pub(crate) fn take_all(&self) -> VecDeque<Due<K, V>> {
        let tasks = std::mem::take(&mut lock(&self.state).tasks);
        // Workers that waited for a run to end find nothing to do.
        self.work.notify_all();
        tasks
    }
}
