//! A wait by a clock, without a runtime.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tidewheel_time::Clock;

/// Ready when the clock has moved on.
pub(super) struct Pause<'a> {
    clock: &'a dyn Clock,
    is_real: bool,
    until: Duration,
}

impl<'a> Pause<'a> {
    pub(super) fn new(clock: &'a dyn Clock, is_real: bool, time: Duration) -> Self {
        let until = clock.now().saturating_add(time);
        Self {
            clock,
            is_real,
            until,
        }
    }
}

impl Future for Pause<'_> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let left = self.until.saturating_sub(self.clock.now());
        if left.is_zero() {
            return Poll::Ready(());
        }
        self.clock.wake_when_moved(context.waker());
        if self.is_real {
            // Only a load waits here that another cache of this process runs already: a thread is
            // cheap enough.
            let waker = context.waker().clone();
            std::thread::spawn(move || {
                std::thread::sleep(left);
                waker.wake();
            });
        }
        Poll::Pending
    }
}
