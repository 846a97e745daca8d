//! Requests of other threads to the driver, and the alarm that makes the driver look at them.

use std::sync::Arc;
#[cfg(feature = "system")]
use std::sync::OnceLock;
#[cfg(feature = "system")]
use std::task::Waker;

use tidewheel_time::Alarm;

use crate::core::sweeps::Sweeps;
use crate::events::waiting::{WaiterSlot, Waiting};
use crate::sync::{AtomicBool, Ordering::SeqCst};
#[cfg(feature = "system")]
use crate::sync::{Mutex, lock};

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
