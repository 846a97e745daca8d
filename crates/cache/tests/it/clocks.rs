//! Clocks of any origin, and clocks that jump.

use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use tidewheel::{Cache, Clock, Condition, Lifetime, Ttl};

use crate::loading::{MS, Valid, by_hand};

const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(86_400);

/// 2026, as a clock shows it that counts from the Unix epoch.
const SINCE_EPOCH: Duration = Duration::from_secs(1_790_000_000);

/// A clock that shows what it was told to.
#[derive(Debug, Clone)]
struct Shows(Arc<Mutex<Duration>>);

impl Shows {
    fn new(time: Duration) -> Self {
        Self(Arc::new(Mutex::new(time)))
    }

    fn set(&self, time: Duration) {
        *self.0.lock().expect("whole") = time;
    }

    fn advance(&self, by: Duration) {
        *self.0.lock().expect("whole") += by;
    }
}

impl Clock for Shows {
    fn now(&self) -> Duration {
        *self.0.lock().expect("whole")
    }

    fn wall(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH
    }
}

fn cache(clock: &Shows) -> Cache<u32, u32> {
    by_hand(clock).max_capacity(1000).valid()
}

fn drive(cache: &Cache<u32, u32>) {
    while cache.advance(Duration::MAX, u32::MAX).backlog {}
    cache.validate();
}

/// Deadlines have 40 bits of milliseconds. A clock that shows more than 34.8 years was later than
/// all of them.
#[test]
fn a_clock_that_counts_from_the_unix_epoch_ends_nothing_early() {
    for origin in [
        SINCE_EPOCH,
        1000 * SINCE_EPOCH,
        Duration::MAX - HOUR,
        Duration::from_secs((1 << 40) / 1000 - 1),
    ] {
        let clock = Shows::new(origin);
        let cache = cache(&clock);
        assert_eq!(cache.now(), origin, "the clock's own time");
        cache.insert_with_ttl(1, 10, 50 * MS);
        cache.insert_with(2, 20, Lifetime::ttl(50 * MS).fresh_for(20 * MS));
        cache.insert(3, 30);
        assert!(cache.expire(&3, 60 * MS, Condition::Always));
        assert_eq!(cache.ttl(&1), Ttl::Left(50 * MS));
        clock.advance(49 * MS);
        drive(&cache);
        assert_eq!((cache.get(&1), cache.get(&2)), (Some(10), Some(20)));
        assert_eq!(cache.stats().stale_hits, 1);
        assert_eq!(cache.next_deadline(), Some(MS));
        clock.advance(MS);
        assert_eq!((cache.get(&1), cache.get(&2)), (None, None));
        drive(&cache);
        assert_eq!((cache.len(), cache.get(&3)), (1, Some(30)));
        clock.advance(10 * MS);
        drive(&cache);
        assert_eq!((cache.len(), cache.stats().expirations), (0, 3));
        assert_eq!(cache.now(), origin + 60 * MS);
    }
}

/// A device without a battery starts in 1970, and learns the time later.
#[test]
fn a_leap_forward_ends_what_has_a_deadline_and_what_is_stored_later_lives() {
    let clock = Shows::new(Duration::ZERO);
    let cache = cache(&clock);
    for leap in [
        SINCE_EPOCH,
        2 * SINCE_EPOCH,
        4 * SINCE_EPOCH,
        Duration::MAX / 2,
    ] {
        cache.insert(0, 1);
        cache.insert_with_ttl(1, 10, 100 * DAY);
        clock.set(leap);
        if leap < Duration::MAX / 2 {
            assert_eq!(cache.get(&1), None, "{leap:?}");
        }
        cache.invalidate(&1);
        drive(&cache);
        assert_eq!((cache.len(), cache.get(&0)), (1, Some(1)));
        cache.insert_with_ttl(2, 20, 50 * MS);
        clock.set(leap + 49 * MS);
        drive(&cache);
        assert_eq!(cache.get(&2), Some(20), "{leap:?}");
        clock.set(leap + 50 * MS);
        drive(&cache);
        assert_eq!((cache.len(), cache.get(&2)), (1, None), "{leap:?}");
    }
    // A clock that was set much too far and comes back goes on.
    clock.set(4 * SINCE_EPOCH);
    cache.insert_with_ttl(4, 40, 50 * MS);
    assert_eq!(cache.get(&4), Some(40));
    clock.set(SINCE_EPOCH);
    assert_eq!(cache.get(&4), Some(40));
    clock.advance(50 * MS);
    assert_eq!(cache.get(&4), None);
    drive(&cache);
    assert_eq!(cache.len(), 1);
}
