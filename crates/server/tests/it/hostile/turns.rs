//! Long requests of one client, which must not delay others.

use std::collections::BTreeSet;

use super::tools::{flood, number};
use crate::common::{Client, Reply, Server, bulk, command, eventually, ok, simple, text};

fn fill(client: &mut Client, keys: usize) {
    let mut bytes = Vec::new();
    for i in 0..keys {
        bytes.extend_from_slice(format!("SET key:{i} v\r\n").as_bytes());
    }
    assert_eq!(flood(client, &bytes, keys, &ok()), 0);
}

fn calls_of_keys(client: &mut Client) -> u64 {
    let stats = text(&client.call(&["INFO", "commandstats"]));
    let line = stats
        .lines()
        .find_map(|line| line.strip_prefix("cmdstat_keys:calls="));
    let count = line.and_then(|rest| rest.split(',').next());
    count.map_or(0, |count| count.parse().expect("a number"))
}

/// A pipeline of 16 KB of KEYS held up all other clients of the loop, and its expiry, for 28 s.
#[test]
fn a_pipeline_of_walks_lets_others_have_their_turns() {
    const WALKS: usize = 2_000;
    let server = Server::start(&["--threads", "1"]);
    let mut other = server.client();
    fill(&mut other, 20_000);
    assert_eq!(other.call(&["SET", "dying", "v", "PX", "60"]), ok());
    let mut heavy = server.client();
    heavy.send(&b"KEYS x\r\n".repeat(WALKS));
    for _ in 0..10 {
        assert_eq!(other.call(&["PING"]), simple("PONG"));
    }
    assert!(
        calls_of_keys(&mut other) < WALKS as u64,
        "everything ran first"
    );
    eventually("a key expires meanwhile", || {
        (number(&mut other, "stats", "expired_keys") == 1).then_some(())
    });
    assert!(calls_of_keys(&mut other) < WALKS as u64, "expiry came last");
}

/// A class of 120 KB took half a minute on a key of 120 KB. One of a megabyte took half an hour.
#[test]
fn a_pattern_as_long_as_a_key_holds_nobody() {
    let server = Server::start(&["--threads", "1"]);
    let mut client = server.client();
    let length = 1 << 20;
    assert_eq!(client.call(&["SET", &"b".repeat(length), "v"]), ok());
    let class = format!("*[{}]", "a".repeat(length));
    assert_eq!(client.call(&["KEYS", &class]), Reply::Array(Vec::new()));
    let literals = format!("*{}c", "b".repeat(length / 2));
    assert_eq!(client.call(&["KEYS", &literals]), Reply::Array(Vec::new()));
}

/// A million channels in one call held everybody for two seconds.
#[test]
fn a_client_that_subscribes_to_very_many_channels_lets_others_have_their_turns() {
    const CHANNELS: usize = 200_000;
    let server = Server::start(&["--threads", "1"]);
    let (mut other, mut heavy) = (server.client(), server.client());
    let names: Vec<String> = (0..CHANNELS).map(|i| format!("channel:{i}")).collect();
    for word in ["SUBSCRIBE", "UNSUBSCRIBE"] {
        let words: Vec<&str> = std::iter::once(word)
            .chain(names.iter().map(String::as_str))
            .collect();
        let before = channels(&mut other);
        heavy.send(&command(&words));
        let mut seen = BTreeSet::new();
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| {
                for name in &names {
                    let Some(Reply::Array(parts)) = heavy.try_read() else {
                        panic!("{word}: {name}")
                    };
                    assert_eq!(parts[1], bulk(name));
                }
            });
            while !reader.is_finished() {
                seen.insert(channels(&mut other));
            }
        });
        seen.remove(&before);
        assert!(
            seen.len() > 5,
            "{word}: others were served {} times",
            seen.len()
        );
    }
    assert_eq!(channels(&mut other), 0);
}

/// Returns the number of channels that have subscribers.
fn channels(client: &mut Client) -> u64 {
    number(client, "stats", "pubsub_channels")
}
