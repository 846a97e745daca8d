//! The listener's thread, for one cache of those that it works for.

use std::hash::{BuildHasher, Hash};
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use crate::core::driven::{Driven, Turn};
use crate::core::inner::Inner;
use crate::core::workers::WorkerGuard;
use crate::events::delivery::Delivered;
use crate::sync::Ordering::SeqCst;

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
