//! Helpers of the tests with threads: waiting on a condition, a gate.

use std::sync::{Condvar, Mutex};
use std::thread;
use std::time::Duration;

use tidewheel_scheduler::{Clock, SystemClock};

pub(crate) const MS: Duration = Duration::from_millis(1);
pub(crate) const HOUR: Duration = Duration::from_secs(3600);
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Waits on a condition, with a deadline.
pub(crate) fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let clock = SystemClock::new();
    while !holds() {
        assert!(clock.now() < PATIENCE, "never: {what}");
        thread::yield_now();
    }
}

/// A gate that user code waits at.
#[derive(Default)]
pub(crate) struct Gate {
    open: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    pub(crate) fn pass(&self) {
        let open = self.open.lock().expect("unpoisoned");
        let waited = self
            .opened
            .wait_timeout_while(open, PATIENCE, |open| !*open);
        assert!(
            !waited.expect("unpoisoned").1.timed_out(),
            "a gate stayed shut"
        );
    }

    pub(crate) fn open(&self) {
        *self.open.lock().expect("unpoisoned") = true;
        self.opened.notify_all();
    }
}
