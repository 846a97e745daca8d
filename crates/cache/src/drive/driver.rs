//! What removes due entries when nobody calls: a thread, an async task, or the caller.

use std::future::{Future, poll_fn};
use std::hash::{BuildHasher, Hash};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Duration;

use tidewheel_time::{Alarm, NEVER};
use tidewheel_timer::SPLIT_PER_TICK;

use crate::core::inner::{Inner, RECORDS_PER_HOLD};
use crate::core::midst;
use crate::drive::sweep::{SWEEP_PER_PASS, Sweeper};
use crate::quiet::forget_quietly;
use crate::sync::{AtomicBool, Mutex, Ordering::Relaxed, Ordering::SeqCst, lock};

/// Who removes entries whose time is over, tidies memory and calls the listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
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

/// What one call of [`Cache::advance`](crate::Cache::advance) did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress {
    /// Entries removed because their time was over.
    pub expired: u64,
    /// Timer records moved or dropped, and entries moved together.
    pub moved: u64,
    /// Whether the budget ran out first: call again.
    pub backlog: bool,
    /// How long until the next call is worth while; `None` when nothing has a deadline.
    pub next: Option<Duration>,
}

/// How long after the last removals memory is tidied: what is about to die need not be moved.
const CALM_TICKS: u64 = 100;

/// How long removals may put tidying off.
const TIDY_WITHIN_TICKS: u64 = 2000;

/// Records that the driver touches before it looks whether it was told to stop.
const RECORDS_PER_PASS: u32 = 4096;

/// Timer records that one hold moves ahead of their time: a move takes a tenth of a removal.
const AHEAD_PER_HOLD: u32 = 64;

/// Tidying units between two looks at the deadlines.
const TIDY_PER_PASS: u32 = 256;

/// What others may ask of the driver, and the alarm that makes it look.
#[derive(Debug)]
pub(crate) struct Requests {
    alarm: Arc<Alarm>,
    tidy: AtomicBool,
    /// Whether a sweep of invalidated entries was asked for.
    pub(crate) sweep: AtomicBool,
    /// The listener's thread.
    #[cfg(feature = "system")]
    listener: Mutex<Option<std::thread::Thread>>,
}

impl Requests {
    pub(crate) fn new() -> Self {
        Self {
            alarm: Arc::new(Alarm::new()),
            tidy: AtomicBool::new(false),
            sweep: AtomicBool::new(false),
            #[cfg(feature = "system")]
            listener: Mutex::new(None),
        }
    }

    /// A shard's next deadline has become earlier, which the caller has published.
    #[inline]
    pub(crate) fn lowered(&self, tick: u64) {
        self.alarm.lowered(tick);
    }

    /// Something that the driver looks at has changed.
    pub(crate) fn ask(&self) {
        self.alarm.ask();
    }

    #[cold]
    pub(crate) fn tidy_wanted(&self) {
        if !self.tidy.swap(true, SeqCst) {
            self.ask();
        }
    }

    /// Entries were invalidated by a tag.
    pub(crate) fn sweep_wanted(&self) {
        if !self.sweep.swap(true, SeqCst) {
            self.ask();
        }
    }

    /// Events wait for the listener. `wanted` is set while its thread knows.
    pub(crate) fn events_wanted(&self, wanted: &AtomicBool) {
        if wanted.swap(true, SeqCst) {
            return;
        }
        #[cfg(feature = "system")]
        if let Some(listener) = &*lock(&self.listener) {
            listener.unpark();
            return;
        }
        self.ask();
    }

    /// Whoever was to deliver events came while another thread was at it, and that has ended.
    #[cold]
    pub(crate) fn events_missed(&self, wanted: &AtomicBool) {
        wanted.store(false, SeqCst);
        self.events_wanted(wanted);
    }

    pub(crate) fn stop(&self) {
        self.alarm.stop();
        #[cfg(feature = "system")]
        if let Some(listener) = &*lock(&self.listener) {
            listener.unpark();
        }
    }

    fn is_stopped(&self) -> bool {
        self.alarm.is_stopped()
    }
}

/// What a driver does between two sleeps.
#[derive(Debug, Default)]
pub(crate) struct Rounds {
    /// The shard that the next pass begins with.
    first: usize,
    /// When to tidy if it stays calm, and when to tidy anyhow.
    tidy_at: Option<(u64, u64)>,
    pub(crate) sweeper: Sweeper,
}

/// How long a driver rests, at most, after user code has panicked, and while it may not call the listener: a tick.
const RECOVERY: Duration = Duration::from_millis(1);

/// What to do after a pass.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    Again,
    /// Sleep until this tick; `u64::MAX` for until woken.
    Sleep(u64),
    /// Wait until this tick, whatever is due: the listener must empty its queue first.
    Rest(u64),
}

impl<K: Hash + Eq, V, S: BuildHasher> Inner<K, V, S> {
    /// Removes what is due at engine tick `now`; then works ahead with what is left of the budget.
    pub(crate) fn pass(&self, rounds: &mut Rounds, now: u64, budget: &mut u32) -> Progress {
        let count = self.shards.len();
        let mut progress = Progress::default();
        // A hold of each shard in turn: whoever waits for one of them finds it free the longer.
        loop {
            let first = rounds.first;
            let mut backlog = false;
            for at in [first..count, 0..first].into_iter().flatten() {
                if self.shards[at].next_deadline.get() > now {
                    continue;
                }
                let hold = self.expire_hold(at, now, RECORDS_PER_HOLD, budget);
                progress.expired += u64::from(hold.fired);
                progress.moved += u64::from(hold.moved);
                backlog |= hold.backlog;
                if hold.backlog && hold.fired + hold.moved == 0 {
                    // Begin here next time: no shard starves.
                    rounds.first = at;
                    progress.backlog = true;
                    return progress;
                }
            }
            if !backlog {
                progress.moved += self.work_ahead(now, budget);
                return progress;
            }
        }
    }

    /// Lets the wheels of crowded shards split coming slots before their start, when nothing is due.
    /// Returns the records moved.
    fn work_ahead(&self, now: u64, budget: &mut u32) -> u64 {
        let mut moved = 0;
        for _ in 0..SPLIT_PER_TICK / AHEAD_PER_HOLD {
            let mut crowded = false;
            for at in 0..self.shards.len() {
                // A wheel with work ahead asks to be called at every tick.
                if *budget == 0 || self.shards[at].next_deadline.get() > now + 1 {
                    continue;
                }
                let hold = self.expire_hold(at, now, AHEAD_PER_HOLD, budget);
                moved += u64::from(hold.moved);
                crowded |= hold.moved >= AHEAD_PER_HOLD / 2;
            }
            if !crowded {
                break;
            }
        }
        moved
    }

    /// Tidies the shards that want it; `true` when some still do.
    pub(crate) fn tidy(&self, budget: &mut u32) -> bool {
        let mut more = false;
        for at in 0..self.shards.len() {
            if self.shards[at].untidy.load(Relaxed) {
                more |= *budget == 0 || self.tidy_shard(at, budget);
            }
        }
        more
    }

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
    fn safe_step(&self, rounds: &mut Rounds) -> Option<Next> {
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
    fn fall_asleep(&self, sleep: Next) -> Option<Duration> {
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

/// The threads of [`Driver::Thread`].
#[cfg(feature = "system")]
pub(crate) mod threads {
    use tidewheel_time::waker_of;

    use super::{Hash, Inner, RECOVERY, Rounds, lock};
    use std::hash::BuildHasher;
    use std::io;
    use std::sync::Arc;
    use std::sync::atomic::Ordering::SeqCst;
    use std::thread::{self, JoinHandle, Thread};

    /// The threads of one cache.
    #[derive(Debug, Default)]
    pub(crate) struct Threads(Vec<JoinHandle<()>>);

    impl Threads {
        /// Starts the driver's thread, and the listener's and the refresher's if there is one.
        pub(crate) fn start<K, V, S>(inner: &Arc<Inner<K, V, S>>) -> io::Result<Self>
        where
            K: Hash + Eq + Send + Sync + 'static,
            V: Send + Sync + 'static,
            S: BuildHasher + Send + Sync + 'static,
        {
            let mut threads = Self::default();
            let driver = Arc::clone(inner);
            let handle = threads.spawn(inner, "expiry", move || driver.run())?;
            inner.requests.alarm.set_sleeper(&waker_of(handle));
            if inner.delivery.has_listener() {
                let listener = Arc::clone(inner);
                let handle = threads.spawn(inner, "events", move || listener.run_listener())?;
                *lock(&inner.requests.listener) = Some(handle);
            }
            if inner.config.refresher.is_some() {
                let refresher = Arc::clone(inner);
                threads.spawn(inner, "refresh", move || refresher.run_refresher())?;
            }
            Ok(threads)
        }

        /// Starts one more thread, or stops those there are.
        fn spawn<K, V, S>(
            &mut self,
            inner: &Inner<K, V, S>,
            role: &str,
            body: impl FnOnce() + Send + 'static,
        ) -> io::Result<Thread> {
            let name = &inner.config.name;
            match thread::Builder::new()
                .name(format!("{name}-{role}"))
                .spawn(body)
            {
                Ok(handle) => {
                    let thread = handle.thread().clone();
                    self.0.push(handle);
                    Ok(thread)
                }
                Err(error) => {
                    inner.requests.stop();
                    inner.refreshes.stop();
                    self.join();
                    Err(error)
                }
            }
        }

        /// Hands the threads over to whoever joins them.
        pub(crate) fn take(&mut self) -> Self {
            std::mem::take(self)
        }

        /// Waits for the threads to end, except for the one that calls this.
        pub(crate) fn join(&mut self) {
            for handle in self.0.drain(..) {
                if handle.thread().id() != thread::current().id() && handle.join().is_err() {
                    // The user's Hash or Eq has panicked there; the panic was reported by its hook.
                }
            }
        }
    }

    impl<K: Hash + Eq, V, S: BuildHasher> Inner<K, V, S> {
        fn run(&self) {
            let mut rounds = Rounds::default();
            while !self.requests.is_stopped() {
                #[cfg(feature = "metrics")]
                self.publish_now_and_then();
                let Some(next) = self.safe_step(&mut rounds) else {
                    thread::park_timeout(RECOVERY);
                    continue;
                };
                if let Some(duration) = self.fall_asleep(next) {
                    thread::park_timeout(duration);
                }
                self.requests.alarm.woke();
            }
        }

        fn run_listener(&self) {
            loop {
                let stopped = self.requests.is_stopped();
                self.deliver(true);
                if stopped {
                    return;
                }
                if !self.delivery.wanted.load(SeqCst) {
                    thread::park();
                }
            }
        }
    }
}
