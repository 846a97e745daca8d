//! Soft deadlines belong to the value: no read and no idle time moves them. And what a background
//! refresh keeps of the entry that it renews.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::task::Poll;
use std::time::Duration;

use tidewheel::{Cache, Condition, Driver, Expiry, Lifetime, Loaded, ManualClock, Ttl};

use crate::loading::{Failure, MS, manual, unreached};
use crate::manual_poll::{Alarm, block_on, flagged, poll};

const DAY: Duration = Duration::from_secs(86_400);

/// Returns whether a caller with a loader would run it.
fn is_stale(cache: &Cache<u64, u64>, key: u64) -> bool {
    let before = cache.stats().stale_hits;
    assert!(cache.get(&key).is_some(), "it is there");
    cache.stats().stale_hits > before
}

#[test]
fn with_an_idle_time_and_a_time_to_live_no_entry_is_stale_when_it_is_stored() {
    let clock = ManualClock::new();
    let cache = manual(&clock)
        .time_to_idle(10 * MS)
        .refresh_after(0.5)
        .build()
        .expect("valid");
    cache.get_or_load(1, || 10_u64);
    for _ in 0..9 {
        clock.advance(5 * MS);
        assert_eq!(cache.get_or_load(1, unreached), 10);
    }
    assert_eq!(cache.stats().stale_hits, 0);
    clock.advance(5 * MS);
    assert!(is_stale(&cache, 1), "half of the time to live has passed");
    assert_eq!(cache.get_or_load(1, || 11_u64), 11);
    assert!(!is_stale(&cache, 1));
}

#[test]
fn reads_that_keep_an_idle_entry_alive_do_not_keep_it_fresh() {
    let clock = ManualClock::new();
    let cache: Cache<u64, u64> = Cache::builder()
        .unbounded()
        .time_to_idle(10 * MS)
        .refresh_after(0.5)
        .clock(clock.clone())
        .driver(Driver::Manual)
        .build()
        .expect("valid");
    cache.insert(1, 10);
    cache.insert_with(2, 20, Lifetime::configured().fresh_for(30 * MS));
    for _ in 0..5 {
        assert!(!is_stale(&cache, 1) && !is_stale(&cache, 2));
        clock.advance(6 * MS);
    }
    // Without a time to live there is nothing of which half may have passed.
    assert!(!is_stale(&cache, 1));
    assert!(is_stale(&cache, 2));
}

#[test]
fn a_new_time_to_live_is_fresh_for_its_own_share() {
    let clock = ManualClock::new();
    let cache = manual(&clock).refresh_after(0.5).build().expect("valid");
    for key in 1..=3 {
        cache.insert(key, key);
    }
    assert!(cache.expire(&1, 40 * MS, Condition::Always));
    assert!(cache.expire(&2, 400 * MS, Condition::Always));
    assert!(!is_stale(&cache, 1));
    clock.advance(19 * MS);
    assert!(!is_stale(&cache, 1));
    clock.advance(MS);
    assert!(is_stale(&cache, 1));
    clock.advance(30 * MS);
    assert!(is_stale(&cache, 3));
    // A new time to live begins to count when it is given.
    assert!(cache.expire(&3, 20 * MS, Condition::Always));
    assert!(!is_stale(&cache, 3) && !is_stale(&cache, 2));
    clock.advance(10 * MS);
    assert!(is_stale(&cache, 3));
    clock.advance(139 * MS);
    assert!(!is_stale(&cache, 2));
    clock.advance(MS);
    assert!(is_stale(&cache, 2));
    // An entry without an end has no soft deadline at a share of its life.
    assert!(cache.persist(&2));
    assert!(!is_stale(&cache, 2));
    clock.advance(1000 * DAY);
    assert!(!is_stale(&cache, 2));
}

#[test]
fn the_freshness_that_was_said_for_an_entry_outlives_a_change_of_its_end() {
    let clock = ManualClock::new();
    let cache = manual(&clock).refresh_after(0.1).build().expect("valid");
    let fresh = || Lifetime::ttl(100 * MS).fresh_for(30 * MS);
    for key in 1..=3 {
        cache.insert_with(key, key, fresh());
    }
    assert!(cache.expire(&1, 500 * MS, Condition::Always));
    assert!(cache.persist(&2));
    assert_eq!(cache.update(&3, |old| old + 1), Some(4));
    clock.advance(29 * MS);
    assert!((1..=3).all(|key| !is_stale(&cache, key)));
    clock.advance(MS);
    assert!((1..=3).all(|key| is_stale(&cache, key)));
}

#[test]
fn an_expiry_that_extends_entries_on_reads_does_not_move_the_soft_deadline() {
    #[derive(Debug)]
    struct Longer;
    impl Expiry<u64, u64> for Longer {
        fn expire_after_create(&self, _: &u64, _: &u64) -> Option<Duration> {
            Some(100 * MS)
        }

        fn expire_after_read(&self, _: &u64, _: &u64, _: Option<Duration>) -> Option<Duration> {
            Some(100 * MS)
        }
    }
    let clock = ManualClock::new();
    let cache = manual(&clock)
        .expire_after(Longer)
        .refresh_after(0.5)
        .build()
        .expect("valid");
    cache.insert(1, 10);
    for _ in 0..5 {
        assert!(!is_stale(&cache, 1));
        clock.advance(10 * MS);
    }
    assert!(is_stale(&cache, 1));
}

#[test]
fn soft_deadlines_a_year_before_the_end_are_kept() {
    let clock = ManualClock::new();
    let cache = manual(&clock).refresh_after(0.25).build().expect("valid");
    cache.insert_with_ttl(1, 1, 400 * DAY);
    cache.insert_with(2, 2, Lifetime::ttl(400 * DAY).fresh_for(DAY));
    clock.advance(DAY - MS);
    assert!(!is_stale(&cache, 2));
    clock.advance(MS);
    assert!(is_stale(&cache, 2));
    clock.advance(99 * DAY - MS);
    assert!(!is_stale(&cache, 1));
    clock.advance(MS);
    assert!(is_stale(&cache, 1));
}

#[test]
fn an_entry_without_an_end_is_fresh_for_as_long_as_was_said() {
    let clock = ManualClock::new();
    let cache = manual(&clock).build().expect("valid");
    cache.insert_with(1, 10, Lifetime::forever().fresh_for(20 * MS));
    cache.insert_with(2, 20, Lifetime::forever().fresh_for(Duration::ZERO));
    assert!(is_stale(&cache, 2), "from birth, as it was said");
    clock.advance(19 * MS);
    assert_eq!(cache.get_or_load(1, unreached), 10);
    clock.advance(MS);
    // A failing loader is not asked with every read, though half of for ever is a long time.
    let fail = || cache.try_get_or_load(1, || Err::<u64, _>(Failure(1)));
    assert_eq!((fail(), fail(), fail()), (Ok(10), Ok(10), Ok(10)));
    assert_eq!(cache.stats().loads, 1);
    clock.advance(Duration::from_secs(60));
    assert_eq!(fail(), Ok(10));
    assert_eq!(cache.stats().loads, 2);
    clock.advance(Duration::from_secs(60));
    assert_eq!(cache.get_or_load(1, || 11_u64), 11);
    assert_eq!(cache.ttl(&1), Ttl::Left(100 * MS));
}

/// A cache whose refresher counts, and says what `lifetime` says.
fn refreshing(clock: &ManualClock, lifetime: Lifetime) -> Cache<u64, u64> {
    let loads = Arc::new(AtomicU64::new(100));
    manual(clock)
        .refresh_after(0.5)
        .refresh_with(move |_: &u64| {
            let value = loads.fetch_add(1, SeqCst);
            Ok::<_, Infallible>(Loaded::new(value, lifetime.clone()))
        })
        .build()
        .expect("valid")
}

/// Reads a stale entry, and has it refreshed.
fn refresh(cache: &Cache<u64, u64>, key: u64) {
    assert!(is_stale(cache, key), "{key} is stale");
    assert_eq!(cache.run_refreshes(10), 1);
    assert!(cache.peek(&key) >= Some(100), "{key} is refreshed");
}

#[test]
fn a_background_refresh_keeps_the_entrys_tags() {
    let clock = ManualClock::new();
    let cache = refreshing(&clock, Lifetime::configured());
    cache.insert_with(1, 1, Lifetime::configured().tag("a").tag("b"));
    for _ in 0..3 {
        clock.advance(50 * MS);
        refresh(&cache, 1);
        cache.validate();
    }
    assert!(cache.invalidate_tag("b"));
    assert_eq!(cache.get(&1), None);
    cache.advance(cache.now(), u32::MAX);
    assert!(!cache.invalidate_tag("a"), "nobody has it any more");
    cache.validate();
}

#[test]
fn a_background_refresh_keeps_the_entrys_own_time_to_live() {
    let clock = ManualClock::new();
    let cache = refreshing(&clock, Lifetime::configured());
    cache.insert_with_ttl(1, 1, 1000 * MS);
    for _ in 0..3 {
        clock.advance(600 * MS);
        refresh(&cache, 1);
        assert_eq!(cache.ttl(&1), Ttl::Left(1000 * MS));
        assert!(!is_stale(&cache, 1));
    }
    // The latest that was said.
    assert!(cache.expire(&1, 40 * MS, Condition::Always));
    clock.advance(30 * MS);
    refresh(&cache, 1);
    assert_eq!(cache.ttl(&1), Ttl::Left(40 * MS));
}

#[test]
fn a_background_refresh_keeps_the_freshness_that_was_said_for_the_entry() {
    let clock = ManualClock::new();
    let cache = refreshing(&clock, Lifetime::configured());
    cache.insert_with(1, 1, Lifetime::forever().fresh_for(10 * MS));
    cache.insert_with(2, 2, Lifetime::ttl(1000 * MS).fresh_for(10 * MS));
    for _ in 0..3 {
        clock.advance(10 * MS);
        refresh(&cache, 1);
        refresh(&cache, 2);
        assert_eq!(cache.ttl(&1), Ttl::Forever);
        assert_eq!(cache.ttl(&2), Ttl::Left(1000 * MS));
        assert!(!is_stale(&cache, 1) && !is_stale(&cache, 2));
    }
    assert!(cache.persist(&2));
    clock.advance(10 * MS);
    refresh(&cache, 2);
    assert_eq!(cache.ttl(&2), Ttl::Forever);
}

#[test]
fn a_background_refresh_does_not_move_an_end_that_is_a_point_in_time() {
    let clock = ManualClock::new();
    let cache = refreshing(&clock, Lifetime::configured());
    let at = std::time::SystemTime::UNIX_EPOCH + 300 * MS;
    cache.insert_with(1, 1, Lifetime::until(at));
    cache.insert(2, 2);
    assert!(cache.expire_at(&2, at, Condition::Always));
    clock.advance(200 * MS);
    refresh(&cache, 1);
    refresh(&cache, 2);
    assert_eq!(cache.ttl(&1), Ttl::Left(100 * MS));
    assert_eq!(cache.ttl(&2), Ttl::Left(100 * MS));
    assert!(!is_stale(&cache, 1), "half of what was left");
}

#[test]
fn what_the_refresher_says_goes_before_what_the_entry_had() {
    let clock = ManualClock::new();
    let said = Lifetime::ttl(70 * MS).fresh_for(20 * MS).tag("new");
    let cache = refreshing(&clock, said);
    cache.insert_with(1, 1, Lifetime::ttl(1000 * MS).tag("old"));
    clock.advance(500 * MS);
    refresh(&cache, 1);
    assert_eq!(cache.ttl(&1), Ttl::Left(70 * MS));
    clock.advance(20 * MS);
    assert!(is_stale(&cache, 1));
    assert!(!cache.invalidate_tag("old") && cache.invalidate_tag("new"));
    assert_eq!(cache.get(&1), None);
    cache.validate();
}

#[test]
fn a_tag_that_is_invalidated_during_a_refresh_concerns_the_refreshed_value() {
    let clock = ManualClock::new();
    let slot: Arc<std::sync::OnceLock<Cache<u64, u64>>> = Arc::default();
    let own = Arc::clone(&slot);
    let cache = manual(&clock)
        .refresh_after(0.5)
        .refresh_with(move |key: &u64| {
            let cache = own.get().expect("set before");
            assert!(cache.invalidate_tag("a"));
            cache.advance(cache.now(), u32::MAX);
            let own_tag = *key == 2;
            let lifetime = Lifetime::configured();
            Loaded::new(2, if own_tag { lifetime.tag("a") } else { lifetime })
        })
        .build()
        .expect("valid");
    slot.set(cache.clone()).expect("set once");
    for key in [1, 2] {
        cache.insert_with(key, 1, Lifetime::configured().tag("a"));
        clock.advance(50 * MS);
        assert_eq!(cache.get(&key), Some(1));
        assert_eq!(cache.run_refreshes(1), 1);
        assert_eq!(cache.get(&key), None);
    }
    cache.advance(cache.now(), u32::MAX);
    cache.validate();
    cache.close();
}

/// A load that began before the invalidation was stored as if it had begun after it, and served to
/// those who came later.
#[test]
fn a_tag_that_is_invalidated_during_a_reload_overtakes_it() {
    let clock = ManualClock::new();
    let cache = manual(&clock)
        .refresh_after(0.5)
        .negative_ttl(50 * MS)
        .build()
        .expect("valid");
    type Reload = fn(&Cache<u64, u64>, &dyn Fn());
    let reloads: [(&str, Reload); 7] = [
        ("get_or_load", |cache, meanwhile| {
            let load = || {
                meanwhile();
                2
            };
            assert_eq!(cache.get_or_load(1, load), 2, "the caller came before");
        }),
        ("load_with", |cache, meanwhile| {
            let loaded = cache
                .fetch(1)
                .load_with(|| {
                    meanwhile();
                    Loaded::new(2, Lifetime::configured().tag("a"))
                })
                .value;
            assert_eq!(loaded, 2);
        }),
        ("get_or_load_many", |cache, meanwhile| {
            let loaded = cache.get_or_load_many(&[1], |keys| {
                meanwhile();
                keys.into_iter().map(|key| (key, 2))
            });
            assert_eq!(loaded, [Some(2)]);
        }),
        ("get_or_load_async", |cache, meanwhile| {
            let load = async {
                meanwhile();
                2_u64
            };
            assert_eq!(block_on(cache.get_or_load_async(1, load)), 2);
        }),
        ("load_with_old", |cache, meanwhile| {
            let fetched = cache.fetch(1).load_with_old(|old| {
                meanwhile();
                Loaded::unchanged(old.expect("kept"), Lifetime::configured().tag("a"))
            });
            assert_eq!(fetched.value, 1);
        }),
        ("an absence", |cache, meanwhile| {
            let loaded = cache.optionally_get_or_load(1, || {
                meanwhile();
                None
            });
            assert_eq!(loaded, None);
        }),
        ("an error", |cache, meanwhile| {
            let loaded = cache.try_get_or_load(1, || {
                meanwhile();
                Err("down")
            });
            assert_eq!(
                loaded.is_err(),
                cache.count_tag("b") == 0,
                "or the old value"
            );
        }),
    ];
    for (name, reload) in reloads {
        for swept in [false, true] {
            cache.insert_with(1, 1, Lifetime::configured().tag("a").tag("b"));
            clock.advance(60 * MS);
            reload(&cache, &|| {
                assert!(cache.invalidate_tag("a"));
                if swept {
                    cache.advance(cache.now(), u32::MAX);
                }
            });
            assert_eq!(cache.get(&1), None, "{name}");
            assert_eq!(
                cache.optionally_get_or_load(1, || Some(3)),
                Some(3),
                "{name}"
            );
            cache.validate();
            cache.invalidate(&1);
            // One that no tag of its entry overtakes.
            cache.insert_with(1, 1, Lifetime::configured().tag("b"));
            cache.insert_with(2, 1, Lifetime::configured().tag("a"));
            clock.advance(60 * MS);
            reload(&cache, &|| assert!(cache.invalidate_tag("a")));
            let stored = match name {
                "an absence" | "an error" => cache.stats().negatives == 1,
                _ => cache.contains_key(&1),
            };
            assert!(stored, "{name}");
            cache.invalidate(&1);
        }
    }
    cache.invalidate_tag("b");
    cache.advance(cache.now(), u32::MAX);
    cache.validate();
}

/// Those who came after the invalidation waited for the load that began before it, and got its
/// value.
#[test]
fn who_comes_after_an_invalidation_is_not_answered_by_the_reload_that_it_overtook() {
    let clock = ManualClock::new();
    let cache = manual(&clock).refresh_after(0.5).build().expect("valid");
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
    let clock = ManualClock::new();
    let cache = refreshing(&clock, Lifetime::configured());
    cache.insert_with(1, 1, Lifetime::forever().fresh_for(20 * MS));
    cache.insert_with_ttl(2, 2, 400 * DAY);
    clock.advance(10 * MS);
    let snapshot = cache.snapshot();
    let clock = ManualClock::new();
    let cache = refreshing(&clock, Lifetime::configured());
    assert_eq!(cache.restore(snapshot), Ok(2));
    assert!(!is_stale(&cache, 1));
    clock.advance(10 * MS);
    refresh(&cache, 1);
    assert_eq!(cache.ttl(&1), Ttl::Forever);
    assert!(!is_stale(&cache, 1) && !is_stale(&cache, 2));
    clock.advance(200 * DAY);
    assert!(is_stale(&cache, 1) && is_stale(&cache, 2));
    assert_eq!(cache.run_refreshes(10), 2);
    assert_eq!(cache.ttl(&2), Ttl::Left(400 * DAY));
}
