//! How much a driver does for one cache before it looks at anything else: whether it has others or
//! not.

use std::future::poll_fn;
use std::task::Poll;

/// Nanoseconds after which a turn on a shared driver ends with the hold of a lock that it is in.
const SHARED_TURN: u64 = 200_000;

/// How much one turn may do.
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
    /// Of a driver with one cache: how long it is until it looks whether it was told to stop.
    pub(crate) const OWN: Self = Self {
        records: 4096,
        slots: 2048,
        tidy: 256,
        events: 256,
        time: None,
    };

    /// Of a driver with others, who wait.
    pub(crate) const SHARED: Self = Self {
        records: 1024,
        slots: 64,
        tidy: 64,
        events: 16,
        time: Some(SHARED_TURN),
    };

    /// Whether others wait.
    pub(crate) fn is_shared(&self) -> bool {
        self.time.is_some()
    }
}

/// Lets whoever else the poller has come first.
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
