//! The once-a-second thread of the caches that are written here for comparison.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::subject::Sweeps;
use crate::clock;

const EVERY: Duration = Duration::from_secs(1);

/// Calls back once a second until it is dropped. A call that takes longer than that swallows the
/// ticks meanwhile but one, as Go's ticker does.
#[derive(Debug)]
pub(super) struct Ticker {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    stopped: Mutex<bool>,
    stop: Condvar,
    resting: AtomicBool,
    count: AtomicU64,
    total_ns: AtomicU64,
    longest_ns: AtomicU64,
}

impl Ticker {
    pub(super) fn start(mut tick: impl FnMut() + Send + 'static) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let theirs = Arc::clone(&shared);
        let thread = thread::Builder::new()
            .name("sweeper".to_owned())
            .spawn(move || {
                let every = EVERY.as_nanos() as u64;
                let mut at = clock::mono_ns() + every;
                while theirs.waits_until(at) {
                    if theirs.resting.load(Ordering::Relaxed) {
                        at += every;
                        continue;
                    }
                    let from = clock::mono_ns();
                    tick();
                    let now = clock::mono_ns();
                    theirs.count.fetch_add(1, Ordering::Relaxed);
                    theirs.total_ns.fetch_add(now - from, Ordering::Relaxed);
                    theirs.longest_ns.fetch_max(now - from, Ordering::Relaxed);
                    at = now.max(at + every);
                }
            })?;
        Ok(Self {
            shared,
            thread: Some(thread),
        })
    }

    /// Ticks pass unheard while it rests.
    pub(super) fn rest(&self, resting: bool) {
        self.shared.resting.store(resting, Ordering::Relaxed);
    }

    pub(super) fn sweeps(&self) -> Sweeps {
        Sweeps {
            count: self.shared.count.load(Ordering::Relaxed),
            total_ns: self.shared.total_ns.load(Ordering::Relaxed),
            longest_ns: self.shared.longest_ns.load(Ordering::Relaxed),
        }
    }
}

impl Shared {
    /// False when it was stopped before.
    fn waits_until(&self, at_ns: u64) -> bool {
        let mut stopped = self.stopped.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let left = at_ns.saturating_sub(clock::mono_ns());
            if *stopped || left == 0 {
                return !*stopped;
            }
            stopped = self
                .stop
                .wait_timeout(stopped, Duration::from_nanos(left))
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        *self
            .shared
            .stopped
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = true;
        self.shared.stop.notify_all();
        if let Some(thread) = self.thread.take() {
            // A sweep that panicked has told so on standard error.
            drop(thread.join());
        }
    }
}
