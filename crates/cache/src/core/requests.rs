//! What other threads ask of the driver, and the alarm that makes it look.

use std::sync::Arc;

use tidewheel_time::Alarm;

use crate::sync::{AtomicBool, Ordering::SeqCst};
#[cfg(feature = "system")]
use crate::sync::{Mutex, lock};

/// What others may ask of the driver, and the alarm that makes it look.
#[derive(Debug)]
pub(crate) struct Requests {
    pub(crate) alarm: Arc<Alarm>,
    pub(crate) tidy: AtomicBool,
    /// Whether a sweep of invalidated entries was asked for.
    pub(crate) sweep: AtomicBool,
    /// The listener's thread.
    #[cfg(feature = "system")]
    pub(crate) listener: Mutex<Option<std::thread::Thread>>,
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

    pub(crate) fn is_stopped(&self) -> bool {
        self.alarm.is_stopped()
    }
}
