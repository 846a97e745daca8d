//! The statistics, the listener and the callers agree about what happened.

use std::future::ready;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use tidewheel::{Builder, Cache, Compute, Driver, Lifetime, ManualClock, OnFull, RemovalCause};

use crate::loading::{MS, Told, by_hand};
use crate::manual_poll::block_on;

/// A cache of one shard with room for two; a value of 1000 and more is too heavy.
fn told() -> (Builder<u64, u64>, ManualClock, Told) {
    let events = Told::default();
    let clock = ManualClock::new();
    let builder = by_hand(&clock)
        .max_capacity(2)
        .shards(1)
        .weigher(|_, value| if *value >= 1000 { 3 } else { 1 })
        .eviction_listener(events.ear());
    (builder, clock, events)
}

fn cache() -> (Cache<u64, u64>, ManualClock, Told) {
    let (builder, clock, events) = told();
    (builder.build().expect("valid"), clock, events)
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
fn a_closed_cache_counts_nothing_that_it_drops() {
    let (cache, _, events) = cache();
    cache.close();
    cache.insert(1, 1000);
    cache.insert(1, 10);
    assert_eq!(cache.entry(1).or_insert(1000_u64), 1000);
    drive(&cache);
    let stats = cache.stats();
    assert_eq!((stats.inserts, stats.rejected, stats.evictions), (0, 0, 0));
    assert_eq!(events.count(), 0);
    balanced(&cache, &events);
}

#[test]
fn an_insertion_that_a_closed_cache_drops_is_not_answered_with_true() {
    let (cache, _, events) = cache();
    cache.close();
    assert!(!cache.insert_if_absent(1, 10));
    assert!(!cache.insert_if_absent_with(1, 10, Lifetime::forever().tag("a")));
    assert_eq!(cache.peek(&1), None);
    balanced(&cache, &events);
}

/// The events of a whole shard were queued, even if the queue was full already.
#[test]
fn a_lossy_queue_that_is_full_takes_no_shard_that_is_emptied() {
    let events = Told::default();
    let cache: Cache<u64, u64> = by_hand(&ManualClock::new())
        .shards(1)
        .listener_queue(5, OnFull::Drop)
        .eviction_listener(events.ear())
        .build()
        .expect("valid");
    for round in 0..10 {
        for key in 0..20 {
            cache.insert_with(key, round, Lifetime::forever().tag("a"));
        }
        cache.invalidate_all();
    }
    drive(&cache);
    assert_eq!(events.count(), 20, "those for which there was room");
    assert_eq!(cache.stats().events_dropped, 180);
    assert!(!cache.invalidate_tag("a"), "nobody has the tag");
    cache.validate();
}

#[test]
fn entries_past_their_deadline_are_announced_as_expired_when_the_cache_is_emptied() {
    for close in [true, false] {
        for grace in [0, 50] {
            let (builder, clock, events) = told();
            let cache = builder.stale_on_error(grace * MS).build().expect("valid");
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
                [(1, 1, over), (2, 2, live)],
                "{close}, {grace}"
            );
        }
    }
}

static PANICS: AtomicBool = AtomicBool::new(false);

/// A key whose `Drop` panics while `PANICS` is set; one test alone does so.
#[derive(PartialEq, Eq, Hash)]
struct Explosive(u64);

impl Drop for Explosive {
    fn drop(&mut self) {
        assert!(!PANICS.load(SeqCst), "this Drop panics");
    }
}

#[test]
fn a_key_whose_drop_panics_harms_no_caller_that_finds_a_value() {
    let cache: Cache<Explosive, u64> = Cache::builder()
        .unbounded()
        .no_default_ttl()
        .driver(Driver::Manual)
        .build()
        .expect("valid");
    cache.insert(Explosive(1), 10);
    PANICS.store(true, SeqCst);
    let all: [&dyn Fn() -> Option<u64>; 6] = [
        &|| Some(cache.get_or_load(Explosive(1), || 11_u64)),
        &|| cache.try_get_or_load(Explosive(1), || Err(1_u8)).ok(),
        &|| cache.optionally_get_or_load(Explosive(1), || None::<u64>),
        &|| Some(block_on(cache.get_or_load_async(Explosive(1), ready(11)))),
        &|| Some(cache.entry(Explosive(1)).or_insert(11_u64)),
        &|| cache.entry(Explosive(1)).compute(|_| Compute::Keep),
    ];
    let results = all.map(|ask| catch_unwind(AssertUnwindSafe(ask)));
    PANICS.store(false, SeqCst);
    for (number, result) in results.into_iter().enumerate() {
        assert_eq!(result.ok().flatten(), Some(10), "{number}");
    }
    assert_eq!(cache.stats().drop_panics, 6);
}
