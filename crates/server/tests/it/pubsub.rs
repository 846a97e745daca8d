//! Messages and keyspace events: to everybody who listens, in order, on time, and no further.

use std::collections::HashMap;
use std::time::Duration;

use crate::common::{
    Client, Reply, Server, array, bulk, command, error, eventually, now, ok, simple, text,
};

fn confirmation(kind: &str, name: &str, count: i64) -> Reply {
    Reply::Array(vec![bulk(kind), bulk(name), Reply::Integer(count)])
}

#[test]
fn messages_of_shards_reach_who_asked_for_them_and_nobody_else() {
    let server = Server::start(&[]);
    let [mut old, mut new, mut plain, mut publisher] = std::array::from_fn(|_| server.client());
    for (listener, resp) in [(&mut old, 2), (&mut new, 3)] {
        listener.call(&["HELLO", &resp.to_string()]);
        let confirmed = listener.call(&["SSUBSCRIBE", "news"]);
        let words = vec![bulk("ssubscribe"), bulk("news"), Reply::Integer(1)];
        match resp {
            2 => assert_eq!(confirmed, Reply::Array(words)),
            _ => assert_eq!(confirmed, Reply::Push(words)),
        }
    }
    // Channels of shards count by themselves.
    assert_eq!(
        new.call(&["SUBSCRIBE", "a"]),
        Reply::Push(vec![bulk("subscribe"), bulk("a"), Reply::Integer(1)])
    );
    plain.call(&["SUBSCRIBE", "news"]);
    assert_eq!(
        publisher.call(&["SPUBLISH", "news", "x"]),
        Reply::Integer(2)
    );
    assert_eq!(publisher.call(&["PUBLISH", "news", "y"]), Reply::Integer(1));
    assert_eq!(old.read(), array(&["smessage", "news", "x"]));
    assert_eq!(
        new.read(),
        Reply::Push(vec![bulk("smessage"), bulk("news"), bulk("x")])
    );
    assert_eq!(plain.read(), array(&["message", "news", "y"]));
    assert_eq!(
        publisher.call(&["PUBSUB", "SHARDCHANNELS"]),
        array(&["news"])
    );
    assert_eq!(
        publisher.call(&["PUBSUB", "SHARDCHANNELS", "x*"]),
        array(&[])
    );
    assert_eq!(
        publisher.call(&["PUBSUB", "SHARDNUMSUB", "news", "none"]),
        Reply::Array(vec![
            bulk("news"),
            Reply::Integer(2),
            bulk("none"),
            Reply::Integer(0)
        ])
    );
    let info = text(&publisher.call(&["INFO", "stats"]));
    assert!(info.contains("pubsubshard_channels:1\r\n"), "{info}");
    let list = text(&publisher.call(&["CLIENT", "LIST", "TYPE", "pubsub"]));
    assert_eq!(list.matches(" ssub=1 ").count(), 2, "{list}");
    // A subscriber of RESP2 may do little else.
    assert!(matches!(old.call(&["GET", "a"]), Reply::Error(_)));
    assert_eq!(
        old.call(&["SUNSUBSCRIBE"]),
        confirmation("sunsubscribe", "news", 0)
    );
    assert_eq!(old.call(&["GET", "a"]), Reply::Null);
    // In a transaction it is queued as others are.
    for word in ["MULTI", "SPUBLISH", "EXEC"] {
        let words = [word, "news", "z"];
        publisher.call(if word == "SPUBLISH" {
            &words
        } else {
            &words[..1]
        });
    }
    assert_eq!(
        new.read(),
        Reply::Push(vec![bulk("smessage"), bulk("news"), bulk("z")])
    );
    new.call(&["RESET"]);
    assert_eq!(
        publisher.call(&["SPUBLISH", "news", "x"]),
        Reply::Integer(0)
    );
    old.call(&["SSUBSCRIBE", "gone"]);
    assert_eq!(
        publisher.call(&["CLIENT", "KILL", "TYPE", "pubsub"]),
        Reply::Integer(2)
    );
    eventually("the closed one is forgotten", || {
        (publisher.call(&["SPUBLISH", "gone", "x"]) == Reply::Integer(0)).then_some(())
    });
}

#[test]
fn messages_reach_channels_and_patterns_on_all_loops() {
    let server = Server::start(&[]);
    let mut listeners: Vec<Client> = (0..6).map(|_| server.client()).collect();
    for listener in &mut listeners {
        assert_eq!(
            listener.call(&["SUBSCRIBE", "news"]),
            confirmation("subscribe", "news", 1)
        );
        assert_eq!(
            listener.call(&["PSUBSCRIBE", "n?ws"]),
            confirmation("psubscribe", "n?ws", 2)
        );
    }
    let mut publisher = server.client();
    assert_eq!(
        publisher.call(&["PUBLISH", "news", "hello"]),
        Reply::Integer(12)
    );
    assert_eq!(
        publisher.call(&["PUBLISH", "nows", "there"]),
        Reply::Integer(6)
    );
    for listener in &mut listeners {
        assert_eq!(listener.read(), array(&["message", "news", "hello"]));
        assert_eq!(
            listener.read(),
            array(&["pmessage", "n?ws", "news", "hello"])
        );
        assert_eq!(
            listener.read(),
            array(&["pmessage", "n?ws", "nows", "there"])
        );
    }
    assert_eq!(publisher.call(&["PUBSUB", "CHANNELS"]), array(&["news"]));
    assert_eq!(publisher.call(&["PUBSUB", "NUMPAT"]), Reply::Integer(1));
    assert_eq!(
        publisher.call(&["PUBSUB", "NUMSUB", "news", "none"]),
        Reply::Array(vec![
            bulk("news"),
            Reply::Integer(6),
            bulk("none"),
            Reply::Integer(0)
        ])
    );
    drop(listeners);
    eventually("the closed ones are forgotten", || {
        (publisher.call(&["PUBLISH", "news", "x"]) == Reply::Integer(0)).then_some(())
    });
}

#[test]
fn resp2_subscribers_may_only_manage_subscriptions() {
    let server = Server::start(&[]);
    let mut client = server.client();
    client.call(&["SUBSCRIBE", "a"]);
    assert_eq!(
        client.call(&["ECHO", "x"]),
        error(
            "ERR Can't execute 'echo': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET \
             are allowed in this context"
        )
    );
    assert_eq!(client.call(&["PING"]), array(&["pong", ""]));
    assert_eq!(client.call(&["PING", "x"]), array(&["pong", "x"]));
    assert_eq!(
        client.call(&["UNSUBSCRIBE"]),
        confirmation("unsubscribe", "a", 0)
    );
    assert_eq!(
        client.call(&["UNSUBSCRIBE"]),
        Reply::Array(vec![bulk("unsubscribe"), Reply::Null, Reply::Integer(0)])
    );
    assert_eq!(client.call(&["ECHO", "x"]), bulk("x"));
    client.call(&["PSUBSCRIBE", "*"]);
    assert_eq!(client.call(&["RESET"]), simple("RESET"));
    assert_eq!(client.call(&["ECHO", "x"]), bulk("x"));
    assert_eq!(
        server.client().call(&["PUBLISH", "a", "x"]),
        Reply::Integer(0)
    );
}

#[test]
fn resp3_subscribers_get_pushes_and_go_on_working() {
    let server = Server::start(&[]);
    let mut client = server.client();
    client.call(&["HELLO", "3"]);
    let push = |items: Vec<Reply>| Reply::Push(items);
    assert_eq!(
        client.call(&["SUBSCRIBE", "a"]),
        push(vec![bulk("subscribe"), bulk("a"), Reply::Integer(1)])
    );
    assert_eq!(client.call(&["ECHO", "x"]), bulk("x"));
    // Its own message follows the reply, and precedes the next.
    client.send(&[command(&["PUBLISH", "a", "m"]), command(&["ECHO", "y"])].concat());
    assert_eq!(client.read(), Reply::Integer(1));
    assert_eq!(
        client.read(),
        push(vec![bulk("message"), bulk("a"), bulk("m")])
    );
    assert_eq!(client.read(), bulk("y"));
}

#[test]
fn muted_clients_still_get_pushes() {
    let server = Server::start(&[]);
    let mut client = server.client();
    client.send(b"CLIENT REPLY OFF\r\nECHO x\r\nSUBSCRIBE a\r\n");
    assert_eq!(client.read(), confirmation("subscribe", "a", 1));
    assert_eq!(
        server.client().call(&["PUBLISH", "a", "m"]),
        Reply::Integer(1)
    );
    assert_eq!(client.read(), array(&["message", "a", "m"]));
    assert_eq!(
        client.call(&["UNSUBSCRIBE", "a"]),
        confirmation("unsubscribe", "a", 0)
    );
}

#[test]
fn what_was_published_before_leaving_arrives_before_the_confirmation() {
    let server = Server::start(&[]);
    let mut listener = server.client();
    let mut publisher = server.client();
    for _ in 0..200 {
        listener.call(&["SUBSCRIBE", "a"]);
        publisher.send(
            &[
                command(&["PUBLISH", "a", "1"]),
                command(&["PUBLISH", "a", "2"]),
            ]
            .concat(),
        );
        let received = [publisher.read(), publisher.read()];
        let sent = received
            .iter()
            .filter(|count| **count == Reply::Integer(1))
            .count();
        listener.send(&command(&["UNSUBSCRIBE", "a"]));
        for text in ["1", "2"].iter().take(sent) {
            assert_eq!(listener.read(), array(&["message", "a", text]));
        }
        assert_eq!(listener.read(), confirmation("unsubscribe", "a", 0));
    }
}

#[test]
fn a_subscriber_that_never_reads_is_cut_and_nobody_else_notices() {
    let server = Server::start(&["--client-output-buffer-limit", "pubsub 1mb 0 0"]);
    let mut deaf = server.client();
    deaf.call(&["SUBSCRIBE", "flood"]);
    let mut keen = server.client();
    keen.call(&["SUBSCRIBE", "flood"]);
    let read = std::thread::spawn(move || {
        let mut messages = 0;
        while text_of_message(&keen.read()) != "end" {
            messages += 1;
        }
        messages
    });
    let mut publisher = server.client();
    let payload = "x".repeat(20_000);
    let mut published = 0;
    eventually("the deaf one is cut", || {
        let receivers = publisher.call(&["PUBLISH", "flood", &payload]);
        published += 1;
        (receivers == Reply::Integer(1)).then_some(())
    });
    assert_eq!(
        publisher.call(&["PUBLISH", "flood", "end"]),
        Reply::Integer(1)
    );
    assert_eq!(
        read.join().unwrap(),
        published,
        "the keen one missed nothing"
    );
    assert_eq!(
        publisher.info("stats", "client_output_buffer_limit_disconnections"),
        "1"
    );
    deaf.read_to_end();
}

fn text_of_message(reply: &Reply) -> String {
    match reply {
        Reply::Array(items) => text(&items[2]),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_soft_limit_cuts_only_after_its_time() {
    let server = Server::start(&["--client-output-buffer-limit", "pubsub 0 100kb 1"]);
    let mut deaf = server.client();
    deaf.call(&["SUBSCRIBE", "flood"]);
    let mut publisher = server.client();
    let payload = "x".repeat(100_000);
    // More than the sockets' buffers take, so that the output stays above the limit.
    let began = now();
    for _ in 0..200 {
        publisher.call(&["PUBLISH", "flood", &payload]);
    }
    eventually("the deaf one is cut", || {
        (publisher.call(&["PUBSUB", "NUMSUB", "flood"])
            == Reply::Array(vec![bulk("flood"), Reply::Integer(0)]))
        .then_some(())
    });
    assert!(
        began.elapsed() >= Duration::from_millis(900),
        "not before its time"
    );
}

#[test]
fn expired_events_arrive_in_time_and_never_early() {
    let server = Server::start(&["--notify-keyspace-events", "Ex"]);
    let mut listener = server.client();
    listener.call(&["SUBSCRIBE", "__keyevent@0__:expired"]);
    let mut client = server.client();
    let mut due = HashMap::new();
    for i in 0..300_u64 {
        let (key, ttl_ms) = (format!("key:{i}"), 1 + i * 7 % 500);
        let asked = now();
        assert_eq!(
            client.call(&["SET", &key, "v", "PX", &ttl_ms.to_string()]),
            ok()
        );
        due.insert(key, asked + Duration::from_millis(ttl_ms));
    }
    while !due.is_empty() {
        let Reply::Array(items) = listener.read() else {
            panic!()
        };
        let arrived = now();
        let deadline = due
            .remove(&text(&items[2]))
            .expect("one event for each key");
        assert!(arrived >= deadline, "{:?} early", deadline - arrived);
        assert!(
            arrived < deadline + Duration::from_secs(2),
            "{:?} late",
            arrived - deadline
        );
    }
    assert_eq!(client.call(&["DBSIZE"]), Reply::Integer(0));
    assert_eq!(client.info("expiry", "events_dropped"), "0");
}

#[test]
fn a_sleeping_server_wakes_for_a_deadline_that_another_loop_set() {
    let layout = ["--threads", "4", "--shards", "2"];
    let server = Server::start(&[&layout[..], &["--notify-keyspace-events", "Ex"]].concat());
    let mut listener = server.client();
    listener.call(&["SUBSCRIBE", "__keyevent@0__:expired"]);
    let mut client = server.client();
    // One key at a time, so that every loop sleeps without a deadline before each.
    for i in 0..50 {
        let asked = now();
        client.call(&["SET", &format!("k{i}"), "v", "PX", "5"]);
        listener.read();
        assert!(asked.elapsed() >= Duration::from_millis(5));
    }
}

#[test]
fn events_of_one_key_keep_their_order() {
    let server = Server::start(&["--notify-keyspace-events", "KEA"]);
    let mut listener = server.client();
    listener.call(&["SUBSCRIBE", "__keyspace@0__:k"]);
    let mut client = server.client();
    client.call(&["SET", "k", "v"]);
    client.call(&["PEXPIRE", "k", "20"]);
    let mut names = Vec::new();
    while names.last().is_none_or(|name| name != "expired") {
        names.push(text_of_message(&listener.read()));
    }
    assert_eq!(names, ["set", "expire", "expired"]);
}

#[test]
fn nothing_expires_during_a_pause_and_reads_still_hide_what_is_dead() {
    let server = Server::start(&[]);
    let mut boss = server.client();
    boss.send(
        &[
            command(&["SET", "k", "v", "PX", "30"]),
            command(&["CLIENT", "PAUSE", "60000", "WRITE"]),
        ]
        .concat(),
    );
    assert_eq!((boss.read(), boss.read()), (ok(), ok()));
    eventually("the key is dead", || {
        (boss.call(&["GET", "k"]) == Reply::Null).then_some(())
    });
    assert_eq!(boss.info("stats", "expired_keys"), "0");
    assert_eq!(boss.call(&["CLIENT", "UNPAUSE"]), ok());
    eventually("the key has gone", || {
        (boss.info("stats", "expired_keys") == "1").then_some(())
    });
}

#[test]
fn events_of_one_client_arrive_in_the_order_in_which_it_caused_them() {
    let server = Server::start(&["--notify-keyspace-events", "E$"]);
    let mut listener = server.client();
    listener.call(&["SUBSCRIBE", "__keyevent@0__:set"]);
    let mut client = server.client();
    for round in 0..50 {
        let keys: Vec<_> = (0..20).map(|i| format!("k{i:02}:{round}")).collect();
        let commands: Vec<_> = keys.iter().map(|key| command(&["SET", key, "v"])).collect();
        client.send(&commands.concat());
        for key in &keys {
            // Nobody acts meanwhile: an event that waited for somebody would never come.
            assert_eq!(text_of_message(&listener.read()), *key);
        }
        keys.iter().for_each(|_| assert_eq!(client.read(), ok()));
    }
}

/// Found by an attack: events waited for the batch's end, and were sent as the settings and
/// subscriptions were then.
#[test]
fn an_event_is_sent_as_the_settings_are_when_it_happens_also_within_a_batch() {
    const NAME: &str = "notify-keyspace-events";
    let server = Server::start(&[]);
    let mut client = server.client();
    let mut listener = server.client();
    listener.call(&["PSUBSCRIBE", "*"]);
    let set = |letters| command(&["CONFIG", "SET", NAME, letters]);
    let batch = [
        set("KEA"),
        command(&["SET", "a", "1"]),
        set(""),
        command(&["SET", "b", "1"]),
        set("K$"),
        command(&["SET", "c", "1"]),
        command(&["PUBLISH", "between", "x"]),
        set("E$"),
        command(&["SET", "d", "1"]),
        command(&["MULTI"]),
        command(&["SET", "e", "1"]),
        set("K$"),
        command(&["PUBLISH", "within", "x"]),
        command(&["SET", "f", "1"]),
        command(&["EXEC"]),
        set(""),
        command(&["PUBLISH", "end", "x"]),
    ];
    client.send(&batch.concat());
    for _ in &batch {
        client.read();
    }
    let heard = std::iter::repeat_with(|| match listener.read() {
        Reply::Array(message) => text(&message[2]).to_string(),
        other => panic!("{other:?}"),
    });
    let heard: Vec<String> = heard.take_while(|channel| channel != "end").collect();
    let expected = [
        "__keyspace@0__:a",
        "__keyevent@0__:set",
        "__keyspace@0__:c",
        "between",
        "__keyevent@0__:set",
        "__keyevent@0__:set",
        "within",
        "__keyspace@0__:f",
    ];
    assert_eq!(heard, expected);
}

/// Found with it: who subscribed after a change in the same batch was told of it.
#[test]
fn events_of_before_a_subscription_are_not_heard_and_those_of_before_its_end_are() {
    let server = Server::start(&["--notify-keyspace-events", "KEA"]);
    let mut client = server.client();
    client.call(&["HELLO", "3"]);
    let batch = [
        command(&["SET", "a", "1"]),
        command(&["SUBSCRIBE", "__keyspace@0__:a"]),
        command(&["DEL", "a"]),
        command(&["UNSUBSCRIBE", "__keyspace@0__:a"]),
        command(&["SET", "a", "1"]),
        command(&["PING"]),
    ];
    client.send(&batch.concat());
    // Messages may follow the replies of a batch.
    client.send(&command(&["ECHO", "end"]));
    let mut events = Vec::new();
    let mut ends = 0;
    while ends < 2 {
        match client.read() {
            Reply::Push(message) if message[0] == bulk("message") => {
                events.push(text(&message[2]));
            }
            Reply::Bulk(_) => {
                ends += 1;
                client.send(&command(&["ECHO", "end"]));
            }
            _ => {}
        }
    }
    assert_eq!(events, ["del"]);
}

/// Events of a pipeline came behind all of its replies.
#[test]
fn what_a_subscriber_has_caused_follows_the_reply_of_its_command() {
    let server = Server::start(&["--notify-keyspace-events", "E$"]);
    let mut client = server.client();
    client.call(&["HELLO", "3"]);
    client.call(&["SUBSCRIBE", "__keyevent@0__:set"]);
    client.call(&["SUBSCRIBE", "news"]);
    let message = |channel, payload| {
        let parts = ["message", channel, payload];
        Reply::Push(parts.into_iter().map(bulk).collect())
    };
    let event = |key| message("__keyevent@0__:set", key);
    let batch = [
        command(&["SET", "a", "1"]),
        command(&["SET", "b", "1"]),
        command(&["PUBLISH", "news", "x"]),
        command(&["GET", "a"]),
        command(&["MULTI"]),
        command(&["SET", "c", "1"]),
        command(&["PUBLISH", "news", "y"]),
        command(&["EXEC"]),
        command(&["PING"]),
    ];
    client.send(&batch.concat());
    let queued = || simple("QUEUED");
    for expected in [
        ok(),
        event("a"),
        ok(),
        event("b"),
        Reply::Integer(1),
        message("news", "x"),
        bulk("1"),
        ok(),
        queued(),
        queued(),
        Reply::Array(vec![ok(), Reply::Integer(1)]),
        event("c"),
        message("news", "y"),
        simple("PONG"),
    ] {
        assert_eq!(client.read(), expected);
    }
}

/// It came behind the replies to all that was sent with the transaction.
#[test]
fn a_message_for_a_channel_that_was_left_in_the_same_transaction_follows_its_reply() {
    for protocol in ["2", "3"] {
        let server = Server::start(&[]);
        let mut client = server.client();
        client.call(&["HELLO", protocol]);
        let batch = [
            command(&["MULTI"]),
            command(&["SUBSCRIBE", "news"]),
            command(&["PUBLISH", "news", "x"]),
            command(&["UNSUBSCRIBE", "news"]),
            command(&["EXEC"]),
            command(&["PING"]),
        ];
        client.send(&batch.concat());
        (0..5).for_each(|_| drop(client.read()));
        let parts: Vec<Reply> = ["message", "news", "x"].into_iter().map(bulk).collect();
        let message = match protocol {
            "2" => Reply::Array(parts),
            _ => Reply::Push(parts),
        };
        assert_eq!(client.read(), message);
        assert_eq!(client.read(), simple("PONG"));
    }
}
