//! Keys and values whose `Hash`, `Eq`, `Clone` and `Drop` do what a test says, and a cache of them.

use std::cell::RefCell;
use std::hash::{Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use tidewheel::{Cache, ManualClock};

use crate::loading::by_hand;

pub(super) use crate::loading::{MS, Valid};

pub(super) type Shared = Cache<Key, Value>;

thread_local! {
    /// The hooks that run at the next hash, comparison, clone or drop of this thread.
    pub(super) static HASH: RefCell<Option<Box<dyn FnOnce()>>> = const { RefCell::new(None) };
    pub(super) static EQ: RefCell<Option<Box<dyn FnOnce()>>> = const { RefCell::new(None) };
    pub(super) static CLONE: RefCell<Option<Box<dyn FnOnce()>>> = const { RefCell::new(None) };
    pub(super) static DROP: RefCell<Option<Box<dyn FnOnce()>>> = const { RefCell::new(None) };
}

type Hook = std::thread::LocalKey<RefCell<Option<Box<dyn FnOnce()>>>>;

fn fire(hook: &'static Hook) {
    let action = hook.try_with(|hook| hook.borrow_mut().take());
    if let Ok(Some(action)) = action {
        action();
    }
}

pub(super) fn set(hook: &'static Hook, action: impl FnOnce() + 'static) {
    hook.with(|hook| *hook.borrow_mut() = Some(Box::new(action)));
}

pub(super) fn unset(hook: &'static Hook) -> bool {
    hook.with(|hook| hook.borrow_mut().take()).is_some()
}

#[derive(Debug, Clone)]
pub(super) struct Key(pub(super) u32);

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        fire(&HASH);
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
pub(super) struct Value(pub(super) u32, pub(super) Arc<AtomicU64>);

impl Value {
    pub(super) fn new(number: u32, living: &Arc<AtomicU64>) -> Self {
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
        if !std::thread::panicking() {
            fire(&DROP);
        }
    }
}

/// A cache of ten entries with 5 to 14 ms to live, and the count of living values.
pub(super) fn filled(clock: &ManualClock) -> (Shared, Arc<AtomicU64>) {
    filled_as(configured(clock))
}

pub(super) fn configured(clock: &ManualClock) -> tidewheel::Builder<Key, Value> {
    by_hand(clock)
        .max_capacity(10)
        .time_to_live(1000 * MS)
        .shards(1)
}

pub(super) fn filled_as(builder: tidewheel::Builder<Key, Value>) -> (Shared, Arc<AtomicU64>) {
    let cache = builder.valid();
    let living = Arc::default();
    for key in 0..10 {
        let ttl = Duration::from_millis(5 + u64::from(key));
        cache.insert_with_ttl(Key(key), Value::new(key, &living), ttl);
    }
    (cache, living)
}

/// The message of a panic.
pub(super) fn panics(action: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(action)).expect_err("should panic");
    match panic.downcast::<String>() {
        Ok(message) => *message,
        Err(panic) => (*panic.downcast::<&str>().expect("a message")).to_owned(),
    }
}

/// Whole, and all its entries can still expire.
pub(super) fn is_usable(cache: &Shared, clock: &ManualClock, living: &AtomicU64) {
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

/// A value whose drop panics, unless it is defused, and that weighs what it says.
#[derive(Debug, Clone)]
pub(super) struct Bomb {
    pub(super) weight: u32,
    pub(super) armed: bool,
}

impl Bomb {
    pub(super) fn armed(weight: u32) -> Self {
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

/// An operation by which a value leaves.
pub(super) type Leave = fn(&Shared, &ManualClock);

/// Operations on a cache that is [`filled`], by each of which a value leaves and is dropped.
pub(super) const LEAVE: [Leave; 6] = [
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
