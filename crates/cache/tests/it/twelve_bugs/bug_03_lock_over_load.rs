//! Bug 3: the lock is held while the origin is asked. Whoever wants anything else waits for
//! somebody else's load. No code of the user's may run under a cache's lock.

use std::sync::Arc;
use std::time::Duration;

use tidewheel::{Cache, Clock, Expiry};

use super::stage::{
    Entries, Intruder, LONG, MINUTE, SHORT, Scripted, StageClock, Valid, tidewheel,
};
use crate::loading::Own;

/// Asks the origin under its lock.
struct LoadsUnderLock(Entries);

impl Scripted for LoadsUnderLock {
    fn get(&self, key: u32) -> Option<u32> {
        self.0.get(key)
    }

    fn set(&self, key: u32, value: u32, ttl: Duration) {
        self.0.set(key, value, ttl);
    }

    fn load(&self, key: u32, origin: Box<dyn FnOnce() -> u32 + '_>) -> u32 {
        let mut entries = self.0.lock();
        let now = self.0.clock.now();
        if let Some((value, deadline)) = entries.get(&key)
            && now < *deadline
        {
            return *value;
        }
        let value = origin();
        entries.insert(key, (value, now + MINUTE));
        value
    }
}

/// While key 1 is loaded, others read, write and load other keys. Did they get on before the load
/// was over?
fn others_get_on(cache: &Arc<dyn Scripted>, patience: Duration) -> bool {
    cache.set(2, 20, MINUTE);
    let (tell, told) = std::sync::mpsc::channel();
    let others = Arc::clone(cache);
    let origin = move || {
        let intruder = Intruder::enter(move || {
            assert_eq!(others.get(2), Some(20));
            others.set(3, 30, MINUTE);
            assert_eq!(others.load(4, Box::new(|| 40)), 40);
            others.get(1);
        });
        let done = intruder.is_done_within(patience);
        tell.send((done, intruder)).expect("the script listens");
        10
    };
    assert_eq!(cache.load(1, Box::new(origin)), 10);
    let (got_on, intruder) = told.recv().expect("the origin was asked");
    intruder.leave();
    got_on
}

#[test]
fn bug_03_the_lock_is_held_over_a_load() {
    let clock = StageClock::new();
    let faulty: Arc<dyn Scripted> = Arc::new(LoadsUnderLock(Entries::new(&clock)));
    assert!(!others_get_on(&faulty, SHORT));

    let clock = StageClock::new();
    // One shard: all keys are behind the same lock.
    let cache: Cache<u32, u32> = tidewheel(&clock).shards(1).valid();
    let ours: Arc<dyn Scripted> = Arc::new(cache.clone());
    assert!(others_get_on(&ours, LONG));
    assert_eq!(cache.get(&1), Some(10));
    cache.validate();
}

/// User code that a cache runs may call the cache. Under a lock it would panic. (What drops do,
/// `user_code/calls.rs` has.)
#[test]
fn weigher_expiry_loader_and_update_run_without_a_lock() {
    fn use_cache(own: &Own<u32, u32>) {
        if let Some(cache) = own.get() {
            cache.contains_key(&7);
            cache.invalidate(&8);
            assert!(cache.len() < 100);
        }
    }

    struct Talks(Own<u32, u32>);

    impl Expiry<u32, u32> for Talks {
        fn expire_after_create(&self, _: &u32, _: &u32) -> Option<Duration> {
            use_cache(&self.0);
            Some(MINUTE)
        }
    }

    let (slot, own) = Own::pair();
    let weighs = own.clone();
    let cache: Cache<u32, u32> = tidewheel(&StageClock::new())
        .shards(1)
        .max_capacity(3)
        .expire_after(Talks(own.clone()))
        .weigher(move |_, _| {
            use_cache(&weighs);
            1
        })
        .valid();
    slot.set(&cache);
    for key in (0..10).chain(0..10) {
        cache.insert(key, key);
    }
    let talk = |value| {
        use_cache(&own);
        value
    };
    assert_eq!(cache.get_or_load(100, || talk(5)), 5);
    assert_eq!(cache.update(&100, |old| talk(old + 1)), Some(6));
    cache.validate();
}
