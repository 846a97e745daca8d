//! The budget of one turn of a driver, with and without other caches that wait.

use std::future::poll_fn;
use std::task::Poll;

/// Nanoseconds after which a turn on a shared driver ends with the hold of a lock that it is in.
const SHARED_TURN: u64 = 200_000;

/// The amount of work that one turn may do.
#[derive(Clone, Copy)]
pub(crate) struct TurnBudget {
    /// Timer records touched.
    pub(crate) records: u32,
    /// Slots that a sweep looks at.
    pub(crate) slots: u32,
    /// Units of tidying.
    pub(crate) tidy: u32,
    /// Calls of a listener.
    pub(crate) events: usize,
    /// Nanoseconds of the cache's clock, after which no hold of a lock begins.
    pub(crate) time: Option<u64>,
}

impl TurnBudget {
    /// The budget of a driver with one cache: it bounds the time until the driver notices that it
    /// was told to stop.
    pub(crate) const OWN: Self = Self {
        records: 4096,
        slots: 2048,
        tidy: 256,
        events: 256,
        time: None,
    };

    /// The budget of a driver whose other caches wait.
    pub(crate) const SHARED: Self = Self {
        records: 1024,
        slots: 64,
        tidy: 64,
        events: 16,
        time: Some(SHARED_TURN),
    };

    /// Returns whether other caches wait.
    pub(crate) fn is_shared(&self) -> bool {
        self.time.is_some()
    }
}

/// Lets the poller's other futures come first.
pub(crate) async fn yield_now() {
    let mut yielded = false;
    poll_fn(|context| {
        if yielded {
            return Poll::Ready(());
        }
        yielded = true;
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
