//! A primary under three Sentinels.

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
    within(Duration::from_secs(1), "word of the change", || {
        other.get_local("tea").is_none().then_some(())
    });
}

/// H13: the server that was the primary stays up, keeps the connection that values are read on, and goes on answering.
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
