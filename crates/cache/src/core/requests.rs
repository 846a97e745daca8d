//! Requests of other threads to the driver, and the alarm that makes the driver look at them.

use std::sync::Arc;
#[cfg(feature = "system")]
use std::sync::OnceLock;
#[cfg(feature = "system")]
use std::task::Waker;

use tidewheel_time::Alarm;

use crate::core::waiting::{WaiterSlot, Waiting};
use crate::sync::{AtomicBool, Mutex, Ordering::SeqCst, lock};

/// The requests to a cache's driver, and the alarm that wakes it.
pub(crate) struct Requests {
    pub(crate) alarm: Arc<Alarm>,
    pub(crate) election: DriverElection,
    pub(crate) tidy: AtomicBool,
    pub(crate) sweeps: Sweeps,
    /// True if the shards have been emptied for good.
    pub(crate) emptied: AtomicBool,
    /// True if threads work for the cache: no task drives it as well.
    #[cfg(feature = "system")]
    has_threads: AtomicBool,
    /// The task to wake for events, if that is not the driver.
    #[cfg(feature = "system")]
    teller: Mutex<Option<Waker>>,
    /// The function to call when a refresh waits, if that is not for the driver.
    #[cfg(feature = "system")]
    refreshes: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

impl Requests {
    pub(crate) fn new() -> Self {
        Self {
            alarm: Arc::new(Alarm::new()),
            election: DriverElection::new(),
            tidy: AtomicBool::new(false),
            sweeps: Sweeps::default(),
            emptied: AtomicBool::new(false),
            #[cfg(feature = "system")]
            has_threads: AtomicBool::new(false),
            #[cfg(feature = "system")]
            teller: Mutex::new(None),
            #[cfg(feature = "system")]
            refreshes: OnceLock::new(),
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
        if self.sweeps.ask() {
            self.ask();
        }
    }

    /// A refresh was queued; the driver polls it, if it is a future.
    pub(crate) fn refresh_wanted(&self, is_future: bool) {
        #[cfg(feature = "system")]
        if let Some(tell) = self.refreshes.get() {
            tell();
            return;
        }
        if is_future {
            self.ask();
        }
    }

    /// Threads work for the cache from now on.
    #[cfg(feature = "system")]
    pub(crate) fn work_by_threads(&self) {
        self.has_threads.store(true, SeqCst);
    }

    pub(crate) fn has_threads(&self) -> bool {
        #[cfg(feature = "system")]
        return self.has_threads.load(SeqCst);
        #[cfg(not(feature = "system"))]
        false
    }

    /// Sets the function to call when a refresh waits. Call it before there are any.
    #[cfg(feature = "system")]
    pub(crate) fn tell_of_refreshes(&self, tell: impl Fn() + Send + Sync + 'static) {
        // A cache starts once.
        let _ = self.refreshes.set(Box::new(tell));
    }

    /// Events wait for the listener. `wanted` stays set until the next delivery begins.
    pub(crate) fn events_wanted(&self, wanted: &AtomicBool) {
        if wanted.swap(true, SeqCst) {
            return;
        }
        if !self.wake_teller() {
            self.ask();
        }
    }

    /// Sets the task to wake for events instead of the driver. Look for events after this call.
    #[cfg(feature = "system")]
    pub(crate) fn wake_for_events(&self, waker: &Waker) {
        let mut teller = lock(&self.teller);
        if teller.as_ref().is_some_and(|old| old.will_wake(waker)) {
            return;
        }
        let old = teller.replace(waker.clone());
        drop(teller);
        drop(old);
    }

    fn wake_teller(&self) -> bool {
        #[cfg(feature = "system")]
        {
            let teller = lock(&self.teller).clone();
            if let Some(teller) = teller {
                teller.wake();
                return true;
            }
        }
        false
    }

    /// Asks for a delivery again, because a thread found the turn taken and left its events.
    #[cold]
    pub(crate) fn events_missed(&self, wanted: &AtomicBool) {
        wanted.store(false, SeqCst);
        self.events_wanted(wanted);
    }

    pub(crate) fn stop(&self) {
        self.alarm.stop();
        self.wake_teller();
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.alarm.is_stopped()
    }

    /// The shards are empty for good: the last events wait.
    pub(crate) fn emptied(&self) {
        self.emptied.store(true, SeqCst);
        self.wake_teller();
    }
}

/// Elects the one task that drives a cache: the first drives until it ends or is dropped, then the
/// next.
pub(crate) struct DriverElection {
    is_taken: AtomicBool,
    waiting: Arc<Waiting>,
}

impl DriverElection {
    pub(crate) fn new() -> Self {
        Self {
            is_taken: AtomicBool::new(false),
            waiting: Waiting::new(),
        }
    }

    /// A task's place among those that wait for their turn to drive.
    pub(crate) fn place(&self) -> WaiterSlot {
        self.waiting.place()
    }

    /// Lets the caller drive, unless another task does.
    pub(crate) fn take(&self) -> bool {
        !self.is_taken.swap(true, SeqCst)
    }

    /// The task that has driven leaves; those that wait try again.
    pub(crate) fn leave(&self) {
        self.is_taken.store(false, SeqCst);
        self.waiting.wake_all();
    }
}

/// Requests for sweeps of invalidated entries, and the position of the sweep that was begun: one
/// that a driver has put off, or has not ended, is there for the others.
#[derive(Default)]
pub(crate) struct Sweeps {
    /// True if a sweep was requested and has not begun.
    wanted: AtomicBool,
    state: Mutex<SweepState>,
}

#[derive(Default)]
struct SweepState {
    /// The sweep that its driver paused.
    paused: Option<Sweep>,
    /// The tick before which no driver of its own accord begins one.
    not_before: u64,
}

/// The position of a sweep.
#[derive(Clone, Copy)]
pub(crate) struct Sweep {
    pub(crate) shard: usize,
    /// The slots from here on are done.
    pub(crate) before: u32,
    /// The tick at which it began.
    pub(crate) began: u64,
}

impl Sweep {
    fn begin(now: u64) -> Self {
        Self {
            shard: 0,
            before: u32::MAX,
            began: now,
        }
    }

    /// The one that has more to do: what it does includes what the other has to do.
    fn longer(self, other: Self) -> Self {
        let done = |sweep: &Self| (sweep.shard, u32::MAX - sweep.before);
        if done(&self) <= done(&other) {
            self
        } else {
            other
        }
    }
}

impl Sweeps {
    /// Asks for a sweep that begins from now on; whether it is news.
    pub(crate) fn ask(&self) -> bool {
        !self.wanted.swap(true, SeqCst)
    }

    /// Returns the tick at which a sweep begins or goes on; `u64::MAX` if there is none.
    pub(crate) fn due_at(&self) -> u64 {
        let state = lock(&self.state);
        if state.paused.is_some() {
            0
        } else if self.wanted.load(SeqCst) {
            state.not_before
        } else {
            u64::MAX
        }
    }

    /// The sweep that was paused.
    pub(crate) fn resume(&self) -> Option<Sweep> {
        lock(&self.state).paused.take()
    }

    /// A sweep that was asked for, from its beginning.
    pub(crate) fn begin(&self, now: u64) -> Option<Sweep> {
        self.wanted.swap(false, SeqCst).then(|| Sweep::begin(now))
    }

    /// Leaves a sweep to the next driver.
    pub(crate) fn pause(&self, sweep: Sweep) {
        let mut state = lock(&self.state);
        let paused = state.paused.take();
        state.paused = Some(paused.map_or(sweep, |other| sweep.longer(other)));
    }

    /// A sweep is over; the next is to begin at this tick.
    pub(crate) fn end(&self, not_before: u64) {
        lock(&self.state).not_before = not_before;
    }
}
