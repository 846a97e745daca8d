//! User code that calls the cache it is called from, and user code that panics: neither blocks nor breaks
//! the cache.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::hash::{Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tidewheel::{Cache, Clock, Driver, Expiry, Lifetime, ManualClock, OnFull};

const MS: Duration = Duration::from_millis(1);

type Shared = Cache<Key, Value>;

thread_local! {
    /// What the next hash, comparison, clone or drop of this thread does.
    static HASH: RefCell<Option<Box<dyn FnOnce()>>> = const { RefCell::new(None) };
    static EQ: RefCell<Option<Box<dyn FnOnce()>>> = const { RefCell::new(None) };
    static CLONE: RefCell<Option<Box<dyn FnOnce()>>> = const { RefCell::new(None) };
    static DROP: RefCell<Option<Box<dyn FnOnce()>>> = const { RefCell::new(None) };
    /// Hashes to let pass before it, and drops.
    static HASHES: Cell<u32> = const { Cell::new(0) };
    static DROPS: Cell<u32> = const { Cell::new(0) };
}

type Hook = std::thread::LocalKey<RefCell<Option<Box<dyn FnOnce()>>>>;

fn fire(hook: &'static Hook) {
    let action = hook.try_with(|hook| hook.borrow_mut().take());
    if let Ok(Some(action)) = action {
        action();
    }
}

fn set(hook: &'static Hook, action: impl FnOnce() + 'static) {
    hook.with(|hook| *hook.borrow_mut() = Some(Box::new(action)));
}

fn unset(hook: &'static Hook) -> bool {
    hook.with(|hook| hook.borrow_mut().take()).is_some()
}

#[derive(Debug, Clone)]
struct Key(u32);

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let wait = HASHES.get();
        if wait == 0 {
            fire(&HASH);
        } else {
            HASHES.set(wait - 1);
        }
        self.0.hash(state);
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        fire(&EQ);
        self.0 == other.0
    }
}

impl Eq for Key {}

#[derive(Debug)]
struct Value(u32, Arc<AtomicU64>);

impl Value {
    fn new(number: u32, living: &Arc<AtomicU64>) -> Self {
        living.fetch_add(1, SeqCst);
        Self(number, Arc::clone(living))
    }
}

impl Clone for Value {
    fn clone(&self) -> Self {
        fire(&CLONE);
        Self::new(self.0, &self.1)
    }
}

impl Drop for Value {
    fn drop(&mut self) {
        self.1.fetch_sub(1, SeqCst);
        if std::thread::panicking() {
            return;
        }
        match DROPS.get() {
            0 => fire(&DROP),
            wait => DROPS.set(wait - 1),
        }
    }
}

/// A cache of ten entries with 5 to 14 ms to live, and the count of living values.
fn filled(clock: &ManualClock) -> (Shared, Arc<AtomicU64>) {
    filled_as(configured(clock))
}

fn configured(clock: &ManualClock) -> tidewheel::Builder<Key, Value> {
    Cache::builder()
        .max_capacity(10)
        .time_to_live(1000 * MS)
        .shards(1)
        .clock(clock.clone())
        .driver(Driver::Manual)
}

fn filled_as(builder: tidewheel::Builder<Key, Value>) -> (Shared, Arc<AtomicU64>) {
    let cache = builder.build().expect("valid");
    let living = Arc::default();
    for key in 0..10 {
        let ttl = Duration::from_millis(5 + u64::from(key));
        cache.insert_with_ttl(Key(key), Value::new(key, &living), ttl);
    }
    (cache, living)
}

/// The message of a panic.
fn panics(action: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(action)).expect_err("should panic");
    match panic.downcast::<String>() {
        Ok(message) => *message,
        Err(panic) => (*panic.downcast::<&str>().expect("a message")).to_owned(),
    }
}

/// Whole, and all its entries can still expire.
fn is_usable(cache: &Shared, clock: &ManualClock, living: &AtomicU64) {
    for hook in [&HASH, &EQ, &CLONE, &DROP] {
        unset(hook);
    }
    cache.validate();
    let long = Duration::from_millis(1000);
    cache.insert_with_ttl(Key(77), Value::new(77, &Arc::default()), long);
    assert_eq!(cache.get(&Key(77)).map(|value| value.0), Some(77));
    assert!(cache.len() <= 10);
    clock.advance(2 * long);
    while cache.advance(cache.now(), u32::MAX).backlog {}
    assert_eq!(cache.len(), 0, "an entry never expires");
    cache.validate();
    cache.close();
    assert_eq!(living.load(SeqCst), 0, "a value was not dropped");
}

#[test]
fn hash_eq_clone_and_closures_that_call_their_own_cache_panic_with_a_message() {
    let calls: [fn(&Shared); 5] = [
        |cache| drop(cache.peek(&Key(1))),
        |cache| drop(cache.remove(&Key(2))),
        |cache| cache.insert(Key(3), Value::new(3, &Arc::default())),
        |cache| {
            assert!(!cache.is_empty());
        },
        |cache| cache.invalidate_all(),
    ];
    for call in calls {
        for hook in [&EQ, &CLONE] {
            let clock = ManualClock::new();
            let (cache, living) = filled(&clock);
            let again = cache.clone();
            set(hook, move || call(&again));
            let message = panics(|| drop(cache.get(&Key(4))));
            assert!(message.contains("within its own"), "{message}");
            is_usable(&cache, &clock, &living);
        }
        let clock = ManualClock::new();
        let (cache, living) = filled(&clock);
        let message = panics(|| {
            cache.get_with(&Key(4), |_| call(&cache));
        });
        assert!(message.contains("within its own"), "{message}");
        is_usable(&cache, &clock, &living);
    }
}

#[test]
fn the_same_closures_may_call_another_cache() {
    let clock = ManualClock::new();
    let (cache, living) = filled(&clock);
    let (other, other_living) = filled(&clock);
    let seen = cache.get_with(&Key(4), |value| {
        other.insert(Key(50), Value::new(50, &other_living));
        let inner = other.get_with(&Key(5), |value| value.0);
        (value.0, inner, other.get(&Key(50)).map(|value| value.0))
    });
    assert_eq!(seen, Some((4, Some(5), Some(50))));
    for hook in [&EQ, &CLONE, &HASH] {
        let other = other.clone();
        set(hook, move || drop(other.remove(&Key(6))));
        assert_eq!(cache.get(&Key(4)).map(|value| value.0), Some(4));
        assert!(!unset(hook), "it was called");
    }
    is_usable(&cache, &clock, &living);
    is_usable(&other, &clock, &other_living);
}

#[test]
fn a_listener_may_call_its_cache() {
    let clock = ManualClock::new();
    let slot: Arc<Mutex<Option<Cache<u32, u32>>>> = Arc::default();
    let mine = Arc::clone(&slot);
    let told = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&told);
    let cache: Cache<u32, u32> = Cache::builder()
        .max_capacity(8)
        .no_default_ttl()
        .clock(clock.clone())
        .driver(Driver::Manual)
        .listener_queue(2, OnFull::Wait)
        .eviction_listener(move |removal| {
            count.fetch_add(1, SeqCst);
            let cache = mine.lock().expect("unpoisoned").clone();
            let Some(cache) = cache else { return };
            assert_eq!(cache.get(&removal.key), None, "told too early");
            if removal.value < 100 {
                // The listener stores another entry in its place.
                cache.insert(1000 + removal.key, removal.value + 100);
                cache.remove(&(1000 + removal.key));
            }
            cache.advance(cache.now(), u32::MAX);
        })
        .build()
        .expect("valid");
    *slot.lock().expect("unpoisoned") = Some(cache.clone());
    for key in 0..100 {
        cache.insert(key, key);
    }
    while cache.advance(cache.now(), u32::MAX).backlog {}
    let stats = cache.stats();
    assert_eq!(stats.listener_panics, 0);
    assert_eq!(told.load(SeqCst), stats.evictions + stats.removals);
    assert!(stats.evictions >= 92);
    slot.lock().expect("unpoisoned").take();
    cache.validate();
}

#[test]
fn the_drop_of_a_value_may_call_the_cache_however_the_value_leaves() {
    let leave: [fn(&Shared, &ManualClock); 8] = [
        |cache, _| {
            cache.invalidate(&Key(3));
        },
        |cache, _| drop(cache.remove(&Key(3))),
        |cache, _| cache.insert(Key(3), Value::new(33, &Arc::default())),
        |cache, _| cache.insert(Key(30), Value::new(30, &Arc::default())),
        |cache, _| cache.invalidate_all(),
        |cache, clock| {
            clock.advance(10 * MS);
            cache.advance(cache.now(), u32::MAX);
        },
        |cache, _| {
            cache.expire(&Key(3), Duration::ZERO, tidewheel::Condition::Always);
        },
        |cache, _| cache.close(),
    ];
    let leave_by_close = leave.len() - 1;
    for (number, leave) in leave.into_iter().enumerate() {
        let clock = ManualClock::new();
        let (cache, living) = filled(&clock);
        let again = cache.clone();
        let mine = Arc::clone(&living);
        set(&DROP, move || {
            again.insert(Key(500), Value::new(500, &mine));
            drop(again.get(&Key(4)));
            again.advance(again.now(), u32::MAX);
        });
        leave(&cache, &clock);
        assert!(!unset(&DROP), "nothing was dropped in case {number}");
        if number == leave_by_close {
            assert_eq!(
                living.load(SeqCst),
                0,
                "what is stored after the close is dropped"
            );
            continue;
        }
        is_usable(&cache, &clock, &living);
    }
}

fn bang() {
    panic!("bang");
}

#[test]
fn hash_eq_and_clone_that_panic_leave_the_cache_whole() {
    let calls: [fn(&Shared); 7] = [
        |cache| drop(cache.get(&Key(4))),
        |cache| drop(cache.peek(&Key(4))),
        |cache| drop(cache.remove(&Key(4))),
        |cache| {
            cache.invalidate(&Key(4));
        },
        |cache| cache.insert(Key(4), Value::new(4, &Arc::default())),
        |cache| cache.insert(Key(40), Value::new(40, &Arc::default())),
        |cache| {
            cache.expire(&Key(4), MS, tidewheel::Condition::Always);
        },
    ];
    for call in calls {
        for hook in [&HASH, &EQ, &CLONE] {
            let clock = ManualClock::new();
            let (cache, living) = filled(&clock);
            set(hook, bang);
            let _ = catch_unwind(AssertUnwindSafe(|| call(&cache)));
            is_usable(&cache, &clock, &living);
        }
    }
}

/// To remove an entry its key is hashed again. If that panics, the entry must keep its timer.
#[test]
fn a_hash_that_panics_while_entries_expire_or_are_evicted_loses_none() {
    for wait in 0..30 {
        let clock = ManualClock::new();
        let (cache, living) = filled(&clock);
        HASHES.set(wait);
        set(&HASH, bang);
        let _ = catch_unwind(AssertUnwindSafe(|| {
            for key in 20..40 {
                cache.insert(Key(key), Value::new(key, &living));
            }
        }));
        unset(&HASH);
        HASHES.set(0);
        cache.invalidate_all();
        for key in 0..10 {
            cache.insert_with_ttl(Key(key), Value::new(key, &living), 5 * MS);
        }
        clock.advance(5 * MS);
        HASHES.set(wait);
        set(&HASH, bang);
        for _ in 0..4 {
            let _ = catch_unwind(AssertUnwindSafe(|| cache.advance(cache.now(), 4)));
        }
        unset(&HASH);
        HASHES.set(0);
        is_usable(&cache, &clock, &living);
    }
}

/// If the listener gets the value, the caller gets a clone. The clone is made before anything is removed.
#[test]
fn a_clone_that_panics_in_remove_keeps_the_entry_and_its_event() {
    let clock = ManualClock::new();
    let told = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&told);
    let cache: Shared = Cache::builder()
        .unbounded()
        .time_to_live(10 * MS)
        .clock(clock.clone())
        .driver(Driver::Manual)
        .eviction_listener(move |_| {
            count.fetch_add(1, SeqCst);
        })
        .build()
        .expect("valid");
    let living = Arc::default();
    cache.insert(Key(4), Value::new(4, &living));
    set(&CLONE, bang);
    panics(|| drop(cache.remove(&Key(4))));
    assert_eq!((cache.len(), told.load(SeqCst)), (1, 0));
    assert_eq!(cache.remove(&Key(4)).map(|value| value.0), Some(4));
    is_usable(&cache, &clock, &living);
    assert_eq!(told.load(SeqCst), 2);
}

#[test]
fn a_drop_that_panics_leaves_the_cache_whole() {
    let leave: [fn(&Shared, &ManualClock); 6] = [
        |cache, _| {
            cache.invalidate(&Key(3));
        },
        |cache, _| drop(cache.remove(&Key(3))),
        |cache, _| cache.insert(Key(3), Value::new(33, &Arc::default())),
        |cache, _| cache.insert(Key(30), Value::new(30, &Arc::default())),
        |cache, _| cache.invalidate_all(),
        |cache, clock| {
            clock.advance(10 * MS);
            cache.advance(cache.now(), u32::MAX);
        },
    ];
    for leave in leave {
        let clock = ManualClock::new();
        let (cache, living) = filled(&clock);
        set(&DROP, bang);
        let _ = catch_unwind(AssertUnwindSafe(|| leave(&cache, &clock)));
        assert!(!unset(&DROP), "nothing was dropped");
        is_usable(&cache, &clock, &living);
    }
}

/// The panic ended the thread, and then nothing expired any more.
#[test]
fn the_driver_thread_outlives_a_drop_that_panics() {
    #[derive(Debug)]
    struct Bomb(bool);
    impl Drop for Bomb {
        fn drop(&mut self) {
            assert!(!self.0, "bang");
        }
    }
    let cache: Cache<u32, Bomb> = Cache::builder()
        .unbounded()
        .no_default_ttl()
        .name("bomb")
        .build()
        .expect("valid");
    cache.insert_with_ttl(1, Bomb(true), 5 * MS);
    wait_until(|| cache.is_empty());
    for key in 0..100 {
        cache.insert_with_ttl(key, Bomb(false), 5 * MS);
    }
    wait_until(|| cache.is_empty());
    cache.close();
}

#[test]
fn a_weigher_an_expiry_or_a_listener_that_panics_leaves_the_cache_whole() {
    #[derive(Debug)]
    struct Fragile;
    impl Expiry<u32, u32> for Fragile {
        fn expire_after_create(&self, _: &u32, value: &u32) -> Option<Duration> {
            assert_ne!(*value, 13, "bang");
            Some(10 * MS)
        }

        fn expire_after_read(
            &self,
            _: &u32,
            value: &u32,
            left: Option<Duration>,
        ) -> Option<Duration> {
            assert_ne!(*value, 14, "bang");
            left
        }
    }
    let clock = ManualClock::new();
    let told = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&told);
    let cache: Cache<u32, u32> = Cache::builder()
        .max_capacity(10)
        .expire_after(Fragile)
        .weigher(|_, value| {
            assert_ne!(*value, 15, "bang");
            1
        })
        .clock(clock.clone())
        .driver(Driver::Manual)
        .eviction_listener(move |removal| {
            count.fetch_add(1, SeqCst);
            assert!(removal.value % 2 == 0, "bang");
        })
        .build()
        .expect("valid");
    for value in [13, 15] {
        panics(|| cache.insert(1, value));
        assert_eq!(cache.peek(&1), None);
    }
    cache.insert(1, 14);
    panics(|| {
        cache.get(&1);
    });
    assert_eq!(cache.peek(&1), Some(14));
    for value in 100..120 {
        cache.insert(value, value);
    }
    clock.advance(10 * MS);
    while cache.advance(cache.now(), u32::MAX).backlog {}
    assert_eq!(cache.len(), 0);
    assert_eq!(told.load(SeqCst), 21, "each was announced");
    assert_eq!(cache.stats().listener_panics, 10);
    cache.validate();
}

/// A value whose drop panics, unless it is defused, and that weighs what it says.
#[derive(Debug, Clone)]
struct Bomb {
    weight: u32,
    armed: bool,
}

impl Bomb {
    fn armed(weight: u32) -> Self {
        Self {
            weight,
            armed: true,
        }
    }
}

impl Drop for Bomb {
    fn drop(&mut self) {
        // Two at a time would end the process.
        if self.armed && !std::thread::panicking() {
            std::panic::resume_unwind(Box::new("bang"));
        }
    }
}

/// The weight that a shard had been lent, or was about to be, was lost for ever.
#[test]
fn drops_that_panic_in_an_eviction_lose_none_of_the_capacity() {
    let cache: Cache<u32, Bomb> = Cache::builder()
        .max_capacity(100)
        .weigher(|_, bomb: &Bomb| bomb.weight)
        .no_default_ttl()
        .shards(8)
        .clock(ManualClock::new())
        .driver(Driver::Manual)
        .build()
        .expect("valid");
    for round in 0..20 {
        for key in 0..100 {
            cache.insert(round * 1000 + key, Bomb::armed(1));
        }
        // Of every shard something has to go.
        cache.insert(round * 1000 + 500, Bomb::armed(90));
        cache.insert(round * 1000 + 501, Bomb::armed(50));
        cache.validate();
    }
    let whole = Bomb {
        weight: 100,
        armed: false,
    };
    cache.insert(7, whole);
    assert!(cache.contains_key(&7), "the capacity is not what it was");
    assert_eq!(cache.weight(), 100);
    let stats = cache.stats();
    assert_eq!(stats.drop_panics, stats.evictions);
    cache.validate();
}

/// The panic left through the driver's future, which ended.
#[test]
fn the_task_that_drives_outlives_drops_and_hashes_that_panic() {
    let clock = ManualClock::new();
    let cache: Cache<u32, Bomb> = Cache::builder()
        .unbounded()
        .no_default_ttl()
        .clock(clock.clone())
        .driver(Driver::Task)
        .build()
        .expect("valid");
    let mut drive = std::pin::pin!(cache.drive(|_| a_poll_later()));
    let mut context = Context::from_waker(Waker::noop());
    for round in 0..3 {
        for key in 0..100 {
            cache.insert_with_ttl(key, Bomb::armed(1), 5 * MS);
        }
        clock.advance(5 * MS);
        for _ in 0..1000 {
            if cache.is_empty() {
                break;
            }
            assert!(drive.as_mut().poll(&mut context).is_pending());
        }
        assert_eq!(cache.stats().drop_panics, (round + 1) * 100);
        assert!(cache.is_empty());
    }
    let (cache, living) = filled_as(configured(&clock).driver(Driver::Task));
    let mut drive = std::pin::pin!(cache.drive(|_| a_poll_later()));
    cache.invalidate_all();
    cache.insert_with(Key(1), Value::new(1, &living), Lifetime::forever().tag("a"));
    cache.invalidate_tag("a");
    // The sweep hashes what it removes.
    set(&HASH, bang);
    for _ in 0..100 {
        assert!(drive.as_mut().poll(&mut context).is_pending());
    }
    assert!(!unset(&HASH), "it hashed");
    assert_eq!(cache.len(), 0, "it is removed all the same");
    is_usable(&cache, &clock, &living);
}

/// Ready when it is polled again.
fn a_poll_later() -> impl Future<Output = ()> {
    let mut polled = false;
    poll_fn(move |_| {
        if std::mem::replace(&mut polled, true) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
}

/// A clock that panics once, after a given number of readings.
#[derive(Debug, Clone)]
struct Fallible(ManualClock, Arc<AtomicI64>);

impl Clock for Fallible {
    fn now(&self) -> Duration {
        assert_ne!(self.1.fetch_sub(1, SeqCst), 0, "bang");
        self.0.now()
    }

    fn wall(&self) -> std::time::SystemTime {
        self.0.wall()
    }
}

#[test]
fn the_task_that_drives_outlives_a_clock_that_panics() {
    // At the first reading of a step, of the sleep after it, and of the next step.
    for readings in 0..4 {
        let hands = ManualClock::new();
        let fails = Arc::new(AtomicI64::new(-1));
        let cache: Cache<u32, u32> = Cache::builder()
            .unbounded()
            .no_default_ttl()
            .clock(Fallible(hands.clone(), Arc::clone(&fails)))
            .driver(Driver::Task)
            .build()
            .expect("valid");
        let mut drive = std::pin::pin!(cache.drive(|_| a_poll_later()));
        let mut context = Context::from_waker(Waker::noop());
        cache.insert_with_ttl(1, 1, 5 * MS);
        cache.insert_with_ttl(2, 2, 5000 * MS);
        hands.advance(5 * MS);
        fails.store(readings, SeqCst);
        for _ in 0..10 {
            assert!(drive.as_mut().poll(&mut context).is_pending());
        }
        assert!(fails.load(SeqCst) < 0, "it was read");
        assert_eq!(cache.len(), 1);
    }
}

#[test]
fn a_drop_that_panics_is_counted_and_ends_no_operation() {
    type Leave = fn(&Cache<u32, Bomb>, &ManualClock);
    let leave: [(Leave, u64); 12] = [
        (|cache, _| assert!(cache.invalidate(&1)), 1),
        (|cache, _| cache.insert(1, Bomb::armed(0)), 1),
        (
            |cache, _| (50..60).for_each(|key| cache.insert(key, Bomb::armed(1))),
            10,
        ),
        (|cache, _| cache.invalidate_all(), 10),
        (
            |cache, _| assert_eq!(cache.invalidate_if(|_, _| true), 10),
            10,
        ),
        (
            |cache, _| {
                assert!(cache.expire(&1, Duration::ZERO, tidewheel::Condition::Always));
            },
            1,
        ),
        (
            |cache, clock| {
                clock.advance(10 * MS);
                assert_eq!(cache.advance(cache.now(), u32::MAX).expired, 10);
            },
            10,
        ),
        (|cache, _| cache.close(), 10),
        (
            |cache, _| {
                // Replaced, and the clone that the closure was shown.
                cache.update(&1, |old| Bomb {
                    weight: old.weight,
                    armed: false,
                });
            },
            2,
        ),
        (
            |cache, _| assert!(!cache.insert_if_absent(1, Bomb::armed(1))),
            1,
        ),
        (
            |cache, _| {
                let version = cache.version(&1).expect("it is there");
                cache.insert(1, Bomb::armed(1));
                let old = cache.compare_and_set(1, version, Bomb::armed(1));
                assert!(old.is_err());
            },
            2,
        ),
        (
            |cache, _| {
                // Overtaken by an insertion: what was loaded is not stored.
                let loaded = cache.get_or_load(77, || {
                    cache.insert(77, Bomb::armed(1));
                    Bomb::armed(1)
                });
                std::mem::forget(loaded);
            },
            2,
        ),
    ];
    for (number, (leave, panics)) in leave.into_iter().enumerate() {
        let clock = ManualClock::new();
        let cache: Cache<u32, Bomb> = Cache::builder()
            .max_capacity(10)
            .time_to_live(10 * MS)
            .clock(clock.clone())
            .driver(Driver::Manual)
            .build()
            .expect("valid");
        (0..10).for_each(|key| cache.insert(key, Bomb::armed(1)));
        leave(&cache, &clock);
        assert_eq!(cache.stats().drop_panics, panics, "case {number}");
        cache.validate();
    }
}

/// Waits for what a thread of the cache does.
fn wait_until(done: impl Fn() -> bool) {
    for _ in 0..5000 {
        if done() {
            return;
        }
        std::thread::park_timeout(2 * MS);
    }
    panic!("it never happened");
}

/// The returned clone was lost, and the panic reached a caller that had not caused it.
#[test]
fn a_drop_that_panics_in_an_argument_that_is_not_needed_harms_nobody() {
    type Call = fn(&Shared, u32, Value) -> Value;
    let calls: [Call; 3] = [
        |cache, key, unused| cache.entry(Key(key)).or_insert(unused),
        |cache, key, unused| cache.entry(Key(key)).or_insert_with(move || unused),
        |cache, key, unused| {
            let update = |old: &Value| Value::new(old.0, &old.1);
            let entry = cache.entry(Key(key)).and_update(update);
            entry.or_insert(unused)
        },
    ];
    for call in calls {
        for wait in 0..4 {
            let clock = ManualClock::new();
            let (cache, living) = filled(&clock);
            let unused = Value::new(99, &living);
            DROPS.set(wait);
            set(&DROP, bang);
            let value = call(&cache, 4, unused);
            let fired = !unset(&DROP);
            DROPS.set(0);
            assert_eq!(value.0, 4);
            assert_eq!(cache.stats().drop_panics, u64::from(fired));
            assert_eq!(living.load(SeqCst), 11, "the cache's ten and the answer");
            drop(value);
            is_usable(&cache, &clock, &living);
        }
    }
}

/// A closure that is never called is a user value too, and its drop may panic.
#[test]
fn an_update_of_a_missing_key_drops_its_closure_quietly() {
    let clock = ManualClock::new();
    let (cache, living) = filled(&clock);
    let held = Value::new(99, &living);
    set(&DROP, bang);
    let updated = cache.update(&Key(70), move |_| held.clone());
    assert!(updated.is_none() && !unset(&DROP));
    assert_eq!(cache.stats().drop_panics, 1);
    is_usable(&cache, &clock, &living);
}

/// When the hash of an entry on probation panicked, the entry lost its place in the queue, and nothing could evict it
/// any more.
#[test]
fn a_hash_that_panics_while_room_is_made_leaves_nothing_that_cannot_be_evicted() {
    for capacity in 1..5 {
        for wait in 0..12 {
            let clock = ManualClock::new();
            let cache: Shared = configured(&clock)
                .max_capacity(capacity)
                .weigher(|_, value| value.0)
                .build()
                .expect("valid");
            let living = Arc::default();
            for key in 0..4 {
                cache.insert(Key(key), Value::new(1, &living));
            }
            // Places whose entry is gone: from here on the queue asks for hashes.
            cache.invalidate(&Key(3));
            cache.insert(Key(4), Value::new(1, &living));
            HASHES.set(wait);
            set(&HASH, bang);
            for key in 5..8 {
                let _ = catch_unwind(AssertUnwindSafe(|| {
                    cache.insert(Key(key), Value::new(capacity as u32, &living));
                }));
            }
            unset(&HASH);
            HASHES.set(0);
            for key in 8..10 {
                cache.insert(Key(key), Value::new(1, &living));
                assert!(cache.weight() <= capacity, "{capacity}, hash {wait}");
            }
            cache.validate();
            drop(cache);
            assert_eq!(living.load(SeqCst), 0, "a value was not dropped");
        }
    }
}

/// Entries that had been removed before the panic were not dropped until the next operation.
#[test]
fn a_hash_that_panics_in_invalidate_if_keeps_no_removed_value() {
    for wait in 0..10 {
        let clock = ManualClock::new();
        let (cache, living) = filled(&clock);
        HASHES.set(wait);
        set(&HASH, bang);
        let result = catch_unwind(AssertUnwindSafe(|| cache.invalidate_if(|_, _| true)));
        unset(&HASH);
        HASHES.set(0);
        assert!(result.is_err(), "hash {wait}");
        assert_eq!(living.load(SeqCst), cache.len() as u64, "hash {wait}");
        is_usable(&cache, &clock, &living);
    }
}
