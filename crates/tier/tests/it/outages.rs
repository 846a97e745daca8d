//! The engine is away for a while.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use tidewheel_engines::{Engine, Server, eventually, since};
use tidewheel_tier::{EngineError, Valkey};
use tidewheel_time::monotonic_nanos;

use crate::support::{MS, cache, on_server, tier, url, wait_watched, warm};

#[test]
fn loads_go_on_without_the_engine_and_recover_without_a_herd() {
    let Some(engine) = Engine::valkey() else {
        return;
    };
    let mut server = Server::start(&engine, &[]);
    let open = || {
        let engine = Valkey::open(&url(server.port)).expect("an address");
        let cache = cache(tier(engine).stale_on_error(Duration::from_secs(60)));
        wait_watched(&cache);
        cache
    };
    let caches = [open(), open()];
    for cache in &caches {
        warm(cache, "tea", "7");
    }
    server.process.kill();
    let begin = monotonic_nanos();
    while since(begin) < outage() {
        for cache in &caches {
            // The origin is away too: an old value is answered, and no error.
            let price = cache.try_get_or_load("tea".into(), || Err("away"));
            assert_eq!(price.as_deref(), Ok("7"), "after {:?}", since(begin));
        }
        std::thread::sleep(5 * MS);
    }
    server.restart();
    caches.iter().for_each(wait_watched);
    assert_one_load(&caches);
}

/// It was a second, whatever was wanted.
#[test]
fn a_question_takes_no_longer_than_the_tier_says() {
    let Some(engine) = Engine::valkey() else {
        return;
    };
    let server = Server::start(&engine, &[]);
    let engine = Valkey::open(&url(server.port)).expect("an address");
    let cache = cache(tier(engine).timeout(100 * MS));
    wait_watched(&cache);
    server.process.pause();
    let begin = monotonic_nanos();
    let insert = cache.insert("tea".into(), "7".into());
    assert_eq!(insert, Err(EngineError::TimedOut));
    assert!(since(begin) < 700 * MS, "{:?}", since(begin));
    server.process.resume();
    eventually("an engine that answers", || {
        cache.insert("tea".into(), "7".into()).ok()
    });
}

fn outage() -> Duration {
    let long = std::env::var_os("TIDEWHEEL_LONG").is_some();
    Duration::from_secs(if long { 10 } else { 2 })
}

/// Of many callers of both caches, one loads: the engine has come back empty.
fn assert_one_load(caches: &[crate::support::Texts]) {
    eventually("an engine that is asked again", || {
        let all = caches.iter();
        all.map(|cache| cache.insert("probe".into(), "1".into()))
            .all(|done| done.is_ok())
            .then_some(())
    });
    let loads = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for place in 0..32 {
            let (cache, loads) = (&caches[place % caches.len()], &loads);
            scope.spawn(move || {
                let load = || {
                    loads.fetch_add(1, SeqCst);
                    std::thread::sleep(100 * MS);
                    "8".into()
                };
                assert_eq!(cache.get_or_load("cup".into(), load), "8");
            });
        }
    });
    assert_eq!(loads.load(SeqCst), 1);
}

/// H2: a message that was sent while nobody listened is not missed.
#[test]
fn what_changed_while_the_connection_was_broken_is_not_believed() {
    let Some(engine) = Engine::valkey() else {
        return;
    };
    let server = Server::start(&engine, &[]);
    let (one, other) = (on_server(server.port), on_server(server.port));
    warm(&one, "tea", "7");
    for _ in 0..20 {
        let mut client = server.client();
        client.text(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
        eventually("a change", || other.invalidate(&"tea".into()).ok());
        // Long enough for the bound and for what is believed after a loss.
        std::thread::sleep(20 * MS);
        wait_watched(&one);
        assert_eq!(one.get_local("tea"), None);
        warm(&one, "tea", "7");
    }
}

/// A half-open connection: nothing breaks, and nobody answers.
#[test]
fn a_server_that_falls_silent_is_not_believed_for_longer_than_the_bounds() {
    let Some(engine) = Engine::valkey() else {
        return;
    };
    let server = Server::start(&engine, &[]);
    let one = on_server(server.port);
    warm(&one, "tea", "7");
    server.process.pause();
    let begin = monotonic_nanos();
    eventually("doubt", || one.get_local("tea").is_none().then_some(()));
    let doubted = since(begin);
    server.process.resume();
    // The bound, what is believed after a loss, and the test's own delays.
    assert!(doubted < 1000 * MS, "{doubted:?}");
    wait_watched(&one);
}
