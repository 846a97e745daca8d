//! A background thread works until it is told to stop, and then hands over its results.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use anyhow::{Result, anyhow};

/// The running thread.
#[derive(Debug)]
pub(super) struct Background<T> {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Result<T>>,
}

impl<T: Send + 'static> Background<T> {
    pub(super) fn start(work: impl FnOnce(&AtomicBool) -> Result<T> + Send + 'static) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || work(&stopped));
        Self { stop, thread }
    }

    /// True if it failed before it was told to stop: [`Self::finish`] will tell why.
    pub(super) fn has_ended(&self) -> bool {
        self.thread.is_finished()
    }

    pub(super) fn finish(self) -> Result<T> {
        self.stop.store(true, Ordering::Relaxed);
        let found = self.thread.join();
        found.map_err(|_| anyhow!("a thread of the laboratory panicked"))?
    }
}
