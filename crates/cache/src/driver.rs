//! What removes due entries when nobody calls: a thread, an async task, or the caller.

use std::future::{Future, poll_fn};
use std::hash::{BuildHasher, Hash};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::{Poll, Waker};
use std::time::Duration;

use tidewheel_timer::SPLIT_PER_TICK;

use crate::inner::{Inner, RECORDS_PER_HOLD};
use crate::midst;
use crate::quiet::forget_quietly;
use crate::sweep::{SWEEP_PER_PASS, Sweeper};
use crate::sync::{AtomicBool, AtomicU64, Mutex, Ordering::Relaxed, Ordering::SeqCst, lock};

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

/// The driver's alarm clock: until when it sleeps, and who can end that.
#[derive(Debug)]
pub(crate) struct Alarm {
    /// The tick that the driver sleeps until; 0 while it is awake.
    sleeps_until: AtomicU64,
    tidy: AtomicBool,
    /// Whether a sweep of invalidated entries was asked for.
    pub(crate) sweep: AtomicBool,
    stop: AtomicBool,
    sleeper: Mutex<Sleeper>,
    /// The listener's thread.
    #[cfg(feature = "system")]
    listener: Mutex<Option<std::thread::Thread>>,
}

#[derive(Debug)]
enum Sleeper {
    Nobody,
    #[cfg(feature = "system")]
    Thread(std::thread::Thread),
    Task(Waker),
}

impl Alarm {
    pub(crate) fn new() -> Self {
        Self {
            sleeps_until: AtomicU64::new(0),
            tidy: AtomicBool::new(false),
            sweep: AtomicBool::new(false),
            stop: AtomicBool::new(false),
            sleeper: Mutex::new(Sleeper::Nobody),
            #[cfg(feature = "system")]
            listener: Mutex::new(None),
        }
    }

    /// A shard's next deadline has become earlier. The caller has published it: either the sleeper sees
    /// it before it falls asleep, or this sees how long it sleeps.
    #[inline]
    pub(crate) fn earlier(&self, tick: u64) {
        if tick < self.sleeps_until.load(SeqCst) {
            self.wake();
        }
    }

    #[cold]
    pub(crate) fn tidy_wanted(&self) {
        if !self.tidy.swap(true, SeqCst) {
            self.wake();
        }
    }

    /// Entries were invalidated by a tag.
    pub(crate) fn sweep_wanted(&self) {
        if !self.sweep.swap(true, SeqCst) {
            self.wake();
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
        self.wake();
    }

    /// Whoever was to deliver events came while another thread was at it, and that has ended.
    #[cold]
    pub(crate) fn events_missed(&self, wanted: &AtomicBool) {
        wanted.store(false, SeqCst);
        self.events_wanted(wanted);
    }

    #[cold]
    pub(crate) fn wake(&self) {
        self.sleeps_until.store(0, SeqCst);
        let waker = match &*lock(&self.sleeper) {
            Sleeper::Nobody => return,
            #[cfg(feature = "system")]
            Sleeper::Thread(thread) => {
                thread.unpark();
                return;
            }
            Sleeper::Task(waker) => waker.clone(),
        };
        // Not under the lock: a waker is the runtime's code, and may poll the driver at once.
        waker.wake();
    }

    pub(crate) fn stop(&self) {
        self.stop.store(true, SeqCst);
        self.wake();
        #[cfg(feature = "system")]
        if let Some(listener) = &*lock(&self.listener) {
            listener.unpark();
        }
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(SeqCst)
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
                if self.shards[at].next_deadline.load(SeqCst) > now {
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
                if *budget == 0 || self.shards[at].next_deadline.load(SeqCst) > now + 1 {
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
        if self.alarm.sweep.swap(false, SeqCst) {
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
        if self.alarm.tidy.swap(false, SeqCst) && rounds.tidy_at.is_none() {
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
        let deadline = if self.time.is_frozen() {
            u64::MAX
        } else {
            self.next_deadline().unwrap_or(u64::MAX)
        };
        let tidy_at = rounds.tidy_at.map_or(u64::MAX, |(at, _)| at);
        Next::Sleep(deadline.min(tidy_at).min(rounds.sweeper.due_at()))
    }

    /// A step that a panic of user code does not get out of: `None` then. What it concerned is gone, and
    /// others are to expire on time.
    fn safe_step(&self, rounds: &mut Rounds) -> Option<Next> {
        catch_unwind(AssertUnwindSafe(|| self.step(rounds)))
            .map_err(forget_quietly)
            .ok()
    }

    /// Announces a sleep until `tick`; `false` when something has come up meanwhile.
    fn fall_asleep(&self, tick: u64) -> bool {
        let alarm = &self.alarm;
        alarm.sleeps_until.store(tick, SeqCst);
        let earlier =
            !self.time.is_frozen() && self.next_deadline().is_some_and(|next| next < tick);
        let asked = alarm.tidy.load(SeqCst) || alarm.sweep.load(SeqCst);
        !(earlier || alarm.is_stopped() || asked)
    }

    fn has_to_tell(&self) -> bool {
        self.delivery.wanted.load(SeqCst)
    }

    /// How long to sleep until `tick`; `None` for until woken. Where an executor runs the driver within a loader
    /// or listener of its own cache, events wait for the end of that, of which nobody tells the driver: it looks
    /// again soon.
    fn nap(&self, tick: u64) -> Option<Duration> {
        let left = (tick != u64::MAX).then(|| self.safe_until(tick));
        if self.has_to_tell() && !midst::may_tell(self.id()) {
            return Some(left.unwrap_or(RECOVERY).min(RECOVERY));
        }
        left
    }

    /// How long until a tick; until soon, if the user's clock panics.
    fn safe_until(&self, tick: u64) -> Duration {
        catch_unwind(AssertUnwindSafe(|| self.until(tick))).unwrap_or_else(|panic| {
            forget_quietly(panic);
            RECOVERY
        })
    }

    /// The async driver: removes due entries until the cache is closed.
    pub(crate) async fn drive<F: Future<Output = ()>>(&self, sleep: impl Fn(Duration) -> F) {
        let mut rounds = Rounds::default();
        let mut task = Task {
            alarm: &self.alarm,
            waker: None,
        };
        loop {
            if self.alarm.is_stopped() {
                return;
            }
            let next = self.safe_step(&mut rounds);
            self.deliver(false);
            match next {
                None => sleep(RECOVERY).await,
                Some(Next::Rest(tick)) if self.delivery.must_wait() => {
                    self.rest(&mut task, sleep(self.safe_until(tick))).await;
                }
                Some(Next::Again | Next::Rest(_)) => yield_now().await,
                Some(Next::Sleep(tick)) => {
                    let timer = self.nap(tick).map(&sleep);
                    self.sleep(&mut task, tick, timer).await;
                }
            }
        }
    }

    /// Waits for the timer, or until the cache is closed.
    async fn rest(&self, task: &mut Task<'_>, timer: impl Future<Output = ()>) {
        let mut timer = pin!(timer);
        poll_fn(|context| {
            task.is_woken_by(context.waker());
            if self.alarm.is_stopped() {
                return Poll::Ready(());
            }
            timer.as_mut().poll(context)
        })
        .await;
    }

    /// Sleeps until the timer, or until there is something to do before `tick`.
    async fn sleep(&self, task: &mut Task<'_>, tick: u64, timer: Option<impl Future<Output = ()>>) {
        let mut timer = pin!(timer);
        let mut announced = false;
        poll_fn(|context| {
            task.is_woken_by(context.waker());
            if !announced {
                announced = true;
                if !self.fall_asleep(tick) {
                    return Poll::Ready(());
                }
            }
            let woken = self.alarm.sleeps_until.load(SeqCst) == 0;
            if woken || self.has_to_tell() && midst::may_tell(self.id()) {
                return Poll::Ready(());
            }
            match timer.as_mut().as_pin_mut() {
                Some(timer) => timer.poll(context),
                None => Poll::Pending,
            }
        })
        .await;
        self.alarm.sleeps_until.store(0, SeqCst);
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
        let new = Sleeper::Task(waker.clone());
        let old = std::mem::replace(&mut *lock(&self.alarm.sleeper), new);
        drop(old);
    }
}

impl Drop for Task<'_> {
    fn drop(&mut self) {
        let Some(own) = &self.waker else { return };
        let mut sleeper = lock(&self.alarm.sleeper);
        let is_own = matches!(&*sleeper, Sleeper::Task(waker) if waker.will_wake(own));
        if is_own {
            let old = std::mem::replace(&mut *sleeper, Sleeper::Nobody);
            drop(sleeper);
            drop(old);
            self.alarm.sleeps_until.store(0, SeqCst);
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
    use super::{Hash, Inner, Next, RECOVERY, Rounds, Sleeper, lock};
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
            *lock(&inner.alarm.sleeper) = Sleeper::Thread(handle);
            if inner.delivery.has_listener() {
                let listener = Arc::clone(inner);
                let handle = threads.spawn(inner, "events", move || listener.run_listener())?;
                *lock(&inner.alarm.listener) = Some(handle);
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
                    inner.alarm.stop();
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
            while !self.alarm.is_stopped() {
                #[cfg(feature = "metrics")]
                self.publish_now_and_then();
                let Some(next) = self.safe_step(&mut rounds) else {
                    thread::park_timeout(RECOVERY);
                    continue;
                };
                let tick = match next {
                    Next::Again => continue,
                    Next::Rest(tick) => {
                        thread::park_timeout(self.safe_until(tick));
                        continue;
                    }
                    Next::Sleep(tick) => tick,
                };
                if self.fall_asleep(tick) {
                    if tick == u64::MAX {
                        thread::park();
                    } else {
                        thread::park_timeout(self.safe_until(tick));
                    }
                }
                self.alarm.sleeps_until.store(0, SeqCst);
            }
        }

        fn run_listener(&self) {
            loop {
                let stopped = self.alarm.is_stopped();
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
