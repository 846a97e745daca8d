//! The thread of the caches that are written here for comparison: called back once a second, or when asked.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
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
    resting: AtomicBool,
    count: AtomicU64,
    total_ns: AtomicU64,
    longest_ns: AtomicU64,
}

#[derive(Debug)]
struct State {
    stopped: bool,
    /// When the next call is due; `u64::MAX` when none is.
    at_ns: u64,
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
        let shared = Arc::new(Shared {
            state: Mutex::new(State {
                stopped: false,
                at_ns: first_ns,
            }),
            changed: Condvar::new(),
            resting: AtomicBool::new(false),
            count: AtomicU64::new(0),
            total_ns: AtomicU64::new(0),
            longest_ns: AtomicU64::new(0),
        });
        let theirs = Arc::clone(&shared);
        let thread = thread::Builder::new()
            .name("sweeper".to_owned())
            .spawn(move || {
                while let Some(at_ns) = theirs.due() {
                    let from = clock::mono_ns();
                    if theirs.resting.load(Ordering::Relaxed) {
                        let passed = (from - at_ns) / rest_ns;
                        theirs.call_by(at_ns + (passed + 1) * rest_ns);
                        continue;
                    }
                    let next_ns = tick(at_ns);
                    let ns = clock::mono_ns() - from;
                    theirs.count.fetch_add(1, Ordering::Relaxed);
                    theirs.total_ns.fetch_add(ns, Ordering::Relaxed);
                    theirs.longest_ns.fetch_max(ns, Ordering::Relaxed);
                    theirs.call_by(next_ns);
                }
            })?;
        Ok(Self {
            shared,
            thread: Some(thread),
        })
    }

    /// The next call comes at `at_ns`, unless it comes earlier.
    pub(crate) fn call_by(&self, at_ns: u64) {
        self.shared.call_by(at_ns);
    }

    /// Ticks pass unheard while it rests.
    pub(crate) fn rest(&self, resting: bool) {
        self.shared.resting.store(resting, Ordering::Relaxed);
    }

    pub(crate) fn sweeps(&self) -> Sweeps {
        Sweeps {
            count: self.shared.count.load(Ordering::Relaxed),
            total_ns: self.shared.total_ns.load(Ordering::Relaxed),
            longest_ns: self.shared.longest_ns.load(Ordering::Relaxed),
        }
    }
}

impl Shared {
    /// Waits for the next call and returns when it was due, or `None` when the ticker was stopped.
    fn due(&self) -> Option<u64> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if state.stopped {
                return None;
            }
            let left = state.at_ns.saturating_sub(clock::mono_ns());
            if left == 0 {
                // From here on others may ask for the call after this one.
                return Some(std::mem::replace(&mut state.at_ns, u64::MAX));
            }
            state = self
                .changed
                .wait_timeout(state, Duration::from_nanos(left.min(SLEEP_NS)))
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }

    fn call_by(&self, at_ns: u64) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if at_ns < state.at_ns {
            state.at_ns = at_ns;
            drop(state);
            self.changed.notify_all();
        }
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.shared
            .state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .stopped = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            // A sweep that panicked has told so on standard error.
            drop(thread.join());
        }
    }
}
