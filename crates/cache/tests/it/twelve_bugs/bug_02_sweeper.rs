//! Bug 2: a sweeper that never ends. Nobody can stop its thread, and the thread keeps the cache
//! alive after its owner has dropped it.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime};

use tidewheel::{Cache, Clock, ManualClock, RemovalCause};

use super::stage::{MINUTE, wait_until};

/// A clock that counts the background threads that have read it and still live.
#[derive(Debug, Clone)]
struct Census {
    hands: ManualClock,
    alive: Arc<AtomicUsize>,
    owner: thread::ThreadId,
}

/// Lies in a thread's local storage, so it is dropped when the thread ends.
struct Resident(Arc<AtomicUsize>);

impl Drop for Resident {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

thread_local! {
    static RESIDENT: RefCell<Option<Resident>> = const { RefCell::new(None) };
}

impl Census {
    fn new() -> Self {
        Self {
            hands: ManualClock::new(),
            alive: Arc::default(),
            owner: thread::current().id(),
        }
    }

    fn alive(&self) -> usize {
        self.alive.load(SeqCst)
    }
}

impl Clock for Census {
    fn now(&self) -> Duration {
        if thread::current().id() != self.owner {
            RESIDENT.with_borrow_mut(|resident| {
                resident.get_or_insert_with(|| {
                    self.alive.fetch_add(1, SeqCst);
                    Resident(Arc::clone(&self.alive))
                });
            });
        }
        self.hands.now()
    }

    fn wall(&self) -> SystemTime {
        self.hands.wall()
    }
}

type Token = Arc<&'static str>;

/// The script's view of a cache.
trait Swept {
    fn set(&self, key: u32, value: Token, ttl: Duration);
}

/// Starts a thread that sweeps at every tick, and keeps no handle of it. The ticks come from the
/// test, so the test can end the thread, which the cache cannot.
struct Unstoppable {
    clock: Census,
    entries: Arc<Mutex<HashMap<u32, (Token, Duration)>>>,
}

impl Unstoppable {
    fn start(clock: &Census, ticks: Receiver<()>, swept: Sender<()>) -> (Self, JoinHandle<()>) {
        let entries: Arc<Mutex<HashMap<u32, (Token, Duration)>>> = Arc::default();
        let sweeper = thread::spawn({
            let (clock, entries) = (clock.clone(), Arc::clone(&entries));
            move || {
                for () in ticks {
                    let now = clock.now();
                    let mut entries = entries.lock().expect("whole");
                    entries.retain(|_, (_, deadline)| *deadline > now);
                    drop(entries);
                    swept.send(()).expect("the test listens");
                }
            }
        });
        let clock = clock.clone();
        (Self { clock, entries }, sweeper)
    }
}

impl Swept for Unstoppable {
    fn set(&self, key: u32, value: Token, ttl: Duration) {
        let deadline = self.clock.now() + ttl;
        let mut entries = self.entries.lock().expect("whole");
        entries.insert(key, (value, deadline));
    }
}

impl Swept for Cache<u32, Token> {
    fn set(&self, key: u32, value: Token, ttl: Duration) {
        self.insert_with_ttl(key, value, ttl);
    }
}

/// Uses a cache and drops it. Tells how many of its threads are alive then, and how many holders
/// its value still has.
fn after_drop(cache: impl Swept, clock: &Census) -> (usize, usize) {
    let value: Token = Arc::new("alive for a minute");
    cache.set(1, Arc::clone(&value), MINUTE);
    wait_until("the sweeper runs", || clock.alive() > 0);
    drop(cache);
    (clock.alive(), Arc::strong_count(&value) - 1)
}

fn ours(clock: &Census) -> Cache<u32, Token> {
    Cache::builder()
        .max_capacity(1000)
        .time_to_live(MINUTE)
        .clock(clock.clone())
        .build()
        .expect("valid")
}

#[test]
fn bug_02_a_sweeper_that_outlives_its_cache() {
    let clock = Census::new();
    let (tick, ticks) = mpsc::channel();
    let (sent, swept) = mpsc::channel();
    let (faulty, sweeper) = Unstoppable::start(&clock, ticks, sent);
    tick.send(()).expect("the sweeper listens");
    swept.recv().expect("it sweeps");
    assert_eq!(after_drop(faulty, &clock), (1, 1));
    tick.send(())
        .expect("the sweeper listens, though its cache is gone");
    swept.recv().expect("it sweeps on");
    drop(tick);
    sweeper.join().expect("ends with its ticks");

    let clock = Census::new();
    // Its thread empties it, and ends: the drop does not wait for that.
    let value: Token = Arc::new("alive for a minute");
    let cache = ours(&clock);
    cache.insert(1, Arc::clone(&value));
    wait_until("the driver runs", || clock.alive() > 0);
    drop(cache);
    wait_until("thread and value are gone", || {
        (clock.alive(), Arc::strong_count(&value)) == (0, 1)
    });
}

#[test]
fn close_ends_the_threads_and_frees_the_values_while_handles_remain() {
    let clock = Census::new();
    let told = Arc::new(Mutex::new(Vec::new()));
    let cache: Cache<u32, Token> = Cache::builder()
        .max_capacity(1000)
        .time_to_live(MINUTE)
        .clock(clock.clone())
        .eviction_listener({
            let told = Arc::clone(&told);
            move |removal| told.lock().expect("whole").push(removal.cause)
        })
        .build()
        .expect("valid");
    let other = cache.clone();
    let value: Token = Arc::new("alive for a minute");
    cache.insert(1, Arc::clone(&value));
    wait_until("the driver runs", || clock.alive() > 0);
    cache.close();
    assert_eq!((clock.alive(), Arc::strong_count(&value)), (0, 1));
    assert_eq!(
        *told.lock().expect("whole"),
        [RemovalCause::Closed],
        "the listener hears of it"
    );
    other.insert(2, Arc::clone(&value));
    assert_eq!((other.get(&2), Arc::strong_count(&value)), (None, 1));
    other.close();
}

/// Caches that come and go leave nothing behind.
#[test]
fn a_thousand_caches_leave_no_thread_behind() {
    let clock = Census::new();
    for round in 0..1000 {
        let cache = ours(&clock);
        cache.insert(round, Arc::new("short-lived cache"));
    }
    wait_until("all threads have ended", || clock.alive() == 0);
}
