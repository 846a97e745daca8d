//! Commands for operators and test suites: DEBUG, MEMORY, ROLE, WAIT, LOLWUT and INFO.

use crate::common::{Client, Reply, Server, array, bulk, error, ok, simple, text};

fn debugging() -> Server {
    Server::start(&["--enable-debug-command", "local"])
}

#[test]
fn debug_is_refused_unless_it_was_allowed_at_the_start() {
    let server = Server::start(&[]);
    let mut client = server.client();
    for words in [
        &["DEBUG", "SLEEP", "0"][..],
        &["DEBUG", "OBJECT", "k"],
        &["DEBUG", "DIGEST"],
        &["DEBUG", "DIGEST-VALUE", "k"],
        &["DEBUG", "PROTOCOL", "string"],
        &["DEBUG", "STRINGMATCH-LEN", "*", "a"],
    ] {
        let refused = text(&client.call(words));
        assert!(
            refused.starts_with("ERR DEBUG command not allowed."),
            "{words:?}"
        );
    }
    let server = debugging();
    let mut client = server.client();
    assert_eq!(client.call(&["RESET"]), simple("RESET"));
    assert_eq!(client.call(&["DEBUG", "SLEEP", "0"]), ok());
    assert_eq!(
        client.call(&["DEBUG", "ERROR", "MY error\r\n"]),
        error("MY error  ")
    );
    assert_eq!(client.call(&["DEBUG", "LOG", "hello"]), ok());
    assert_eq!(
        client.call(&["DEBUG", "STRINGMATCH-LEN", "a*c", "abbc"]),
        Reply::Integer(1)
    );
    assert_eq!(
        client.call(&["DEBUG", "STRINGMATCH-LEN", "a*c", "abb"]),
        Reply::Integer(0)
    );
    assert_eq!(client.call(&["DEBUG", "PAUSE-CRON", "1"]), ok());
    client.call(&["HSET", "packed", "f", "v"]);
    let packed = text(&client.call(&["DEBUG", "LISTPACK", "packed"]));
    assert!(packed.starts_with("Listpack of "), "{packed}");
    client.call(&["SET", "word", "w"]);
    let why = error("ERR Not a listpack encoded object.");
    assert_eq!(client.call(&["DEBUG", "LISTPACK", "word"]), why);
    let threshold = ["DEBUG", "QUICKLIST-PACKED-THRESHOLD"];
    assert_eq!(client.call(&[&threshold[..], &["100b"]].concat()), ok());
    assert!(text(&client.call(&[&threshold[..], &["4gb"]].concat())).starts_with("ERR argument"));
    assert_eq!(client.call(&["DEBUG", "RELOAD"]), ok());
    assert!(text(&client.call(&["DEBUG", "LOADAOF"])).contains("loaded when the server starts"));
}

#[test]
fn digests_are_of_the_data_and_of_nothing_else() {
    let (one, other) = (debugging(), debugging());
    let fill = |client: &mut Client, keys: &[&str]| {
        for key in keys {
            client.call(&["SET", key, &format!("value of {key}")]);
        }
    };
    let digest = |client: &mut Client| text(&client.call(&["DEBUG", "DIGEST"]));
    let (mut one, mut other) = (one.client(), other.client());
    assert_eq!(digest(&mut one), "0".repeat(40));
    fill(&mut one, &["a", "b", "c"]);
    fill(&mut other, &["c", "x", "b", "a"]);
    assert_ne!(digest(&mut one), digest(&mut other));
    other.call(&["DEL", "x"]);
    assert_eq!(digest(&mut one), digest(&mut other));
    one.call(&["EXPIRE", "a", "100"]);
    assert_ne!(digest(&mut one), digest(&mut other));
    one.call(&["PERSIST", "a"]);
    one.call(&["MOVE", "a", "1"]);
    assert_ne!(digest(&mut one), digest(&mut other));
    one.call(&["SET", "c", "5"]);
    one.call(&["COPY", "c", "d"]);
    let Reply::Array(values) = one.call(&["DEBUG", "DIGEST-VALUE", "c", "d", "b", "none"]) else {
        panic!("an array")
    };
    assert!(values[0] == values[1] && values[0] != values[2]);
    assert_eq!(values[3], simple(&"0".repeat(40)));
}

/// A digest of members does not depend on how they are stored.
#[test]
fn digests_of_collections_are_of_their_members() {
    let server = debugging();
    let mut client = server.client();
    let pairs = |from: usize| (from..from + 8).flat_map(|i| [format!("f{i}"), format!("v{i}")]);
    let set = |client: &mut Client, key: &str, pairs: &mut dyn Iterator<Item = String>| {
        let words: Vec<String> = ["HSET".to_owned(), key.to_owned()]
            .into_iter()
            .chain(pairs)
            .collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        client.call(&words);
    };
    set(&mut client, "packed", &mut pairs(0));
    client.call(&["CONFIG", "SET", "hash-max-listpack-entries", "0"]);
    let mut backwards: Vec<String> = pairs(0).collect();
    backwards.chunks_exact_mut(2).for_each(<[String]>::reverse);
    backwards.reverse();
    set(&mut client, "large", &mut backwards.into_iter());
    set(&mut client, "other", &mut pairs(1));
    let digests = client.call(&["DEBUG", "DIGEST-VALUE", "packed", "large", "other"]);
    let Reply::Array(digests) = digests else {
        panic!("an array")
    };
    assert!(digests[0] == digests[1] && digests[0] != digests[2]);
    let encoding = |client: &mut Client, key| text(&client.call(&["DEBUG", "OBJECT", key]));
    assert!(encoding(&mut client, "packed").contains(" encoding:listpack "));
    assert!(encoding(&mut client, "large").contains(" encoding:hashtable "));
}

#[test]
fn debug_object_says_how_a_value_is_stored() {
    let server = debugging();
    let mut client = server.client();
    client.call(&["SET", "k", "12345"]);
    let line = text(&client.call(&["DEBUG", "OBJECT", "k"]));
    let (head, idle) = line.split_once(" lru:").expect("its history");
    assert_eq!(
        head,
        "Value at:0x0 refcount:1 encoding:int serializedlength:3"
    );
    assert!(idle.ends_with(" lru_seconds_idle:0"), "{line}");
    assert_eq!(
        client.call(&["DEBUG", "OBJECT", "none"]),
        error("ERR no such key")
    );
}

#[test]
fn debug_protocol_has_an_example_of_every_type() {
    let server = debugging();
    let mut client = server.client();
    let ask = |client: &mut Client, name: &str| client.call(&["DEBUG", "PROTOCOL", name]);
    let numbers = [0, 1, 2].map(Reply::Integer).to_vec();
    assert_eq!(ask(&mut client, "set"), Reply::Array(numbers.clone()));
    assert_eq!(ask(&mut client, "double"), bulk("3.141"));
    assert_eq!(ask(&mut client, "true"), Reply::Integer(1));
    assert_eq!(
        ask(&mut client, "attrib"),
        bulk("Some real reply following the attribute")
    );
    assert_eq!(
        ask(&mut client, "push"),
        error("ERR RESP2 is not supported by this command")
    );
    assert!(text(&ask(&mut client, "x")).starts_with("ERR Wrong protocol type name."));
    client.call(&["HELLO", "3"]);
    assert_eq!(ask(&mut client, "set"), Reply::Set(numbers));
    assert_eq!(ask(&mut client, "double"), Reply::Double(3_141.0 / 1_000.0));
    assert_eq!(ask(&mut client, "false"), Reply::Boolean(false));
    assert_eq!(ask(&mut client, "null"), Reply::Null);
    let digits = "1234567999999999999999999999999999999".to_owned();
    assert_eq!(ask(&mut client, "bignum"), Reply::BigNumber(digits));
    let pushed = Reply::Push(vec![bulk("server-cpu-usage"), Reply::Integer(42)]);
    assert_eq!(ask(&mut client, "push"), pushed);
    assert_eq!(
        client.read(),
        bulk("Some real reply following the push reply")
    );
    let pairs = [(0, false), (1, true), (2, false)];
    let pairs = pairs.map(|(i, is)| (Reply::Integer(i), Reply::Boolean(is)));
    assert_eq!(ask(&mut client, "map"), Reply::Map(pairs.to_vec()));
    client.send(b"DEBUG PROTOCOL attrib\r\n");
    let attribute = "|1\r\n$14\r\nkey-popularity\r\n*2\r\n$7\r\nkey:123\r\n:90\r\n";
    let expected = format!("{attribute}$39\r\nSome real reply following the attribute\r\n");
    client.finish_sending();
    assert_eq!(String::from_utf8_lossy(&client.read_to_end()), expected);
}

#[test]
fn a_server_alone_says_so() {
    let server = Server::start(&[]);
    let mut client = server.client();
    let master = Reply::Array(vec![
        bulk("master"),
        Reply::Integer(0),
        Reply::Array(vec![]),
    ]);
    assert_eq!(client.call(&["ROLE"]), master);
    client.call(&["SET", "k", "v"]);
    assert_eq!(client.call(&["WAIT", "2", "0"]), Reply::Integer(0));
    assert_eq!(
        client.call(&["WAIT", "1", "-1"]),
        error("ERR timeout is negative")
    );
    assert_eq!(
        client.call(&["WAIT", "x", "0"]),
        error("ERR value is not an integer or out of range")
    );
    let none = Reply::Array(vec![Reply::Integer(0); 2]);
    assert_eq!(client.call(&["WAITAOF", "0", "1", "0"]), none);
    assert!(text(&client.call(&["WAITAOF", "1", "0", "0"])).contains("appendonly is disabled"));
    assert!(text(&client.call(&["LOLWUT", "VERSION", "5"])).contains("Redis ver. 7."));
    assert_eq!(
        client.call(&["LOLWUT", "VERSION", "x"]),
        error("ERR value is not an integer or out of range")
    );
}

#[test]
fn memory_says_where_it_is() {
    let server = Server::start(&[]);
    let mut client = server.client();
    client.call(&["SELECT", "3"]);
    client.call(&["SET", "k", &"v".repeat(1_000)]);
    client.call(&["HELLO", "3"]);
    let Reply::Map(figures) = client.call(&["MEMORY", "STATS"]) else {
        panic!("a map")
    };
    let figure = |name: &str| {
        let found = figures.iter().find(|(key, _)| *key == bulk(name));
        found.unwrap_or_else(|| panic!("no {name}")).1.clone()
    };
    assert_eq!(figure("keys.count"), Reply::Integer(1));
    assert_eq!(figure("lua.caches"), Reply::Integer(0));
    assert_eq!(figure("total.allocated"), figure("keys.bytes-per-key"));
    assert!(matches!(figure("db.3"), Reply::Map(_)));
    assert!(matches!(figure("peak.percentage"), Reply::Double(_)));
    assert!(text(&client.call(&["MEMORY", "DOCTOR"])).contains("too little data"));
    assert_eq!(client.call(&["MEMORY", "PURGE"]), ok());
    assert!(text(&client.call(&["MEMORY", "MALLOC-STATS"])).contains("without statistics"));
}

/// Exporters read these; dashboards show a gap where one is missing.
#[test]
fn info_has_the_fields_that_exporters_read() {
    let server = Server::start(&[]);
    let mut client = server.client();
    client.call(&["SET", "k", "v"]);
    client.call(&["LPUSH"]);
    let all = text(&client.call(&["INFO", "everything"]));
    for field in [
        "uptime_in_seconds",
        "connected_clients",
        "blocked_clients",
        "maxclients",
        "tracking_clients",
        "pubsub_clients",
        "used_memory",
        "used_memory_rss",
        "used_memory_peak",
        "used_memory_lua",
        "used_memory_overhead",
        "used_memory_startup",
        "used_memory_dataset",
        "maxmemory",
        "mem_fragmentation_ratio",
        "mem_clients_normal",
        "mem_clients_slaves",
        "mem_not_counted_for_evict",
        "loading",
        "rdb_changes_since_last_save",
        "rdb_bgsave_in_progress",
        "aof_enabled",
        "total_connections_received",
        "total_commands_processed",
        "instantaneous_ops_per_sec",
        "total_net_input_bytes",
        "total_net_output_bytes",
        "rejected_connections",
        "sync_full",
        "sync_partial_ok",
        "sync_partial_err",
        "expired_keys",
        "expired_subkeys",
        "expired_stale_perc",
        "expired_time_cap_reached_count",
        "evicted_keys",
        "keyspace_hits",
        "keyspace_misses",
        "pubsub_channels",
        "pubsub_patterns",
        "latest_fork_usec",
        "role",
        "connected_slaves",
        "master_repl_offset",
        "repl_backlog_size",
        "master_replid",
        "used_cpu_sys",
        "used_cpu_user",
        "cluster_enabled",
        "cmdstat_set",
        "errorstat_ERR",
        "latency_percentiles_usec_set",
        "db0",
        "redis_version",
        "run_id",
        "executable",
    ] {
        assert!(all.contains(&format!("\n{field}:")), "no {field}");
    }
    assert_eq!(
        client.call(&["CONFIG", "GET", "latency-tracking"]),
        array(&["latency-tracking", "yes"])
    );
}
