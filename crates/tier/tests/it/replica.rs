//! One server that is a replica, or becomes one.

use std::time::Duration;

use tidewheel_engines::{Engine, Server, eventually, within};

use crate::support::{cache, on_server, tier, url, wait_watched, warm};
use tidewheel_tier::Valkey;

/// It was believed for ever: cut off, it tells of no change.
#[test]
fn a_primary_that_became_a_replica_is_not_believed() {
    let Some(engine) = Engine::valkey() else {
        return;
    };
    let server = Server::start(&engine, &[]);
    let cache = on_server(server.port);
    warm(&cache, "tea", "7");
    server.client().text(&["REPLICAOF", "127.0.0.1", "1"]);
    // The bound, and what is believed beyond it.
    within(Duration::from_secs(1), "no hit", || {
        cache.get(&"tea".into()).is_none().then_some(())
    });
    assert!(!cache.is_watched());
    assert_eq!(cache.get_or_load("tea".into(), || "8".into()), "8");
    server.client().text(&["REPLICAOF", "NO", "ONE"]);
    wait_watched(&cache);
    eventually("what the primary has", || {
        cache.get(&"milk".into()).is_none().then_some(())
    });
    cache.invalidate(&"tea".into()).expect("taken");
}

#[test]
fn a_replica_is_not_asked() {
    let Some(engine) = Engine::valkey() else {
        return;
    };
    let primary = Server::start(&engine, &[]);
    let replica = Server::start(&engine, &[]);
    let port = primary.port.to_string();
    replica.client().text(&["REPLICAOF", "127.0.0.1", &port]);
    eventually("a replica that has its primary's data", || {
        (replica.info("master_link_status")? == "up").then_some(())
    });
    warm(&on_server(primary.port), "tea", "7");
    let cache = cache(tier(Valkey::open(&url(replica.port)).expect("an address")));
    within(Duration::from_secs(1), "no answer", || {
        cache.get(&"tea".into()).is_none().then_some(())
    });
    assert!(!cache.is_watched());
}
