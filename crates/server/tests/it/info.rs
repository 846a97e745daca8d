//! INFO: what its fields say is true.

use crate::common::{Client, Server, command, eventually, ok, text};

fn number(client: &mut Client, section: &str, field: &str) -> f64 {
    let value = client.info(section, field);
    (value.parse()).unwrap_or_else(|_| panic!("{field} is no number: {value:?}"))
}

/// Sets keys `{name}:0` and so on, which die after some milliseconds.
fn set(client: &mut Client, name: &str, keys: usize, ms: &str) {
    let calls = (0..keys).map(|i| command(&["SET", &format!("{name}:{i}"), "v", "PX", ms]));
    client.send(&calls.flatten().collect::<Vec<u8>>());
    for _ in 0..keys {
        assert_eq!(client.read(), ok());
    }
}

#[test]
fn clients_that_watch_are_counted_and_so_is_what_they_watch() {
    let server = Server::start(&[]);
    let (mut one, mut two) = (server.client(), server.client());
    let seen = |client: &mut Client| {
        ["watching_clients", "total_watched_keys"].map(|field| client.info("clients", field))
    };
    assert_eq!(seen(&mut one), ["0", "0"]);
    assert_eq!(one.call(&["WATCH", "a", "b"]), ok());
    assert_eq!(two.call(&["WATCH", "b"]), ok());
    assert_eq!(seen(&mut one), ["2", "3"]);
    assert_eq!(two.call(&["UNWATCH"]), ok());
    assert_eq!(seen(&mut one), ["1", "2"]);
}

#[test]
fn the_time_of_the_loops_turns_is_counted() {
    let server = Server::start(&["--threads", "1", "--enable-debug-command", "local"]);
    let mut client = server.client();
    let before = number(&mut client, "stats", "eventloop_duration_sum");
    assert_eq!(client.call(&["DEBUG", "SLEEP", "0.05"]), ok());
    let passed = number(&mut client, "stats", "eventloop_duration_sum") - before;
    assert!((50_000.0..).contains(&passed), "{passed} us");
    assert!(number(&mut client, "stats", "eventloop_cycles") > 0.0);
    let beat = eventually("a rate", || {
        let beat = number(
            &mut client,
            "stats",
            "instantaneous_eventloop_cycles_per_sec",
        );
        (beat > 0.0).then_some(beat)
    });
    let each_us = number(
        &mut client,
        "stats",
        "instantaneous_eventloop_duration_usec",
    );
    assert!(
        beat * each_us < 1e6,
        "{beat} turns a second of {each_us} us"
    );
    assert_eq!(client.call(&["CONFIG", "RESETSTAT"]), ok());
    assert!(number(&mut client, "stats", "eventloop_duration_sum") < 50_000.0);
}

#[test]
fn the_time_of_expiry_is_counted() {
    let server = Server::start(&[]);
    let mut client = server.client();
    assert_eq!(client.info("stats", "expire_cycle_cpu_milliseconds"), "0");
    set(&mut client, "k", 20_000, "1");
    eventually("it took a millisecond", || {
        (number(&mut client, "stats", "expire_cycle_cpu_milliseconds") >= 1.0).then_some(())
    });
}

#[test]
fn keys_that_are_dead_and_not_yet_removed_are_stale() {
    let server = Server::start(&["--enable-debug-command", "local"]);
    let mut client = server.client();
    set(&mut client, "lives", 30, "1000000");
    assert_eq!(client.info("stats", "expired_stale_perc"), "0.00");
    assert_eq!(client.call(&["DEBUG", "SET-ACTIVE-EXPIRE", "0"]), ok());
    set(&mut client, "dies", 10, "1");
    eventually("a quarter is dead", || {
        (client.info("stats", "expired_stale_perc") == "25.00").then_some(())
    });
    assert_eq!(client.call(&["DEBUG", "SET-ACTIVE-EXPIRE", "1"]), ok());
    eventually("the dead are removed", || {
        (client.info("stats", "expired_stale_perc") == "0.00").then_some(())
    });
}

#[test]
fn the_memory_of_lua_is_that_of_the_loops_that_run_scripts() {
    let server = Server::start(&["--threads", "1"]);
    let mut client = server.client();
    assert_eq!(client.info("memory", "used_memory_lua"), "0");
    client.call(&["EVAL", "return 1", "0"]);
    let lua = eventually("it is counted", || {
        let lua = number(&mut client, "memory", "used_memory_lua");
        (lua > 10_000.0).then_some(lua)
    });
    assert_eq!(number(&mut client, "memory", "used_memory_vm_total"), lua);
}

#[test]
fn the_time_above_maxmemory_is_counted() {
    let server = Server::start(&[]);
    let mut client = server.client();
    let times = |client: &mut Client| {
        [
            "current_eviction_exceeded_time",
            "total_eviction_exceeded_time",
        ]
        .map(|field| number(client, "stats", field))
    };
    client.call(&["SET", "k", &"v".repeat(2 << 20)]);
    assert_eq!(times(&mut client), [0.0, 0.0]);
    assert_eq!(client.call(&["CONFIG", "SET", "maxmemory", "1mb"]), ok());
    let above = eventually("the limit was exceeded for a while", || {
        let [current, _] = times(&mut client);
        (current >= 20.0).then_some(current)
    });
    assert_eq!(client.call(&["CONFIG", "SET", "maxmemory", "1gb"]), ok());
    let [current, total] = eventually("it is over", || {
        let [current, total] = times(&mut client);
        (current == 0.0).then_some([current, total])
    });
    assert!(current == 0.0 && total >= above, "{total} ms");
    assert_eq!(times(&mut client)[1], total);
    assert_eq!(client.call(&["CONFIG", "RESETSTAT"]), ok());
    assert_eq!(times(&mut client)[1], 0.0);
}

/// It was only what somebody had happened to see.
#[test]
fn the_peak_of_memory_is_seen_by_nobody_s_asking() {
    let server = Server::start(&[]);
    let mut client = server.client();
    let began = number(&mut client, "server", "server_time_usec") / 1e6;
    client.call(&["SET", "k", &"v".repeat(8 << 20)]);
    // A loop looks once in a tick.
    client.call(&["BLPOP", "nothing", "0.02"]);
    client.call(&["DEL", "k"]);
    eventually("it is freed", || {
        (number(&mut client, "memory", "used_memory") < 1e6).then_some(())
    });
    assert!(number(&mut client, "memory", "used_memory_peak") > 8e6);
    let at = number(&mut client, "memory", "used_memory_peak_time");
    assert!((began - 1.0..began + 600.0).contains(&at), "{at} {began}");
}

#[test]
fn what_the_last_snapshot_held_is_told_and_a_base_of_the_log_is_none() {
    let folder = std::env::temp_dir().join(format!("tidewheel-info-{}", std::process::id()));
    let dir = folder.display().to_string();
    let server = Server::start(&["--appendonly", "yes", "--dir", &dir]);
    let mut client = server.client();
    set(&mut client, "k", 20_000, "1000000");
    let ended = |client: &mut Client, field: &str| {
        eventually(field, || {
            (client.info("persistence", field) == "1").then_some(())
        });
    };
    let before = client.info("persistence", "rdb_last_bgsave_time_sec");
    assert_eq!(before, "-1");
    assert!(text(&client.call(&["BGREWRITEAOF"])).contains("started"));
    ended(&mut client, "aof_rewrites");
    assert!(number(&mut client, "persistence", "aof_last_cow_size") > 0.0);
    assert_eq!(client.info("persistence", "rdb_last_cow_size"), "0");
    assert_eq!(client.info("persistence", "rdb_last_bgsave_time_sec"), "-1");
    assert!(text(&client.call(&["BGSAVE"])).contains("started"));
    ended(&mut client, "rdb_saves");
    assert!(number(&mut client, "persistence", "rdb_last_cow_size") > 0.0);
    let took = client.info("persistence", "rdb_last_bgsave_time_sec");
    assert!(took.parse::<u64>().is_ok(), "{took}");
    drop(server);
    std::fs::remove_dir_all(folder).expect("it is there");
}
