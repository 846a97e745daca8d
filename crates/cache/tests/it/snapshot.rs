//! Snapshots keep what is left of each entry's time, and a hostile one does no harm.

use std::time::{Duration, UNIX_EPOCH};

use serde_json::{Value, json};
use tidewheel::{Builder, Cache, Lifetime, Loaded, ManualClock, RestoreError, Snapshot, Ttl};

use crate::loading::{Failure, MS, Valid, by_hand};

const HOUR: Duration = Duration::from_secs(3600);

fn manual(clock: &ManualClock) -> Builder<String, u64> {
    by_hand(clock).max_capacity(1000)
}

fn key(key: &str) -> String {
    key.to_string()
}

/// A cache with an entry of every kind, 40 ms old.
fn sample(clock: &ManualClock) -> Cache<String, u64> {
    let cache = manual(clock).valid();
    cache.insert(key("forever"), 1);
    cache.insert_with_ttl(key("timed"), 2, 100 * MS);
    cache.insert_with_ttl(key("dead"), 3, 30 * MS);
    let tagged = Lifetime::ttl(200 * MS).tag("a").tag("b").fresh_for(90 * MS);
    cache.insert_with(key("tagged"), 4, tagged);
    cache.insert_with(key("untagged"), 5, Lifetime::forever().tag("c"));
    cache.invalidate_tag("c");
    clock.advance(40 * MS);
    cache
}

fn check(snapshot: Snapshot<String, u64>) {
    let clock = ManualClock::new();
    clock.advance(Duration::from_secs(1_000_000));
    // The wall clock has no part in it.
    clock.set_wall(Duration::ZERO);
    let cache = manual(&clock).valid();
    assert_eq!(cache.restore(snapshot), Ok(3));
    assert_eq!(cache.ttl("forever"), Ttl::Forever);
    assert_eq!(cache.ttl("timed"), Ttl::Left(60 * MS));
    assert_eq!(cache.ttl("tagged"), Ttl::Left(160 * MS));
    assert_eq!(cache.get("tagged"), Some(4));
    clock.advance(49 * MS);
    cache.get("tagged");
    assert_eq!(cache.stats().stale_hits, 0);
    clock.advance(MS);
    cache.get("tagged");
    assert_eq!(cache.stats().stale_hits, 1, "the soft deadline is kept");
    assert!(!cache.invalidate_tag("c") && cache.invalidate_tag("b"));
    assert_eq!(cache.get("tagged"), None);
    clock.advance(10 * MS);
    assert_eq!(cache.get("timed"), None);
    cache.validate();
}

#[test]
fn what_is_left_of_each_time_begins_again_whichever_format_has_carried_it() {
    let snapshot = sample(&ManualClock::new()).snapshot();
    let text = serde_json::to_string(&snapshot).expect("plain data");
    let read: Snapshot<String, u64> = serde_json::from_str(&text).expect("as written");
    assert_eq!(read, snapshot);
    check(read);
    let bytes = postcard::to_stdvec(&snapshot).expect("plain data");
    let read: Snapshot<String, u64> = postcard::from_bytes(&bytes).expect("as written");
    assert_eq!(read, snapshot);
    check(read);
    for end in 0..bytes.len() {
        let cut = postcard::from_bytes::<Snapshot<String, u64>>(&bytes[..end]);
        assert!(cut.is_err(), "{end} bytes are not a snapshot");
    }
}

#[test]
fn entries_age_by_the_wall_clock_where_that_is_asked_for() {
    let minute = Duration::from_secs(60);
    let clock = ManualClock::new();
    clock.set_wall(1000 * minute);
    let cache = sample(&clock);
    let snapshot = cache.snapshot();
    assert_eq!(snapshot.taken_at(), UNIX_EPOCH + 1000 * minute + 40 * MS);
    let text = serde_json::to_string(&snapshot).expect("plain data");
    let restored = |wall: Duration| {
        let clock = ManualClock::new();
        clock.set_wall(wall);
        let cache = manual(&clock).valid();
        let snapshot = serde_json::from_str(&text).expect("as written");
        (cache.restore_aged(snapshot), cache.ttl("tagged"))
    };
    let taken = 1000 * minute + 40 * MS;
    assert_eq!(restored(taken + 60 * MS), (Ok(2), Ttl::Left(100 * MS)));
    assert_eq!(restored(taken + minute), (Ok(1), Ttl::Missing));
    assert_eq!(
        restored(taken - minute),
        (Ok(3), Ttl::Left(160 * MS)),
        "the clock was set back"
    );
    let cache = manual(&clock).valid();
    assert_eq!(cache.restore_after(snapshot, Duration::MAX), Ok(1));
    assert_eq!(cache.get("forever"), Some(1));
}

#[test]
fn idle_entries_keep_their_limit() {
    let clock = ManualClock::new();
    let idle = |clock: &ManualClock| {
        let builder = manual(clock).time_to_live(100 * MS).time_to_idle(30 * MS);
        builder.valid()
    };
    let cache = idle(&clock);
    cache.insert(key("a"), 1);
    clock.advance(20 * MS);
    let copy = idle(&clock);
    assert_eq!(copy.restore(cache.snapshot()), Ok(1));
    assert_eq!(copy.ttl("a"), Ttl::Left(10 * MS));
    for _ in 0..3 {
        assert_eq!(copy.get("a"), Some(1));
        clock.advance(25 * MS);
    }
    assert_eq!(copy.get("a"), Some(1));
    assert_eq!(
        copy.ttl("a"),
        Ttl::Left(5 * MS),
        "100 ms after it was stored"
    );
}

#[test]
fn restoring_does_not_replace_entries_that_are_there_already() {
    let snapshot = sample(&ManualClock::new()).snapshot();
    let cache = manual(&ManualClock::new()).valid();
    cache.insert(key("timed"), 77);
    assert_eq!(cache.restore(snapshot), Ok(2));
    assert_eq!(cache.get("timed"), Some(77));
    assert_eq!(cache.ttl("timed"), Ttl::Forever);
    cache.validate();
}

fn entry(name: &str, value: u64, left: Value) -> Value {
    json!({
        "key": name, "value": value, "left_ns": left, "limit_ns": null,
        "soft_ns": u64::MAX, "said": [u64::MAX, u64::MAX], "tags": [], "any_tag": false,
    })
}

#[test]
fn a_hostile_snapshot_is_bounded() {
    let clock = ManualClock::new();
    let cache: Cache<String, u64> = manual(&clock)
        .max_capacity(50)
        .weigher(|_, value| u32::try_from(*value).unwrap_or(u32::MAX))
        .valid();
    let mut entries: Vec<Value> = (0..5000)
        .map(|number| entry(&number.to_string(), 1, json!(u64::MAX)))
        .collect();
    entries.extend((0..5000).map(|_| entry("same", 1, json!(1))));
    entries.push(entry("heavy", u64::MAX, Value::Null));
    entries.push(entry("dead", 1, json!(0)));
    let mut tagged = entry("tagged", 1, Value::Null);
    tagged["tags"] = (0..32).map(|tag| tag.to_string()).collect();
    tagged["limit_ns"] = json!(u64::MAX);
    entries.push(tagged);
    let text = json!({ "layout": 3, "taken_at_ns": 0, "entries": entries }).to_string();
    let snapshot = serde_json::from_str(&text).expect("well-formed");
    cache.restore(snapshot).expect("known layout");
    assert!(cache.weight() <= 50 && cache.len() <= 50);
    assert!(!cache.contains_key("heavy") && !cache.contains_key("dead"));
    cache.validate();
    clock.advance(Duration::from_secs(1_000_000));
    while cache.advance(cache.now(), 1000).backlog {}
    cache.validate();
}

/// Another layout, or more tags than are written.
#[test]
fn what_no_cache_has_written_is_refused_whole() {
    let mut tagged = entry("tagged", 1, Value::Null);
    tagged["tags"] = (0..33).map(|tag| tag.to_string()).collect();
    let plain = entry("plain", 1, Value::Null);
    for (layout, entries, refusal) in [
        (1, vec![plain.clone()], RestoreError::UnknownLayout(1)),
        (3, vec![plain, tagged], RestoreError::TooManyTags(33)),
    ] {
        let text = json!({ "layout": layout, "taken_at_ns": 0, "entries": entries }).to_string();
        let snapshot = serde_json::from_str(&text).expect("well-formed");
        let cache = manual(&ManualClock::new()).valid();
        assert_eq!(cache.restore(snapshot), Err(refusal));
        assert!(cache.is_empty());
    }
}

/// The snapshot had the entry without any tag. After the restart no invalidation concerned it.
#[test]
fn an_entry_with_too_many_tags_to_tell_apart_is_still_invalidated_by_any_when_restored() {
    let cache = manual(&ManualClock::new()).valid();
    let tagged = |tags: u32| {
        (0..tags).fold(Lifetime::forever(), |lifetime, tag| {
            lifetime.tag(format!("{tag}"))
        })
    };
    cache.insert_with(key("most"), 32, tagged(32));
    cache.insert_with(key("more"), 33, tagged(33));
    let text = serde_json::to_string(&cache.snapshot()).expect("plain data");
    let read: Snapshot<String, u64> = serde_json::from_str(&text).expect("as written");
    let bytes = postcard::to_stdvec(&read).expect("plain data");
    let read: Snapshot<String, u64> = postcard::from_bytes(&bytes).expect("as written");
    let copy = manual(&ManualClock::new()).valid();
    assert_eq!(copy.restore(read), Ok(2));
    for cache in [cache, copy] {
        assert_eq!((cache.get("most"), cache.get("more")), (Some(32), Some(33)));
        assert!(cache.invalidate_tag("nobody's"));
        assert_eq!((cache.get("most"), cache.get("more")), (Some(32), None));
        assert!(cache.invalidate_tag("7"));
        assert_eq!(cache.get("most"), None);
        cache.validate();
    }
}

/// Returns whether a caller with a loader would run it.
fn is_stale(cache: &Cache<u64, u64>, key: u64) -> bool {
    let before = cache.stats().stale_hits;
    assert!(cache.get(&key).is_some(), "it is there");
    cache.stats().stale_hits > before
}

#[test]
fn a_snapshot_keeps_soft_deadlines_and_what_a_refresh_keeps() {
    let refreshing = |clock: &ManualClock| -> Cache<u64, u64> {
        let builder = by_hand(clock).time_to_live(100 * MS).refresh_after(0.5);
        let builder = builder.refresh_with(|_: &u64| Loaded::from(100));
        builder.valid()
    };
    let clock = ManualClock::new();
    let cache = refreshing(&clock);
    cache.insert_with(1, 1, Lifetime::forever().fresh_for(20 * MS));
    cache.insert_with_ttl(2, 2, 400 * 24 * HOUR);
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
    clock.advance(200 * 24 * HOUR);
    assert!(is_stale(&cache, 1) && is_stale(&cache, 2));
    assert_eq!(cache.run_refreshes(10), 2);
    assert_eq!(cache.ttl(&2), Ttl::Left(400 * 24 * HOUR));
}

#[test]
fn a_restored_entry_is_kept_as_long_after_its_end_as_was_said() {
    let clock = ManualClock::new();
    let build = || -> Cache<u64, u64> {
        let builder = by_hand(&clock).time_to_live(Duration::from_secs(10));
        builder.stale_on_error(HOUR).valid()
    };
    let cache = build();
    cache.insert_with(1, 10, Lifetime::configured().stale_for(2 * HOUR));
    clock.advance(Duration::from_secs(1));
    let restored = build();
    restored.restore(cache.snapshot()).expect("this version's");
    assert_eq!(restored.ttl(&1), Ttl::Left(Duration::from_secs(9)));
    clock.advance(Duration::from_secs(9));
    assert_eq!(restored.get(&1), None);
    clock.advance(2 * HOUR - MS);
    let down = || Err(Failure(500));
    assert_eq!(restored.try_get_or_load(1, down), Ok(10));
}
