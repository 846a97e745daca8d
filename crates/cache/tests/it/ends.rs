//! Of several ends the earliest counts. Also tests which calls are a use for the idle time.

use std::time::Duration;

use tidewheel::{
    Builder, Cache, Clock, Compute, Condition, Driver, Expiry, Lifetime, Loaded, ManualClock, Ttl,
};

const MS: Duration = Duration::from_millis(1);
const MINUTE: Duration = Duration::from_secs(60);

/// Says of each value how long it lives: so many milliseconds; `None` for 0. Reads and updates may
/// say otherwise.
#[derive(Default)]
struct Says {
    read: Option<Option<Duration>>,
    update: Option<Option<Duration>>,
}

impl Expiry<u64, u64> for Says {
    fn expire_after_create(&self, _: &u64, value: &u64) -> Option<Duration> {
        (*value > 0).then(|| Duration::from_millis(*value))
    }

    fn expire_after_update(&self, key: &u64, value: &u64, _: Option<Duration>) -> Option<Duration> {
        self.update
            .unwrap_or_else(|| self.expire_after_create(key, value))
    }

    fn expire_after_read(&self, _: &u64, _: &u64, left: Option<Duration>) -> Option<Duration> {
        self.read.unwrap_or(left)
    }
}

fn builder(clock: &ManualClock) -> Builder<u64, u64> {
    Cache::builder()
        .unbounded()
        .clock(clock.clone())
        .driver(Driver::Manual)
}

#[test]
fn with_a_time_to_live_and_an_expiry_the_earlier_end_counts() {
    let clock = ManualClock::new();
    let cache = builder(&clock)
        .time_to_live(300 * MS)
        .expire_after(Says::default())
        .build()
        .expect("valid");
    for (key, said, left) in [(1, 10_000, 300), (2, 0, 300), (3, 100, 100)] {
        cache.insert(key, said);
        assert_eq!(cache.ttl(&key), Ttl::Left(left * MS), "{said} was said");
    }
    clock.advance(300 * MS);
    assert_eq!(cache.advance(cache.now(), 100).expired, 3);
}

#[test]
fn with_an_idle_time_too_the_earliest_of_three_ends_counts() {
    let clock = ManualClock::new();
    let cache = builder(&clock)
        .time_to_live(100 * MS)
        .time_to_idle(30 * MS)
        .expire_after(Says::default())
        .build()
        .expect("valid");
    cache.insert(1, 20);
    cache.insert(2, 60);
    cache.insert(3, 10_000);
    assert_eq!(cache.ttl(&1), Ttl::Left(20 * MS));
    assert_eq!(cache.ttl(&2), Ttl::Left(30 * MS));
    for _ in 0..5 {
        clock.advance(18 * MS);
        cache.get(&2);
        cache.get(&3);
    }
    assert_eq!(cache.ttl(&2), Ttl::Missing);
    assert_eq!(
        cache.ttl(&3),
        Ttl::Left(10 * MS),
        "90 of 100 ms have passed"
    );
}

/// A read that asked for ten more seconds gave an entry a life beyond its time to live.
#[test]
fn no_read_moves_an_end_past_the_time_to_live() {
    for idle in [None, Some(80 * MS)] {
        for read in [Some(10_000 * MS), None] {
            let clock = ManualClock::new();
            let mut builder = builder(&clock).time_to_live(100 * MS).expire_after(Says {
                read: Some(read),
                ..Says::default()
            });
            if let Some(idle) = idle {
                builder = builder.time_to_idle(idle);
            }
            let cache = builder.build().expect("valid");
            cache.insert(1, 50);
            clock.advance(40 * MS);
            assert_eq!(cache.get(&1), Some(50));
            assert_eq!(cache.ttl(&1), Ttl::Left(60 * MS), "{idle:?} {read:?}");
            clock.advance(50 * MS);
            assert_eq!(cache.get(&1), Some(50));
            assert_eq!(cache.ttl(&1), Ttl::Left(10 * MS), "{idle:?} {read:?}");
        }
    }
}

#[test]
fn a_replaced_value_has_a_time_to_live_of_its_own_whatever_the_expiry_says() {
    let clock = ManualClock::new();
    let cache = builder(&clock)
        .time_to_live(100 * MS)
        .expire_after(Says {
            update: Some(None),
            ..Says::default()
        })
        .build()
        .expect("valid");
    cache.insert(1, 10_000);
    clock.advance(60 * MS);
    cache.insert(1, 1);
    assert_eq!(cache.ttl(&1), Ttl::Left(100 * MS));
}

#[test]
fn a_lifetime_of_its_own_counts_instead_of_both() {
    let clock = ManualClock::new();
    let cache = builder(&clock)
        .time_to_live(100 * MS)
        .expire_after(Says {
            read: Some(Some(MINUTE)),
            ..Says::default()
        })
        .build()
        .expect("valid");
    cache.insert_with_ttl(1, 50, 500 * MS);
    cache.insert(2, 50);
    assert!(cache.expire(&2, 500 * MS, Condition::Always));
    for key in [1, 2] {
        assert_eq!(cache.ttl(&key), Ttl::Left(500 * MS));
        cache.get(&key);
        assert_eq!(cache.ttl(&key), Ttl::Left(500 * MS), "no read says another");
    }
}

/// Three reads that asked for five more seconds made 25 s of 10.
#[test]
fn no_read_moves_an_end_that_was_given() {
    for ttl in [None, Some(MINUTE)] {
        for idle in [None, Some(MINUTE)] {
            let clock = ManualClock::new();
            let mut builder = builder(&clock).expire_after(Says {
                read: Some(Some(15_000 * MS)),
                ..Says::default()
            });
            if let Some(ttl) = ttl {
                builder = builder.time_to_live(ttl);
            }
            if let Some(idle) = idle {
                builder = builder.time_to_idle(idle);
            }
            let cache = builder.build().expect("valid");
            let wall = cache.now();
            cache.insert_with_ttl(1, 1, 10_000 * MS);
            cache.insert_with(2, 1, Lifetime::until(clock.wall() + 10_000 * MS));
            cache.insert_with(3, 1, Lifetime::ttl_since(wall, 10_000 * MS));
            cache.insert(4, 20_000);
            assert!(cache.expire(&4, 10_000 * MS, Condition::Always));
            cache.insert(5, 20_000);
            assert!(cache.expire_at(&5, clock.wall() + 10_000 * MS, Condition::Always));
            cache.insert(6, 20_000);
            assert!(cache.persist(&6));
            cache.insert(7, 20_000);
            for _ in 0..3 {
                clock.advance(3_000 * MS);
                for key in 1..=7 {
                    assert!(cache.get(&key).is_some(), "{key}");
                }
            }
            for key in 1..=5 {
                assert_eq!(
                    cache.ttl(&key),
                    Ttl::Left(1_000 * MS),
                    "{key} {ttl:?} {idle:?}"
                );
            }
            assert_eq!(cache.ttl(&6), Ttl::Forever);
            assert_eq!(cache.ttl(&7), Ttl::Left(15_000 * MS), "not given");
            cache.update(&1, |old| *old);
            cache.get(&1);
            assert_eq!(cache.ttl(&1), Ttl::Left(1_000 * MS), "updated");
            cache.insert(1, 20_000);
            cache.get(&1);
            assert_eq!(cache.ttl(&1), Ttl::Left(15_000 * MS), "stored again");
        }
    }
}

#[cfg(feature = "serde")]
#[test]
fn a_restored_entry_still_ends_with_its_time_to_live() {
    let build = |clock: &ManualClock| {
        builder(clock)
            .time_to_live(100 * MS)
            .expire_after(Says {
                read: Some(Some(MINUTE)),
                ..Says::default()
            })
            .build()
            .expect("valid")
    };
    let clock = ManualClock::new();
    let cache = build(&clock);
    cache.insert(1, 90);
    clock.advance(40 * MS);
    let snapshot = cache.snapshot();
    let later = ManualClock::new();
    later.advance(MINUTE);
    let restored = build(&later);
    restored
        .restore_after(snapshot, 20 * MS)
        .expect("this version's");
    assert_eq!(restored.ttl(&1), Ttl::Left(30 * MS));
    restored.get(&1);
    assert_eq!(restored.ttl(&1), Ttl::Left(40 * MS));
}

fn sessions(clock: &ManualClock) -> Cache<u64, u64> {
    builder(clock)
        .time_to_idle(30 * MINUTE)
        .build()
        .expect("valid")
}

/// A session that was updated every ten minutes died after thirty.
#[test]
fn every_write_is_a_use_for_the_idle_time() {
    type Write = fn(&Cache<u64, u64>);
    let writes: [(&str, Write); 8] = [
        ("insert", |cache| cache.insert(1, 2)),
        ("update", |cache| {
            cache.update(&1, |old| old + 1);
        }),
        ("update_with", |cache| {
            cache.update_with(&1, |old| Loaded::new(old + 1, Lifetime::configured()));
        }),
        ("and_update", |cache| {
            cache.entry(1).and_update(|old| old + 1).or_nothing();
        }),
        ("and_update, or_insert", |cache| {
            cache.entry(1).and_update(|old| old + 1).or_insert(0);
        }),
        ("compute", |cache| {
            cache
                .entry(1)
                .compute(|old| Compute::Update(old.map_or(0, |old| old + 1)));
        }),
        ("compare_and_set", |cache| {
            let version = cache.version(&1).expect("it is there");
            cache.compare_and_set(1, version, 3).expect("unchanged");
        }),
        ("compare_and_set_with", |cache| {
            let version = cache.version(&1).expect("it is there");
            let lifetime = Lifetime::configured();
            cache
                .compare_and_set_with(1, version, 3, lifetime)
                .expect("unchanged");
        }),
    ];
    for (name, write) in writes {
        let clock = ManualClock::new();
        let cache = sessions(&clock);
        cache.insert(1, 0);
        for _ in 0..6 {
            clock.advance(10 * MINUTE);
            assert_eq!(cache.ttl(&1), Ttl::Left(20 * MINUTE), "{name}");
            write(&cache);
            assert_eq!(cache.ttl(&1), Ttl::Left(30 * MINUTE), "{name}");
        }
        clock.advance(30 * MINUTE);
        assert_eq!(cache.ttl(&1), Ttl::Missing, "{name}");
    }
}

#[test]
fn a_write_of_an_idle_timed_entry_leaves_its_time_to_live_as_it_is() {
    let clock = ManualClock::new();
    let cache = builder(&clock)
        .time_to_idle(30 * MS)
        .time_to_live(100 * MS)
        .build()
        .expect("valid");
    cache.insert(1, 0);
    for _ in 0..4 {
        clock.advance(20 * MS);
        assert!(cache.update(&1, |old| old + 1).is_some());
    }
    assert_eq!(cache.ttl(&1), Ttl::Left(20 * MS));
}

/// The end that was given alone counts: neither reads nor writes bring the idle time back.
#[test]
fn an_end_that_was_given_by_hand_stays_when_the_value_is_updated() {
    let clock = ManualClock::new();
    let cache = sessions(&clock);
    cache.insert(1, 0);
    assert!(cache.expire(&1, 90 * MINUTE, Condition::Always));
    cache.insert(2, 0);
    assert!(cache.persist(&2));
    clock.advance(80 * MINUTE);
    cache.update(&1, |old| old + 1);
    cache.update(&2, |old| old + 1);
    assert_eq!(cache.ttl(&1), Ttl::Left(10 * MINUTE));
    assert_eq!(cache.ttl(&2), Ttl::Forever);
}
