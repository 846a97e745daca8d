//! A thread waits for a future.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use tidewheel_time::Clock;

use crate::shape::error::StoreError;

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Waits for a future on this thread: for programs that have no runtime and want to call a store.
/// The stores of engines run on the tokio runtime that they were connected on, which must be
/// running elsewhere; do not call it on that runtime's own threads.
pub fn wait<T>(future: impl Future<Output = T>) -> T {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(value) => return value,
            Poll::Pending => thread::park(),
        }
    }
}

/// Waits as [`wait`] does, for `limit` at most by the given clock.
pub(crate) fn wait_for<T>(
    clock: &dyn Clock,
    limit: Duration,
    future: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    let end = clock.now().saturating_add(limit);
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return value;
        }
        let left = end.saturating_sub(clock.now());
        if left.is_zero() {
            return Err(StoreError::TimedOut);
        }
        thread::park_timeout(left);
    }
}
