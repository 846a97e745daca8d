//! What removes due entries when nobody calls: a thread, an async task, or the caller.

use std::future::{Future, poll_fn};
use std::hash::{BuildHasher, Hash};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Duration;

use tidewheel_time::{Alarm, NEVER};

use crate::core::inner::Inner;
use crate::core::midst;
use crate::drive::expiry::Rounds;
use crate::drive::sweep::SWEEP_PER_PASS;
use crate::quiet::forget_quietly;
use crate::sync::Ordering::SeqCst;

/// Who removes entries whose time is over, tidies memory and calls the listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Driver {
    /// Threads of the cache's own, asleep until the next deadline: one for expiry, others for
    /// the listener and the refresher if there is one. Threads that cause events help the listener's when
    /// its queue is full: see [`Builder::eviction_listener`](crate::Builder::eviction_listener).
    #[default]
    Thread,
    /// The future of [`Cache::drive`](crate::Cache::drive), on any runtime.
    Task,
    /// Calls of [`Cache::advance`](crate::Cache::advance).
    Manual,
}

/// How long after the last removals memory is tidied: what is about to die need not be moved.
const CALM_TICKS: u64 = 100;

/// How long removals may put tidying off.
const TIDY_WITHIN_TICKS: u64 = 2000;

/// Records that the driver touches before it looks whether it was told to stop.
const RECORDS_PER_PASS: u32 = 4096;

/// Tidying units between two looks at the deadlines.
const TIDY_PER_PASS: u32 = 256;

/// How long a driver rests, at most, after user code has panicked, and while it may not call the listener: a tick.
pub(crate) const RECOVERY: Duration = Duration::from_millis(1);

/// What to do after a pass.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    Again,
    /// Sleep until this tick; `u64::MAX` for until woken.
    Sleep(u64),
    /// Wait until this tick, whatever is due: the listener must empty its queue first.
    Rest(u64),
}

impl<K: Hash + Eq, V, S: BuildHasher> Inner<K, V, S> {
    fn step(&self, rounds: &mut Rounds) -> Next {
        self.requests.alarm.take_request();
        let now = self.time.now().tick();
        let mut budget = RECORDS_PER_PASS;
        let progress = self.pass(rounds, now, &mut budget);
        if progress.backlog {
            // A full queue of events is the listener's to empty.
            return if self.delivery.must_wait() {
                Next::Rest(now + 1)
            } else {
                Next::Again
            };
        }
        if self.requests.sweep.swap(false, SeqCst) {
            rounds.sweeper.ask();
        }
        if rounds.sweeper.is_due(now)
            && self.sweep(&mut rounds.sweeper, now, &mut { SWEEP_PER_PASS })
        {
            return if self.delivery.must_wait() {
                Next::Rest(now + 1)
            } else {
                Next::Again
            };
        }
        if self.requests.tidy.swap(false, SeqCst) && rounds.tidy_at.is_none() {
            rounds.tidy_at = Some((now + CALM_TICKS, now + TIDY_WITHIN_TICKS));
        }
        if let Some((at, latest)) = rounds.tidy_at {
            if progress.expired > 0 {
                rounds.tidy_at = Some(((now + CALM_TICKS).min(latest), latest));
            } else if now >= at {
                let mut budget = TIDY_PER_PASS;
                if self.tidy(&mut budget) {
                    return Next::Again;
                }
                rounds.tidy_at = None;
            }
        }
        let tidy_at = rounds.tidy_at.map_or(NEVER, |(at, _)| at);
        Next::Sleep(self.next_event().min(tidy_at).min(rounds.sweeper.due_at()))
    }

    /// A step that a panic of user code does not get out of: `None` then. What it concerned is gone, and
    /// others are to expire on time.
    pub(crate) fn safe_step(&self, rounds: &mut Rounds) -> Option<Next> {
        catch_unwind(AssertUnwindSafe(|| self.step(rounds)))
            .map_err(forget_quietly)
            .ok()
    }

    /// The tick at which something expires, if nobody interferes.
    fn next_event(&self) -> u64 {
        match self.next_deadline() {
            Some(next) if !self.time.is_frozen() => next,
            _ => NEVER,
        }
    }

    /// Announces a sleep, and says how long it is; `None` when something has come up meanwhile. The sleep
    /// must end with [`Alarm::woke`].
    pub(crate) fn fall_asleep(&self, sleep: Next) -> Option<Duration> {
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
        // Where an executor runs the driver within a loader or listener of its own cache, events wait for the
        // end of that, of which nobody tells the driver: it looks again soon.
        if self.has_to_tell() && !midst::may_tell(self.id()) {
            return Some(left.min(RECOVERY));
        }
        Some(left)
    }

    /// How long until a tick; until soon, if the user's clock panics.
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

    /// The async driver: removes due entries until the cache is closed.
    pub(crate) async fn drive<F: Future<Output = ()>>(&self, sleep: impl Fn(Duration) -> F) {
        let mut rounds = Rounds::default();
        let mut task = Task {
            alarm: &self.requests.alarm,
            waker: None,
        };
        while !self.requests.is_stopped() {
            let next = self.safe_step(&mut rounds);
            self.deliver(false);
            match next {
                None => sleep(RECOVERY).await,
                Some(Next::Again) => yield_now().await,
                // The delivery has made room.
                Some(Next::Rest(_)) if !self.delivery.must_wait() => yield_now().await,
                Some(next) => self.sleep(next, &mut task, &sleep).await,
            }
        }
    }

    async fn sleep<F: Future<Output = ()>>(
        &self,
        next: Next,
        task: &mut Task<'_>,
        sleep: &impl Fn(Duration) -> F,
    ) {
        poll_fn(|context| {
            task.is_woken_by(context.waker());
            Poll::Ready(())
        })
        .await;
        let Some(duration) = self.fall_asleep(next) else {
            return;
        };
        let mut timer = pin!((duration != Duration::MAX).then(|| sleep(duration)));
        poll_fn(|context| {
            // First known to the alarm, then a look at it: who ends the sleep calls this waker, or is seen.
            task.is_woken_by(context.waker());
            let woken = !self.requests.alarm.sleeps();
            if woken || self.has_to_tell() && midst::may_tell(self.id()) {
                return Poll::Ready(());
            }
            match timer.as_mut().as_pin_mut() {
                Some(timer) => timer.poll(context),
                None => Poll::Pending,
            }
        })
        .await;
        self.requests.alarm.woke();
    }
}

/// The task that drives, while it exists: its waker must not outlive it.
struct Task<'a> {
    alarm: &'a Alarm,
    waker: Option<Waker>,
}

impl Task<'_> {
    fn is_woken_by(&mut self, waker: &Waker) {
        if !self.waker.as_ref().is_some_and(|own| own.will_wake(waker)) {
            self.waker = Some(waker.clone());
        }
        self.alarm.set_sleeper(waker);
    }
}

impl Drop for Task<'_> {
    fn drop(&mut self) {
        if let Some(own) = &self.waker {
            self.alarm.unset_sleeper(own);
        }
    }
}

async fn yield_now() {
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
