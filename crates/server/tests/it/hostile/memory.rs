//! Limits of memory hold, and eviction finds the keys that may go.

use super::tools::{flood, number};
use crate::common::{Client, Reply, Server, eventually, ok, text};

fn used(client: &mut Client) -> u64 {
    number(client, "memory", "used_memory")
}

fn small_keys(client: &mut Client, keys: usize) {
    let mut bytes = Vec::new();
    for i in 0..keys {
        bytes.extend_from_slice(format!("SET key:{i} v\r\n").as_bytes());
    }
    assert_eq!(flood(client, &bytes, keys, &ok()), 0);
}

/// The server made room by a number of keys: 64 small ones for a value of a megabyte.
#[test]
fn large_values_after_many_small_keys_stay_within_maxmemory() {
    const LIMIT: u64 = 8 << 20;
    let server = Server::start(&["--maxmemory", "8mb", "--maxmemory-policy", "allkeys-lru"]);
    let mut client = server.client();
    small_keys(&mut client, 120_000);
    let big = "x".repeat(1 << 20);
    let mut most = 0;
    for i in 0..60 {
        let reply = client.call(&["SET", &format!("big:{i}"), &big]);
        assert!(
            reply == ok() || text(&reply).starts_with("OOM "),
            "{reply:?}"
        );
        most = most.max(used(&mut client));
    }
    assert!(most <= LIMIT + (3 << 20), "{most} bytes used of {LIMIT}");
    eventually("memory is below the limit", || {
        (used(&mut client) <= LIMIT).then_some(())
    });
}

/// Each shard publishes changes of its memory in portions of a few kilobytes. Small deletions in
/// many shards counted as used until somebody asked for INFO.
#[test]
fn memory_of_deleted_keys_can_be_used_at_once() {
    const LIMIT: u64 = 2 << 20;
    let server = Server::start(&["--maxmemory", "2mb", "--shards", "256"]);
    let mut client = server.client();
    let value = "x".repeat(60);
    let mut keys = 0;
    while client.call(&["SET", &format!("key:{keys}"), &value]) == ok() {
        keys += 1;
    }
    assert!(used(&mut client) > LIMIT - 200, "it is full");
    let gone: String = (0..keys * 3 / 10)
        .map(|i| format!("DEL key:{i}\r\n"))
        .collect();
    let wrong = flood(
        &mut client,
        gone.as_bytes(),
        keys * 3 / 10,
        &Reply::Integer(1),
    );
    let reply = client.call(&["SET", "after", &value]);
    let left = used(&mut client);
    assert!(left < LIMIT && wrong == 0, "{left} bytes are left");
    assert_eq!(reply, ok(), "with {left} bytes of {LIMIT}");
}

#[test]
fn the_only_key_that_may_be_evicted_is_found_among_very_many() {
    let server = Server::start(&["--maxmemory", "8mb", "--maxmemory-policy", "volatile-lru"]);
    let mut client = server.client();
    let big = "x".repeat(1 << 20);
    assert_eq!(client.call(&["SET", "only", &big, "EX", "1000"]), ok());
    let mut i = 0;
    let refused = loop {
        let reply = client.call(&["SET", &format!("key:{i}"), "v"]);
        if reply != ok() {
            break reply;
        }
        i += 1;
        if i % 256 == 0 && client.call(&["EXISTS", "only"]) == Reply::Integer(0) {
            return;
        }
    };
    assert_eq!(
        client.call(&["EXISTS", "only"]),
        Reply::Integer(0),
        "{refused:?}"
    );
}
