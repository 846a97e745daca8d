//! Bug 6: entries that were stored together expire together, and their readers all go to the origin
//! at once.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use tidewheel::{Cache, Clock};

use super::stage::{StageClock, Valid, tidewheel};

const KEYS: u32 = 100_000;
const TTL: Duration = Duration::from_secs(300);
const WINDOW: Duration = Duration::from_millis(100);

/// The script's view of a cache.
trait Warmed {
    fn set(&self, key: u32);
    /// Removes what is dead now; returns how many there were. Each is a load that its next reader
    /// causes.
    fn expire(&self) -> u64;
}

/// Every entry lives for exactly the same time.
struct SameTtl {
    clock: StageClock,
    by_deadline: Mutex<BTreeMap<Duration, u64>>,
}

impl Warmed for SameTtl {
    fn set(&self, _key: u32) {
        let deadline = self.clock.now() + TTL;
        let mut entries = self.by_deadline.lock().expect("whole");
        *entries.entry(deadline).or_default() += 1;
    }

    fn expire(&self) -> u64 {
        let mut entries = self.by_deadline.lock().expect("whole");
        let later = entries.split_off(&(self.clock.now() + Duration::from_nanos(1)));
        std::mem::replace(&mut *entries, later).into_values().sum()
    }
}

impl Warmed for Cache<u32, u32> {
    fn set(&self, key: u32) {
        self.insert(key, key);
    }

    fn expire(&self) -> u64 {
        let progress = self.advance(self.now(), u32::MAX);
        assert!(!progress.backlog);
        progress.expired
    }
}

/// A hundred thousand keys are stored one right after another. Returns the loads that their expiry
/// causes in each window, from the first window with one to the last.
fn loads_by_window(cache: &dyn Warmed, clock: &StageClock) -> Vec<u64> {
    for key in 0..KEYS {
        cache.set(key);
        clock.advance(Duration::from_nanos(900));
    }
    let mut loads = Vec::new();
    while loads.iter().sum::<u64>() < u64::from(KEYS) {
        clock.advance(WINDOW);
        let now = cache.expire();
        if now > 0 || !loads.is_empty() {
            loads.push(now);
        }
        assert!(clock.now() < 2 * TTL, "some entries do not expire");
    }
    loads
}

#[test]
fn bug_06_all_that_was_warmed_together_expires_together() {
    let clock = StageClock::new();
    let faulty = SameTtl {
        clock: clock.clone(),
        by_deadline: Mutex::default(),
    };
    let loads = loads_by_window(&faulty, &clock);
    assert!(
        loads.len() <= 2,
        "all within the time of warming: {loads:?}"
    );

    let clock = StageClock::new();
    let cache = tidewheel(&clock).time_to_live(TTL).jitter(0.2).valid();
    let loads = loads_by_window(&cache, &clock);
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
