//! Small things for daily use: closures as rules, statistics that print, removing what is due in
//! one call, entries by tag.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tidewheel::{Builder, Expiry, Lifetime, ManualClock, OnFull, Ttl};

use crate::loading::{MS, Valid, by_hand};

fn manual(clock: &ManualClock) -> Builder<u32, u64> {
    by_hand(clock)
}

/// Reads lengthen the life; closures cannot say that.
struct ByReads;

impl Expiry<u32, u64> for ByReads {
    fn expire_after_create(&self, _: &u32, value: &u64) -> Option<Duration> {
        Some(MS * *value as u32)
    }

    fn expire_after_update(&self, _: &u32, _: &u64, left: Option<Duration>) -> Option<Duration> {
        left.map(|left| left + MS)
    }

    fn expire_after_read(&self, _: &u32, _: &u64, _: Option<Duration>) -> Option<Duration> {
        Some(100 * MS)
    }
}

/// A box or an `Arc` that handed on only what has no default would lose the rules for updates and
/// reads.
#[test]
fn a_boxed_rule_is_the_rule() {
    let clock = ManualClock::new();
    let boxed: Box<dyn Expiry<u32, u64>> = Box::new(ByReads);
    let shared: Arc<dyn Expiry<u32, u64>> = Arc::new(ByReads);
    let caches = [
        manual(&clock).expire_after(ByReads),
        manual(&clock).expire_after(boxed),
        manual(&clock).expire_after(shared),
        manual(&clock).expire_after(Arc::new(ByReads)),
    ];
    for cache in caches {
        let cache = cache.valid();
        cache.insert(1, 30);
        cache.insert(1, 50);
        assert_eq!(cache.ttl(&1), Ttl::Left(31 * MS));
        assert_eq!(cache.get(&1), Some(50));
        assert_eq!(cache.ttl(&1), Ttl::Left(100 * MS));
    }
}

#[test]
fn statistics_print_how_much_and_how_late() {
    let clock = ManualClock::new();
    let cache = manual(&clock).time_to_live(10 * MS).valid();
    assert!(!cache.stats().to_string().contains("lateness"));
    (0..99).for_each(|key| cache.insert(key, 0));
    clock.advance(10 * MS);
    assert_eq!(cache.run_due(), 99);
    cache.insert(99, 0);
    clock.advance(15 * MS);
    assert!(cache.stats().to_string().contains("behind by 5ms"));
    assert_eq!(cache.run_due(), 1);
    cache.get(&99);
    let stats = cache.stats();
    // 5 ms is in the window that ends at 7.
    let percentiles = [-1.0, 0.0, 50.0, 99.0, 99.1, 100.0, 1e9];
    let late = percentiles.map(|percent| stats.lateness_percentile(percent));
    let (none, most) = (Some(Duration::ZERO), Some(7 * MS));
    assert_eq!(late, [none, none, none, none, most, most, most]);
    assert_eq!(
        stats.to_string(),
        "0 entries of weight 0; 1 lookups, 0.0 % hits, 0 stale, 0 negative, 0 joined; \
         100 inserts, 0 loads, 0 failed; \
         100 expired, 0 evicted, 0 removed; lateness of 100: p50 0ns, p99 0ns, max 7ms"
    );
}

#[test]
fn what_is_due_goes_in_one_call() {
    let clock = ManualClock::new();
    let heard = Arc::new(Mutex::new(0));
    let listener = Arc::clone(&heard);
    let cache = manual(&clock)
        .time_to_live(10 * MS)
        // Smaller than what is due: the call empties it as often as it must.
        .listener_queue(7, OnFull::Wait)
        .eviction_listener(move |_| *listener.lock().expect("unpoisoned") += 1)
        .valid();
    for key in 0..10_000 {
        cache.insert_with(key, 0, Lifetime::configured().tag("even"));
    }
    cache.insert_with(10_000, 0, Lifetime::forever().tag("gone"));
    cache.insert_with(10_001, 0, Lifetime::forever());
    cache.invalidate_tag("gone");
    clock.advance(10 * MS);
    assert_eq!(cache.run_due(), 10_000);
    assert_eq!(
        (cache.len(), *heard.lock().expect("unpoisoned")),
        (1, 10_001)
    );
    assert_eq!(cache.run_due(), 0);
    cache.validate();
}
