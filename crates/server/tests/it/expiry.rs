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

#[test]
fn info_counts_keys_whose_members_have_deadlines() {
    let server = Server::start(&[]);
    let mut client = server.client();
    let steps: &[(&str, &str)] = &[
        ("HSETEX h EX 100 FIELDS 2 a 1 b 2", "1"),
        ("EXPIRE h 1000", "1"),
        ("HEXPIRE h 50 FIELDS 1 b", "1"),
        ("PERSIST h", "1"),
        ("COPY h i", "2"),
        ("RENAME i j", "2"),
        ("HPERSIST h FIELDS 2 a b", "1"),
        ("SET j x", "0"),
        ("HSETEX h EX 100 FIELDS 1 a 1", "1"),
        ("HDEL h a", "0"),
        ("HSETEX h EX 100 FIELDS 1 a 1", "1"),
        ("FLUSHALL", "0"),
    ];
    for (line, number) in steps {
        let words: Vec<&str> = line.split(' ').collect();
        client.call(&words);
        client.call(&["SET", "other", "1"]);
        let keys = client.info("keyspace", "db0");
        let expected = format!("subexpiry={number},keys_with_volatile_items={number}");
        assert!(keys.ends_with(&expected), "{line}: {keys}");
    }
}
