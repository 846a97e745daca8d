//! Soft deadlines across snapshots, and invalidations while a value is loaded again.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::task::Poll;
#[cfg(feature = "serde")]
use std::time::Duration;

#[cfg(feature = "serde")]
use tidewheel::Ttl;
use tidewheel::{Cache, Lifetime, Loaded, ManualClock};

use crate::loading::{MS, Valid, manual};
use crate::manual_poll::{Alarm, flagged, poll};

#[cfg(feature = "serde")]
const DAY: Duration = Duration::from_secs(86_400);

/// Returns whether a caller with a loader would run it.
#[cfg(feature = "serde")]
fn is_stale(cache: &Cache<u64, u64>, key: u64) -> bool {
    let before = cache.stats().stale_hits;
    assert!(cache.get(&key).is_some(), "it is there");
    cache.stats().stale_hits > before
}

/// Those who came after the invalidation waited for the load that began before it, and got its
/// value.
#[test]
fn who_comes_after_an_invalidation_is_not_answered_by_the_reload_that_it_overtook() {
    let clock = ManualClock::new();
    let cache = manual(&clock).refresh_after(0.5).valid();
    cache.insert_with(1, 1, Lifetime::configured().tag("a"));
    clock.advance(60 * MS);
    let go = AtomicBool::new(false);
    let mut leader = Box::pin(cache.get_or_load_async(1, async {
        flagged(&go).await;
        2_u64
    }));
    let alarm = Alarm::new();
    assert!(poll(leader.as_mut(), &alarm).is_pending());
    assert_eq!(cache.get(&1), Some(1), "stale");
    assert!(cache.invalidate_tag("a"));
    let mut later = Box::pin(cache.get_or_load_async(1, async { 3_u64 }));
    assert!(poll(later.as_mut(), &alarm).is_pending());
    go.store(true, SeqCst);
    assert_eq!(poll(leader.as_mut(), &alarm), Poll::Ready(2));
    assert_eq!(poll(later.as_mut(), &alarm), Poll::Ready(3));
    assert_eq!(cache.get(&1), Some(3));
}

#[cfg(feature = "serde")]
#[test]
fn a_snapshot_keeps_soft_deadlines_and_what_a_refresh_keeps() {
    let refreshing = |clock: &ManualClock| {
        let builder = manual(clock).refresh_after(0.5);
        let builder = builder.refresh_with(|_: &u64| Loaded::from(100));
        builder.valid()
    };
    let clock = ManualClock::new();
    let cache = refreshing(&clock);
    cache.insert_with(1, 1, Lifetime::forever().fresh_for(20 * MS));
    cache.insert_with_ttl(2, 2, 400 * DAY);
    clock.advance(10 * MS);
    let snapshot = cache.snapshot();
    let clock = ManualClock::new();
    let cache = refreshing(&clock);
    assert_eq!(cache.restore(snapshot), Ok(2));
    assert!(!is_stale(&cache, 1));
    clock.advance(10 * MS);
    assert!(is_stale(&cache, 1));
    assert_eq!(cache.run_refreshes(10), 1);
    assert_eq!(cache.ttl(&1), Ttl::Forever);
    assert!(!is_stale(&cache, 1) && !is_stale(&cache, 2));
    clock.advance(200 * DAY);
    assert!(is_stale(&cache, 1) && is_stale(&cache, 2));
    assert_eq!(cache.run_refreshes(10), 2);
    assert_eq!(cache.ttl(&2), Ttl::Left(400 * DAY));
}
