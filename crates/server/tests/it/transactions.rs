//! MULTI, EXEC and WATCH over sockets: queued and refused commands, and watched keys.

use crate::common::{Client, Server, bulk, error, eventually, ok, simple, text};
use tidewheel_resp::Reply;

fn queued() -> Reply {
    simple("QUEUED")
}

fn aborted() -> Reply {
    error("EXECABORT Transaction discarded because of previous errors.")
}

/// Calls lines of `command -> reply`; a reply is the text of a status or an error.
fn script(client: &mut Client, lines: &[(&str, &str)]) {
    for (line, expected) in lines {
        let words: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(text(&client.call(&words)), *expected, "{line}");
    }
}

#[test]
fn commands_are_queued_and_run_together() {
    let server = Server::start(&[]);
    let (mut client, mut other) = (server.client(), server.client());
    script(
        &mut client,
        &[
            ("MULTI", "OK"),
            ("SET a 1", "QUEUED"),
            ("INCR a", "QUEUED"),
            ("PING", "QUEUED"),
        ],
    );
    assert_eq!(other.call(&["EXISTS", "a"]), Reply::Integer(0));
    assert!(
        other
            .info("commandstats", "cmdstat_exists")
            .contains("calls=1")
    );
    let ran = client.call(&["EXEC"]);
    assert_eq!(
        ran,
        Reply::Array(vec![ok(), Reply::Integer(2), simple("PONG")])
    );
    assert!(
        other
            .info("commandstats", "cmdstat_incr")
            .contains("calls=1")
    );
    assert_eq!(client.call(&["MULTI"]), ok());
    assert_eq!(client.call(&["EXEC"]), Reply::Array(vec![]));
}

#[test]
fn an_error_while_queuing_refuses_all_and_an_error_while_running_refuses_one() {
    let server = Server::start(&[]);
    let mut client = server.client();
    for wrong in [
        &["NOSUCH"][..],
        &["GET"],
        &["CONFIG", "NOSUCH"],
        &["SHUTDOWN"],
    ] {
        assert_eq!(client.call(&["MULTI"]), ok());
        assert_eq!(client.call(&["SET", "a", "1"]), queued());
        assert!(matches!(client.call(wrong), Reply::Error(_)), "{wrong:?}");
        assert_eq!(client.call(&["SET", "a", "2"]), queued());
        assert_eq!(client.call(&["EXEC"]), aborted());
    }
    assert_eq!(client.call(&["GET", "a"]), Reply::Null);
    script(
        &mut client,
        &[
            ("MULTI", "OK"),
            ("SET a x", "QUEUED"),
            ("INCR a", "QUEUED"),
            ("GET a", "QUEUED"),
        ],
    );
    let ran = client.call(&["EXEC"]);
    let why = error("ERR value is not an integer or out of range");
    assert_eq!(ran, Reply::Array(vec![ok(), why, bulk("x")]));
}

#[test]
fn calls_out_of_order_are_refused() {
    let server = Server::start(&[]);
    let mut client = server.client();
    script(
        &mut client,
        &[
            ("EXEC", "ERR EXEC without MULTI"),
            ("DISCARD", "ERR DISCARD without MULTI"),
            ("UNWATCH", "OK"),
            ("MULTI", "OK"),
            ("SET a 1", "QUEUED"),
            ("MULTI", "ERR MULTI calls can not be nested"),
            ("WATCH a", "ERR WATCH inside MULTI is not allowed"),
        ],
    );
    assert_eq!(client.call(&["EXEC"]), Reply::Array(vec![ok()]));
    script(
        &mut client,
        &[
            ("MULTI", "OK"),
            ("SET a 2", "QUEUED"),
            ("DISCARD", "OK"),
            ("SET b 1", "OK"),
        ],
    );
    assert_eq!(client.call(&["GET", "a"]), bulk("1"));
    script(
        &mut client,
        &[
            ("MULTI", "OK"),
            ("SET a 3", "QUEUED"),
            ("RESET", "RESET"),
            ("SET b 2", "OK"),
        ],
    );
    assert_eq!(client.call(&["GET", "a"]), bulk("1"));
}

#[test]
fn a_change_by_another_client_stops_a_transaction_and_discard_forgets_what_was_watched() {
    let server = Server::start(&[]);
    let (mut client, mut other) = (server.client(), server.client());
    script(
        &mut client,
        &[("WATCH a b", "OK"), ("MULTI", "OK"), ("SET c 1", "QUEUED")],
    );
    assert_eq!(other.call(&["SET", "b", "1"]), ok());
    let list = text(&other.call(&["CLIENT", "LIST"]));
    assert!(list.contains(" multi=1 "), "{list}");
    assert_eq!(client.call(&["EXEC"]), Reply::Null);
    for forget in ["UNWATCH", "RESET"] {
        script(&mut client, &[("WATCH a", "OK")]);
        assert_eq!(other.call(&["SET", "a", forget]), ok());
        client.call(&[forget]);
        script(&mut client, &[("MULTI", "OK"), ("SET c 1", "QUEUED")]);
        assert_eq!(client.call(&["EXEC"]), Reply::Array(vec![ok()]), "{forget}");
    }
    // Its own changes count too.
    script(
        &mut client,
        &[
            ("WATCH a", "OK"),
            ("SET a 2", "OK"),
            ("MULTI", "OK"),
            ("GET a", "QUEUED"),
        ],
    );
    assert_eq!(client.call(&["EXEC"]), Reply::Null);
}

#[test]
fn the_servers_own_commands_run_within_a_transaction() {
    let server = Server::start(&[]);
    let (mut client, mut listener) = (server.client(), server.client());
    listener.call(&["SUBSCRIBE", "news"]);
    let lines = [
        ("MULTI", "OK"),
        ("SET a 1", "QUEUED"),
        ("PUBLISH news hello", "QUEUED"),
        ("CONFIG SET notify-keyspace-events KEA", "QUEUED"),
        ("CLIENT PAUSE 1 WRITE", "QUEUED"),
        ("FLUSHALL", "QUEUED"),
        ("SWAPDB 0 1", "QUEUED"),
        ("DBSIZE", "QUEUED"),
    ];
    script(&mut client, &lines);
    let ran = client.call(&["EXEC"]);
    let expected = [
        ok(),
        Reply::Integer(1),
        ok(),
        ok(),
        ok(),
        ok(),
        Reply::Integer(0),
    ];
    assert_eq!(ran, Reply::Array(expected.to_vec()));
    assert_eq!(
        listener.read(),
        crate::common::array(&["message", "news", "hello"])
    );
    let mut other = server.client();
    assert_eq!(other.call(&["SET", "b", "1"]), ok(), "the others go on");
}

#[test]
fn a_queue_is_bounded_and_counted() {
    let server = Server::start(&["--client-query-buffer-limit", "2mb"]);
    let (mut client, mut other) = (server.client(), server.client());
    let value = "v".repeat(300_000);
    assert_eq!(client.call(&["MULTI"]), ok());
    assert_eq!(client.call(&["SET", "a", &value]), queued());
    eventually("what it holds is known", || {
        let list = text(&other.call(&["CLIENT", "LIST"]));
        let held = list
            .split("multi-mem=")
            .filter_map(|rest| rest.split(' ').next()?.parse::<u64>().ok());
        held.max().filter(|held| *held >= 300_000)
    });
    let mut refused = 0;
    for _ in 0..20 {
        refused += u32::from(client.call(&["SET", "a", &value]) != queued());
    }
    assert!(refused > 0, "nothing is refused");
    assert_eq!(client.call(&["EXEC"]), aborted());
    assert_eq!(client.call(&["EXISTS", "a"]), Reply::Integer(0));
}

#[test]
fn a_client_that_leaves_in_the_middle_leaves_nothing_behind() {
    let server = Server::start(&[]);
    let mut other = server.client();
    for _ in 0..50 {
        let mut client = server.client();
        script(
            &mut client,
            &[
                ("WATCH a b c", "OK"),
                ("MULTI", "OK"),
                ("SET a 1", "QUEUED"),
            ],
        );
    }
    assert_eq!(other.call(&["SET", "a", "2"]), ok());
    assert_eq!(other.call(&["GET", "a"]), bulk("2"));
}

/// The message stood between the replies of the transaction.
#[test]
fn what_a_transaction_publishes_to_its_own_client_follows_all_its_replies() {
    let server = Server::start(&[]);
    let mut client = server.client();
    client.call(&["HELLO", "3"]);
    client.call(&["SUBSCRIBE", "a", "b"]);
    client.read();
    for words in [
        &["MULTI"][..],
        &["PUBLISH", "a", "one"],
        &["UNSUBSCRIBE", "b"],
        &["PUBLISH", "a", "two"],
        &["PING"],
    ] {
        client.call(words);
    }
    let Reply::Array(replies) = client.call(&["EXEC"]) else {
        panic!("an array")
    };
    assert_eq!(replies[0], Reply::Integer(1));
    assert!(matches!(&replies[1], Reply::Push(parts) if parts[0] == bulk("unsubscribe")));
    assert_eq!(replies[2..], [Reply::Integer(1), simple("PONG")]);
    for text in ["one", "two"] {
        let message = ["message", "a", text].map(bulk).to_vec();
        assert_eq!(client.read(), Reply::Push(message));
    }
}

#[test]
fn nothing_is_queued_while_there_is_no_memory() {
    let server = Server::start(&[]);
    let mut client = server.client();
    client.call(&["SET", "k", "v"]);
    client.call(&["CONFIG", "SET", "maxmemory", "1"]);
    client.call(&["MULTI"]);
    let full = error("OOM command not allowed when used memory > 'maxmemory'.");
    assert_eq!(client.call(&["SET", "k", "w"]), full);
    assert_eq!(client.call(&["DISCARD"]), ok());
    client.call(&["MULTI"]);
    assert_eq!(client.call(&["PING"]), full);
    let aborted = error("EXECABORT Transaction discarded because of previous errors.");
    assert_eq!(client.call(&["EXEC"]), aborted);
}

#[test]
fn the_last_command_of_a_client_is_exec_and_none_of_its_transaction() {
    let server = Server::start(&[]);
    let mut client = server.client();
    for words in [&["MULTI"][..], &["PING"], &["EXEC"]] {
        client.call(words);
    }
    let list = text(&server.client().call(&["CLIENT", "LIST"]));
    assert!(list.contains(" cmd=exec "), "{list}");
}

#[test]
fn an_exec_that_may_not_run_says_that_the_transaction_is_over() {
    let server = Server::start(&["--requirepass", "secret"]);
    let mut client = server.client();
    let discarded = "EXECABORT Transaction discarded because of:";
    let lines = [
        (
            "EXEC",
            &*format!("{discarded} NOAUTH Authentication required."),
        ),
        ("AUTH secret", "OK"),
    ];
    script(&mut client, &lines);
    client.call(&["SUBSCRIBE", "news"]);
    let reply = text(&client.call(&["EXEC"]));
    assert!(
        reply.starts_with(&format!("{discarded} Can't execute 'exec': only")),
        "{reply}"
    );
}

#[test]
fn an_exec_with_arguments_ends_the_transaction() {
    let server = Server::start(&[]);
    let refused =
        "EXECABORT Transaction discarded because of: wrong number of arguments for 'exec' command";
    script(
        &mut server.client(),
        &[
            ("WATCH a", "OK"),
            ("MULTI", "OK"),
            ("SET a 1", "QUEUED"),
            ("EXEC now", refused),
            ("EXEC", "ERR EXEC without MULTI"),
            ("GETRANGE a 0 9", ""),
            ("EXEC now", refused),
            ("SET a 2", "OK"),
            ("MULTI", "OK"),
        ],
    );
}

fn id_of(client: &mut Client) -> String {
    let Reply::Integer(id) = client.call(&["CLIENT", "ID"]) else {
        panic!("CLIENT ID is a number");
    };
    id.to_string()
}

#[test]
fn whoever_has_seen_a_reply_finds_the_client_as_it_is() {
    let server = Server::start(&[]);
    let (mut client, mut other) = (server.client(), server.client());
    let id = id_of(&mut client);
    let mut shown = |client: &mut Client, words: &[&str], facts: &[&str]| {
        client.call(words);
        let line = text(&other.call(&["CLIENT", "LIST", "ID", &id]));
        for fact in facts {
            assert!(line.contains(fact), "{words:?}: no {fact} in {line}");
        }
    };
    for round in 0..50 {
        let key = format!("k{round}");
        shown(&mut client, &["WATCH", &key], &[" watch=1 ", " cmd=watch "]);
        shown(&mut client, &["MULTI"], &[" flags=x ", " multi=0 "]);
        let set = ["SET", "a", "1"];
        shown(&mut client, &set, &[" multi=1 ", " cmd=set "]);
        shown(&mut client, &["EXEC"], &[" flags=N ", " multi=-1 "]);
        shown(&mut client, &["GET", "a"], &[" cmd=get "]);
    }
}

#[test]
fn a_client_whose_watched_key_has_changed_is_shown_as_such() {
    let server = Server::start(&[]);
    let (mut client, mut other) = (server.client(), server.client());
    client.call(&["WATCH", "a"]);
    other.call(&["SET", "a", "1"]);
    let id = id_of(&mut client);
    other.call(&["SET", "a", "2"]);
    let line = text(&other.call(&["CLIENT", "LIST", "ID", &id]));
    assert!(line.contains(" flags=d "), "{line}");
}

#[test]
fn monitor_does_not_run_within_a_transaction() {
    let server = Server::start(&[]);
    let mut client = server.client();
    client.call(&["MULTI"]);
    assert_eq!(client.call(&["MONITOR"]), queued());
    let why = error("ERR MONITOR isn't allowed for DENY BLOCKING client");
    assert_eq!(client.call(&["EXEC"]), Reply::Array(vec![why]));
}
