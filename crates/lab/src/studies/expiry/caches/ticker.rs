//! The thread of the caches that are written here for comparison: called back once a second, or when asked.

use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::caches::subject::Sweeps;
use crate::clock;

const EVERY_NS: u64 = 1_000_000_000;
/// Between two looks whether a rest is over.
const REST_NS: u64 = 100_000_000;
/// The longest sleep; then it looks at the clock and sleeps again.
const SLEEP_NS: u64 = 3_600 * EVERY_NS;

/// Calls back until it is dropped.
#[derive(Debug)]
pub(crate) struct Ticker {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    stopped: bool,
    resting: bool,
    /// When the next call is due; `u64::MAX` when none is.
    at_ns: u64,
    sweeps: Sweeps,
}

impl Ticker {
    /// Calls back once a second. A call that takes longer than that swallows the ticks meanwhile but
    /// one, as Go's ticker does.
    pub(crate) fn start(mut tick: impl FnMut() + Send + 'static) -> io::Result<Self> {
        let first_ns = clock::mono_ns() + EVERY_NS;
        Self::spawn(first_ns, EVERY_NS, move |at_ns| {
            tick();
            clock::mono_ns().max(at_ns + EVERY_NS)
        })
    }

    /// Calls back when [`call_by`](Self::call_by) says, and when the last call said that the next is due.
    pub(crate) fn on_demand(mut tick: impl FnMut() -> u64 + Send + 'static) -> io::Result<Self> {
        Self::spawn(u64::MAX, REST_NS, move |_| tick())
    }

    fn spawn(
        first_ns: u64,
        rest_ns: u64,
        mut tick: impl FnMut(u64) -> u64 + Send + 'static,
    ) -> io::Result<Self> {
        let state = State {
            stopped: false,
            resting: false,
            at_ns: first_ns,
            sweeps: Sweeps::default(),
        };
        let shared = Arc::new(Shared {
            state: Mutex::new(state),
            changed: Condvar::new(),
        });
        let theirs = Arc::clone(&shared);
        let thread = thread::Builder::new().name("sweeper".to_owned());
        let thread = thread.spawn(move || {
            while let Some(at_ns) = theirs.due(rest_ns) {
                let from = clock::mono_ns();
                let next_ns = tick(at_ns);
                let ns = clock::mono_ns() - from;
                let mut state = theirs.lock();
                state.sweeps.count += 1;
                state.sweeps.total_ns += ns;
                state.sweeps.longest_ns = state.sweeps.longest_ns.max(ns);
                state.at_ns = state.at_ns.min(next_ns);
            }
        })?;
        Ok(Self {
            shared,
            thread: Some(thread),
        })
    }

    /// The next call comes at `at_ns`, unless it comes earlier.
    pub(crate) fn call_by(&self, at_ns: u64) {
        let mut state = self.shared.lock();
        if at_ns < state.at_ns {
            state.at_ns = at_ns;
            drop(state);
            self.shared.changed.notify_all();
        }
    }

    /// Ticks pass unheard while it rests.
    pub(crate) fn rest(&self, resting: bool) {
        self.shared.lock().resting = resting;
    }

    pub(crate) fn sweeps(&self) -> Sweeps {
        self.shared.lock().sweeps
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the next call and returns when it was due, or `None` when the ticker was stopped.
    fn due(&self, rest_ns: u64) -> Option<u64> {
        let mut state = self.lock();
        while !state.stopped {
            let now_ns = clock::mono_ns();
            let left_ns = state.at_ns.saturating_sub(now_ns);
            if left_ns == 0 && state.resting {
                let passed = (now_ns - state.at_ns) / rest_ns;
                state.at_ns += (passed + 1) * rest_ns;
                continue;
            }
            if left_ns == 0 {
                // From here on others may ask for the call after this one.
                return Some(std::mem::replace(&mut state.at_ns, u64::MAX));
            }
            let sleep = Duration::from_nanos(left_ns.min(SLEEP_NS));
            let woken = self.changed.wait_timeout(state, sleep);
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
        None
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.shared.lock().stopped = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            // A sweep that panicked has told so on standard error.
            drop(thread.join());
        }
    }
}
