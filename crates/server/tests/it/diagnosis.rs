//! SLOWLOG and LATENCY over the wire.

use crate::common::{Client, Reply, Server, bulk, error, eventually, ok, text};

fn items(reply: Reply) -> Vec<Reply> {
    match reply {
        Reply::Array(items) => items,
        other => panic!("no array: {other:?}"),
    }
}

/// The arguments of the entries of the slow log, newest first.
fn logged(client: &mut Client, count: &str) -> Vec<Vec<String>> {
    let entries = items(client.call(&["SLOWLOG", "GET", count]));
    let args = |entry: Reply| {
        items(items(entry).swap_remove(3))
            .iter()
            .map(text)
            .collect()
    };
    entries.into_iter().map(args).collect()
}

/// A write that is refused for want of memory has not run, as in Redis.
#[test]
fn writes_without_memory_are_rejected_and_not_called() {
    let server = Server::start(&[]);
    let mut client = server.client();
    client.call(&["SET", "k", "v"]);
    client.call(&["SET", "l", "v"]);
    client.call(&["CONFIG", "SET", "maxmemory", "1"]);
    for words in [
        &["SET", "k", "w"][..],
        &["SET", "k", "w"],
        &["LPUSH", "x", "v"],
    ] {
        assert!(text(&client.call(words)).starts_with("OOM "));
    }
    client.call(&["CONFIG", "SET", "maxmemory", "0"]);
    assert!(text(&client.call(&["LPUSH", "k", "v"])).starts_with("WRONGTYPE "));
    let stats = text(&client.call(&["INFO", "commandstats"]));
    let counts = |name: &str| {
        let line = stats
            .lines()
            .find(|line| line.starts_with(name))
            .expect("a line");
        let parts = line.split([':', ',']);
        let parts = parts.filter(|part| part.contains("calls=") && !part.contains("usec"));
        parts.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(
        counts("cmdstat_set"),
        "calls=2 rejected_calls=2 failed_calls=0"
    );
    assert_eq!(
        counts("cmdstat_lpush"),
        "calls=1 rejected_calls=1 failed_calls=1"
    );
    assert_eq!(client.info("errorstats", "errorstat_OOM"), "count=3");
}

#[test]
fn the_slow_log_names_the_call_its_client_and_how_long_it_took() {
    let server = Server::start(&["--enable-debug-command", "yes"]);
    let mut client = server.client();
    client.call(&["CLIENT", "SETNAME", "sleeper"]);
    client.call(&["PING"]);
    assert_eq!(client.call(&["SLOWLOG", "LEN"]), Reply::Integer(0));
    client.call(&["DEBUG", "SLEEP", "0.02"]);
    let entry = items(items(client.call(&["SLOWLOG", "GET"])).swap_remove(0));
    let (Reply::Integer(number), Reply::Integer(at_s), Reply::Integer(us)) =
        (&entry[0], &entry[1], &entry[2])
    else {
        panic!("{entry:?}")
    };
    assert_eq!(*number, 0);
    assert!(*at_s > 1_500_000_000 && (20_000..10_000_000).contains(us));
    assert_eq!(
        entry[3],
        Reply::Array(["DEBUG", "SLEEP", "0.02"].map(bulk).to_vec())
    );
    assert!(text(&entry[4]).starts_with("127.0.0.1:"));
    assert_eq!(entry[5], bulk("sleeper"));
}

#[test]
fn the_slow_log_keeps_the_newest_and_hides_passwords() {
    let server = Server::start(&["--slowlog-max-len", "3"]);
    let mut client = server.client();
    client.call(&["CONFIG", "SET", "slowlog-log-slower-than", "0"]);
    client.call(&["SET", "k", &"v".repeat(300)]);
    client.call(&["AUTH", "joe", "secret"]);
    client.call(&["GET", "k"]);
    client.call(&["NOSUCH"]);
    let kept = format!("{}... (172 more bytes)", "v".repeat(128));
    let all = [
        vec!["GET", "k"],
        vec!["AUTH", "(redacted)", "(redacted)"],
        vec!["SET", "k", &kept],
    ];
    assert_eq!(logged(&mut client, "-1"), all);
    assert_eq!(client.call(&["SLOWLOG", "LEN"]), Reply::Integer(3));
    assert_eq!(client.call(&["SLOWLOG", "RESET"]), ok());
    assert_eq!(logged(&mut client, "1"), [["SLOWLOG", "RESET"]]);
    client.call(&["CONFIG", "SET", "slowlog-log-slower-than", "-1"]);
    client.call(&["SLOWLOG", "RESET"]);
    assert_eq!(client.call(&["SLOWLOG", "LEN"]), Reply::Integer(0));
    for count in ["-2", "x"] {
        assert_eq!(
            client.call(&["SLOWLOG", "GET", count]),
            error("ERR count should be greater than or equal to -1")
        );
    }
}

#[test]
fn the_commands_of_a_transaction_are_in_the_slow_log_without_their_exec() {
    let server = Server::start(&["--slowlog-log-slower-than", "0"]);
    let mut client = server.client();
    for words in [&["MULTI"][..], &["INCR", "k"], &["EXEC"]] {
        client.call(words);
    }
    let all = logged(&mut client, "-1");
    assert_eq!(all, [vec!["INCR", "k"], vec!["MULTI"]]);
}

/// A command over all keys is run in steps; MGET has only its size to say that it may take long.
#[test]
fn long_walks_and_big_calls_are_in_the_slow_log_once() {
    let server = Server::start(&["--slowlog-log-slower-than", "1000"]);
    let mut client = server.client();
    for part in 0..30 {
        let mut words = vec!["MSET".to_owned()];
        for key in 0..5_000 {
            words.extend([format!("{part}:{key}"), "v".to_owned()]);
        }
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        client.call(&words);
    }
    client.call(&["SLOWLOG", "RESET"]);
    client.call(&["KEYS", "*9"]);
    let walked = logged(&mut client, "-1");
    assert_eq!(walked, [["KEYS", "*9"]]);
    let mut words = vec!["1:1"; 200_001];
    words[0] = "MGET";
    client.call(&words);
    let big = logged(&mut client, "1").swap_remove(0);
    assert_eq!(big[31], "... (199970 more arguments)");
    // On a busy machine SLOWLOG itself may take as long.
    let names = logged(&mut client, "-1");
    let names = names.iter().map(|words| words[0].as_str());
    let names: Vec<&str> = names.filter(|name| *name != "SLOWLOG").collect();
    assert_eq!(names, ["MGET", "KEYS"]);
}

#[test]
fn events_that_take_long_are_noted_by_the_second() {
    let server = Server::start(&["--enable-debug-command", "yes"]);
    let mut client = server.client();
    client.call(&["DEBUG", "SLEEP", "0.01"]);
    assert_eq!(client.call(&["LATENCY", "LATEST"]), Reply::Array(vec![]));
    assert!(text(&client.call(&["LATENCY", "DOCTOR"])).contains("latency-monitor-threshold"));
    client.call(&["CONFIG", "SET", "latency-monitor-threshold", "5"]);
    client.call(&["DEBUG", "SLEEP", "0.02"]);
    let latest = items(items(client.call(&["LATENCY", "LATEST"])).swap_remove(0));
    let (Reply::Integer(at_s), Reply::Integer(ms)) = (&latest[1], &latest[2]) else {
        panic!("{latest:?}")
    };
    assert_eq!(latest[0], bulk("command"));
    assert!(*ms >= 20 && latest[3] == latest[2]);
    let history = client.call(&["LATENCY", "HISTORY", "command"]);
    let sample = Reply::Array(vec![Reply::Integer(*at_s), Reply::Integer(*ms)]);
    assert_eq!(history, Reply::Array(vec![sample]));
    assert_eq!(
        client.call(&["LATENCY", "HISTORY", "fork"]),
        Reply::Array(vec![])
    );
    let graph = text(&client.call(&["LATENCY", "GRAPH", "command"]));
    assert!(graph.starts_with("command - high ") && graph.contains(" ms, low "));
    assert_eq!(
        client.call(&["LATENCY", "GRAPH", "fork"]),
        error("ERR No samples available for event 'fork'")
    );
    assert!(text(&client.call(&["LATENCY", "DOCTOR"])).contains("command: slow in 1"));
    let reset = ["LATENCY", "RESET", "fork", "command", "command"];
    assert_eq!(client.call(&reset), Reply::Integer(1));
    assert_eq!(client.call(&["LATENCY", "RESET"]), Reply::Integer(0));
}

#[test]
fn histograms_count_every_call_under_the_names_of_the_commands() {
    let server = Server::start(&[]);
    let mut client = server.client();
    client.call(&["HELLO", "3"]);
    let calls = |client: &mut Client, names: &[&str]| {
        let words: Vec<&str> = ["LATENCY", "HISTOGRAM"]
            .iter()
            .chain(names)
            .copied()
            .collect();
        let Reply::Map(commands) = client.call(&words) else {
            panic!("no map")
        };
        let read = |(name, of): &(Reply, Reply)| match of {
            Reply::Map(pairs) => {
                assert_eq!(pairs[0].0, bulk("calls"));
                assert_eq!(pairs[1].0, bulk("histogram_usec"));
                (text(name), pairs[0].1.clone())
            }
            other => panic!("no map: {other:?}"),
        };
        commands.iter().map(read).collect::<Vec<_>>()
    };
    client.call(&["CONFIG", "RESETSTAT"]);
    let reset = ("config|resetstat".to_owned(), Reply::Integer(1));
    assert_eq!(calls(&mut client, &[]), std::slice::from_ref(&reset));
    for _ in 0..100 {
        client.call(&["SET", "a", "b"]);
    }
    let sets = ("set".to_owned(), Reply::Integer(100));
    assert_eq!(
        calls(&mut client, &["blah", "SET", "config", "set"]),
        [reset, sets]
    );
    let percentiles = client.info("latencystats", "latency_percentiles_usec_set");
    assert!(percentiles.starts_with("p50=") && percentiles.contains(",p99.9="));
    client.call(&["CONFIG", "SET", "latency-tracking", "no"]);
    assert_eq!(calls(&mut client, &[]), []);
}

/// The time for which a command waits is not its own.
#[test]
fn a_command_that_waits_is_in_the_slow_log_when_it_has_been_served() {
    let server = Server::start(&["--slowlog-log-slower-than", "0"]);
    let (mut waiting, mut client) = (server.client(), server.client());
    waiting.send(b"BLPOP queue 0\r\n");
    eventually("it waits", || {
        let list = text(&client.call(&["CLIENT", "LIST"]));
        list.contains(" cmd=blpop ").then_some(())
    });
    let blpop = vec!["BLPOP".to_owned(), "queue".to_owned(), "0".to_owned()];
    assert!(!logged(&mut client, "-1").contains(&blpop));
    client.call(&["RPUSH", "queue", "a"]);
    waiting.read();
    let entries = logged(&mut client, "-1");
    assert_eq!(entries.iter().filter(|args| **args == blpop).count(), 1);
}

/// What was refused or queued counted as well, and what a script calls did not.
#[test]
fn commands_count_when_they_have_run() {
    // One loop: who asks comes after it has counted.
    let server = Server::start(&["--maxmemory", "10mb", "--threads", "1"]);
    let (mut admin, mut client) = (server.client(), server.client());
    let Reply::Integer(id) = client.call(&["CLIENT", "ID"]) else {
        panic!("a number")
    };
    let large = "x".repeat(11 << 20);
    let script = "redis.call('SET', KEYS[1], 'a') return redis.call('GET', KEYS[1])";
    admin.call(&[
        "ACL", "SETUSER", "bob", "on", "nopass", "+auth", "+multi", "+exec", "+ping",
    ]);
    let counted = |admin: &mut Client| {
        let sum = admin.info("stats", "total_commands_processed");
        let list = text(&admin.call(&["CLIENT", "LIST", "ID", &id.to_string()]));
        let own = list.split("tot-cmds=").nth(1).expect("it is there");
        let own = own.split(' ').next().expect("a number");
        (
            sum.parse::<u64>().expect("a number"),
            own.parse::<u64>().expect("a number"),
        )
    };
    let mut before = counted(&mut admin);
    for (lines, run) in [
        (&[&["PING"][..]][..], 1),
        (&[&["NO-SUCH"]], 0),
        (&[&["GET"]], 0),
        (&[&["SET", "k", &large]], 0),
        (
            &[&["MULTI"], &["SET", "k", "v"], &["GET", "k"], &["EXEC"]],
            4,
        ),
        (&[&["MULTI"], &["SET", "k", "v"], &["DISCARD"]], 2),
        (&[&["EVAL", script, "1", "k"]], 3),
        (&[&["LPUSH", "k", "v"]], 1),
        (&[&["AUTH", "bob", ""], &["GET", "k"]], 1),
        (&[&["MULTI"], &["PING"], &["EXEC"]], 3),
    ] {
        for line in lines {
            client.call(line);
        }
        let after = counted(&mut admin);
        // The one who asks has asked twice.
        let more = (after.0 - before.0 - 2, after.1 - before.1);
        assert_eq!(more, (run, run), "{:?}", lines[0]);
        before = after;
    }
    // A right that is lost between the two is found when it runs.
    client.call(&["MULTI"]);
    client.call(&["PING"]);
    admin.call(&["ACL", "SETUSER", "bob", "-ping"]);
    admin.call(&["CONFIG", "RESETSTAT"]);
    client.call(&["EXEC"]);
    let ping = admin.info("commandstats", "cmdstat_ping");
    assert!(
        ping.starts_with("calls=0,usec=0,") && ping.contains("rejected_calls=1,"),
        "{ping}"
    );
}
