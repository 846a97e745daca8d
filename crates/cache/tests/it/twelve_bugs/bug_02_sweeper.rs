//! Bug 2: a sweeper that never ends. Nobody can stop its thread, and the thread keeps the cache
//! alive after its owner has dropped it.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, SystemTime};

use tidewheel::{Builder, Cache, Clock, ManualClock, RemovalCause};

use super::stage::{MINUTE, Valid};
use crate::loading::{Told, until};

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

fn token() -> Token {
    Arc::new("alive for a minute")
}

fn ours(clock: &Census) -> Builder<u32, Token> {
    let builder = Cache::builder().max_capacity(1000).time_to_live(MINUTE);
    builder.clock(clock.clone())
}

#[test]
fn bug_02_a_sweeper_that_outlives_its_cache() {
    // It sweeps at every tick. The ticks come from the test, so the test can end the thread, which
    // the cache cannot.
    let (clock, value) = (Census::new(), token());
    let (tick, ticks) = mpsc::channel();
    let (sent, swept) = mpsc::channel();
    let faulty = Arc::new(Mutex::new(HashMap::from([(
        1,
        (Arc::clone(&value), MINUTE),
    )])));
    let sweeper = thread::spawn({
        let (clock, entries) = (clock.clone(), Arc::clone(&faulty));
        move || {
            for () in ticks {
                let now = clock.now();
                let mut entries = entries.lock().expect("whole");
                entries.retain(|_, (_, deadline)| *deadline > now);
                drop(entries);
                sent.send(()).expect("the test listens");
            }
        }
    });
    tick.send(()).expect("the sweeper listens");
    swept.recv().expect("it sweeps");
    drop(faulty);
    tick.send(()).expect("though its cache is gone");
    swept.recv().expect("it sweeps on");
    assert_eq!((clock.alive(), Arc::strong_count(&value)), (1, 2));
    drop(tick);
    sweeper.join().expect("ends with its ticks");

    // Its thread empties ours, and ends: the drop does not wait for that.
    let (clock, value) = (Census::new(), token());
    let cache = ours(&clock).valid();
    cache.insert(1, Arc::clone(&value));
    until("the driver runs", || clock.alive() > 0);
    drop(cache);
    until("thread and value are gone", || {
        (clock.alive(), Arc::strong_count(&value)) == (0, 1)
    });
    // Caches that come and go leave nothing behind.
    (0..1000).for_each(|round| ours(&clock).valid().insert(round, token()));
    until("all threads have ended", || clock.alive() == 0);
}

#[test]
fn close_ends_the_threads_and_frees_the_values_while_handles_remain() {
    let (clock, value, told) = (Census::new(), token(), Told::default());
    let tell = told.clone();
    let listener = move |removal: tidewheel::Removal<u32, Token>| tell.tell(removal);
    let cache = ours(&clock).eviction_listener(listener).valid();
    let other = cache.clone();
    cache.insert(1, Arc::clone(&value));
    until("the driver runs", || clock.alive() > 0);
    cache.close();
    assert_eq!(clock.alive(), 0);
    let [(1, _, RemovalCause::Closed)] = told.take()[..] else {
        panic!("the listener hears of it");
    };
    assert_eq!(Arc::strong_count(&value), 1);
    other.insert(2, Arc::clone(&value));
    assert_eq!((other.get(&2), Arc::strong_count(&value)), (None, 1));
    other.close();
}
