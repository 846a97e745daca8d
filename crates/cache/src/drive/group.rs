//! A group of what is driven, with one poller: those that were woken have their turns, and the
//! others cost nothing.
//!
//! Each member has a waker of its own. It puts the member into a list and wakes the group's poller.
//!
//! No wake-up is lost: the poller first says how it is woken and then takes the list; a waker first
//! puts its member into the list and then reads the poller. Both are under one lock. A member is in
//! the list once at most, so the list is no longer than there are members (and those that have
//! ended since).
//!
//! Members sleep by the clock of a thread, or by the timer of a runtime.

use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

#[cfg(feature = "system")]
use tidewheel_time::{Readings, nanos};

use crate::core::workers::{Driven, Turn};
use crate::quiet::forget_quietly;
use crate::sync::{AtomicBool, Mutex, Ordering::SeqCst, lock};

/// A group, whose members sleep by `timers`.
pub(crate) struct Group<T> {
    members: Vec<Option<Member>>,
    free: Vec<usize>,
    woken: Arc<ReadyQueue>,
    timers: T,
}

struct Member {
    work: Box<dyn Driven>,
    own: Arc<MemberWaker>,
    waker: Waker,
}

/// The members that were woken, and the waker of their poller.
struct ReadyQueue(Mutex<ReadyList>);

struct ReadyList {
    queue: Vec<Arc<MemberWaker>>,
    poller: Option<Waker>,
    /// True if the group was dropped: the list stays empty.
    over: bool,
}

/// The waker of one member.
struct MemberWaker {
    index: usize,
    is_queued: AtomicBool,
    woken: Arc<ReadyQueue>,
}

impl Wake for MemberWaker {
    fn wake(self: Arc<Self>) {
        if !self.is_queued.swap(true, SeqCst) {
            let woken = Arc::clone(&self.woken);
            woken.wake(self);
        }
    }
}

impl ReadyQueue {
    /// Queues a member and wakes the poller.
    fn wake(&self, member: Arc<MemberWaker>) {
        let mut list = lock(&self.0);
        if list.over {
            return;
        }
        list.queue.push(member);
        let poller = list.poller.clone();
        drop(list);
        if let Some(poller) = poller {
            poller.wake();
        }
    }
}

impl<T: Timers> Group<T> {
    pub(crate) fn new(timers: T) -> Self {
        Self {
            members: Vec::new(),
            free: Vec::new(),
            woken: Arc::new(ReadyQueue(Mutex::new(ReadyList {
                queue: Vec::new(),
                poller: None,
                over: false,
            }))),
            timers,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.members.len() - self.free.len()
    }

    /// Returns whether a member was woken and had no turn since.
    #[cfg(feature = "system")]
    pub(crate) fn is_woken(&self) -> bool {
        !lock(&self.woken.0).queue.is_empty()
    }

    /// Adds a member, which has its first turn soon.
    pub(crate) fn push(&mut self, work: Box<dyn Driven>) {
        let index = self.free.pop().unwrap_or_else(|| {
            self.members.push(None);
            self.members.len() - 1
        });
        let own = Arc::new(MemberWaker {
            index,
            is_queued: AtomicBool::new(false),
            woken: Arc::clone(&self.woken),
        });
        let waker = Waker::from(Arc::clone(&own));
        Arc::clone(&own).wake();
        self.members[index] = Some(Member { work, own, waker });
    }

    /// One turn for each member that was woken. A panic ends the member that it comes from; one of
    /// the timers is the caller's.
    pub(crate) fn poll(&mut self, poller: &Waker) {
        for own in self.take_woken(poller) {
            let index = own.index;
            let Some(Some(member)) = self.members.get_mut(index) else {
                continue;
            };
            if !Arc::ptr_eq(&member.own, &own) {
                // Another one has its place now.
                continue;
            }
            // From here on it can be woken again.
            own.is_queued.store(false, SeqCst);
            let (work, waker) = (&mut member.work, &member.waker);
            let slept = self.timers.is_over(index, waker);
            let turn = catch_unwind(AssertUnwindSafe(|| work.turn(waker, slept)));
            let turn = turn.map_err(forget_quietly).unwrap_or(Turn::Over);
            if !follow(turn, &mut self.timers, index, waker) {
                self.end(index);
            }
        }
    }

    fn take_woken(&self, poller: &Waker) -> Vec<Arc<MemberWaker>> {
        let mut list = lock(&self.woken.0);
        let known = list.poller.as_ref();
        let old = if known.is_some_and(|known| known.will_wake(poller)) {
            None
        } else {
            list.poller.replace(poller.clone())
        };
        let queue = std::mem::take(&mut list.queue);
        drop(list);
        drop(old);
        queue
    }

    fn end(&mut self, index: usize) {
        self.free.push(index);
        discard(self.members[index].take());
        self.timers.end(index);
    }
}

#[cfg(feature = "system")]
impl Group<ThreadTimers> {
    /// Wakes those whose sleep is over; returns the time until the next one's is.
    pub(crate) fn fire(&mut self) -> Option<Duration> {
        let (due, left) = self.timers.due();
        for member in due {
            if let Some(member) = &self.members[member] {
                member.waker.wake_by_ref();
            }
        }
        left
    }
}

/// Does what the end of a member's turn asks for; returns whether more turns are to come.
fn follow(turn: Turn, timers: &mut impl Timers, member: usize, waker: &Waker) -> bool {
    match turn {
        Turn::StillAsleep => {}
        Turn::Again => {
            timers.end(member);
            waker.wake_by_ref();
        }
        Turn::Sleep(Duration::MAX) => timers.end(member),
        Turn::Sleep(sleep) => timers.begin(member, sleep, waker),
        Turn::Over => return false,
    }
    true
}

/// Drives something that shares its poller with nobody: each poll is a turn.
pub(crate) async fn drive_alone(mut work: impl Driven, mut timers: impl Timers) {
    poll_fn(|context| {
        let waker = context.waker();
        let slept = timers.is_over(0, waker);
        match follow(work.turn(waker, slept), &mut timers, 0, waker) {
            true => Poll::Pending,
            false => Poll::Ready(()),
        }
    })
    .await;
}

/// Drops a member. A panic in that is its own.
fn discard(member: Option<Member>) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| drop(member))) {
        forget_quietly(panic);
    }
}

impl<T> Drop for Group<T> {
    fn drop(&mut self) {
        self.members.drain(..).for_each(discard);
        let mut list = lock(&self.woken.0);
        list.over = true;
        // The wakers refer to the list, and the list to them.
        let left = (list.poller.take(), std::mem::take(&mut list.queue));
        drop(list);
        drop(left);
    }
}

/// A future as a member of a group.
pub(crate) struct Polled<F>(pub(crate) Pin<Box<F>>);

impl<F: Future<Output = ()> + Send> Driven for Polled<F> {
    fn turn(&mut self, waker: &Waker, _slept: bool) -> Turn {
        match self.0.as_mut().poll(&mut Context::from_waker(waker)) {
            Poll::Pending => Turn::StillAsleep,
            Poll::Ready(()) => Turn::Over,
        }
    }
}

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
