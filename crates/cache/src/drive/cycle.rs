//! The driver's cycle as a future: a step, then a sleep until the next. Polling it drives the
//! cache.

use std::future::{Future, poll_fn};
use std::hash::{BuildHasher, Hash};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Duration;

use tidewheel_time::{Alarm, NEVER};

use crate::core::inner::Inner;
use crate::core::requests::Requests;
use crate::drive::background::BackgroundWork;
use crate::drive::expiry::Rounds;
use crate::drive::step::Next;
use crate::drive::turns::{TurnBudget, yield_now};
use crate::events::reentrancy;
use crate::quiet::forget_quietly;
use crate::sync::Ordering::SeqCst;

/// The longest rest of a driver after user code has panicked, and while it may not call the
/// listener: a tick.
const RECOVERY: Duration = Duration::from_millis(1);

/// The way in which a driver empties a cache that is closed.
pub(crate) trait End {
    fn close<K, V, S>(cache: &Inner<K, V, S>) -> impl Future<Output = ()> + Send
    where
        K: Hash + Eq + Send + Sync,
        V: Send + Sync,
        S: BuildHasher + Send + Sync;
}

/// Empties the cache at once, because no other cache waits for the driver.
pub(crate) struct EmptyAtOnce;

/// Other caches do.
pub(crate) struct EmptyInTurns;

impl End for EmptyAtOnce {
    async fn close<K, V, S>(cache: &Inner<K, V, S>)
    where
        K: Hash + Eq + Send + Sync,
        V: Send + Sync,
        S: BuildHasher + Send + Sync,
    {
        cache.close_shards_quietly();
    }
}

impl End for EmptyInTurns {
    async fn close<K, V, S>(cache: &Inner<K, V, S>)
    where
        K: Hash + Eq + Send + Sync,
        V: Send + Sync,
        S: BuildHasher + Send + Sync,
    {
        cache.close_shards_in_turns().await;
    }
}

impl<K, V, S> Inner<K, V, S>
where
    K: Hash + Eq + Send + Sync,
    V: Send + Sync,
    S: BuildHasher + Send + Sync,
{
    /// Drives the cache until it is closed; then empties it, in turns if others wait, and does the
    /// rest of the background work.
    pub(crate) async fn drive<B: BackgroundWork, F: Future<Output = ()>, E: End>(
        &self,
        mut background: B,
        budget: TurnBudget,
        sleep: impl Fn(Duration) -> F,
    ) {
        let _emptied = EmptiedOnDrop(&self.requests);
        self.cycle(&mut background, budget, &sleep).await;
        // No refresh ends in an empty cache.
        background.cancel_refreshes();
        E::close(self).await;
        background.tell_all().await;
    }

    async fn cycle<F: Future<Output = ()>>(
        &self,
        background: &mut impl BackgroundWork,
        budget: TurnBudget,
        sleep: &impl Fn(Duration) -> F,
    ) {
        let mut rounds = Rounds::default();
        let mut task = Task {
            alarm: &self.requests.alarm,
            waker: None,
        };
        while !self.requests.is_stopped() {
            #[cfg(all(feature = "metrics", feature = "system"))]
            self.publish_in_background(background);
            let next = self.safe_step(&mut rounds, &budget);
            let more = background.turn().await;
            match next {
                None => {
                    sleep(RECOVERY).await;
                    yield_now().await;
                }
                Some(Next::Again) => yield_now().await,
                // The delivery has made room.
                Some(Next::Rest(_)) if !self.rules.events.must_wait() => yield_now().await,
                Some(_) if more => yield_now().await,
                Some(next) => self.sleep(next, &mut task, background, sleep).await,
            }
        }
    }

    /// Sleeps; is pending once at least, so that a poll of the driver is one step.
    async fn sleep<B: BackgroundWork, F: Future<Output = ()>>(
        &self,
        next: Next,
        task: &mut Task<'_>,
        background: &mut B,
        sleep: &impl Fn(Duration) -> F,
    ) {
        poll_fn(|context| {
            task.is_woken_by(context.waker());
            Poll::Ready(())
        })
        .await;
        let rests = matches!(next, Next::Rest(_));
        let Some(duration) = self.fall_asleep(next, B::TELLS) else {
            return yield_now().await;
        };
        let mut timer = pin!((duration != Duration::MAX).then(|| sleep(duration)));
        let mut slept = false;
        poll_fn(|context| {
            // First known to the alarm, then a look at it: who ends the sleep calls this waker, or
            // is seen.
            task.is_woken_by(context.waker());
            if !self.requests.alarm.sleeps() {
                return Poll::Ready(());
            }
            if B::TELLS {
                let has_more = background.poll(context) || self.may_tell();
                if has_more || rests && !self.rules.events.must_wait() {
                    return Poll::Ready(());
                }
            }
            if let Some(timer) = timer.as_mut().as_pin_mut() {
                if timer.poll(context).is_ready() {
                    return Poll::Ready(());
                }
            }
            slept = true;
            Poll::Pending
        })
        .await;
        self.requests.alarm.woke();
        if !slept {
            yield_now().await;
        }
    }

    #[cfg(all(feature = "metrics", feature = "system"))]
    fn publish_in_background<B: BackgroundWork>(&self, _background: &B) {
        // A task's user publishes them.
        if !B::TELLS {
            self.publish_now_and_then();
        }
    }

    fn close_shards_quietly(&self) {
        let closed = catch_unwind(AssertUnwindSafe(|| self.close_shards()));
        if let Err(panic) = closed {
            forget_quietly(panic);
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

/// Reports the shards as emptied when a drive future ends in any way, so that no thread waits for
/// it.
struct EmptiedOnDrop<'a>(&'a Requests);

impl Drop for EmptiedOnDrop<'_> {
    fn drop(&mut self) {
        self.0.emptied();
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
