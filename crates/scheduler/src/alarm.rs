//! The timing thread's alarm clock: until when it sleeps, and who ends that.

use std::sync::Arc;
use std::task::Wake;
use std::thread::{self, Thread};

use crate::sync::{AtomicBool, AtomicU64, Mutex, Ordering::SeqCst, lock};

/// **No wake-up is lost.** Whoever makes a shard's deadline earlier stores it and then reads what the timing
/// thread sleeps for; the thread stores that and then reads the deadlines. One of the two sees the other.
#[derive(Debug)]
pub(crate) struct Alarm {
    /// The tick that the thread sleeps until; 0 while it is awake.
    sleeps_until: AtomicU64,
    stop: AtomicBool,
    sleeper: Mutex<Option<Thread>>,
}

impl Alarm {
    pub(crate) fn new() -> Self {
        Self {
            sleeps_until: AtomicU64::new(0),
            stop: AtomicBool::new(false),
            sleeper: Mutex::new(None),
        }
    }

    /// The thread that sleeps from now on.
    pub(crate) fn is_for(&self, thread: Thread) {
        *lock(&self.sleeper) = Some(thread);
    }

    /// Whether this is the timing thread.
    pub(crate) fn is_own(&self) -> bool {
        let sleeper = lock(&self.sleeper);
        sleeper
            .as_ref()
            .is_some_and(|thread| thread.id() == thread::current().id())
    }

    /// A deadline has become earlier, and is published. Tells whether the sleeper was woken.
    pub(crate) fn earlier(&self, tick: u64) -> bool {
        let wakes = tick < self.sleeps_until.load(SeqCst);
        if wakes {
            self.wake();
        }
        wakes
    }

    /// Announces a sleep until `tick`; `false` when it must not begin, because `next` says that something is
    /// due earlier.
    pub(crate) fn fall_asleep(&self, tick: u64, next: impl FnOnce() -> u64) -> bool {
        self.sleeps_until.store(tick, SeqCst);
        let sleeps = next() >= tick && !self.is_stopped();
        if !sleeps {
            self.awake();
        }
        sleeps
    }

    pub(crate) fn awake(&self) {
        self.sleeps_until.store(0, SeqCst);
    }

    /// Ends a sleep, or the next one if there is none.
    pub(crate) fn wake(&self) {
        self.awake();
        if let Some(thread) = &*lock(&self.sleeper) {
            thread.unpark();
        }
    }

    pub(crate) fn stop(&self) {
        self.stop.store(true, SeqCst);
        self.wake();
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(SeqCst)
    }
}

/// What a clock that is moved by hand wakes.
impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        Self::wake(&self);
    }
}
