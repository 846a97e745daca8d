//! Commands that wait for keys: they are served in order, in time, and without loss.

use std::collections::BTreeSet;
use std::time::Duration;

use tidewheel_resp::Reply;

use crate::common::{
    Client, Server, array, bulk, command, error, eventually, now, ok, simple, text,
};

/// Sends a call, and waits until so many clients wait in all.
fn begin(admin: &mut Client, client: &mut Client, line: &str, waiting: usize) {
    let words: Vec<&str> = line.split_whitespace().collect();
    client.send(&command(&words));
    eventually("it waits", || {
        (admin.info("clients", "blocked_clients") == waiting.to_string()).then_some(())
    });
}

fn call(client: &mut Client, line: &str) -> Reply {
    client.call(&line.split_whitespace().collect::<Vec<_>>())
}

#[test]
fn a_command_waits_until_its_key_holds_something() {
    let server = Server::start(&[]);
    let (mut admin, mut client) = (server.client(), server.client());
    for (wait, push, reply) in [
        ("BLPOP none l 0", "RPUSH l a b", array(&["l", "a"])),
        ("BRPOP m 0", "RPUSH m a b", array(&["m", "b"])),
        ("BLMOVE s d LEFT RIGHT 0", "RPUSH s a", bulk("a")),
        ("BRPOPLPUSH t d 0", "RPUSH t b", bulk("b")),
        (
            "BLMPOP 0 2 none u LEFT COUNT 9",
            "RPUSH u a b",
            Reply::Array(vec![bulk("u"), array(&["a", "b"])]),
        ),
        ("BZPOPMIN z 0", "ZADD z 1 a 2 b", array(&["z", "a", "1"])),
        ("BZPOPMAX y 0", "ZADD y 1 a 2 b", array(&["y", "b", "2"])),
        (
            "BZMPOP 0 1 x MIN COUNT 1",
            "ZADD x 1 a",
            Reply::Array(vec![bulk("x"), Reply::Array(vec![array(&["a", "1"])])]),
        ),
    ] {
        begin(&mut admin, &mut client, wait, 1);
        assert!(client.is_silent());
        let Reply::Integer(_) = call(&mut admin, push) else {
            panic!("{push}")
        };
        assert_eq!(client.read(), reply, "{wait}");
        eventually("nobody waits", || {
            (admin.info("clients", "blocked_clients") == "0").then_some(())
        });
    }
    assert_eq!(call(&mut admin, "LRANGE d 0 -1"), array(&["b", "a"]));
    assert_eq!(call(&mut admin, "EXISTS s t u"), Reply::Integer(0));
    assert_eq!(client.call(&["PING"]), simple("PONG"));
}

#[test]
fn other_changes_that_bring_elements_serve_too_and_other_types_do_not() {
    let server = Server::start(&[]);
    let (mut admin, mut client) = (server.client(), server.client());
    for (before, change) in [
        ("RPUSH other a", "RENAME other l"),
        ("RPUSH other a", "COPY other l"),
        ("RPUSH other a", "LMOVE other l LEFT LEFT"),
        ("SADD other a", "SORT other ALPHA STORE l"),
    ] {
        call(&mut admin, "DEL other");
        call(&mut admin, before);
        begin(&mut admin, &mut client, "BLPOP l 0", 1);
        call(&mut admin, "SET l text");
        assert!(client.is_silent(), "of another type");
        call(&mut admin, "DEL l");
        call(&mut admin, change);
        assert_eq!(client.read(), array(&["l", "a"]), "{change}");
    }
    call(&mut admin, "SELECT 1");
    call(&mut admin, "RPUSH l b");
    begin(&mut admin, &mut client, "BLPOP l 0", 1);
    assert_eq!(call(&mut admin, "SWAPDB 0 1"), ok());
    assert_eq!(client.read(), array(&["l", "b"]), "SWAPDB");
}

#[test]
fn a_transaction_does_not_wait_and_serves_others_at_its_end() {
    let server = Server::start(&[]);
    let (mut admin, mut client) = (server.client(), server.client());
    call(&mut client, "MULTI");
    call(&mut client, "BLPOP l 0");
    call(&mut client, "BLMOVE l m LEFT LEFT 0");
    assert_eq!(
        call(&mut client, "EXEC"),
        Reply::Array(vec![Reply::Null, Reply::Null])
    );
    begin(&mut admin, &mut client, "BLPOP l 0", 1);
    for line in ["MULTI", "RPUSH l a", "DEL l", "RPUSH l b c", "LLEN l"] {
        call(&mut admin, line);
    }
    let Reply::Array(replies) = call(&mut admin, "EXEC") else {
        panic!("it runs")
    };
    assert_eq!(replies[3], Reply::Integer(2), "nobody is served in between");
    assert_eq!(client.read(), array(&["l", "b"]));
    begin(&mut admin, &mut client, "BLPOP l m 0", 0);
    assert_eq!(client.read(), array(&["l", "c"]));
}

/// Time stands still within a transaction, and goes on before those who wait are served.
#[test]
fn a_key_that_dies_while_its_transaction_sleeps_serves_nobody() {
    let server = Server::start(&["--enable-debug-command", "yes"]);
    let (mut admin, mut client) = (server.client(), server.client());
    begin(&mut admin, &mut client, "BRPOP k 0", 1);
    for line in [
        "MULTI",
        "RPUSH k a",
        "PEXPIRE k 20",
        "DEBUG SLEEP 0.04",
        "LLEN k",
    ] {
        call(&mut admin, line);
    }
    let Reply::Array(replies) = call(&mut admin, "EXEC") else {
        panic!("it runs")
    };
    assert_eq!(replies[3], Reply::Integer(1));
    assert_eq!(call(&mut admin, "EXISTS k"), Reply::Integer(0));
    assert!(client.is_silent());
    call(&mut admin, "RPUSH k b");
    assert_eq!(client.read(), array(&["k", "b"]));
}

#[test]
fn a_wait_ends_at_its_time_and_not_before() {
    let server = Server::start(&[]);
    let mut client = server.client();
    for (line, ms) in [
        ("BLPOP l 0.02", 20),
        ("BLMOVE l m LEFT LEFT 0.105", 105),
        ("BZPOPMIN z 0.001", 1),
    ] {
        let began = now();
        assert_eq!(call(&mut client, line), Reply::Null);
        let took = began.elapsed();
        assert!(took >= Duration::from_millis(ms), "{line}: {took:?}");
        assert!(took < Duration::from_millis(ms + 500), "{line}: {took:?}");
    }
    for (line, text) in [
        ("BLPOP l x", "ERR timeout is not a float or out of range"),
        ("BLPOP l -1", "ERR timeout is negative"),
        ("BLPOP l 0x7fffffffffffff", "ERR timeout is out of range"),
        ("BLPOP l 1e300", "ERR timeout is out of range"),
        ("BLMPOP -1 1 l LEFT", "ERR timeout is negative"),
    ] {
        assert_eq!(call(&mut client, line), error(text), "{line}");
    }
}

/// The end does not arrive before there is room for what was sent before it.
#[test]
fn a_client_that_leaves_much_behind_its_wait_is_seen_to_leave() {
    let server = Server::start(&[]);
    let mut admin = server.client();
    let value = "x".repeat(5 << 20);
    let behind = [
        command(&["SET", "big", &value]),
        command(&["STRLEN", "big"]),
    ]
    .concat();
    for leaves in [Client::finish_sending, |client: &Client| {
        let both = std::net::Shutdown::Both;
        client.stream.shutdown(both).expect("a connection");
    }] {
        let mut client = server.client();
        begin(&mut admin, &mut client, "BLPOP l 0", 1);
        client.send(&behind);
        leaves(&client);
        eventually("it has left", || {
            (admin.info("clients", "blocked_clients") == "0").then_some(())
        });
        assert_eq!(call(&mut admin, "RPUSH l a"), Reply::Integer(1));
        assert_eq!(call(&mut admin, "LPOP l"), bulk("a"));
    }
    assert_eq!(call(&mut admin, "EXISTS big"), Reply::Integer(0));
    let mut client = server.client();
    begin(&mut admin, &mut client, "BLPOP l 0", 1);
    client.send(&behind);
    assert!(client.is_silent());
    call(&mut admin, "RPUSH l a");
    assert_eq!(client.read(), array(&["l", "a"]));
    assert_eq!(client.read(), ok());
    assert_eq!(client.read(), Reply::Integer(5 << 20));
}

#[test]
fn client_unblock_ends_a_wait_and_the_client_goes_on() {
    let server = Server::start(&[]);
    let (mut admin, mut client) = (server.client(), server.client());
    let Reply::Integer(id) = call(&mut client, "CLIENT ID") else {
        panic!("a number")
    };
    assert_eq!(
        call(&mut admin, &format!("CLIENT UNBLOCK {id}")),
        Reply::Integer(0)
    );
    begin(&mut admin, &mut client, "BLPOP l 0", 1);
    let Reply::Bulk(list) = call(&mut admin, "CLIENT LIST") else {
        panic!("a text")
    };
    assert!(String::from_utf8_lossy(&list).contains("flags=b"));
    client.send(&command(&["PING"]));
    assert_eq!(
        call(&mut admin, &format!("CLIENT UNBLOCK {id}")),
        Reply::Integer(1)
    );
    assert_eq!(client.read(), Reply::Null);
    assert_eq!(client.read(), simple("PONG"));
    begin(&mut admin, &mut client, "BLPOP l 0", 1);
    call(&mut admin, &format!("CLIENT UNBLOCK {id} ERROR"));
    assert_eq!(
        client.read(),
        error("UNBLOCKED client unblocked via CLIENT UNBLOCK")
    );
    call(&mut admin, "RPUSH l a");
    assert_eq!(
        call(&mut admin, "LLEN l"),
        Reply::Integer(1),
        "nobody waits"
    );
}

/// The public server serves in the order of coming too.
#[test]
fn a_thousand_waiters_are_served_in_their_order() {
    let server = Server::start(&[]);
    let mut admin = server.client();
    let mut waiters: Vec<Client> = (0..1_000).map(|_| server.client()).collect();
    for (i, waiter) in waiters.iter_mut().enumerate() {
        waiter.send(&command(&["BLPOP", "l", "0"]));
        if i % 100 == 99 || i < 20 {
            eventually("it waits", || {
                (admin.info("clients", "blocked_clients") == (i + 1).to_string()).then_some(())
            });
        }
    }
    for i in 0..1_000 {
        admin.send(&command(&["RPUSH", "l", &i.to_string()]));
    }
    let mut got = BTreeSet::new();
    for (i, waiter) in waiters.iter_mut().enumerate() {
        let Reply::Array(reply) = waiter.read() else {
            panic!("a key and an element")
        };
        let number = text(&reply[1]).parse::<usize>().expect("a number");
        assert!(got.insert(number), "{number} is served twice");
        assert!(i >= 20 || i == number, "{i} got {number}");
        // Those who came in the same hundred on different loops may have overtaken each other.
        assert_eq!(i / 100, number / 100, "{i} got {number}");
    }
    assert_eq!(got.len(), 1_000);
}

#[test]
fn info_counts_keys_that_are_waited_for() {
    let server = Server::start(&[]);
    let mut watcher = server.client();
    let mut numbers = |keys: &str, ending: &str| {
        eventually("the numbers", || {
            let mut is = |field, number| watcher.info("clients", field) == number;
            (is("total_blocking_keys", keys) && is("total_blocking_keys_on_nokey", ending))
                .then_some(())
        });
    };
    let mut writer = server.client();
    let mut pops = server.client();
    pops.send(&command(&["BLPOP", "s", "t", "s", "0"]));
    numbers("2", "0");
    writer.call(&["XGROUP", "CREATE", "s", "g", "$", "MKSTREAM"]);
    let (mut one, mut two) = (server.client(), server.client());
    for (client, name) in [(&mut one, "one"), (&mut two, "two")] {
        client.send(&command(&[
            "XREADGROUP",
            "GROUP",
            "g",
            name,
            "BLOCK",
            "0",
            "STREAMS",
            "s",
            ">",
        ]));
    }
    numbers("2", "1");
    drop(two);
    numbers("2", "1");
    writer.call(&["DEL", "s"]);
    assert!(text(&one.read()).starts_with("NOGROUP"));
    numbers("2", "0");
    writer.call(&["RPUSH", "t", "1"]);
    numbers("0", "0");
}
