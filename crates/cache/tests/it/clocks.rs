//! Clocks of any origin, clocks that jump, and times to live that begin early or end late.

use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use tidewheel::{Builder, Cache, Clock, Condition, Lifetime, ManualClock, Ttl};

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

fn manual(clock: &ManualClock) -> Builder<u64, u64> {
    by_hand(clock)
        .max_capacity(1000)
        .time_to_live(Duration::from_secs(1))
}

#[test]
fn a_time_to_live_may_have_begun_before_the_entry_is_stored() {
    let clock = ManualClock::new();
    clock.advance(7 * MS);
    let cache = manual(&clock).valid();
    clock.advance(3 * MS);
    let asked = cache.now();
    clock.advance(30 * MS);
    cache.insert_with(1, 10, Lifetime::ttl_since(asked, 40 * MS));
    assert_eq!(cache.ttl(&1), Ttl::Left(10 * MS));
    cache.insert_with(2, 20, Lifetime::ttl_since(asked, 30 * MS));
    assert_eq!(cache.get(&2), None, "over before it was stored");
    cache.insert_with(3, 30, Lifetime::ttl_since(Duration::MAX, 5 * MS));
    assert_eq!(cache.ttl(&3), Ttl::Left(5 * MS), "not from a time to come");
    clock.advance(10 * MS);
    assert_eq!(cache.get(&1), None);
    cache.validate();
}

/// The grace period was added to each deadline, up to the latest one that fits. Readers subtract it
/// again, and so found every entry dead.
#[test]
fn an_endless_grace_period_ends_no_entry_early() {
    for grace in [Duration::MAX, Duration::from_secs(40 * 365 * 86_400)] {
        let clock = ManualClock::new();
        // To refuse it would be as good.
        let Ok(cache) = manual(&clock).stale_on_error(grace).build() else {
            continue;
        };
        cache.insert(1, 1);
        clock.advance(999 * MS);
        assert_eq!(cache.get(&1), Some(1), "dead before its time");
        clock.advance(MS);
        assert_eq!(cache.get(&1), None);
    }
}
