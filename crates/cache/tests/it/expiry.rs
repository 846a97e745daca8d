//! Times to live, and the events that tell of their ends.

use std::time::Duration;

use tidewheel::{Lifetime, ManualClock, Ttl};

use crate::loading::{MS, Valid, by_hand};

fn manual(clock: &ManualClock) -> tidewheel::Builder<u64, u64> {
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
