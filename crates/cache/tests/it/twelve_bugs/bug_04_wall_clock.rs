//! Bug 4: deadlines in wall time. The wall clock is set, by an operator, NTP or a migration, and
//! what was dead rises again, or what is alive dies.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, SystemTime};

use tidewheel::{Cache, Clock};

use super::stage::{MS, SECOND, Scripted, StageClock, Valid, tidewheel};

const HOUR: Duration = Duration::from_secs(3600);

/// The script begins some hours after the epoch, so that the clock can be set back.
const START: Duration = Duration::from_secs(10 * 3600);

/// Keeps deadlines as points in wall time.
struct InWallTime {
    clock: StageClock,
    entries: Mutex<HashMap<u32, (u32, SystemTime)>>,
}

impl Scripted for InWallTime {
    fn get(&self, key: u32) -> Option<u32> {
        let entries = self.entries.lock().expect("whole");
        let (value, deadline) = entries.get(&key)?;
        (self.clock.wall() < *deadline).then_some(*value)
    }

    fn set(&self, key: u32, value: u32, ttl: Duration) {
        let mut entries = self.entries.lock().expect("whole");
        entries.insert(key, (value, self.clock.wall() + ttl));
    }
}

/// An entry of five seconds; the wall clock jumps by an hour after two. Is the entry seen just
/// before its five seconds are over, and just after?
fn seen_around_the_end(
    cache: &dyn Scripted,
    clock: &StageClock,
    jump_to: Duration,
) -> (bool, bool) {
    clock.set_wall(START);
    cache.set(1, 10, 5 * SECOND);
    clock.advance(2 * SECOND);
    clock.set_wall(jump_to);
    clock.advance(3 * SECOND - MS);
    let before = cache.get(1).is_some();
    clock.advance(MS);
    (before, cache.get(1).is_some())
}

#[test]
fn bug_04_deadlines_in_wall_time() {
    let faulty = |jump_to| {
        let clock = StageClock::new();
        let cache = InWallTime {
            clock: clock.clone(),
            entries: Mutex::default(),
        };
        seen_around_the_end(&cache, &clock, jump_to)
    };
    assert_eq!(faulty(START - HOUR), (true, true), "a dead entry is served");
    assert_eq!(faulty(START + HOUR), (false, false), "a living one is dead");

    for jump_to in [START - HOUR, START + HOUR, Duration::ZERO] {
        let clock = StageClock::new();
        let cache: Cache<u32, u32> = tidewheel(&clock).valid();
        let seen = seen_around_the_end(&cache, &clock, jump_to);
        assert_eq!(seen, (true, false), "the wall clock jumped to {jump_to:?}");
    }
}
