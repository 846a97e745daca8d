//! The engine in the process, by a clock that is moved by hand.

use std::cell::Cell;
use std::time::Duration;

use tidewheel::{Cache, Driver, ManualClock};
use tidewheel_tier::{Embedded, Given, Life, Raw, Tier, Tiered, TieredCache};

const SECOND: Duration = Duration::from_secs(1);

fn tier(engine: &Embedded, clock: &ManualClock) -> Tier<u64> {
    Tier::new("test", engine.clone(), Raw)
        .time_to_live(100 * SECOND)
        .clock(clock.clone())
}

fn cache(tier: Tier<u64>, clock: &ManualClock) -> TieredCache<u64, u64> {
    Cache::builder()
        .unbounded()
        .no_default_ttl()
        .clock(clock.clone())
        .driver(Driver::Manual)
        .tiered(tier)
        .expect("valid")
}

/// H12.
#[test]
fn what_is_stored_together_does_not_end_together() {
    let clock = ManualClock::new();
    let engine = Embedded::with_clock(clock.clone());
    let cache = cache(tier(&engine, &clock).jitter(0.5), &clock);
    for key in 0..1000 {
        cache.insert(key, key).expect("taken");
    }
    let mut left = Vec::new();
    for _ in 0..10 {
        left.push((0..1000).filter(|key| cache.get(key).is_some()).count());
        clock.advance(10 * SECOND);
    }
    assert_eq!(left[..5], [1000; 5], "none before half of its time");
    let ended: Vec<_> = left[5..].windows(2).map(|pair| pair[0] - pair[1]).collect();
    assert!(
        ended.iter().all(|count| (120..280).contains(count)),
        "{ended:?}"
    );
    assert!(
        (0..1000).all(|key| cache.get(&key).is_none()),
        "all in time"
    );
}

#[test]
fn two_caches_share_what_one_has_loaded_until_its_end() {
    let clock = ManualClock::new();
    let engine = Embedded::with_clock(clock.clone());
    let open = || cache(tier(&engine, &clock).jitter(0.0), &clock);
    let (one, other) = (open(), open());
    assert_eq!(one.get_or_load(7, || 70), 70);
    assert_eq!(other.get(&7), Some(70));
    assert_eq!(other.get_local(&7), Some(70));
    clock.advance(100 * SECOND - Duration::from_millis(2));
    assert_eq!(other.get_local(&7), Some(70));
    clock.advance(Duration::from_millis(1));
    assert_eq!(other.get_local(&7), None, "never later than the engine");
    clock.advance(Duration::from_millis(1));
    assert_eq!(other.get(&7), None);
}

#[test]
fn an_old_value_is_answered_by_any_process_when_its_loader_fails() {
    let clock = ManualClock::new();
    let engine = Embedded::with_clock(clock.clone());
    let open = || {
        let tier = tier(&engine, &clock)
            .jitter(0.0)
            .stale_on_error(1000 * SECOND);
        cache(tier, &clock)
    };
    let (one, other) = (open(), open());
    assert_eq!(one.get_or_load(7, || 70), 70);
    clock.advance(101 * SECOND);
    // This one has never seen it.
    assert_eq!(other.try_get_or_load(7, || Err("down")), Ok(70));
    assert_eq!(other.get(&8), None);
    clock.advance(1000 * SECOND);
    let gone = other.try_get_or_load(7, || Err("down"));
    assert_eq!(gone.unwrap_err().as_ref(), &"down");
}

#[test]
fn the_soft_deadline_is_that_of_all_processes() {
    let clock = ManualClock::new();
    let engine = Embedded::with_clock(clock.clone());
    let open = || cache(tier(&engine, &clock).jitter(0.0), &clock);
    let (one, other) = (open(), open());
    let loads = Cell::new(0);
    let load = || {
        loads.set(loads.get() + 1);
        let life = Life::ttl(100 * SECOND).fresh_for(60 * SECOND);
        Ok::<_, ()>(Some(Given::new(loads.get(), life)))
    };
    assert_eq!(one.get_or_load_with(7, load), Ok(Some(1)));
    clock.advance(59 * SECOND);
    assert_eq!(other.get_or_load_with(7, load), Ok(Some(1)));
    clock.advance(2 * SECOND);
    assert_eq!(other.get_or_load_with(7, load), Ok(Some(2)));
    assert_eq!(one.get_or_load_with(7, load), Ok(Some(2)));
}

#[test]
fn a_name_with_braces_and_times_of_nothing_are_refused() {
    let engine = Embedded::new();
    let build = |tier: Tier<u64>| {
        let builder = Cache::builder().unbounded().no_default_ttl();
        let built: Result<TieredCache<u64, u64>, _> = builder.tiered(tier);
        built.is_err()
    };
    assert!(build(Tier::new("a{b", engine.clone(), Raw)));
    assert!(build(Tier::new("", engine.clone(), Raw)));
    assert!(build(Tier::new("a", engine.clone(), Raw).jitter(1.0)));
    assert!(build(
        Tier::new("a", engine.clone(), Raw).lease(Duration::ZERO)
    ));
    assert!(build(Tier::new("a", engine, Raw).staleness(Duration::ZERO)));
}
