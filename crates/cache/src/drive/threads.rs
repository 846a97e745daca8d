//! The threads of [`Driver::Thread`](crate::Driver::Thread).

use std::hash::{BuildHasher, Hash};
use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle, Thread};

use tidewheel_time::waker_of;

use crate::core::inner::Inner;
use crate::drive::driver::RECOVERY;
use crate::drive::expiry::Rounds;
use crate::sync::{Ordering::SeqCst, lock};

/// The threads of one cache.
#[derive(Debug, Default)]
pub(crate) struct Threads(Vec<JoinHandle<()>>);

impl Threads {
    /// Starts the driver's thread, and the listener's and the refresher's if there is one.
    pub(crate) fn start<K, V, S>(inner: &Arc<Inner<K, V, S>>) -> io::Result<Self>
    where
        K: Hash + Eq + Send + Sync + 'static,
        V: Send + Sync + 'static,
        S: BuildHasher + Send + Sync + 'static,
    {
        let mut threads = Self::default();
        let driver = Arc::clone(inner);
        let handle = threads.spawn(inner, "expiry", move || driver.run())?;
        inner.requests.alarm.set_sleeper(&waker_of(handle));
        if inner.delivery.has_listener() {
            let listener = Arc::clone(inner);
            let handle = threads.spawn(inner, "events", move || listener.run_listener())?;
            *lock(&inner.requests.listener) = Some(handle);
        }
        if inner.config.refresher.is_some() {
            let refresher = Arc::clone(inner);
            threads.spawn(inner, "refresh", move || refresher.run_refresher())?;
        }
        Ok(threads)
    }

    /// Starts one more thread, or stops those there are.
    fn spawn<K, V, S>(
        &mut self,
        inner: &Inner<K, V, S>,
        role: &str,
        body: impl FnOnce() + Send + 'static,
    ) -> io::Result<Thread> {
        let name = &inner.config.name;
        match thread::Builder::new()
            .name(format!("{name}-{role}"))
            .spawn(body)
        {
            Ok(handle) => {
                let thread = handle.thread().clone();
                self.0.push(handle);
                Ok(thread)
            }
            Err(error) => {
                inner.requests.stop();
                inner.refreshes.stop();
                self.join();
                Err(error)
            }
        }
    }

    /// Hands the threads over to the caller, who joins them.
    pub(crate) fn take(&mut self) -> Self {
        std::mem::take(self)
    }

    /// Waits for the threads to end, except for the one that calls this.
    pub(crate) fn join(&mut self) {
        for handle in self.0.drain(..) {
            if handle.thread().id() != thread::current().id() && handle.join().is_err() {
                // The user's Hash or Eq has panicked there; the panic was reported by its hook.
            }
        }
    }
}

impl<K: Hash + Eq, V, S: BuildHasher> Inner<K, V, S> {
    fn run(&self) {
        let mut rounds = Rounds::default();
        while !self.requests.is_stopped() {
            #[cfg(feature = "metrics")]
            self.publish_now_and_then();
            let Some(next) = self.safe_step(&mut rounds) else {
                thread::park_timeout(RECOVERY);
                continue;
            };
            if let Some(duration) = self.fall_asleep(next) {
                thread::park_timeout(duration);
            }
            self.requests.alarm.woke();
        }
    }

    fn run_listener(&self) {
        loop {
            let stopped = self.requests.is_stopped();
            self.deliver(true);
            if stopped {
                return;
            }
            if !self.delivery.wanted.load(SeqCst) {
                thread::park();
            }
        }
    }
}
