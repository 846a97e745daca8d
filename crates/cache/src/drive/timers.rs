//! The sleeps of a group's members: by the clock of a thread, or by the timer of a runtime.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Waker};
use std::time::Duration;

#[cfg(feature = "system")]
use tidewheel_time::{Readings, nanos};

use crate::quiet::forget_quietly;

/// One sleep at most of each member, which has a number.
pub(crate) trait Timers {
    /// A member sleeps from now on, instead of what it did. `waker` is called in the end.
    fn begin(&mut self, member: usize, sleep: Duration, waker: &Waker);

    /// Returns whether a member's sleep is over, and forgets it then.
    fn is_over(&mut self, member: usize, waker: &Waker) -> bool;

    /// Forgets a member's sleep.
    fn end(&mut self, member: usize);
}

/// Nobody sleeps.
pub(crate) struct NoTimers;

impl Timers for NoTimers {
    fn begin(&mut self, _member: usize, _sleep: Duration, _waker: &Waker) {}

    fn is_over(&mut self, _member: usize, _waker: &Waker) -> bool {
        false
    }

    fn end(&mut self, _member: usize) {}
}

/// Sleeps by the system's clock. The thread sleeps until the earliest one ends.
#[cfg(feature = "system")]
pub(crate) struct ThreadTimers {
    /// Read from the first sleep on: where there is no clock, there is no thread either.
    clock: Option<Readings>,
    /// The ends in nanoseconds, each with its member. The latest is first. (Two words each: to move
    /// them is quick, though there be thousands.)
    ends: Vec<(u64, usize)>,
    /// The end of each member's sleep; `None` if it does not sleep.
    of: Vec<Option<u64>>,
}

#[cfg(feature = "system")]
impl ThreadTimers {
    pub(crate) fn new() -> Self {
        Self {
            clock: None,
            ends: Vec::new(),
            of: Vec::new(),
        }
    }

    fn now(&mut self) -> u64 {
        self.clock.get_or_insert_with(Readings::system).now().0
    }

    /// Returns the members whose sleep is over, and the time until the next one's is.
    pub(crate) fn due(&mut self) -> (Vec<usize>, Option<Duration>) {
        if self.ends.is_empty() {
            return (Vec::new(), None);
        }
        let now = self.now();
        let later = self.ends.partition_point(|(end, _)| *end > now);
        // The earliest first.
        let due = self.ends[later..].iter().rev().map(|(_, member)| *member);
        let left = later.checked_sub(1).map(|last| self.ends[last].0 - now);
        (due.collect(), left.map(Duration::from_nanos))
    }
}

#[cfg(feature = "system")]
impl Timers for ThreadTimers {
    fn begin(&mut self, member: usize, sleep: Duration, _waker: &Waker) {
        self.end(member);
        let end = self.now().saturating_add(nanos(sleep));
        let own = (end, member);
        let at = self.ends.partition_point(|other| *other > own);
        self.ends.insert(at, own);
        if self.of.len() <= member {
            self.of.resize(member + 1, None);
        }
        self.of[member] = Some(end);
    }

    fn is_over(&mut self, member: usize, _waker: &Waker) -> bool {
        let Some(Some(end)) = self.of.get(member).copied() else {
            return false;
        };
        let over = self.now() >= end;
        if over {
            self.end(member);
        }
        over
    }

    fn end(&mut self, member: usize) {
        if let Some(end) = self.of.get_mut(member).and_then(Option::take) {
            let own = (end, member);
            let at = self.ends.partition_point(|other| *other > own);
            self.ends.remove(at);
        }
    }
}

/// Sleeps by a runtime's timer. A panic of it goes to the one who polls the group, and to no
/// member.
pub(crate) struct TaskTimers<T, F> {
    sleep: T,
    of: Vec<TaskSleep<F>>,
}

enum TaskSleep<F> {
    None,
    Runs(Pin<Box<F>>),
    Over,
}

impl<F: Future<Output = ()>> TaskSleep<F> {
    fn poll(&mut self, waker: &Waker) {
        if let Self::Runs(sleep) = self {
            if sleep
                .as_mut()
                .poll(&mut Context::from_waker(waker))
                .is_ready()
            {
                *self = Self::Over;
            }
        }
    }
}

impl<T: Fn(Duration) -> F, F: Future<Output = ()>> TaskTimers<T, F> {
    pub(crate) fn new(sleep: T) -> Self {
        let of = Vec::new();
        Self { sleep, of }
    }
}

impl<T: Fn(Duration) -> F, F: Future<Output = ()>> Timers for TaskTimers<T, F> {
    fn begin(&mut self, member: usize, sleep: Duration, waker: &Waker) {
        if self.of.len() <= member {
            self.of.resize_with(member + 1, || TaskSleep::None);
        }
        let own = &mut self.of[member];
        *own = TaskSleep::Runs(Box::pin((self.sleep)(sleep)));
        own.poll(waker);
        if matches!(own, TaskSleep::Over) {
            waker.wake_by_ref();
        }
    }

    fn is_over(&mut self, member: usize, waker: &Waker) -> bool {
        let Some(own) = self.of.get_mut(member) else {
            return false;
        };
        own.poll(waker);
        let over = matches!(own, TaskSleep::Over);
        if over {
            *own = TaskSleep::None;
        }
        over
    }

    fn end(&mut self, member: usize) {
        if let Some(own) = self.of.get_mut(member) {
            *own = TaskSleep::None;
        }
    }
}

impl<T, F> Drop for TaskTimers<T, F> {
    fn drop(&mut self) {
        for sleep in self.of.drain(..) {
            if let Err(panic) = catch_unwind(AssertUnwindSafe(|| drop(sleep))) {
                forget_quietly(panic);
            }
        }
    }
}
