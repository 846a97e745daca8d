//! The stage of the scripts: a clock, and a second thread that may step in whenever the clock is
//! read.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle, ThreadId};
use std::time::{Duration, SystemTime};

use tidewheel::{Builder, Cache, Clock, Driver, ManualClock};

pub(crate) use crate::loading::{MS, Valid};

pub(crate) const SECOND: Duration = Duration::from_secs(1);
pub(crate) const MINUTE: Duration = Duration::from_secs(60);

/// The time that the stage waits for an actor that will surely go on.
pub(crate) const LONG: Duration = Duration::from_secs(20);

/// The time that the stage waits for an actor that a lock may hold up. However the wait ends, the
/// script has one outcome.
pub(crate) const SHORT: Duration = Duration::from_millis(50);

/// A cache that moves only when told: by hand, in virtual time.
pub(crate) fn tidewheel<K, V>(clock: &StageClock) -> Builder<K, V>
where
    K: std::hash::Hash + Eq + Send + Sync + 'static,
    V: Send + Sync + 'static,
{
    Cache::builder()
        .max_capacity(1_000_000)
        .time_to_live(MINUTE)
        .clock(clock.clone())
        .driver(Driver::Manual)
}

type Act = Box<dyn FnOnce() + Send>;

/// A clock that is moved by hand. The faulty caches and Tidewheel read the same one; a script may
/// have something happen in the middle of an operation: right after it has read the time, or at
/// another moment at which it comes by code that belongs to the stage.
#[derive(Clone, Default)]
pub(crate) struct StageClock {
    hands: ManualClock,
    cue: Arc<Mutex<Option<Cue>>>,
}

struct Cue {
    thread: ThreadId,
    /// True if only readings of the clock count.
    readings_only: bool,
    /// Moments of that thread to let pass.
    pass: u32,
    act: Act,
}

impl fmt::Debug for StageClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("StageClock").field(&self.hands).finish()
    }
}

impl StageClock {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn advance(&self, by: Duration) {
        self.hands.advance(by);
    }

    /// Steps the wall time alone.
    pub(crate) fn set_wall(&self, since_epoch: Duration) {
        self.hands.set_wall(since_epoch);
    }

    /// Has `act` happen when this thread reads the clock, after `pass` more readings.
    pub(crate) fn at_reading(&self, pass: u32, act: impl FnOnce() + Send + 'static) {
        self.set_cue(true, pass, Box::new(act));
    }

    /// Has `act` happen after `pass` more moments of this thread. Each reading of the clock is a
    /// moment, and each call of [`moment`](Self::moment).
    pub(crate) fn at_moment(&self, pass: u32, act: impl FnOnce() + Send + 'static) {
        self.set_cue(false, pass, Box::new(act));
    }

    /// A moment of this thread without a reading of the clock.
    pub(crate) fn moment(&self) {
        self.come_by(false);
    }

    /// Forgets the steps that have not happened yet.
    pub(crate) fn forget(&self) {
        let cue = self.cue().take();
        drop(cue);
    }

    fn set_cue(&self, readings_only: bool, pass: u32, act: Act) {
        *self.cue() = Some(Cue {
            thread: thread::current().id(),
            readings_only,
            pass,
            act,
        });
    }

    fn come_by(&self, is_reading: bool) {
        let cue = self.cue().take_if(|cue| {
            let passes_by = cue.readings_only && !is_reading;
            if passes_by || cue.thread != thread::current().id() {
                return false;
            }
            let due = cue.pass == 0;
            cue.pass = cue.pass.saturating_sub(1);
            due
        });
        if let Some(cue) = cue {
            (cue.act)();
        }
    }

    fn cue(&self) -> MutexGuard<'_, Option<Cue>> {
        self.cue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clock for StageClock {
    fn now(&self) -> Duration {
        let now = self.hands.now();
        self.come_by(true);
        now
    }

    fn wall(&self) -> SystemTime {
        self.hands.wall()
    }
}

/// A cache as scripts use it.
pub(crate) trait Scripted: Send + Sync {
    fn get(&self, key: u32) -> Option<u32>;
    fn set(&self, key: u32, value: u32, ttl: Duration);

    fn load(&self, _key: u32, _origin: Box<dyn FnOnce() -> u32 + '_>) -> u32 {
        unreachable!("this script loads nothing")
    }

    /// Removes what is dead, with a budget of entries; returns how many it touched.
    fn sweep(&self, _budget: u32) -> u64 {
        unreachable!("this script sweeps nothing")
    }
}

impl Scripted for Cache<u32, u32> {
    fn get(&self, key: u32) -> Option<u32> {
        Self::get(self, &key)
    }

    fn set(&self, key: u32, value: u32, ttl: Duration) {
        self.insert_with_ttl(key, value, ttl);
    }

    fn load(&self, key: u32, origin: Box<dyn FnOnce() -> u32 + '_>) -> u32 {
        self.get_or_load(key, origin)
    }

    fn sweep(&self, budget: u32) -> u64 {
        let before = self.len();
        let progress = self.advance(self.now(), budget);
        let touched = progress.expired + progress.moved;
        assert!(touched <= u64::from(budget));
        assert!(budget < u32::MAX || !progress.backlog);
        assert_eq!(progress.expired, (before - self.len()) as u64);
        touched
    }
}

/// The base of the faulty caches: values and deadlines under a lock.
pub(crate) struct Entries {
    pub(crate) clock: StageClock,
    map: Mutex<BTreeMap<u32, (u32, Duration)>>,
}

impl Entries {
    pub(crate) fn new(clock: &StageClock) -> Self {
        let (clock, map) = (clock.clone(), Mutex::default());
        Self { clock, map }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, BTreeMap<u32, (u32, Duration)>> {
        self.map.lock().expect("whole")
    }

    pub(crate) fn get(&self, key: u32) -> Option<u32> {
        let (value, deadline) = *self.lock().get(&key)?;
        (self.clock.now() < deadline).then_some(value)
    }

    pub(crate) fn set(&self, key: u32, value: u32, ttl: Duration) {
        let deadline = self.clock.now() + ttl;
        self.lock().insert(key, (value, deadline));
    }
}

/// An actor who steps in while another is in the middle of an operation.
pub(crate) struct Intruder {
    thread: JoinHandle<()>,
    done: Receiver<()>,
}

impl Intruder {
    /// Lets `act` happen on a thread of its own.
    pub(crate) fn enter(act: impl FnOnce() + Send + 'static) -> Self {
        let (sender, done) = mpsc::channel();
        let thread = thread::spawn(move || {
            act();
            // Nobody waits any more if patience was short.
            let _ = sender.send(());
        });
        Self { thread, done }
    }

    /// Waits until the actor is done, but no longer than `patience`; tells whether it is.
    pub(crate) fn is_done_within(&self, patience: Duration) -> bool {
        self.done.recv_timeout(patience).is_ok()
    }

    /// Waits until the actor has left the stage.
    pub(crate) fn leave(self) {
        self.thread.join().expect("the intruder plays its part");
    }
}
