//! What several files of tests begin with: caches on a clock moved by hand, loaders that fail or
//! must not run, waits for other threads.

use std::fmt::{self, Debug, Formatter};
use std::hash::{BuildHasher, Hash};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, OnceLock};
use std::task::Waker;
use std::thread;
use std::time::{Duration, SystemTime};

use tidewheel::{
    Builder, Cache, Clock, Driver, ManualClock, OnFull, Removal, RemovalCause, WeakCache,
};

/// The clock's tick.
pub(crate) const MS: Duration = Duration::from_millis(1);

/// Options of a cache without a bound and without a time to live, which a test drives.
pub(crate) fn by_hand<K, V>(clock: &(impl Clock + Clone)) -> Builder<K, V>
where
    K: Hash + Eq + Send + Sync + 'static,
    V: Send + Sync + 'static,
{
    Cache::builder()
        .unbounded()
        .no_default_ttl()
        .clock(clock.clone())
        .driver(Driver::Manual)
}

/// Options of a small cache whose entries live for 100 ms.
pub(crate) fn manual(clock: &ManualClock) -> Builder<u64, u64> {
    Cache::builder()
        .max_capacity(1000)
        .time_to_live(100 * MS)
        .clock(clock.clone())
        .driver(Driver::Manual)
}

/// Builds what the test has configured rightly.
pub(crate) trait Valid {
    type Cache;

    fn valid(self) -> Self::Cache;
}

impl<K, V, S> Valid for Builder<K, V, S>
where
    K: Hash + Eq + Send + Sync + 'static,
    V: Send + Sync + 'static,
    S: BuildHasher + Send + Sync + 'static,
{
    type Cache = Cache<K, V, S>;

    fn valid(self) -> Self::Cache {
        self.build().expect("valid")
    }
}

/// A handle by which the user code of a cache reaches that cache.
pub(crate) struct Own<K = u64, V = u64>(Arc<OnceLock<WeakCache<K, V>>>);

impl<K, V> Clone for Own<K, V> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<K, V> Own<K, V> {
    /// One to be set, and one for the user code.
    pub(crate) fn pair() -> (Self, Self) {
        let own = Self(Arc::default());
        (own.clone(), own)
    }

    pub(crate) fn set(&self, cache: &Cache<K, V>) {
        assert!(self.0.set(cache.downgrade()).is_ok());
    }

    /// The cache, while its last handle is there.
    pub(crate) fn get(&self) -> Option<Cache<K, V>> {
        self.0.get().and_then(WeakCache::upgrade)
    }

    pub(crate) fn cache(&self) -> Cache<K, V> {
        self.get().expect("it is open")
    }
}

/// Waits until a condition holds, at most twenty seconds.
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let (_alive, never) = mpsc::channel::<()>();
    for _ in 0..20_000 {
        if holds() {
            return;
        }
        // A pause of a millisecond: nobody ever sends.
        let pause = never.recv_timeout(MS);
        assert!(pause.is_err());
    }
    panic!("waited in vain until {what}");
}

/// Returns what another thread says; a panic if it says nothing.
pub(crate) fn heard<T>(from: &mpsc::Receiver<T>, what: &str) -> T {
    match from.recv_timeout(Duration::from_secs(20)) {
        Ok(heard) => heard,
        Err(_) => panic!("waited in vain until {what}"),
    }
}

/// Runs a test on a thread of its own; a panic if it does not end.
#[cfg(not(target_family = "wasm"))]
pub(crate) fn in_time(what: &str, test: impl FnOnce() + Send + 'static) {
    let (done, all_done) = mpsc::channel();
    let tested = thread::spawn(move || {
        test();
        let _ = done.send(());
    });
    match all_done.recv_timeout(Duration::from_secs(30)) {
        Err(RecvTimeoutError::Timeout) => panic!("waited in vain until {what}"),
        _ => {
            if let Err(panic) = tested.join() {
                std::panic::resume_unwind(panic);
            }
        }
    }
}

/// A cache whose writers wait while `limit` events are in the listener's queue.
pub(crate) fn full_at(limit: usize) -> Builder<u64, u64> {
    Cache::builder()
        .max_capacity(1000)
        .no_default_ttl()
        .clock(ManualClock::new())
        .driver(Driver::Manual)
        .listener_queue(limit, OnFull::Wait)
}

/// The keys, values and causes that a listener was told.
#[derive(Clone, Debug)]
pub(crate) struct Told<K = u64, V = u64>(Arc<Mutex<Vec<(K, V, RemovalCause)>>>);

impl<K, V> Default for Told<K, V> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<K: Clone + Ord + Send + 'static, V: Clone + Send + 'static> Told<K, V> {
    pub(crate) fn tell(&self, removal: Removal<K, V>) {
        let event = (removal.key, removal.value, removal.cause);
        self.0.lock().expect("whole").push(event);
    }

    /// A listener that notes what it is told.
    pub(crate) fn ear(&self) -> impl Fn(Removal<K, V>) + Send + Sync + 'static + use<K, V> {
        let own = self.clone();
        move |removal| own.tell(removal)
    }

    pub(crate) fn count(&self) -> usize {
        self.0.lock().expect("whole").len()
    }

    /// In the order in which they were told.
    pub(crate) fn events(&self) -> Vec<(K, V, RemovalCause)> {
        self.0.lock().expect("whole").clone()
    }

    /// As `events`; the next call begins anew.
    pub(crate) fn take(&self) -> Vec<(K, V, RemovalCause)> {
        std::mem::take(&mut *self.0.lock().expect("whole"))
    }

    pub(crate) fn keys(&self) -> Vec<K> {
        self.events().into_iter().map(|(key, ..)| key).collect()
    }

    /// By their keys.
    pub(crate) fn sorted(&self) -> Vec<(K, V, RemovalCause)> {
        let mut events = self.events();
        events.sort_by(|one, other| one.0.cmp(&other.0));
        events
    }
}

/// A clock moved by hand that calls somebody at each reading.
#[derive(Clone)]
pub(crate) struct Heeded {
    pub(crate) hands: ManualClock,
    at_reading: Arc<dyn Fn() + Send + Sync>,
}

impl Heeded {
    pub(crate) fn new(hands: &ManualClock, at_reading: impl Fn() + Send + Sync + 'static) -> Self {
        let (hands, at_reading) = (hands.clone(), Arc::new(at_reading));
        Self { hands, at_reading }
    }
}

impl Debug for Heeded {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Heeded").field(&self.hands).finish()
    }
}

impl Clock for Heeded {
    fn now(&self) -> Duration {
        (self.at_reading)();
        self.hands.now()
    }

    fn wall(&self) -> SystemTime {
        self.hands.wall()
    }

    fn wake_when_moved(&self, sleeper: &Waker) {
        self.hands.wake_when_moved(sleeper);
    }
}

/// A loader for what is there already.
pub(crate) fn unreached() -> u64 {
    unreachable!("the value is there")
}

/// A loader's error.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Failure(pub(crate) u32);
