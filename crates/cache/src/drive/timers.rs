//! The sleeps of futures that a thread of ours polls: the earliest one is how long the thread
//! sleeps.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tidewheel_time::{Readings, nanos};

use crate::sync::{Mutex, lock};

/// When a sleep ends, in nanoseconds; and which one.
type Name = (u64, u64);

/// The sleeps of one thread's futures.
pub(crate) struct Timers {
    /// Read from the first sleep on: where there is no clock, there is no thread either.
    clock: OnceLock<Readings>,
    /// The latest first. (A few words each: to move them is quick, though there be thousands.)
    sleeps: Mutex<Vec<(Name, Waker)>>,
    next_id: AtomicU64,
}

/// One sleep.
pub(crate) struct Sleep {
    timers: Arc<Timers>,
    name: Name,
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

    pub(crate) fn sleep(self: &Arc<Self>, duration: Duration) -> Sleep {
        let ends = self.now().saturating_add(nanos(duration));
        Sleep {
            timers: Arc::clone(self),
            name: (ends, self.next_id.fetch_add(1, Relaxed)),
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

/// Where a sleep is, or would be.
fn place(sleeps: &[(Name, Waker)], name: Name) -> Result<usize, usize> {
    sleeps.binary_search_by(|(other, _)| name.cmp(other))
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.timers.now() >= self.name.0 {
            return Poll::Ready(());
        }
        let waker = context.waker().clone();
        let mut sleeps = lock(&self.timers.sleeps);
        let old = match place(&sleeps, self.name) {
            Ok(at) => Some(std::mem::replace(&mut sleeps[at].1, waker)),
            Err(at) => {
                sleeps.insert(at, (self.name, waker));
                None
            }
        };
        drop(sleeps);
        drop(old);
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        let mut sleeps = lock(&self.timers.sleeps);
        let own = place(&sleeps, self.name);
        let own = own.ok().map(|at| sleeps.remove(at));
        drop(sleeps);
        drop(own);
    }
}
