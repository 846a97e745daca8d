//! Requests for sweeps of invalidated entries, and the position of the sweep that was begun.
//!
//! All that drive a cache share this: a sweep that one of them has put off, or has not ended, is
//! there for the others.

use crate::sync::{AtomicBool, Mutex, Ordering::SeqCst, lock};

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
