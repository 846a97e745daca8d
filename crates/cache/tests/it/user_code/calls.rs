//! User code that calls the cache it is called from.

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use tidewheel::ManualClock;

use super::hooks::*;

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
            cache.view(&Key(4), |_| call(&cache));
        });
        assert!(message.contains("within its own"), "{message}");
        is_usable(&cache, &clock, &living);
    }
}

#[test]
fn the_drop_of_a_value_may_call_the_cache_however_the_value_leaves() {
    let more: [Leave; 2] = [
        |cache, _| {
            cache.expire(&Key(3), Duration::ZERO, tidewheel::Condition::Always);
        },
        |cache, _| cache.close(),
    ];
    let leave_by_close = LEAVE.len() + 1;
    for (number, leave) in LEAVE.into_iter().chain(more).enumerate() {
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
