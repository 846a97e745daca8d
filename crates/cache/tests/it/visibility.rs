//! Entries are visible until their deadline, to the tick; also with clocks that are frozen, step or
//! run backwards.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use tidewheel::{
    Cache, Clock, Condition, Driver, Expiry, Lifetime, ManualClock, RemovalCause, Ttl,
};

const MS: Duration = Duration::from_millis(1);
const US: Duration = Duration::from_micros(1);

fn cache(clock: impl Clock) -> Cache<u32, u32> {
    Cache::builder()
        .unbounded()
        .no_default_ttl()
        .clock(clock)
        .driver(Driver::Manual)
        .build()
        .expect("valid")
}

fn drive(cache: &Cache<u32, u32>) -> u64 {
    let progress = cache.advance(cache.now(), u32::MAX);
    assert!(!progress.backlog);
    cache.validate();
    progress.expired
}

/// Every way to look agrees.
fn is_there(cache: &Cache<u32, u32>, key: u32) -> bool {
    let there = cache.peek(&key).is_some();
    assert_eq!(cache.contains_key(&key), there);
    assert_eq!(cache.ttl(&key) != Ttl::Missing, there);
    assert_eq!(cache.get(&key).is_some(), there);
    assert_eq!(cache.touch(&key), there);
    there
}

#[test]
fn an_entry_is_visible_one_tick_before_its_deadline_and_not_at_it() {
    let clock = ManualClock::new();
    let cache = cache(clock.clone());
    let ttls = (1..200_u64).chain([1000, 65_536, 1 << 24, 1 << 33]);
    for (key, ttl) in (0..).zip(ttls) {
        cache.insert_with_ttl(key, key, Duration::from_millis(ttl));
        clock.advance(Duration::from_millis(ttl - 1));
        assert!(is_there(&cache, key), "{ttl} ms, one tick before");
        assert_eq!(cache.ttl(&key), Ttl::Left(MS));
        assert_eq!(drive(&cache), 0, "removed early");
        clock.advance(MS);
        assert!(!is_there(&cache, key), "{ttl} ms, at the deadline");
        assert_eq!(drive(&cache), 1);
        assert!(cache.is_empty());
    }
}

#[test]
fn within_a_tick_nothing_ends_early() {
    let clock = ManualClock::new();
    let cache = cache(clock.clone());
    clock.advance(300 * US);
    cache.insert_with_ttl(1, 1, 10 * MS);
    // Due at 10.3 ms: the deadline is the tick that begins at 11 ms.
    clock.advance(10 * MS);
    assert!(is_there(&cache, 1));
    assert_eq!(cache.ttl(&1), Ttl::Left(700 * US));
    clock.advance(699 * US);
    assert!(is_there(&cache, 1));
    assert_eq!(drive(&cache), 0);
    clock.advance(US);
    assert!(!is_there(&cache, 1));
    assert_eq!(drive(&cache), 1);
}

#[test]
fn a_ttl_of_zero_is_never_visible_and_is_announced_as_expired() {
    let clock = ManualClock::new();
    let gone = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&gone);
    let cache: Cache<u32, u32> = Cache::builder()
        .unbounded()
        .time_to_live_by(|_, _| Some(Duration::ZERO))
        .clock(clock.clone())
        .driver(Driver::Manual)
        .eviction_listener(move |removal| {
            let event = (removal.value, removal.cause);
            seen.lock().expect("unpoisoned").push(event);
        })
        .build()
        .expect("valid");
    cache.insert(1, 10);
    assert!(!is_there(&cache, 1));
    cache.insert_with(1, 11, Lifetime::forever());
    assert!(is_there(&cache, 1));
    cache.insert_with_ttl(1, 12, Duration::ZERO);
    assert!(!is_there(&cache, 1));
    assert_eq!(cache.remove(&1), None);
    cache.advance(cache.now(), u32::MAX);
    let gone = gone.lock().expect("unpoisoned");
    let expected = [
        (10, RemovalCause::Expired),
        (11, RemovalCause::Replaced),
        (12, RemovalCause::Expired),
    ];
    assert_eq!(*gone, expected);
}

#[test]
fn the_longest_ttl_does_not_wrap_around() {
    let clock = ManualClock::new();
    let cache = cache(clock.clone());
    clock.advance(1234 * US);
    let years = Duration::from_secs(365 * 86_400);
    for (key, ttl) in [
        Duration::MAX,
        Duration::from_secs(u64::MAX),
        Duration::from_nanos(u64::MAX),
        Duration::from_millis((1 << 40) - 2),
        Duration::from_millis(1 << 40),
        34 * years,
    ]
    .into_iter()
    .enumerate()
    .map(|(key, ttl)| (key as u32, ttl))
    {
        cache.insert_with_ttl(key, key, ttl);
        assert!(is_there(&cache, key), "{ttl:?}");
        assert!(cache.expire(&key, ttl, Condition::Always));
        assert!(is_there(&cache, key), "{ttl:?}");
    }
    clock.advance(33 * years);
    assert_eq!(drive(&cache), 0);
    assert!((0..6).all(|key| is_there(&cache, key)));
    let ended = [years, years].map(|year| {
        clock.advance(year);
        drive(&cache)
    });
    assert_eq!(ended.iter().sum::<u64>(), 6, "34 years are the longest");
}

/// A TTL of zero was rounded up to a tick like any other, and so outlived the call.
#[test]
fn a_ttl_of_zero_ends_within_the_tick_that_has_begun() {
    let clock = ManualClock::new();
    let cache = cache(clock.clone());
    clock.advance(700 * US);
    cache.insert(1, 1);
    assert!(cache.expire(&1, Duration::ZERO, Condition::Always));
    assert!(!is_there(&cache, 1));
    assert!(cache.is_empty(), "removed at once");
    cache.insert_with_ttl(2, 2, Duration::ZERO);
    assert!(!is_there(&cache, 2));
    assert!(cache.is_empty(), "not stored");
    assert_eq!(drive(&cache), 0);
}

/// The grace period was added to each deadline, up to the latest one that fits. Readers subtract it
/// again, and so found every entry dead.
#[test]
fn an_endless_grace_period_ends_no_entry_early() {
    for grace in [Duration::MAX, Duration::from_secs(40 * 365 * 86_400)] {
        let clock = ManualClock::new();
        let built = Cache::<u32, u32>::builder()
            .unbounded()
            .time_to_live(100 * MS)
            .stale_on_error(grace)
            .clock(clock.clone())
            .driver(Driver::Manual)
            .build();
        // To refuse it would be as good.
        let Ok(cache) = built else { continue };
        cache.insert(1, 1);
        clock.advance(99 * MS);
        assert!(is_there(&cache, 1), "dead before its time");
        clock.advance(MS);
        assert!(!is_there(&cache, 1));
    }
}

#[test]
fn frozen_time_stands_still_and_goes_on_where_it_stopped() {
    let clock = ManualClock::new();
    let cache = cache(clock.clone());
    cache.insert_with_ttl(1, 1, 10 * MS);
    clock.advance(9 * MS + 900 * US);
    cache.freeze();
    cache.freeze();
    clock.advance(1_000_000 * MS);
    assert!(is_there(&cache, 1));
    assert_eq!(cache.ttl(&1), Ttl::Left(100 * US));
    assert_eq!(drive(&cache), 0);
    cache.insert_with_ttl(2, 2, MS);
    cache.insert_with_ttl(3, 3, Duration::ZERO);
    assert!(is_there(&cache, 2) && !is_there(&cache, 3));
    cache.resume();
    cache.resume();
    assert!(is_there(&cache, 1));
    clock.advance(100 * US);
    assert!(
        !is_there(&cache, 1),
        "the freeze has moved it by its length, no more"
    );
    assert!(is_there(&cache, 2));
    clock.advance(MS);
    assert!(!is_there(&cache, 2));
    assert_eq!(drive(&cache), 2);
    // Twice frozen, twice moved.
    cache.insert_with_ttl(4, 4, 10 * MS);
    for _ in 0..2 {
        cache.freeze();
        clock.advance(7 * MS);
        cache.resume();
        clock.advance(4 * MS);
    }
    assert_eq!(cache.ttl(&4), Ttl::Left(2 * MS));
}

#[test]
fn a_step_of_the_wall_clock_moves_no_deadline() {
    let clock = ManualClock::new();
    let cache = cache(clock.clone());
    let hour = Duration::from_secs(3600);
    clock.set_wall(1000 * hour);
    let at = SystemTime::UNIX_EPOCH + 1000 * hour + 50 * MS;
    cache.insert_with_ttl(1, 1, 50 * MS);
    cache.insert_with(2, 2, Lifetime::until(at));
    cache.insert(3, 3);
    assert!(cache.expire_at(&3, at, Condition::Always));
    cache.insert_with(4, 4, Lifetime::until(SystemTime::UNIX_EPOCH));
    for step in [Duration::ZERO, 2000 * hour, 999 * hour] {
        clock.set_wall(step);
        assert!((1..4).all(|key| is_there(&cache, key)));
        assert!(!is_there(&cache, 4), "stored when its end was over");
    }
    clock.set_wall(1000 * hour);
    clock.advance(49 * MS);
    clock.set_wall(5000 * hour);
    assert!((1..4).all(|key| is_there(&cache, key)));
    clock.advance(MS);
    assert!(!(1..4).any(|key| is_there(&cache, key)));
    assert_eq!(drive(&cache), 3);
}

#[test]
fn expire_at_a_time_that_is_over_removes_at_once() {
    let clock = ManualClock::new();
    let cache = cache(clock.clone());
    clock.set_wall(Duration::from_secs(1000));
    cache.insert(1, 1);
    let before = SystemTime::UNIX_EPOCH + Duration::from_secs(999);
    assert!(!cache.expire_at(&1, before, Condition::IfSome));
    assert!(!cache.expire_at(&1, before, Condition::IfLater));
    assert!(is_there(&cache, 1));
    assert!(cache.expire_at(&1, before, Condition::IfEarlier));
    assert!(!is_there(&cache, 1));
    assert!(cache.is_empty());
    assert!(
        !cache.expire_at(&1, before, Condition::Always),
        "it is gone"
    );
}

/// A clock that may be set back, and whose bounds are as wide as is wanted.
#[derive(Debug, Clone, Default)]
struct Loose {
    nanos: Arc<AtomicU64>,
    below: Duration,
    above: Duration,
}

impl Loose {
    fn set(&self, now: Duration) {
        self.nanos.store(now.as_nanos() as u64, SeqCst);
    }
}

impl Clock for Loose {
    fn now(&self) -> Duration {
        Duration::from_nanos(self.nanos.load(SeqCst))
    }

    fn bounds(&self) -> (Duration, Duration) {
        let now = self.now();
        (
            now.saturating_sub(self.below),
            now.saturating_add(self.above),
        )
    }

    fn wall(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH
    }
}

#[test]
fn loose_bounds_of_a_clock_change_nothing_about_visibility() {
    for below in [Duration::ZERO, US, 3 * MS, 50 * MS, Duration::MAX] {
        for above in [Duration::ZERO, US, 3 * MS, 50 * MS, Duration::MAX] {
            let clock = Loose {
                below,
                above,
                ..Loose::default()
            };
            let cache = cache(clock.clone());
            for key in 0..40 {
                cache.insert_with_ttl(key, key, key * MS);
            }
            for tick in 0..40 {
                clock.set(tick * MS + 999 * US);
                for key in 0..40 {
                    assert_eq!(is_there(&cache, key), key > tick, "{key} at {tick}");
                }
            }
            assert_eq!(
                drive(&cache),
                39,
                "the one with no time at all is not stored"
            );
        }
    }
}

/// `Clock::now` promises that a cache takes the latest time that it saw.
#[test]
fn a_clock_that_runs_backwards_resurrects_nothing() {
    for slack in [Duration::ZERO, 5 * MS] {
        let clock = Loose {
            below: slack,
            above: slack,
            ..Loose::default()
        };
        let cache = cache(clock.clone());
        clock.set(100 * MS);
        cache.insert_with_ttl(1, 1, 10 * MS);
        cache.insert_with_ttl(2, 2, 100 * MS);
        clock.set(110 * MS);
        assert!(!is_there(&cache, 1), "its time is over");
        clock.set(105 * MS);
        assert!(!is_there(&cache, 1), "it is back");
        assert!(cache.now() >= 110 * MS, "the cache's time runs backwards");
        assert_eq!(drive(&cache), 1);
        clock.set(Duration::ZERO);
        cache.insert_with_ttl(3, 3, 20 * MS);
        assert!(is_there(&cache, 2) && is_there(&cache, 3));
        assert_eq!(drive(&cache), 0);
        cache.freeze();
        clock.set(MS);
        cache.resume();
        assert!(is_there(&cache, 2) && is_there(&cache, 3));
        clock.set(10_000 * MS);
        assert!(!is_there(&cache, 2) && !is_there(&cache, 3));
        assert_eq!(drive(&cache), 2);
        assert!(cache.is_empty());
    }
}

#[test]
fn a_pass_with_an_old_reading_of_the_clock_removes_nothing_early() {
    let clock = ManualClock::new();
    let cache = cache(clock.clone());
    cache.insert_with_ttl(1, 1, 10 * MS);
    cache.insert_with_ttl(2, 2, 20 * MS);
    clock.advance(10 * MS);
    assert_eq!(cache.advance(9 * MS, u32::MAX).expired, 0);
    // A reading from the future counts as now.
    assert_eq!(cache.advance(Duration::MAX, u32::MAX).expired, 1);
    assert_eq!(cache.advance(Duration::ZERO, u32::MAX).expired, 0);
    assert!(is_there(&cache, 2));
    cache.validate();
}

/// An idle time beside an [`Expiry`] was kept at its first value: reads did not renew it.
#[test]
fn reads_renew_the_idle_time_beside_an_expiry() {
    #[derive(Debug)]
    struct Fixed;
    impl Expiry<u32, u32> for Fixed {
        fn expire_after_create(&self, _: &u32, _: &u32) -> Option<Duration> {
            Some(100 * MS)
        }
    }
    let clock = ManualClock::new();
    let cache: Cache<u32, u32> = Cache::builder()
        .unbounded()
        .expire_after(Fixed)
        .time_to_idle(30 * MS)
        .clock(clock.clone())
        .driver(Driver::Manual)
        .build()
        .expect("valid");
    cache.insert(1, 1);
    cache.insert(2, 2);
    for _ in 0..4 {
        clock.advance(24 * MS);
        assert!(cache.get(&1).is_some(), "it was read in time");
    }
    assert!(cache.get(&2).is_none(), "it was not");
    assert_eq!(
        cache.ttl(&1),
        Ttl::Left(4 * MS),
        "the lifetime bounds the idle time"
    );
    clock.advance(4 * MS);
    assert!(cache.get(&1).is_none());
}

/// Takes a number for its hash, as hashers for keys that are well mixed do.
#[derive(Default)]
struct Itself(u64);

impl std::hash::Hasher for Itself {
    fn write(&mut self, _: &[u8]) {
        unreachable!("keys are of one type");
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = number;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// Its hash is 0, which looks like a vacant place.
#[test]
fn key_0_is_nowhere_in_the_first_millisecond_though_its_hash_is_0() {
    let clock = ManualClock::new();
    let cache: Cache<u64, u64, _> = Cache::builder()
        .unbounded()
        .no_default_ttl()
        .clock(clock.clone())
        .driver(Driver::Manual)
        .hasher(std::hash::BuildHasherDefault::<Itself>::default())
        .build()
        .expect("valid");
    cache.insert_with_ttl(1, 7, 5 * MS);
    for _ in 0..3 {
        assert_eq!((cache.get(&0), cache.peek(&0)), (None, None));
        assert_eq!(cache.get_many(&[0, 1]), [None, Some(7)]);
        clock.advance(MS);
    }
}

/// Values that nobody drops and nobody is told of are overwritten in a way of their own.
#[test]
fn an_overwritten_entry_has_the_new_end_and_a_dead_one_counts_as_expired() {
    let clock = ManualClock::new();
    let cache = cache(clock.clone());
    cache.insert_with_ttl(1, 1, 3_600_000 * MS);
    cache.insert_with_ttl(1, 2, 10 * MS);
    assert_eq!(cache.ttl(&1), Ttl::Left(10 * MS));
    clock.advance(9 * MS);
    assert_eq!((cache.get(&1), drive(&cache)), (Some(2), 0));
    clock.advance(MS);
    assert_eq!((cache.get(&1), drive(&cache)), (None, 1));

    cache.insert_with_ttl(2, 1, 5 * MS);
    clock.advance(5 * MS);
    cache.insert(2, 2);
    assert_eq!((cache.ttl(&2), drive(&cache)), (Ttl::Forever, 0));
    cache.insert_with_ttl(2, 3, MS);
    clock.advance(MS);
    assert_eq!((cache.get(&2), drive(&cache)), (None, 1));
    let stats = cache.stats();
    assert_eq!((stats.inserts, stats.expirations), (5, 3));
    assert_eq!((stats.removals, stats.entries), (0, 0));
}
