//! Ends a cache: stops its workers, empties its shards, and delivers the last events.

use std::hash::{BuildHasher, Hash};
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::core::hooks::ListenerHook;
use crate::core::inner::Inner;
use crate::core::workers::{Shutdown, Workers};
use crate::drive::step::TurnBudget;
#[cfg(feature = "system")]
use crate::drive::telling::Telling;
use crate::events::reentrancy;
use crate::quiet::forget_quietly;
use crate::sync::Ordering::SeqCst;

impl<K, V, S> ListenerHook<K, V, S>
where
    K: Hash + Eq + Send + Sync + 'static,
    V: Send + Sync + 'static,
    S: BuildHasher + Send + Sync + 'static,
{
    pub(crate) fn new() -> Self {
        Self {
            deliver: Inner::tell,
            #[cfg(feature = "system")]
            drive: |inner, events, guard| Box::new(Telling::new(inner, events, guard)),
        }
    }
}

impl<K, V, S> Shutdown for Inner<K, V, S>
where
    K: Hash + Eq + Send + Sync,
    V: Send + Sync,
    S: BuildHasher + Send + Sync,
{
    fn workers(&self) -> &Workers {
        &self.workers
    }

    fn stop(&self) {
        self.closed.store(true, SeqCst);
        self.requests.stop();
        if let Some(hook) = &self.hooks.refresh {
            (hook.stop)(self);
        }
    }

    fn finish(&self) {
        let finished = catch_unwind(AssertUnwindSafe(|| {
            self.close_shards();
            self.deliver(false);
        }));
        if let Err(panic) = finished {
            forget_quietly(panic);
        }
    }
}

impl<K, V, S> Inner<K, V, S>
where
    K: Hash + Eq + Send + Sync,
    V: Send + Sync,
    S: BuildHasher + Send + Sync,
{
    /// Ends the cache and waits for that, except for what may be waiting for this thread.
    pub(crate) fn close(&self) {
        let first = !self.closed.swap(true, SeqCst);
        self.stop();
        if reentrancy::is_free() {
            self.workers.wait_for_threads();
        }
        if first {
            self.close_shards();
            self.deliver(true);
        }
    }

    /// As [`close`](Self::close), as a future.
    pub(crate) async fn close_async(&self) {
        self.stop();
        let mut threads = self.workers.place();
        std::future::poll_fn(|context| self.workers.poll_threads(&mut threads, context)).await;
        drop(threads);
        self.close_shards();
        self.tell_all(TurnBudget::SHARED.events).await;
    }
}
