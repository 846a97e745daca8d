//! Elects the one task that drives a cache: the first drives until it ends or is dropped, then the
//! next.

use std::future::poll_fn;
use std::task::Poll;

use crate::events::waiting::Waiting;
use crate::sync::{AtomicBool, Ordering::SeqCst};

/// The election of a cache's driver among several tasks.
pub(crate) struct DriverElection {
    is_taken: AtomicBool,
    waiting: Waiting,
}

/// Held by the task that drives.
pub(crate) struct ElectedDriver<'a>(&'a DriverElection);

impl DriverElection {
    pub(crate) fn new() -> Self {
        Self {
            is_taken: AtomicBool::new(false),
            waiting: Waiting::new(),
        }
    }

    /// Waits until no other task drives.
    pub(crate) async fn won(&self) -> ElectedDriver<'_> {
        let mut place = self.waiting.place();
        poll_fn(|context| {
            // First known, then a look: who leaves is seen, or wakes this.
            place.wait(context.waker());
            match self.is_taken.swap(true, SeqCst) {
                true => Poll::Pending,
                false => Poll::Ready(ElectedDriver(self)),
            }
        })
        .await
    }
}

impl Drop for ElectedDriver<'_> {
    fn drop(&mut self) {
        self.0.is_taken.store(false, SeqCst);
        self.0.waiting.wake_all();
    }
}
