//! Keys end in time over real sockets, whatever the budgets.

use crate::common::{Reply, Server, eventually, ok};

/// A pass that ran out of time used to lose the place of some shards: the loop then slept while
/// keys in them were due, until somebody wrote to the shard.
#[test]
fn an_expiry_pass_that_runs_out_of_time_forgets_no_shard() {
    let server = Server::start(&["--expiry-turn-us", "1", "--expiry-hold-keys", "1"]);
    let mut client = server.client();
    let mut commands = String::new();
    for i in 0..20_000 {
        commands.push_str(&format!("SET key:{i} v PX {}\r\n", 200 + i % 300));
    }
    client.send(commands.as_bytes());
    for _ in 0..20_000 {
        assert_eq!(client.read(), ok());
    }
    // DBSIZE counts what is stored, and touches no key.
    eventually("every key is gone though nobody asks for it", || {
        (client.call(&["DBSIZE"]) == Reply::Integer(0)).then_some(())
    });
}

#[test]
fn after_maxmemory_is_lowered_keys_are_evicted_although_nobody_writes() {
    let server = Server::start(&["--maxmemory-policy", "allkeys-lru"]);
    let mut client = server.client();
    let value = "x".repeat(1000);
    for i in 0..2000 {
        assert_eq!(client.call(&["SET", &format!("key:{i}"), &value]), ok());
    }
    assert_eq!(client.call(&["CONFIG", "SET", "maxmemory", "500kb"]), ok());
    eventually("memory is below the limit", || {
        let used: u64 = client
            .info("memory", "used_memory")
            .parse()
            .expect("a number");
        (used <= 500 << 10).then_some(())
    });
}

/// Loops looked at the limit only after a change of the setting. Memory that a command had used
/// beyond the limit stayed in use.
#[test]
fn after_a_command_exceeds_maxmemory_keys_are_evicted_although_nobody_writes() {
    let server = Server::start(&["--maxmemory-policy", "allkeys-lru", "--maxmemory", "3mb"]);
    let mut client = server.client();
    let value = "x".repeat(1000);
    for i in 0..2000 {
        assert_eq!(client.call(&["SET", &format!("key:{i}"), &value]), ok());
    }
    let far = (2_u64 << 20).to_string();
    let grown = client.call(&["SETRANGE", "far", &far, "x"]);
    assert_eq!(grown, Reply::Integer((2 << 20) + 1));
    eventually("memory is below the limit", || {
        let used: u64 = client
            .info("memory", "used_memory")
            .parse()
            .expect("a number");
        (used <= 3 << 20).then_some(())
    });
}
