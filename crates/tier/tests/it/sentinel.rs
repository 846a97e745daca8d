//! A primary under three Sentinels.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use tidewheel_engines::{Engine, Sentinels, eventually, since, within};
use tidewheel_tier::Valkey;
use tidewheel_time::monotonic_nanos;

use crate::support::{MS, Texts, cache, tier, url, wait_watched, warm};

fn open(group: &Sentinels) -> Texts {
    let urls: Vec<_> = group.sentinels.iter().map(|one| url(one.port)).collect();
    let urls: Vec<_> = urls.iter().map(String::as_str).collect();
    let engine = Valkey::sentinel(&urls, group.master()).expect("addresses");
    let cache = cache(tier(engine));
    wait_watched(&cache);
    cache
}

#[test]
fn a_promoted_replica_is_watched_and_written_to() {
    let Some(engine) = Engine::valkey() else {
        return;
    };
    let mut group = Sentinels::start(&engine, 2);
    let (one, other) = (open(&group), open(&group));
    warm(&one, "tea", "7");
    let before = group.primary_port().expect("a primary");
    group.server(before).process.kill();
    within(
        Duration::from_secs(15),
        "a primary that takes writes",
        || one.insert("tea".into(), "8".into()).ok(),
    );
    within(Duration::from_secs(5), "connections to it", || {
        (one.is_watched() && other.is_watched()).then_some(())
    });
    warm(&other, "tea", "8");
    one.invalidate(&"tea".into()).expect("taken");
    within(Duration::from_secs(1), "the message of the change", || {
        other.get_local("tea").is_none().then_some(())
    });
}

/// H13: the server that was the primary stays up, keeps the connection that values are read on, and
/// goes on answering.
#[test]
fn the_answers_of_a_server_that_was_the_primary_are_not_kept() {
    let Some(engine) = Engine::valkey() else {
        return;
    };
    let group = Sentinels::start(&engine, 2);
    let one = open(&group);
    warm(&one, "tea", "7");
    let before = group.primary_port();
    let failover = ["SENTINEL", "FAILOVER", group.master()];
    group.sentinels[0].client().text(&failover);
    eventually("another primary", || {
        (group.primary_port() != before).then_some(())
    });
    let other = open(&group);
    other.invalidate(&"tea".into()).expect("taken");
    let insert = || other.insert("tea".into(), "8".into());
    insert().expect("taken");
    let begin = monotonic_nanos();
    while since(begin) < 4000 * MS {
        let asked = since(begin);
        let got = one.get(&"tea".into());
        // The bound, what is believed after a loss, and the test's own delays.
        let is_old = asked > 1500 * MS && got.as_deref() == Some("7");
        assert!(!is_old, "after {asked:?}, watched: {}", one.is_watched());
        std::thread::sleep(5 * MS);
    }
}

/// Between the promotion and its announcement the primary went on taking invalidations, which were
/// lost with it: reads were up to 3 s old, and nobody was told.
#[test]
fn a_planned_failover_loses_no_acknowledged_invalidation() {
    let Some(engine) = Engine::valkey() else {
        return;
    };
    const KEYS: u64 = 50;
    let group = Sentinels::start(&engine, 2);
    let (writer, reader) = (open(&group), open(&group));
    let before = group.primary_port();
    let failover = ["SENTINEL", "FAILOVER", group.master()];
    group.sentinels[0].client().text(&failover);
    // What the origin says of each key, and since when.
    let origin: [(AtomicU64, AtomicU64); KEYS as usize] =
        std::array::from_fn(|_| Default::default());
    let begin = monotonic_nanos();
    let now = || u64::try_from(since(begin).as_micros()).expect("short");
    let (mut oldest, mut reads, mut round) = (Duration::ZERO, 0_u64, 0);
    let mut change = |key: u64| {
        round += 1;
        origin[key as usize].0.store(round, SeqCst);
        let _ = writer.invalidate(&key.to_string());
        origin[key as usize].1.store(now(), SeqCst);
    };
    let mut read = |key: u64| {
        let asked = now();
        let (version, changed) = &origin[key as usize];
        let load = || version.load(SeqCst).to_string();
        let got = reader.get_or_load(key.to_string(), load);
        reads += 1;
        if got != version.load(SeqCst).to_string() {
            let age = Duration::from_micros(asked.saturating_sub(changed.load(SeqCst)));
            oldest = oldest.max(age);
        }
    };
    // Each key is changed once in 2.5 s, and read again and again.
    let mut key = 0;
    let mut over = None;
    while over.is_none_or(|over| since(over) < 1500 * MS) && since(begin) < 15_000 * MS {
        if over.is_none() && writer.is_watched() && group.primary_port() != before {
            over = Some(monotonic_nanos());
        }
        change(key % KEYS);
        for other in 0..KEYS {
            read(other);
        }
        key += 1;
        std::thread::sleep(40 * MS);
    }
    assert_ne!(group.primary_port(), before, "it has failed over");
    eventually("connections to it", || {
        (writer.is_watched() && writer.invalidations_waiting() == 0 && reader.is_watched())
            .then_some(())
    });
    // The bound, what is believed after a loss, and the test's own delays.
    assert!(oldest < 1000 * MS, "{reads} reads, the oldest {oldest:?}");
    let stale = (0..KEYS).filter(|key| {
        let got = reader.get_or_load(key.to_string(), || "none".into());
        got != "none" && got != origin[*key as usize].0.load(SeqCst).to_string()
    });
    assert_eq!(stale.count(), 0, "in the end");
    println!("{reads} reads, the oldest {oldest:?}");
}
