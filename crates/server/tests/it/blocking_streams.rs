//! Readers of streams that wait: who is served by what, with which reply. The replies are those of
//! the public server, except where a case says otherwise.

use std::fmt::Write;

use tidewheel_resp::Reply;

use crate::common::{Client, Server, command, eventually, ok};

/// One story: what is done before, who waits with which reply in the end, and what happens.
struct Case {
    before: &'static [&'static str],
    /// Lines and replies; no reply means that it waits on.
    waits: &'static [(&'static str, &'static str)],
    then: &'static [&'static str],
}

const GROUP: &[&str] = &["XGROUP CREATE s g $ MKSTREAM"];
const NO_GROUP: &str =
    "-NOGROUP No such key 's' or consumer group 'g' in XREADGROUP with GROUP option";
const WRONG_TYPE: &str = "-WRONGTYPE Operation against a key holding the wrong kind of value";
const READ: &str = "XREAD BLOCK 0 STREAMS s $";
const READ_ALL: &str = "XREAD BLOCK 0 STREAMS s 0";
const READ_GROUP: &str = "XREADGROUP GROUP g one BLOCK 0 STREAMS s >";

#[rustfmt::skip] // A line for each part.
const CASES: &[Case] = &[
    // Readers take nothing.
    Case { before: &[],
        waits: &[(READ, "[[s [[3-0 [a b]]]]]"), (READ_ALL, "[[s [[3-0 [a b]]]]]"),
            ("XREAD COUNT 1 BLOCK 0 STREAMS s 5-0", "[[s [[7-0 [c d]]]]]")],
        then: &["XADD s 3-0 a b", "XADD s 7-0 c d"] },
    Case { before: &["XADD s 1-0 a b"],
        waits: &[("XREAD BLOCK 0 STREAMS s 5", "[[s [[5-1 [a b]]]]]"), (READ, "[[s [[3-0 [a b]]]]]"),
            ("XREAD BLOCK 0 STREAMS s 9", "")],
        then: &["XADD s 3-0 a b", "XADD s 5-0 a b", "XADD s 5-1 a b"] },
    Case { before: &[],
        waits: &[("XREAD BLOCK 0 STREAMS s t u 0 $ 0-0", "[[t [[3-0 [a b]]]]]"),
            ("XREAD BLOCK 0 STREAMS u t $ 9", ""),
            ("XREAD BLOCK 0 STREAMS t t 0 5", "[[t [[3-0 [a b]]]]]")],
        then: &["XADD t 3-0 a b"] },
    Case { before: &[],
        waits: &[("XREAD BLOCK 0 STREAMS s t 0 0", "[[s [[1-0 [a b]]]] [t [[2-0 [a b]]]]]")],
        then: &["MULTI", "XADD t 2-0 a b", "XADD s 1-0 a b", "EXEC"] },
    // `$` and `+` are what they are when the command comes.
    Case { before: &["XADD s 3-0 a b", "XDEL s 3-0"],
        waits: &[(READ, "[[s [[9-0 [a b]]]]]"), ("XREAD BLOCK 0 STREAMS s +", "[[s [[9-0 [a b]]]]]")],
        then: &["XADD s 9-0 a b"] },
    Case { before: &["XADD s 1-0 a b"],
        waits: &[("XREAD BLOCK 0 STREAMS s 5", "[[s [[10-0 [a b]]]]]")],
        then: &["XSETID s 9-0", "XADD s 10-0 a b"] },
    Case { before: GROUP,
        waits: &[(READ_ALL, "[[s [[4-0 [a b]]]]]"), (READ_GROUP, "[[s [[4-0 [a b]]]]]")],
        then: &["XADD s MAXLEN 0 3-0 a b", "XADD s 4-0 a b"] },
    // Groups: each entry once, in the order of coming.
    Case { before: GROUP,
        waits: &[(READ_GROUP, "[[s [[1-0 [a b]]]]]"),
            ("XREADGROUP GROUP g two BLOCK 0 STREAMS s >", ""), (READ, "[[s [[1-0 [a b]]]]]")],
        then: &["XADD s 1-0 a b"] },
    Case { before: &["XGROUP CREATE s g $ MKSTREAM", "XGROUP CREATE s h $"],
        waits: &[("XREADGROUP GROUP g one COUNT 1 BLOCK 0 STREAMS s >", "[[s [[1-0 [a b]]]]]"),
            ("XREADGROUP GROUP g two COUNT 1 BLOCK 0 STREAMS s >", "[[s [[2-0 [c d]]]]]"),
            ("XREADGROUP GROUP h one BLOCK 0 STREAMS s >", "[[s [[1-0 [a b]] [2-0 [c d]]]]]"),
            ("XREADGROUP GROUP g three COUNT 1 BLOCK 0 STREAMS s >", "")],
        then: &["MULTI", "XADD s 1-0 a b", "XADD s 2-0 c d", "EXEC"] },
    Case { before: &["XADD s 1-0 a b", "XGROUP CREATE s g $"],
        waits: &[(READ_GROUP, "[[s [[10-0 [a b]]]]]")],
        then: &["XGROUP SETID s g 9", "XADD s 8-0 a b", "XADD s 10-0 a b"] },
    // The public server serves it at the next XADD only.
    Case { before: &["XADD s 1-0 a b", "XGROUP CREATE s g $"],
        waits: &[(READ_GROUP, "[[s [[1-0 [a b]]]]]")],
        then: &["XGROUP SETID s g 0"] },
    Case { before: GROUP,
        waits: &[("XREADGROUP GROUP g one NOACK BLOCK 0 STREAMS s >", "[[s [[1-0 [a b]]]]]")],
        then: &["XADD s 1-0 a b"] },
    Case { before: GROUP,
        waits: &[(READ_GROUP, "[[s [[1-0 [a b]]]]]")],
        then: &["XGROUP DELCONSUMER s g one", "XADD s 1-0 a b"] },
    // The end of a group, or of its key.
    Case { before: GROUP, waits: &[(READ_GROUP, NO_GROUP), (READ, "")], then: &["XGROUP DESTROY s g"] },
    Case { before: GROUP, waits: &[(READ_GROUP, NO_GROUP), (READ, "")], then: &["DEL s"] },
    Case { before: GROUP, waits: &[(READ_GROUP, NO_GROUP), (READ, "")], then: &["UNLINK s"] },
    Case { before: GROUP, waits: &[(READ_GROUP, WRONG_TYPE), (READ, "")], then: &["SET s x"] },
    Case { before: GROUP, waits: &[(READ_GROUP, NO_GROUP), (READ, "")], then: &["PEXPIRE s 20"] },
    Case { before: GROUP, waits: &[(READ_GROUP, NO_GROUP), (READ, "")], then: &["FLUSHALL"] },
    Case { before: GROUP, waits: &[(READ_GROUP, NO_GROUP), (READ, "")], then: &["FLUSHDB ASYNC"] },
    Case { before: GROUP, waits: &[(READ_GROUP, NO_GROUP), (READ, "")], then: &["SWAPDB 0 1"] },
    Case { before: GROUP, waits: &[(READ_GROUP, NO_GROUP), (READ, "")], then: &["RENAME s t"] },
    Case { before: GROUP, waits: &[(READ_GROUP, NO_GROUP), (READ, "")], then: &["MOVE s 1"] },
    Case { before: &["XGROUP CREATE s g $ MKSTREAM", "XGROUP CREATE t g $ MKSTREAM"],
        waits: &[("XREADGROUP GROUP g one BLOCK 0 STREAMS t s > >", NO_GROUP)], then: &["DEL s"] },
    Case { before: GROUP, waits: &[(READ_GROUP, "[[s [[1-0 [a b]]]]]")],
        then: &["MULTI", "DEL s", "XGROUP CREATE s g $ MKSTREAM", "EXEC", "XADD s 1-0 a b"] },
    Case { before: &[], waits: &[(READ_ALL, "")], then: &["MULTI", "XADD s 1-0 a b", "DEL s", "EXEC"] },
    // Other changes that bring entries.
    Case { before: &["XGROUP CREATE s g $ MKSTREAM", "XADD t 1-0 a b"],
        waits: &[(READ_GROUP, NO_GROUP), (READ_ALL, "[[s [[1-0 [a b]]]]]")], then: &["RENAME t s"] },
    Case { before: &["XGROUP CREATE s g $ MKSTREAM", "XADD t 1-0 a b", "XGROUP CREATE t g 0"],
        waits: &[(READ_GROUP, "[[s [[1-0 [a b]]]]]")], then: &["RENAME t s"] },
    Case { before: &["XADD t 1-0 a b"],
        waits: &[(READ_ALL, "[[s [[1-0 [a b]]]]]")], then: &["COPY t s"] },
    Case { before: &["SELECT 1", "XADD s 1-0 a b"],
        waits: &[(READ_ALL, "[[s [[1-0 [a b]]]]]")], then: &["SELECT 1", "MOVE s 0"] },
    Case { before: &["SELECT 1", "XGROUP CREATE s g $ MKSTREAM", "XADD s 4-0 a b", "SELECT 0",
            "XGROUP CREATE s g $ MKSTREAM"],
        waits: &[(READ_ALL, "[[s [[4-0 [a b]]]]]"), (READ_GROUP, "[[s [[4-0 [a b]]]]]")],
        then: &["SWAPDB 0 1"] },
    // Another type serves nobody, and an entry comes later.
    Case { before: &[], waits: &[(READ_ALL, "[[s [[1-0 [a b]]]]]")],
        then: &["RPUSH s x", "SET s y", "DEL s", "XADD s 1-0 a b"] },
];

fn call(client: &mut Client, line: &str) -> Reply {
    client.call(&line.split_whitespace().collect::<Vec<_>>())
}

fn waiting(admin: &mut Client, n: usize) {
    eventually("it waits", || {
        (admin.info("clients", "blocked_clients") == n.to_string()).then_some(())
    });
}

/// A reply without the marks of its protocol: a map is a list of pairs.
fn shown(reply: &Reply) -> String {
    let list = |items: Vec<String>| format!("[{}]", items.join(" "));
    match reply {
        Reply::Error(text) => format!("-{text}"),
        Reply::Bulk(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Reply::Null => "nothing".to_owned(),
        Reply::Array(items) => list(items.iter().map(shown).collect()),
        Reply::Map(pairs) => {
            let pair =
                |(name, value): &(Reply, Reply)| format!("[{} {}]", shown(name), shown(value));
            list(pairs.iter().map(pair).collect())
        }
        other => format!("{other:?}"),
    }
}

fn run(server: &Server, case: &Case, protocol: &str, failures: &mut String) {
    let mut admin = server.client();
    assert_eq!(call(&mut admin, "FLUSHALL"), ok());
    for line in case.before {
        call(&mut admin, line);
    }
    let mut clients = Vec::new();
    for (line, _) in case.waits {
        let mut client = server.client();
        call(&mut client, &format!("HELLO {protocol}"));
        client.send(&command(&line.split_whitespace().collect::<Vec<_>>()));
        clients.push(client);
        waiting(&mut admin, clients.len());
    }
    for line in case.then {
        let reply = call(&mut admin, line);
        assert!(!matches!(reply, Reply::Error(_)), "{line}: {reply:?}");
    }
    for (client, (line, reply)) in clients.iter_mut().zip(case.waits) {
        let got = match *reply {
            "" if client.is_silent() => String::new(),
            _ => shown(&client.read()),
        };
        if got != *reply {
            let then = case.then;
            writeln!(
                failures,
                "{line}, {then:?} (RESP{protocol}):\n  {got}\n  {reply}"
            )
            .expect("text");
        }
    }
    drop(clients);
    waiting(&mut admin, 0);
}

#[test]
fn readers_of_streams_wait_and_are_served() {
    let server = Server::start(&[]);
    let mut failures = String::new();
    for case in CASES {
        for protocol in ["2", "3"] {
            run(&server, case, protocol, &mut failures);
        }
    }
    assert!(failures.is_empty(), "{failures}");
}

/// Where it may not wait, BLOCK is as if its time was over.
#[test]
fn a_transaction_and_a_script_do_not_wait_for_a_stream() {
    let server = Server::start(&[]);
    let mut client = server.client();
    call(&mut client, "XGROUP CREATE s g $ MKSTREAM");
    for line in ["MULTI", READ, READ_GROUP] {
        call(&mut client, line);
    }
    let both = Reply::Array(vec![Reply::Null, Reply::Null]);
    assert_eq!(call(&mut client, "EXEC"), both);
    for script in [
        "return redis.call('XREAD', 'BLOCK', '0', 'STREAMS', KEYS[1], '$')",
        "return redis.call('XREADGROUP', 'GROUP', 'g', 'c', 'BLOCK', '0', 'STREAMS', KEYS[1], '>')",
    ] {
        assert_eq!(client.call(&["EVAL", script, "1", "s"]), Reply::Null);
    }
    assert_eq!(client.info("clients", "blocked_clients"), "0");
}

#[test]
fn a_wait_for_a_stream_ends_in_time_and_by_hand() {
    let server = Server::start(&[]);
    let (mut admin, mut client) = (server.client(), server.client());
    call(&mut admin, "XGROUP CREATE s g $ MKSTREAM");
    let began = crate::common::now();
    assert_eq!(call(&mut client, "XREAD BLOCK 30 STREAMS s $"), Reply::Null);
    assert!(began.elapsed().as_millis() >= 30);
    let line = "XREADGROUP GROUP g c BLOCK 1 STREAMS s >";
    assert_eq!(call(&mut client, line), Reply::Null);
    let id = call(&mut client, "CLIENT ID");
    let Reply::Integer(id) = id else {
        panic!("{id:?}")
    };
    for line in [READ, READ_GROUP] {
        client.send(&command(&line.split_whitespace().collect::<Vec<_>>()));
        waiting(&mut admin, 1);
        assert_eq!(
            call(&mut admin, &format!("CLIENT UNBLOCK {id}")),
            Reply::Integer(1)
        );
        assert_eq!(client.read(), Reply::Null);
        client.send(&command(&line.split_whitespace().collect::<Vec<_>>()));
        waiting(&mut admin, 1);
        call(&mut admin, &format!("CLIENT UNBLOCK {id} ERROR"));
        let refused = "-UNBLOCKED client unblocked via CLIENT UNBLOCK";
        assert_eq!(shown(&client.read()), refused);
    }
    // Nobody is left in a queue: nothing is delivered to one who has gone.
    call(&mut admin, "XADD s 1-0 a b");
    assert!(client.is_silent());
    assert_eq!(shown(&call(&mut client, READ_GROUP)), "[[s [[1-0 [a b]]]]]");
}

#[test]
fn a_time_out_of_a_reader_is_whole_milliseconds() {
    let server = Server::start(&[]);
    let mut client = server.client();
    let refused = "-ERR timeout is not an integer or out of range";
    for (ms, why) in [
        ("-1", "-ERR timeout is negative"),
        ("x", refused),
        ("1.5", refused),
        ("99999999999999999999", refused),
        ("9223372036854775807", "-ERR timeout is out of range"),
    ] {
        let line = format!("XREAD BLOCK {ms} STREAMS s $");
        assert_eq!(shown(&call(&mut client, &line)), why);
    }
    for (line, why) in [
        ("XREADGROUP GROUP g c BLOCK 0 STREAMS s >", NO_GROUP),
        ("XREAD BLOCK 0 STREAMS l 0", WRONG_TYPE),
    ] {
        call(&mut client, "RPUSH l a");
        assert_eq!(shown(&call(&mut client, line)), why);
    }
}

/// A consumer that waits has been seen.
#[test]
fn a_consumer_is_there_while_it_waits() {
    let server = Server::start(&[]);
    let (mut admin, mut client) = (server.client(), server.client());
    call(&mut admin, GROUP[0]);
    client.send(&command(&READ_GROUP.split_whitespace().collect::<Vec<_>>()));
    waiting(&mut admin, 1);
    let consumers = shown(&call(&mut admin, "XINFO CONSUMERS s g"));
    assert!(
        consumers.starts_with("[[name one pending Integer(0) idle"),
        "{consumers}"
    );
    call(&mut admin, "XADD s 1-0 a b");
    client.read();
    let consumers = shown(&call(&mut admin, "XINFO CONSUMERS s g"));
    assert!(
        consumers.starts_with("[[name one pending Integer(1) idle"),
        "{consumers}"
    );
}

/// All read the same entry. They are served in portions, and none is forgotten between two.
#[test]
fn one_entry_serves_thousands_of_readers() {
    let server = Server::start(&[]);
    let mut admin = server.client();
    let mut readers: Vec<Client> = (0..2_000).map(|_| server.client()).collect();
    for (number, reader) in readers.iter_mut().enumerate() {
        let line = match number % 3 {
            0 => READ,
            1 => "XREAD BLOCK 0 STREAMS other s $ $",
            _ => "XREAD BLOCK 0 COUNT 1 STREAMS s 1-0",
        };
        reader.send(&command(&line.split_whitespace().collect::<Vec<_>>()));
    }
    waiting(&mut admin, 2_000);
    call(&mut admin, "XADD s 1-0 a b");
    call(&mut admin, "XADD s 2-0 c d");
    for (number, reader) in readers.iter_mut().enumerate() {
        let id = if number % 3 == 2 {
            "2-0 [c d]"
        } else {
            "1-0 [a b]"
        };
        assert_eq!(shown(&reader.read()), format!("[[s [[{id}]]]]"));
    }
    waiting(&mut admin, 0);
}
