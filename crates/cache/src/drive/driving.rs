//! The work of a driver for one cache: a step, then a sleep until the next; in the end the cache is
//! emptied, and its listener told of everything.

use std::hash::{BuildHasher, Hash};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Duration;

use tidewheel_time::{Alarm, NEVER};

use crate::core::inner::Inner;
use crate::core::reentrancy;
use crate::core::waiting::WaiterSlot;
use crate::core::workers::{Driven, Turn, WorkerGuard, WorkerKind};
use crate::drive::background::{Aside, Background};
use crate::drive::shutdown::Emptying;
use crate::drive::step::{Next, Rounds, TurnBudget};
use crate::quiet::forget_quietly;
use crate::sync::Ordering::SeqCst;

/// The longest rest of a driver after user code has panicked, and while it may not call the
/// listener: a tick.
const RECOVERY: Duration = Duration::from_millis(1);

/// The driver of one cache, from when it is made until it is dropped.
pub(crate) struct Driving<K: Hash + Eq, V, S: BuildHasher> {
    inner: Arc<Inner<K, V, S>>,
    /// `None` if other threads call the listener and refresh.
    background: Option<Box<dyn Aside<K, V, S>>>,
    budget: TurnBudget,
    rounds: Rounds,
    phase: Phase<K, V>,
    /// The waker that the cache's alarm calls. It must not outlive this.
    sleeper: Option<Waker>,
    /// It leaves last.
    _guard: WorkerGuard,
}

enum Phase<K, V> {
    /// Another task drives the cache.
    Waits(WaiterSlot),
    Awake,
    /// Asleep until the next deadline, or until the listener has emptied its queue.
    Asleep {
        rests: bool,
    },
    /// User code has panicked: a short rest, which nothing ends.
    Recovers,
    /// The cache is closed.
    Empties(Emptying<K, V>),
    /// Nothing is left but events.
    Tells,
}

impl<K, V, S> Driving<K, V, S>
where
    K: Hash + Eq + Send + Sync + 'static,
    V: Send + Sync + 'static,
    S: BuildHasher + Send + Sync + 'static,
{
    /// Drives a cache as a task, which counts as a worker from this call on, had it a turn or not:
    /// it may have been spawned. `None` if threads drive the cache: it would take their alarm over.
    pub(crate) fn by_task(inner: Arc<Inner<K, V, S>>, budget: TurnBudget) -> Option<Self> {
        if inner.requests.has_threads() {
            return None;
        }
        let background = Background::new(&inner, budget.events);
        let phase = Phase::Waits(inner.requests.election.place());
        Some(Self::new(
            inner,
            WorkerKind::Task,
            budget,
            Some(Box::new(background)),
            phase,
        ))
    }

    /// Drives a cache as a thread, one of several that work for it.
    #[cfg(feature = "system")]
    pub(crate) fn by_thread(inner: Arc<Inner<K, V, S>>, budget: TurnBudget) -> Self {
        Self::new(inner, WorkerKind::Thread, budget, None, Phase::Awake)
    }

    fn new(
        inner: Arc<Inner<K, V, S>>,
        kind: WorkerKind,
        budget: TurnBudget,
        background: Option<Box<dyn Aside<K, V, S>>>,
        phase: Phase<K, V>,
    ) -> Self {
        Self {
            _guard: WorkerGuard::join(&inner, kind),
            inner,
            background,
            budget,
            rounds: Rounds::default(),
            phase,
            sleeper: None,
        }
    }

    /// Does one step, unless the cache is closed.
    fn step(&mut self, waker: &Waker) -> Turn {
        let inner = &self.inner;
        self.phase = Phase::Awake;
        if inner.requests.is_stopped() {
            // No refresh ends in an empty cache.
            if let Some(background) = &mut self.background {
                background.cancel_refreshes();
            }
            self.phase = Phase::Empties(Emptying::new());
            return self.empty(waker);
        }
        #[cfg(all(feature = "metrics", feature = "system"))]
        if self.background.is_none() {
            // A task's user publishes them.
            inner.publish_now_and_then();
        }
        let next = inner.safe_step(&mut self.rounds, &self.budget);
        let background = self.background.as_mut();
        let more = background.is_some_and(|background| background.turn(inner, waker));
        match next {
            None => {
                self.phase = Phase::Recovers;
                Turn::Sleep(RECOVERY)
            }
            Some(Next::Again) => Turn::Again,
            // The delivery has made room.
            Some(Next::Rest(_)) if !inner.rules.events.must_wait() => Turn::Again,
            Some(_) if more => Turn::Again,
            Some(next) => self.sleep(next, waker),
        }
    }

    fn sleep(&mut self, next: Next, waker: &Waker) -> Turn {
        let rests = matches!(next, Next::Rest(_));
        self.is_woken_by(waker);
        let tells = self.background.is_some();
        let Some(left) = self.inner.fall_asleep(next, tells) else {
            return Turn::Again;
        };
        if self.stays_asleep(waker, rests) {
            self.phase = Phase::Asleep { rests };
            return Turn::Sleep(left);
        }
        self.inner.requests.alarm.woke();
        Turn::Again
    }

    /// Returns whether nothing has come up that ends the sleep; refreshes go on meanwhile.
    fn stays_asleep(&mut self, waker: &Waker, rests: bool) -> bool {
        // First known to the alarm, then a look at it: who ends the sleep calls this waker, or is
        // seen.
        self.is_woken_by(waker);
        let inner = &self.inner;
        if !inner.requests.alarm.sleeps() {
            return false;
        }
        let Some(background) = &mut self.background else {
            return true;
        };
        let has_more = background.go_on(inner, waker) || inner.may_tell();
        !has_more && (!rests || inner.rules.events.must_wait())
    }

    fn is_woken_by(&mut self, waker: &Waker) {
        let known = self.sleeper.as_ref();
        if !known.is_some_and(|own| own.will_wake(waker)) {
            self.sleeper = Some(waker.clone());
        }
        self.inner.requests.alarm.set_sleeper(waker);
    }

    /// Empties some of the closed cache: all of it, if no other one waits.
    fn empty(&mut self, waker: &Waker) -> Turn {
        let Phase::Empties(emptying) = &mut self.phase else {
            return self.tell(waker);
        };
        let is_shared = self.budget.time.is_some();
        let (inner, drops) = (&self.inner, self.budget.drops);
        let more = catch_unwind(AssertUnwindSafe(|| {
            while emptying.turn(inner, drops) {
                if is_shared {
                    return true;
                }
            }
            false
        }));
        match more {
            Ok(true) => return Turn::Again,
            Ok(false) => {}
            // The last worker that leaves does the rest.
            Err(panic) => forget_quietly(panic),
        }
        self.phase = Phase::Tells;
        self.tell(waker)
    }

    fn tell(&mut self, waker: &Waker) -> Turn {
        let Some(background) = &mut self.background else {
            return Turn::Over;
        };
        match background.tell_all(&self.inner, waker) {
            Poll::Ready(()) => Turn::Over,
            Poll::Pending => Turn::StillAsleep,
        }
    }
}

impl<K, V, S> Driven for Driving<K, V, S>
where
    K: Hash + Eq + Send + Sync + 'static,
    V: Send + Sync + 'static,
    S: BuildHasher + Send + Sync + 'static,
{
    fn turn(&mut self, waker: &Waker, slept: bool) -> Turn {
        match &mut self.phase {
            Phase::Waits(place) => {
                // First known, then a look: who leaves is seen, or wakes this one.
                place.wait(waker);
                if !self.inner.requests.election.take() {
                    return Turn::StillAsleep;
                }
                self.step(waker)
            }
            Phase::Awake => self.step(waker),
            Phase::Asleep { rests } => {
                let rests = *rests;
                if !slept && self.stays_asleep(waker, rests) {
                    return Turn::StillAsleep;
                }
                self.inner.requests.alarm.woke();
                self.step(waker)
            }
            Phase::Recovers if !slept => Turn::StillAsleep,
            Phase::Recovers => self.step(waker),
            Phase::Empties(_) => self.empty(waker),
            Phase::Tells => self.tell(waker),
        }
    }
}

impl<K: Hash + Eq, V, S: BuildHasher> Drop for Driving<K, V, S> {
    fn drop(&mut self) {
        let requests = &self.inner.requests;
        if let Some(own) = &self.sleeper {
            requests.alarm.unset_sleeper(own);
        }
        if matches!(self.phase, Phase::Waits(_)) {
            return;
        }
        // However this ends, no thread waits for it.
        requests.emptied();
        if let Some(background) = self.background.take() {
            drop(background);
            requests.election.leave();
        }
    }
}

impl<K, V, S> Inner<K, V, S> {
    /// Announces a sleep, and says how long it is; `None` when something has come up meanwhile. The
    /// sleep must end with [`Alarm::woke`]. `tells` is whether this driver tells the listener.
    fn fall_asleep(&self, sleep: Next, tells: bool) -> Option<Duration> {
        let alarm = &self.requests.alarm;
        let (tick, asleep) = match sleep {
            Next::Again => return None,
            Next::Rest(tick) => (tick, alarm.fall_asleep(tick, || NEVER)),
            Next::Sleep(tick) => (tick, alarm.fall_asleep(tick, || self.next_event())),
        };
        if !asleep {
            return None;
        }
        let left = self.time_left(tick, alarm);
        // Where an executor runs the driver within a loader or listener of its own cache, events
        // wait for the end of that, of which nobody tells the driver: it looks again soon.
        if tells && self.has_to_tell() && !reentrancy::may_tell(self.id()) {
            return Some(left.min(RECOVERY));
        }
        Some(left)
    }

    /// Returns the time until a tick; a short time if the user's clock panics.
    fn time_left(&self, tick: u64, alarm: &Arc<Alarm>) -> Duration {
        let read = || {
            // First known to the clock, then a look at it: a move by hand is seen, or it wakes.
            self.time.wake_when_moved(&Waker::from(Arc::clone(alarm)));
            if tick == NEVER {
                return Duration::MAX;
            }
            self.until(tick)
        };
        catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(|panic| {
            forget_quietly(panic);
            RECOVERY
        })
    }

    fn has_to_tell(&self) -> bool {
        self.delivery.wanted.load(SeqCst)
    }

    /// Returns whether there are events that this thread may deliver.
    fn may_tell(&self) -> bool {
        self.has_to_tell() && reentrancy::may_tell(self.id())
    }
}
