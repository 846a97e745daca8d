//! The statistics, the listener and the callers agree about what happened.

use tidewheel::{Builder, Cache, Lifetime, ManualClock, RemovalCause};

use crate::loading::{MS, Told, Valid, by_hand};

/// A cache of one shard with room for two; a value of 1000 and more is too heavy.
fn told() -> (Builder<u64, u64>, ManualClock, Told) {
    let events = Told::default();
    let clock = ManualClock::new();
    let builder = by_hand(&clock)
        .max_capacity(2)
        .shards(1)
        .negative_ttl(MS)
        .weigher(|_, value| if *value >= 1000 { 3 } else { 1 })
        .eviction_listener(events.ear());
    (builder, clock, events)
}

fn cache() -> (Cache<u64, u64>, ManualClock, Told) {
    let (builder, clock, events) = told();
    (builder.valid(), clock, events)
}

fn drive(cache: &Cache<u64, u64>) {
    while cache.advance(cache.now(), 100).backlog {}
}

/// Whatever was stored is there, or was announced once; and so was whatever was refused.
#[track_caller]
fn balanced(cache: &Cache<u64, u64>, events: &Told) {
    drive(cache);
    let stats = cache.stats();
    let events = events.events();
    let heard = |cause| events.iter().filter(|event| event.2 == cause).count() as u64;
    let left = stats.evictions + stats.expirations + stats.removals;
    let replaced = heard(RemovalCause::Replaced);
    assert_eq!(stats.inserts, stats.entries + left + replaced, "{stats:?}");
    let evicted = heard(RemovalCause::Evicted);
    assert_eq!(evicted, stats.evictions + stats.rejected, "{events:?}");
    assert_eq!(heard(RemovalCause::Expired), stats.expirations);
    cache.validate();
}

#[test]
fn a_closed_cache_stores_remembers_and_counts_nothing() {
    let (cache, _, events) = cache();
    cache.close();
    cache.insert(1, 1000);
    cache.insert(1, 10);
    assert_eq!(cache.entry(1).or_insert(1000_u64), 1000);
    assert!(!cache.insert_if_absent(1, 10));
    assert!(!cache.insert_if_absent_with(1, 10, Lifetime::forever().tag("a")));
    let loaded = cache.optionally_get_or_load(1, || None);
    assert_eq!((loaded, cache.stats().negatives), (None, 0));
    drive(&cache);
    let stats = cache.stats();
    assert_eq!((stats.inserts, stats.rejected, stats.evictions), (0, 0, 0));
    assert_eq!(events.count(), 0);
    balanced(&cache, &events);
}

#[test]
fn entries_past_their_deadline_are_announced_as_expired_when_the_cache_is_emptied() {
    for close in [true, false] {
        for grace in [0, 50] {
            let (builder, clock, events) = told();
            let cache = builder.stale_on_error(grace * MS).valid();
            cache.insert(1, 1);
            cache.insert_with_ttl(1, 1, 5 * MS);
            cache.insert_with_ttl(2, 2, 500 * MS);
            clock.advance(20 * MS);
            if close {
                cache.close();
            } else {
                cache.invalidate_all();
            }
            balanced(&cache, &events);
            let live = if close {
                RemovalCause::Closed
            } else {
                RemovalCause::Cleared
            };
            // In its grace period an entry is still kept, for a loader that fails.
            let over = if grace == 0 {
                RemovalCause::Expired
            } else {
                live
            };
            assert_eq!(
                events.sorted(),
                [(1, 1, RemovalCause::Replaced), (1, 1, over), (2, 2, live)],
                "{close}, {grace}"
            );
        }
    }
}
