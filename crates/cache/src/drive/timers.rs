//! The timers of a local executor. Its thread sleeps until the earliest one.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tidewheel_time::{Readings, nanos};

use crate::sync::{Mutex, lock};

/// The end of a sleep in nanoseconds, and a number that tells it from others with the same end.
type SleepId = (u64, u64);

/// The sleeps of one thread's futures.
pub(crate) struct Timers {
    /// Read from the first sleep on: where there is no clock, there is no thread either.
    clock: OnceLock<Readings>,
    /// The latest first. (A few words each: to move them is quick, though there be thousands.)
    sleeps: Mutex<Vec<(SleepId, Waker)>>,
    next_id: AtomicU64,
}

/// One sleep.
pub(crate) struct ThreadSleep {
    timers: Arc<Timers>,
    id: SleepId,
}

impl Timers {
    pub(crate) fn new() -> Self {
        Self {
            clock: OnceLock::new(),
            sleeps: Mutex::new(Vec::new()),
            next_id: AtomicU64::new(0),
        }
    }

    fn now(&self) -> u64 {
        self.clock.get_or_init(Readings::system).now().0
    }

    pub(crate) fn sleep(self: &Arc<Self>, duration: Duration) -> ThreadSleep {
        let ends = self.now().saturating_add(nanos(duration));
        ThreadSleep {
            timers: Arc::clone(self),
            id: (ends, self.next_id.fetch_add(1, Relaxed)),
        }
    }

    /// Wakes those whose sleep is over; how long until the next one's is.
    pub(crate) fn fire(&self) -> Option<Duration> {
        let now = self.now();
        let mut sleeps = lock(&self.sleeps);
        let later = sleeps.partition_point(|((ends, _), _)| *ends > now);
        let over = sleeps.split_off(later);
        let next = sleeps.last();
        let left = next.map(|((ends, _), _)| Duration::from_nanos(ends - now));
        drop(sleeps);
        // The earliest first.
        over.into_iter().rev().for_each(|(_, waker)| waker.wake());
        left
    }
}

/// Returns the position of a sleep in the list, or the one at which to insert it.
fn place(sleeps: &[(SleepId, Waker)], id: SleepId) -> Result<usize, usize> {
    sleeps.binary_search_by(|(other, _)| id.cmp(other))
}

impl Future for ThreadSleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.timers.now() >= self.id.0 {
            return Poll::Ready(());
        }
        let waker = context.waker().clone();
        let mut sleeps = lock(&self.timers.sleeps);
        let old = match place(&sleeps, self.id) {
            Ok(at) => Some(std::mem::replace(&mut sleeps[at].1, waker)),
            Err(at) => {
                sleeps.insert(at, (self.id, waker));
                None
            }
        };
        drop(sleeps);
        drop(old);
        Poll::Pending
    }
}

impl Drop for ThreadSleep {
    fn drop(&mut self) {
        let mut sleeps = lock(&self.timers.sleeps);
        let own = place(&sleeps, self.id);
        let own = own.ok().map(|at| sleeps.remove(at));
        drop(sleeps);
        drop(own);
    }
}
