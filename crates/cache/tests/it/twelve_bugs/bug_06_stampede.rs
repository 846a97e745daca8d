//! Bug 6: entries that were stored together expire together, and their readers all go to the origin
//! at once.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Duration;

use tidewheel::{Cache, Clock};

use super::stage::{StageClock, Valid, tidewheel};

const KEYS: u32 = 100_000;
const TTL: Duration = Duration::from_secs(300);
const WINDOW: Duration = Duration::from_millis(100);

/// A hundred thousand keys are stored one right after another. `expire` removes what is dead now,
/// and tells how many there were: each is a load that its next reader causes. Returns the loads in
/// each window, from the first window with one to the last.
fn loads_by_window(
    clock: &StageClock,
    mut store: impl FnMut(u32),
    mut expire: impl FnMut() -> u64,
) -> Vec<u64> {
    for key in 0..KEYS {
        store(key);
        clock.advance(Duration::from_nanos(900));
    }
    let mut loads = Vec::new();
    while loads.iter().sum::<u64>() < u64::from(KEYS) {
        clock.advance(WINDOW);
        let now = expire();
        if now > 0 || !loads.is_empty() {
            loads.push(now);
        }
        assert!(clock.now() < 2 * TTL, "some entries do not expire");
    }
    loads
}

#[test]
fn bug_06_all_that_was_warmed_together_expires_together() {
    // Every entry lives for exactly the same time.
    let clock = StageClock::new();
    let faulty = RefCell::new(BTreeMap::<Duration, u64>::new());
    let store = |_| *faulty.borrow_mut().entry(clock.now() + TTL).or_default() += 1;
    let expire = || {
        let later = faulty
            .borrow_mut()
            .split_off(&(clock.now() + Duration::from_nanos(1)));
        faulty.replace(later).into_values().sum()
    };
    let loads = loads_by_window(&clock, store, expire);
    assert!(
        loads.len() <= 2,
        "all within the time of warming: {loads:?}"
    );

    let clock = StageClock::new();
    let cache: Cache<u32, u32> = tidewheel(&clock).time_to_live(TTL).jitter(0.2).valid();
    let loads = loads_by_window(&clock, |key| cache.insert(key, key), || cache.run_due());
    assert!(
        clock.now() <= TTL + WINDOW,
        "shortened: the TTL stays the maximum"
    );
    let expected = TTL.mul_f64(0.2).div_duration_f64(WINDOW) as usize;
    assert!(
        loads.len().abs_diff(expected) <= 2,
        "{} windows",
        loads.len()
    );
    let mean = u64::from(KEYS) / loads.len() as u64;
    let most = loads.iter().max().expect("not empty");
    assert!(
        *most <= 2 * mean,
        "{most} loads in a window, {mean} on average"
    );
}
