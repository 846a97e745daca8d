//! One server.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use tidewheel_engines::{Engine, Server, eventually, since};
use tidewheel_resp::Reply;
use tidewheel_tier::{Given, Life, Raw, Tier, Valkey};
use tidewheel_time::monotonic_nanos;

use crate::support::{MS, cache, on_server, tier, url, wait_watched, warm};

#[test]
fn what_one_process_loads_the_others_have_on_every_engine() {
    for engine in Engine::all() {
        let server = Server::start(&engine, &[]);
        let (one, other) = (on_server(server.port), on_server(server.port));
        assert_eq!(one.get_or_load("tea".into(), || "7".into()), "7");
        let unasked = || -> String { unreachable!("it is there") };
        assert_eq!(other.get_or_load("tea".into(), unasked), "7");
        assert_eq!(other.get(&"tea".into()).as_deref(), Some("7"));
        warm(&other, "tea", "7");
        one.invalidate(&"tea".into()).expect("taken");
        eventually("the message of the change", || {
            other.get_local("tea").is_none().then_some(())
        });
        assert_eq!(other.get(&"tea".into()), None, "{}", engine.name());
    }
}

/// The number was ignored: everybody met in database 0.
#[test]
fn the_database_of_an_address_keeps_the_values_and_word_of_its_changes_arrives() {
    let Some(engine) = Engine::valkey() else {
        return;
    };
    let server = Server::start(&engine, &[]);
    let open = |database: u8| {
        let address = format!("{}/{database}", url(server.port));
        let cache = cache(tier(Valkey::open(&address).expect("an address")));
        wait_watched(&cache);
        cache
    };
    let (one, other, stranger) = (open(3), open(3), open(0));
    assert_eq!(one.get_or_load("tea".into(), || "7".into()), "7");
    warm(&other, "tea", "7");
    assert_eq!(stranger.get(&"tea".into()), None);
    one.invalidate(&"tea".into()).expect("taken");
    eventually("the message of the change", || {
        other.get_local("tea").is_none().then_some(())
    });
}

#[test]
fn what_an_address_asks_for_in_vain_is_an_error() {
    assert!(Valkey::open("rediss://127.0.0.1:1/#insecure").is_err());
    assert!(Valkey::open("redis+unix:///nowhere").is_err());
    assert!(Valkey::cluster(&["redis://127.0.0.1:1/3"]).is_err());
    // The second server would have got the password without it.
    assert!(Valkey::cluster(&["redis://127.0.0.1:1", "rediss://127.0.0.1:2"]).is_err());
    assert!(Valkey::cluster(&[]).is_err());
}

/// A changed byte came back as another value.
#[test]
fn a_value_of_which_a_byte_was_changed_is_loaded_again_and_replaced() {
    for engine in Engine::all() {
        let server = Server::start(&engine, &[]);
        let one = on_server(server.port);
        assert_eq!(one.get_or_load("tea".into(), || "7".into()), "7");
        let mut client = server.client();
        let key = b"test:v:{=tea}".as_slice();
        let Ok(Reply::Bulk(sealed)) = client.call(&[b"GET".as_slice(), key]) else {
            panic!("{}: no value", engine.name());
        };
        for place in [1, 5, 20, 30, sealed.len() - 9, sealed.len() - 1] {
            let mut damaged = sealed.clone();
            damaged[place] ^= 1;
            let set = client.call(&[
                b"SET".as_slice(),
                key,
                damaged.as_slice(),
                b"KEEPTTL".as_slice(),
            ]);
            assert!(set.is_ok(), "{set:?}");
            let other = on_server(server.port);
            assert_eq!(
                other.get_or_load("tea".into(), || "8".into()),
                "8",
                "{place}"
            );
            let third = on_server(server.port);
            let unasked = || -> String { unreachable!("it is there again: {place}") };
            assert_eq!(third.get_or_load("tea".into(), unasked), "8");
        }
    }
}

#[test]
fn a_written_value_replaces_the_old_one_everywhere() {
    let Some(engine) = Engine::valkey() else {
        return;
    };
    let server = Server::start(&engine, &[]);
    let (one, other) = (on_server(server.port), on_server(server.port));
    warm(&other, "tea", "7");
    let life = Life::ttl(Duration::from_secs(9)).tag("prices");
    one.insert_with("tea".into(), "8".into(), life)
        .expect("taken");
    eventually("the new value", || {
        (other.get(&"tea".into()).as_deref() == Some("8")).then_some(())
    });
    one.invalidate_tag("prices").expect("taken");
    eventually("the message of the change", || {
        other.get(&"tea".into()).is_none().then_some(())
    });
}

#[test]
fn a_tag_and_a_namespace_are_invalidated_everywhere() {
    let Some(engine) = Engine::valkey() else {
        return;
    };
    let server = Server::start(&engine, &[]);
    let (one, other) = (on_server(server.port), on_server(server.port));
    let load = |value: &str| {
        let life = Life::configured().tag("prices");
        Ok::<_, ()>(Some(Given::new(value.to_owned(), life)))
    };
    for cache in [&one, &other] {
        let price = cache.get_or_load_with("tea".into(), || load("7"));
        assert_eq!(price, Ok(Some("7".into())));
    }
    warm(&other, "cup", "1");
    one.invalidate_tag("prices").expect("taken");
    eventually("the message of the tag", || {
        other.get(&"tea".into()).is_none().then_some(())
    });
    assert_eq!(other.get(&"cup".into()).as_deref(), Some("1"));
    one.clear().expect("taken");
    eventually("the message of the namespace", || {
        other.get(&"cup".into()).is_none().then_some(())
    });
}

#[test]
fn what_a_tags_invalidation_overtakes_is_not_stored() {
    let Some(engine) = Engine::valkey() else {
        return;
    };
    let server = Server::start(&engine, &[]);
    let (one, other) = (on_server(server.port), on_server(server.port));
    let price = one.get_or_load_with("tea".into(), || {
        // This process has never seen the tag.
        other.invalidate_tag("prices").expect("taken");
        let life = Life::configured().tag("prices");
        Ok::<_, ()>(Some(Given::new("old".to_owned(), life)))
    });
    assert_eq!(price, Ok(Some("old".into())));
    assert_eq!(one.get(&"tea".into()), None);
    assert_eq!(one.tier_stats().fills_refused, 1);
}

/// H7.
#[test]
fn what_an_invalidation_overtakes_is_not_stored() {
    let Some(engine) = Engine::valkey() else {
        return;
    };
    let server = Server::start(&engine, &[]);
    let (one, other) = (on_server(server.port), on_server(server.port));
    let price = one.get_or_load("tea".into(), || {
        other.invalidate(&"tea".into()).expect("taken");
        "old".into()
    });
    assert_eq!(price, "old");
    assert_eq!(other.get(&"tea".into()), None);
    assert_eq!(one.get(&"tea".into()), None);
}

#[test]
fn an_absence_is_remembered_everywhere_until_there_is_something() {
    let Some(engine) = Engine::valkey() else {
        return;
    };
    let server = Server::start(&engine, &[]);
    let open = || {
        let engine = Valkey::open(&url(server.port)).expect("an address");
        let cache = cache(tier(engine).negative_ttl(Duration::from_secs(30)));
        wait_watched(&cache);
        cache
    };
    let (one, other) = (open(), open());
    let loads = AtomicUsize::new(0);
    let nothing = || {
        loads.fetch_add(1, SeqCst);
        Ok::<_, ()>(None)
    };
    for cache in [&one, &other, &one] {
        assert_eq!(cache.get_or_load_with("tea".into(), nothing), Ok(None));
    }
    assert_eq!(loads.load(SeqCst), 1);
    // A loader that knows no absence runs.
    assert_eq!(one.get_or_load("tea".into(), || "7".into()), "7");
    one.insert("tea".into(), "8".into()).expect("taken");
    eventually("the value", || {
        (other.get(&"tea".into()).as_deref() == Some("8")).then_some(())
    });
}

/// H3.
#[test]
fn a_flush_empties_the_first_tier() {
    let Some(engine) = Engine::valkey() else {
        return;
    };
    let server = Server::start(&engine, &[]);
    let one = on_server(server.port);
    warm(&one, "tea", "7");
    server.client().call(&["FLUSHALL"]).expect("a reply");
    eventually("the message of the flush", || {
        one.get_local("tea").is_none().then_some(())
    });
}

/// H4: the first tier never serves past the engine's deadline.
#[test]
fn ten_thousand_entries_end_no_later_than_in_the_engine() {
    let Some(engine) = Engine::valkey() else {
        return;
    };
    let server = Server::start(&engine, &[]);
    let (writer, reader) = (on_server(server.port), on_server(server.port));
    let keys: Vec<_> = (0..10_000).map(|key| key.to_string()).collect();
    let mut late = Vec::new();
    for (batch, keys) in keys.chunks(100).enumerate() {
        for (place, key) in keys.iter().enumerate() {
            let ttl = 50 + (batch * 100 + place) as u64 * 450 / 10_000;
            let life = Life::ttl(Duration::from_millis(ttl));
            writer
                .insert_with(key.clone(), key.clone(), life)
                .expect("taken");
            reader.get(key);
        }
        late.extend(keys.iter().filter(|key| is_late(&reader, &server, key)));
    }
    assert_eq!(late, Vec::<&String>::new());
}

/// True if the first tier still has what the engine had not any more before.
fn is_late(reader: &crate::support::Texts, server: &Server, key: &str) -> bool {
    let wire = format!("test:v:{{={key}}}");
    let left = server.client().call(&["PTTL", &wire]).expect("a reply");
    let is_gone = left == Reply::Integer(-2);
    is_gone && reader.get_local(key).is_some()
}

#[test]
fn one_load_for_many_callers_of_many_caches() {
    let Some(engine) = Engine::valkey() else {
        return;
    };
    let server = Server::start(&engine, &[]);
    let caches: Vec<_> = (0..4).map(|_| on_server(server.port)).collect();
    let loads = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for place in 0..64 {
            let (cache, loads) = (&caches[place % 4], &loads);
            scope.spawn(move || {
                let value = cache.get_or_load("cold".into(), || {
                    loads.fetch_add(1, SeqCst);
                    std::thread::sleep(200 * MS);
                    "warm".into()
                });
                assert_eq!(value, "warm");
            });
        }
    });
    assert_eq!(loads.load(SeqCst), 1);
}

#[test]
fn a_loader_that_is_slower_than_its_lease_stores_nothing() {
    let Some(engine) = Engine::valkey() else {
        return;
    };
    let server = Server::start(&engine, &[]);
    let open = || {
        let engine = Valkey::open(&url(server.port)).expect("an address");
        let cache = cache(tier(engine).lease(150 * MS));
        wait_watched(&cache);
        cache
    };
    let (slow, quick) = (open(), open());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let value = slow.get_or_load("tea".into(), || {
                std::thread::sleep(600 * MS);
                "slow".into()
            });
            assert_eq!(value, "slow");
        });
        std::thread::sleep(50 * MS);
        assert_eq!(quick.get_or_load("tea".into(), || "quick".into()), "quick");
    });
    assert_eq!(quick.get(&"tea".into()).as_deref(), Some("quick"));
    assert_eq!(slow.get(&"tea".into()).as_deref(), Some("quick"));
}

#[test]
fn past_the_soft_deadline_one_loads_and_the_others_answer_the_old_value() {
    let Some(engine) = Engine::valkey() else {
        return;
    };
    let server = Server::start(&engine, &[]);
    let open = || {
        let engine = Valkey::open(&url(server.port)).expect("an address");
        let cache = cache(tier(engine).fresh_for(300 * MS).jitter(0.0));
        wait_watched(&cache);
        cache
    };
    let (one, other) = (open(), open());
    for cache in [&one, &other] {
        assert_eq!(cache.get_or_load("tea".into(), || "7".into()), "7");
    }
    std::thread::sleep(400 * MS);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            one.get_or_load("tea".into(), || {
                std::thread::sleep(500 * MS);
                "8".into()
            })
        });
        std::thread::sleep(150 * MS);
        let begin = monotonic_nanos();
        let old = other.get_or_load("tea".into(), || unreachable!("one loads"));
        assert_eq!(old, "7");
        assert!(since(begin) < 200 * MS, "it did not wait");
    });
    eventually("the new value", || {
        let price = other.get_or_load("tea".into(), || "8".into());
        (price == "8").then_some(())
    });
}

#[test]
fn tasks_of_another_runtime_load_too() {
    let Some(engine) = Engine::valkey() else {
        return;
    };
    let server = Server::start(&engine, &[]);
    let (one, other) = (on_server(server.port), on_server(server.port));
    smol::block_on(async {
        let load = async { "7".to_owned() };
        assert_eq!(one.get_or_load_async("tea".into(), load).await, "7");
        assert_eq!(other.get_async(&"tea".into()).await.as_deref(), Some("7"));
        one.invalidate_async(&"tea".into()).await.expect("taken");
        assert_eq!(one.get_async(&"tea".into()).await, None);
    });
}

#[test]
fn the_last_handle_may_go_in_a_task_of_tokio() {
    let Some(engine) = Engine::valkey() else {
        return;
    };
    let server = Server::start(&engine, &[]);
    let runtime = tokio_runtime();
    runtime.block_on(async {
        let cache = on_server(server.port);
        let load = async { "7".to_owned() };
        cache.get_or_load_async("tea".into(), load).await;
    });
}

fn tokio_runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime")
}

#[test]
fn what_another_program_wrote_is_loaded_again() {
    let Some(engine) = Engine::valkey() else {
        return;
    };
    let server = Server::start(&engine, &[]);
    let cache = on_server(server.port);
    let mut client = server.client();
    client.text(&["SET", "test:v:{=tea}", "nonsense"]);
    client.text(&[
        "SET",
        "test:v:{=cup}",
        "}nonsense that is as long as an envelope's head",
    ]);
    for key in ["tea", "cup"] {
        assert_eq!(cache.get_or_load(key.into(), || "7".into()), "7");
        assert_eq!(cache.get(&key.into()).as_deref(), Some("7"));
    }
}

#[test]
fn a_password_is_asked_for_on_both_planes() {
    let Some(engine) = Engine::valkey() else {
        return;
    };
    let server = Server::start(&engine, &[]);
    server
        .client()
        .text(&["CONFIG", "SET", "requirepass", "secret"]);
    let open = |url: &str| {
        cache(Tier::new(
            "test",
            Valkey::open(url).expect("an address"),
            Raw,
        ))
    };
    let port = server.port;
    let cache = open(&format!("redis://:secret@127.0.0.1:{port}"));
    wait_watched(&cache);
    cache.insert("tea".into(), "7".into()).expect("taken");
    let outsider = open(&url(port));
    assert!(outsider.invalidate(&"tea".into()).is_err());
    assert!(!outsider.is_watched());
}
