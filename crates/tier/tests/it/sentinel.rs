//! A primary under three Sentinels.

use std::time::Duration;

use tidewheel_engines::{Engine, Sentinels, within};
use tidewheel_tier::{Life, Valkey};

use crate::support::{cache, tier, url, wait_watched, warm};

#[test]
fn a_promoted_replica_is_watched_and_written_to() {
    let Some(engine) = Engine::valkey() else {
        return;
    };
    let mut group = Sentinels::start(&engine, 2);
    let urls: Vec<_> = group.sentinels.iter().map(|one| url(one.port)).collect();
    let urls: Vec<_> = urls.iter().map(String::as_str).collect();
    let name = group.master();
    let open = || {
        let cache = cache(tier(Valkey::sentinel(&urls, name).expect("addresses")));
        wait_watched(&cache);
        cache
    };
    let (one, other) = (open(), open());
    warm(&one, "tea", "7");
    let before = group.primary_port().expect("a primary");
    group.server(before).process.kill();
    within(
        Duration::from_secs(15),
        "a primary that takes writes",
        || {
            one.insert(&"tea".into(), &"8".into(), Life::configured())
                .ok()
        },
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
