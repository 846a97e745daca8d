//! Loaders and refreshers that see the old value, and may say that it has not changed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

use tidewheel::{Builder, Cache, Lifetime, Loaded, ManualClock, Ttl};

use crate::loading::{MS, Told, Valid, by_hand, manual};

const SECOND: Duration = Duration::from_secs(1);

/// Entries that live for 100 ms, are stale after 50, and are kept for a second in case that the
/// origin fails.
fn kept(clock: &ManualClock) -> (Builder<u64, u64>, Told) {
    let told = Told::default();
    let builder = manual(clock)
        .refresh_after(0.5)
        .stale_on_error(SECOND)
        .eviction_listener(told.ear());
    (builder, told)
}

fn unchanged(old: Option<u64>) -> Loaded<u64> {
    Loaded::unchanged(old.expect("there is one"), Lifetime::configured())
}

fn left(millis: u64) -> Ttl {
    Ttl::Left(Duration::from_millis(millis))
}

/// It has ended and was removed: that is no write.
#[test]
fn an_unchanged_value_is_there_again_though_its_entry_has_ended_meanwhile() {
    let clock = ManualClock::new();
    let cache = kept(&clock).0.valid();
    cache.insert(1, 10);
    clock.advance(60 * MS);
    let fetched = cache.fetch(1).load_with_old(|old| {
        clock.advance(2 * SECOND);
        cache.run_due();
        assert_eq!(cache.len(), 0);
        unchanged(old)
    });
    assert_eq!((fetched.value, cache.peek(&1)), (10, Some(10)));
}

/// A value whose copies can be made to panic.
#[derive(Debug)]
struct Copied(Arc<AtomicBool>);

impl Clone for Copied {
    fn clone(&self) -> Self {
        assert!(!self.0.load(SeqCst), "the value's Clone");
        Self(Arc::clone(&self.0))
    }
}

/// The refresh has failed before it began, and the key is free for others.
#[test]
fn a_clone_that_panics_for_a_refresher_ends_the_refresh_alone() {
    let clock = ManualClock::new();
    let armed = Arc::new(AtomicBool::new(false));
    let cache: Cache<u64, Copied> = by_hand(&clock)
        .max_capacity(10)
        .time_to_live(100 * MS)
        .refresh_after(0.5)
        .refresh_with_old(|_, old| Loaded::unchanged(old, Lifetime::configured()))
        .valid();
    cache.insert(1, Copied(Arc::clone(&armed)));
    clock.advance(60 * MS);
    assert!(cache.get(&1).is_some());
    armed.store(true, SeqCst);
    assert_eq!(cache.run_refreshes(1), 1);
    armed.store(false, SeqCst);
    let stats = cache.stats();
    assert_eq!((stats.refreshes_begun, stats.refreshes_failed), (1, 1));
    cache.validate();
    assert!(cache.get(&1).is_some());
    cache.run_refreshes(1);
    assert_eq!(cache.stats().refreshes_done, 1);
    assert_eq!(cache.ttl(&1), left(100));
}
