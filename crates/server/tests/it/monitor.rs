//! MONITOR: the commands that it shows, and the end of a monitor that does not read.

use crate::common::{Client, Reply, Server, error, eventually, ok, simple, text};

/// A client that watches.
fn monitor(server: &Server) -> Client {
    let mut monitor = server.client();
    assert_eq!(monitor.call(&["MONITOR"]), ok());
    monitor
}

/// The next line: the database and what was run.
fn seen(monitor: &mut Client) -> String {
    let line = text(&monitor.read());
    let (at, rest) = line.split_once(" [").expect("a time");
    let (seconds, micros) = at.split_once('.').expect("microseconds");
    assert!(seconds.len() == 10 && micros.len() == 6, "{line}");
    let (db, rest) = rest.split_once(' ').expect("a database");
    let (address, run) = rest.split_once("] ").expect("an address");
    if address == "lua" {
        return format!("{db} lua {run}");
    }
    assert!(address.starts_with("127.0.0.1:"), "{line}");
    format!("{db} {run}")
}

#[test]
fn monitors_on_all_loops_see_the_commands_of_all_loops() {
    let server = Server::start(&["--threads", "4"]);
    let mut monitors: Vec<Client> = (0..4).map(|_| monitor(&server)).collect();
    let mut clients: Vec<Client> = (0..8).map(|_| server.client()).collect();
    for (i, client) in clients.iter_mut().enumerate() {
        client.call(&["SELECT", &i.to_string()]);
        client.call(&["SET", "k", "a \"quoted\"\r\n\u{7f}"]);
        client.call(&["NOSUCH"]);
        client.call(&["GET"]);
    }
    for monitor in &mut monitors {
        for i in 0..8 {
            assert_eq!(seen(monitor), format!("{i} \"SELECT\" \"{i}\""));
            let set = r#""SET" "k" "a \"quoted\"\r\n\x7f""#;
            assert_eq!(seen(monitor), format!("{i} {set}"));
        }
    }
}

#[test]
fn passwords_and_administrators_commands_are_not_shown() {
    let server = Server::start(&[]);
    let mut monitor = monitor(&server);
    let mut client = server.client();
    client.call(&["CONFIG", "SET", "requirepass", "secret"]);
    client.call(&["AUTH", "secret"]);
    client.call(&["CLIENT", "LIST"]);
    client.call(&["SLOWLOG", "LEN"]);
    client.call(&["HELLO", "3", "AUTH", "default", "wrong"]);
    client.call(&["PING"]);
    assert_eq!(seen(&mut monitor), r#"0 "AUTH" "(redacted)""#);
    let hello = r#"0 "HELLO" "3" "AUTH" "(redacted)" "(redacted)""#;
    assert_eq!(seen(&mut monitor), hello);
    assert_eq!(seen(&mut monitor), r#"0 "PING""#);
}

/// Commands are shown when they run, not when they are queued.
#[test]
fn a_transaction_is_shown_before_its_exec() {
    let server = Server::start(&[]);
    let mut monitor = monitor(&server);
    let mut client = server.client();
    client.call(&["MULTI"]);
    client.call(&["SET", "k", "v"]);
    client.call(&["EXEC"]);
    for run in [r#""MULTI""#, r#""SET" "k" "v""#, r#""EXEC""#] {
        assert_eq!(seen(&mut monitor), format!("0 {run}"));
    }
}

#[test]
fn a_monitor_uses_no_keys_until_it_says_reset() {
    let server = Server::start(&[]);
    let mut monitor = monitor(&server);
    let refused = error("ERR Replica can't interact with the keyspace");
    for words in [
        &["GET", "k"][..],
        &["SET", "k", "v"],
        &["PUBLISH", "c", "m"],
    ] {
        assert_eq!(monitor.call(words), refused);
    }
    let list = text(&monitor.call(&["CLIENT", "LIST"]));
    assert!(list.contains(" flags=O "), "{list}");
    assert_eq!(monitor.call(&["PING"]), simple("PONG"));
    assert_eq!(seen(&mut monitor), r#"0 "PING""#);
    server.client().call(&["PING", "a"]);
    assert_eq!(seen(&mut monitor), r#"0 "PING" "a""#);
    monitor.send(b"MONITOR\r\n");
    assert!(monitor.is_silent(), "it is one already");
    assert_eq!(monitor.call(&["RESET"]), simple("RESET"));
    server.client().call(&["PING", "b"]);
    assert_eq!(monitor.call(&["GET", "k"]), Reply::Null);
}

#[test]
fn lines_are_lines_for_a_monitor_that_also_subscribes_in_either_protocol() {
    let server = Server::start(&[]);
    for hello in ["2", "3"] {
        let mut monitor = server.client();
        monitor.call(&["HELLO", hello]);
        assert_eq!(monitor.call(&["MONITOR"]), ok());
        monitor.call(&["SUBSCRIBE", "c"]);
        assert_eq!(seen(&mut monitor), r#"0 "SUBSCRIBE" "c""#);
        server.client().call(&["PUBLISH", "c", "m"]);
        let message = ["message", "c", "m"]
            .map(|word| Reply::Bulk(word.into()))
            .to_vec();
        let expected = match hello {
            "2" => Reply::Array(message),
            _ => Reply::Push(message),
        };
        assert_eq!(monitor.read(), expected);
        assert_eq!(seen(&mut monitor), r#"0 "PUBLISH" "c" "m""#);
    }
}

#[test]
fn a_monitor_that_does_not_read_is_closed_and_others_are_not_held_up() {
    let limit = "pubsub 100kb 0 0";
    let server = Server::start(&["--client-output-buffer-limit", limit]);
    let mut idle = monitor(&server);
    let mut client = server.client();
    let value = "v".repeat(100_000);
    eventually("the monitor is closed", || {
        client.call(&["SET", "k", &value]);
        let list = text(&client.call(&["CLIENT", "LIST"]));
        (!list.contains(" flags=O ")).then_some(())
    });
    while idle.try_read().is_some() {}
    assert_eq!(client.call(&["SET", "k", "v"]), ok());
}

/// A script is shown before what it calls, once, also if it begins again with more locks.
#[test]
fn a_script_is_shown_with_its_calls() {
    let server = Server::start(&["--threads", "2"]);
    let mut client = server.client();
    let body = "redis.call('get', KEYS[1]) redis.pcall('get') redis.call('dbsize') \
                redis.call('select', 3) redis.call('publish', 'c', '\"') return 1";
    client.call(&["SCRIPT", "LOAD", body]);
    let mut monitor = monitor(&server);
    for _ in 0..2 {
        client.call(&["EVAL", body, "1", "k"]);
        let eval = seen(&mut monitor);
        assert!(eval.starts_with("0 \"EVAL\" \"redis.call("), "{eval}");
        for call in [
            r#"0 lua "get" "k""#,
            r#"0 lua "dbsize""#,
            r#"3 lua "select" "3""#,
            r#"3 lua "publish" "c" "\"""#,
        ] {
            assert_eq!(seen(&mut monitor), call);
        }
    }
    // ioredis' own tests look for the first of the two.
    client.call(&["EVALSHA", &"0".repeat(40), "0"]);
    assert!(seen(&mut monitor).starts_with("0 \"EVALSHA\""));
    client.call(&["MULTI"]);
    client.call(&["EVAL", "return redis.call('incr', KEYS[1])", "1", "n"]);
    client.call(&["EXEC"]);
    assert_eq!(seen(&mut monitor), r#"0 "MULTI""#);
    assert!(seen(&mut monitor).starts_with("0 \"EVAL\""));
    assert_eq!(seen(&mut monitor), r#"0 lua "incr" "n""#);
    assert_eq!(seen(&mut monitor), r#"0 "EXEC""#);
}
