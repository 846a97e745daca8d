//! Clients: their names and ids, their number, pauses and closing.

use std::time::Duration;

use crate::common::{
    Client, Reply, Server, bulk, command, error, eventually, now, ok, simple, text,
};

fn id(client: &mut Client) -> String {
    match client.call(&["CLIENT", "ID"]) {
        Reply::Integer(id) => id.to_string(),
        other => panic!("{other:?}"),
    }
}

/// A client of another loop was listed until that loop had closed it.
#[test]
fn who_was_killed_is_listed_no_more() {
    let server = Server::start(&["--threads", "2"]);
    let mut killer = server.client();
    for _ in 0..200 {
        let mut other = server.client();
        let id = id(&mut other);
        let kill = ["CLIENT", "KILL", "ID", &id];
        assert_eq!(killer.call(&kill), Reply::Integer(1));
        assert_eq!(killer.call(&["CLIENT", "LIST", "ID", &id]), bulk(""));
        assert_eq!(killer.call(&kill), Reply::Integer(0));
    }
}

#[test]
fn hello_changes_the_protocol_and_says_who_answers() {
    let server = Server::start(&[]);
    let mut client = server.client();
    let Reply::Map(fields) = client.call(&["HELLO", "3", "SETNAME", "tester"]) else {
        panic!()
    };
    let field = |name: &str| {
        fields
            .iter()
            .find(|(key, _)| *key == bulk(name))
            .unwrap()
            .1
            .clone()
    };
    assert_eq!(field("proto"), Reply::Integer(3));
    assert_eq!(field("role"), bulk("master"));
    assert_eq!(field("modules"), Reply::Array(vec![]));
    assert_eq!(client.call(&["CLIENT", "GETNAME"]), bulk("tester"));
    assert!(matches!(client.call(&["HELLO", "2"]), Reply::Array(items) if items.len() == 14));
    for (words, expected) in [
        (&["HELLO", "4"][..], "NOPROTO unsupported protocol version"),
        (
            &["HELLO", "x"],
            "ERR Protocol version is not an integer or out of range",
        ),
        (
            &["HELLO", "3", "FOO"],
            "ERR Syntax error in HELLO option 'FOO'",
        ),
        (
            &["HELLO", "3", "AUTH", "default"],
            "ERR Syntax error in HELLO option 'AUTH'",
        ),
    ] {
        assert_eq!(client.call(words), error(expected));
    }
}

#[test]
fn a_password_is_required_and_reset_forgets_that_it_was_given() {
    let server = Server::start(&["--requirepass", "secret"]);
    let mut client = server.client();
    let denied = error("NOAUTH Authentication required.");
    assert_eq!(client.call(&["PING"]), denied);
    assert!(text(&client.call(&["HELLO", "3"])).starts_with("NOAUTH HELLO must be called"));
    let wrong = error("WRONGPASS invalid username-password pair or user is disabled.");
    assert_eq!(client.call(&["AUTH", "guess"]), wrong);
    assert_eq!(client.call(&["AUTH", "nobody", "secret"]), wrong);
    assert_eq!(client.call(&["AUTH", "default", "secret"]), ok());
    assert_eq!(client.call(&["PING"]), simple("PONG"));
    assert_eq!(client.call(&["RESET"]), simple("RESET"));
    assert_eq!(client.call(&["PING"]), denied);
    assert!(matches!(
        client.call(&["HELLO", "3", "AUTH", "default", "secret"]),
        Reply::Map(_)
    ));
    assert_eq!(client.call(&["PING"]), simple("PONG"));
    let open = Server::start(&[]);
    assert!(text(&open.client().call(&["AUTH", "x"])).starts_with("ERR AUTH <password> called"));
}

#[test]
fn quit_is_answered_before_the_end() {
    let server = Server::start(&[]);
    let mut client = server.client();
    client.send(b"PING\r\nQUIT\r\nPING\r\n");
    assert_eq!(client.read_to_end(), b"+PONG\r\n+OK\r\n");
}

#[test]
fn replies_can_be_switched_off_and_skipped() {
    let server = Server::start(&[]);
    let mut client = server.client();
    client.send(b"CLIENT REPLY SKIP\r\nECHO skipped\r\nECHO heard\r\n");
    assert_eq!(client.read(), bulk("heard"));
    client.send(b"CLIENT REPLY OFF\r\nECHO a\r\nNOPE\r\nCLIENT REPLY SKIP\r\nECHO b\r\n");
    client.send(b"CLIENT REPLY ON\r\nECHO c\r\n");
    assert_eq!(client.read(), ok());
    assert_eq!(client.read(), bulk("c"));
}

/// Found by an attack.
#[test]
fn a_client_that_wants_no_replies_is_not_told_of_what_breaks_the_protocol() {
    let server = Server::start(&[]);
    let mut client = server.client();
    client.send(b"CLIENT REPLY OFF\r\nPING\r\n*x\r\n");
    assert_eq!(client.read_to_end(), b"");
}

#[test]
fn the_list_shows_everybody_with_what_they_have_set() {
    let server = Server::start(&[]);
    let mut one = server.client();
    let mut two = server.client();
    assert_eq!(one.call(&["CLIENT", "SETNAME", "first"]), ok());
    assert_eq!(two.call(&["CLIENT", "SETINFO", "LIB-NAME", "lib"]), ok());
    assert_eq!(two.call(&["CLIENT", "SETINFO", "lib-ver", "1.2"]), ok());
    assert_eq!(two.call(&["CLIENT", "NO-TOUCH", "on"]), ok());
    assert_eq!(two.call(&["CLIENT", "NO-EVICT", "on"]), ok());
    let ids = (id(&mut one), id(&mut two));
    let list = text(&one.call(&["CLIENT", "LIST"]));
    assert_eq!(list.lines().count(), 2);
    let line = |id: &str| {
        let prefix = format!("id={id} ");
        list.lines()
            .find(|line| line.starts_with(&prefix))
            .expect(&prefix)
            .to_owned()
    };
    assert!(line(&ids.0).contains(" name=first ") && line(&ids.0).contains(" cmd=client|list "));
    assert!(line(&ids.1).contains(" lib-name=lib lib-ver=1.2 tot-net-in="));
    assert!(line(&ids.1).contains(" flags=eT "));
    assert_eq!(
        text(&one.call(&["CLIENT", "LIST", "ID", &ids.1]))
            .lines()
            .count(),
        1
    );
    assert_eq!(text(&one.call(&["CLIENT", "LIST", "TYPE", "pubsub"])), "");
    let mut lines = |filter: &str| {
        let words: Vec<&str> = ["CLIENT", "LIST"]
            .into_iter()
            .chain(filter.split(' '))
            .collect();
        text(&one.call(&words)).lines().count()
    };
    assert_eq!(lines(&format!("ID {} {} TYPE normal", ids.0, ids.1)), 2);
    assert_eq!(lines(&format!("ID {} {} SKIPME yes", ids.0, ids.1)), 1);
    assert_eq!(lines(&format!("ID {} ID {}", ids.0, ids.1)), 2);
    for one in [
        &format!("NOT-ID {}", ids.0),
        "NAME first",
        "NOT-NAME first",
        "LIB-NAME lib LIB-VER 1.2 DB 0",
        "NOT-LIB-NAME lib",
        "FLAGS Te",
        "NOT-FLAGS eT NOT-TYPE pubsub NOT-IP 1.2.3.4",
    ] {
        assert_eq!(lines(one), 1, "{one}");
    }
    assert_eq!(
        lines("NOT-USER default") + lines("NOT-DB 0") + lines("IDLE 1000"),
        0
    );
    assert_eq!(
        lines("IP 127.0.0.1 USER default SKIPME no"),
        lines("TYPE normal")
    );
    for none in [
        "NAME nobody",
        "IP 127.0.0.2",
        "FLAGS P",
        "MAXAGE 1000",
        "ADDR 127.0.0.1:1",
    ] {
        assert_eq!(lines(none), 0, "{none}");
    }
    assert!(text(&two.call(&["CLIENT", "INFO"])).starts_with(&format!("id={} ", ids.1)));
    for (words, expected) in [
        (
            &["CLIENT", "LIST", "TYPE", "odd"][..],
            "ERR Unknown client type 'odd'",
        ),
        (&["CLIENT", "LIST", "ID", "x"], "ERR Invalid client ID"),
        (&["CLIENT", "LIST", "NOPE"], "ERR syntax error"),
        (&["CLIENT", "LIST", "USER", "x"], "ERR No such user 'x'"),
        (
            &["CLIENT", "LIST", "FLAGS", "NZ"],
            "ERR Unknown flags found in the provided filter: NZ",
        ),
        (
            &["CLIENT", "SETINFO", "lib-name", "a b"],
            "ERR lib-name cannot contain spaces, newlines or special characters.",
        ),
        (
            &["CLIENT", "SETINFO", "color", "red"],
            "ERR Unrecognized option 'color'",
        ),
        (
            &["CLIENT", "SETNAME", "a b"],
            "ERR Client names cannot contain spaces, newlines or special characters.",
        ),
    ] {
        assert_eq!(one.call(words), error(expected));
    }
}

#[test]
fn clients_are_killed_by_address_and_by_filter_but_not_oneself_unless_asked() {
    let server = Server::start(&[]);
    let mut killer = server.client();
    let mut victims: Vec<Client> = (0..4).map(|_| server.client()).collect();
    let ids: Vec<String> = victims.iter_mut().map(id).collect();
    let address = victims[0].stream.local_addr().unwrap().to_string();
    assert_eq!(killer.call(&["CLIENT", "KILL", &address]), ok());
    assert_eq!(victims[0].try_read(), None);
    assert_eq!(
        killer.call(&["CLIENT", "KILL", "1.2.3.4:5"]),
        error("ERR No such client")
    );
    assert_eq!(
        killer.call(&["CLIENT", "KILL", "ID", &ids[1]]),
        Reply::Integer(1)
    );
    assert_eq!(victims[1].try_read(), None);
    assert_eq!(
        killer.call(&["CLIENT", "KILL", "ID", "999999"]),
        Reply::Integer(0)
    );
    eventually("two victims are left", || {
        let list = text(&killer.call(&["CLIENT", "LIST"]));
        (list.lines().count() == 3).then_some(())
    });
    assert_eq!(
        killer.call(&["CLIENT", "KILL", "TYPE", "normal"]),
        Reply::Integer(2)
    );
    assert_eq!(victims[2].try_read(), None);
    assert_eq!(victims[3].try_read(), None);
    for (words, expected) in [
        (
            &["CLIENT", "KILL", "ID", "0"][..],
            "ERR client-id should be greater than 0",
        ),
        (
            &["CLIENT", "KILL", "TYPE", "odd"],
            "ERR Unknown client type 'odd'",
        ),
        (&["CLIENT", "KILL", "USER", "eve"], "ERR No such user 'eve'"),
        (&["CLIENT", "KILL", "SKIPME", "perhaps"], "ERR syntax error"),
        (&["CLIENT", "KILL", "ID", "1", "ADDR"], "ERR syntax error"),
    ] {
        assert_eq!(killer.call(words), error(expected));
    }
    let mine = id(&mut killer);
    assert_eq!(
        killer.call(&["CLIENT", "KILL", "ID", &mine, "SKIPME", "no"]),
        Reply::Integer(1)
    );
    assert_eq!(killer.try_read(), None);
}

/// As in Redis and Valkey. An empty command uses up nothing, as in Redis 8.
#[test]
fn a_reset_that_is_skipped_is_not_answered_and_an_empty_command_skips_nothing() {
    let server = Server::start(&[]);
    let mut client = server.client();
    for (sent, answers) in [
        (&b"CLIENT REPLY SKIP\r\nRESET\r\nECHO a\r\n"[..], &["a"][..]),
        (b"CLIENT REPLY OFF\r\nRESET\r\nECHO a\r\n", &["RESET", "a"]),
        (
            b"CLIENT REPLY SKIP\r\n*0\r\n\r\n*-1\r\nECHO a\r\nECHO b\r\n",
            &["b"],
        ),
        (
            b"CLIENT REPLY SKIP\r\n*1\r\n$0\r\n\r\nECHO a\r\nECHO b\r\n",
            &["a", "b"],
        ),
    ] {
        client.send(sent);
        for answer in answers {
            assert_eq!(text(&client.read()), *answer, "{}", sent.escape_ascii());
        }
    }
    assert!(client.is_silent());
}

/// Commands that change nothing by themselves, but what replicas would see.
#[test]
fn a_pause_of_writes_holds_back_what_may_be_replicated() {
    let server = Server::start(&[]);
    let mut boss = server.client();
    boss.call(&["PFADD", "h", "a"]);
    for words in [
        &["PFCOUNT", "h"][..],
        &["PUBLISH", "a", "b"],
        &["PFMERGE", "h"],
    ] {
        let (mut alone, mut within) = (server.client(), server.client());
        within.call(&["MULTI"]);
        within.call(words);
        assert_eq!(boss.call(&["CLIENT", "PAUSE", "60000", "WRITE"]), ok());
        alone.send(&command(words));
        within.send(&command(&["EXEC"]));
        eventually("both wait", || {
            (boss.info("clients", "blocked_clients") == "2").then_some(())
        });
        assert!(alone.is_silent() && within.is_silent(), "{words:?}");
        assert_eq!(boss.call(&["GET", "nothing"]), Reply::Null);
        assert_eq!(boss.call(&["CLIENT", "UNPAUSE"]), ok());
        let reply = alone.read();
        assert_eq!(within.read(), Reply::Array(vec![reply]));
    }
}

#[test]
fn a_pause_of_writes_holds_writes_back_until_it_ends() {
    let server = Server::start(&[]);
    let mut boss = server.client();
    let mut writer = server.client();
    assert_eq!(boss.call(&["CLIENT", "PAUSE", "60000", "WRITE"]), ok());
    writer.send(
        &[
            command(&["PING"]),
            command(&["PUBLISH", "a", "b"]),
            command(&["PING"]),
        ]
        .concat(),
    );
    assert_eq!(writer.read(), simple("PONG"));
    // Replicas would be told of a count that it has computed anew.
    let mut counter = server.client();
    counter.send(&command(&["PFCOUNT", "k"]));
    eventually("both wait", || {
        (boss.info("clients", "blocked_clients") == "2").then_some(())
    });
    assert!(writer.is_silent() && counter.is_silent());
    assert_eq!(boss.call(&["CLIENT", "UNPAUSE"]), ok());
    assert_eq!(writer.read(), Reply::Integer(0));
    assert_eq!(counter.read(), Reply::Integer(0));
    assert_eq!(writer.read(), simple("PONG"));
    for (words, expected) in [
        (
            &["CLIENT", "PAUSE", "x"][..],
            "ERR timeout is not an integer or out of range",
        ),
        (&["CLIENT", "PAUSE", "-1"], "ERR timeout is negative"),
        (
            &["CLIENT", "PAUSE", "9223372036854775807"],
            "ERR timeout is out of range",
        ),
        (
            &["CLIENT", "PAUSE", "1", "READ"],
            "ERR CLIENT PAUSE mode must be WRITE or ALL",
        ),
    ] {
        assert_eq!(boss.call(words), error(expected));
    }
}

#[test]
fn a_pause_of_everything_ends_by_itself() {
    let server = Server::start(&[]);
    let mut boss = server.client();
    let mut other = server.client();
    assert_eq!(other.call(&["PING"]), simple("PONG"));
    let began = now();
    assert_eq!(boss.call(&["CLIENT", "PAUSE", "200"]), ok());
    assert_eq!(other.call(&["PING"]), simple("PONG"));
    assert!(began.elapsed() >= Duration::from_millis(200));
}

#[test]
fn silent_clients_are_closed_and_others_are_not() {
    let server = Server::start(&["--timeout", "1"]);
    let began = now();
    let mut silent = server.client();
    let mut subscriber = server.client();
    subscriber.call(&["SUBSCRIBE", "news"]);
    let mut busy = server.client();
    let stop = std::thread::spawn(move || {
        while began.elapsed() < Duration::from_millis(2500) {
            assert_eq!(busy.call(&["PING"]), simple("PONG"));
            std::thread::sleep(Duration::from_millis(100));
        }
        busy
    });
    assert_eq!(silent.try_read(), None);
    assert!(
        began.elapsed() >= Duration::from_millis(1000),
        "not before its time"
    );
    let mut busy = stop.join().unwrap();
    assert_eq!(busy.call(&["PUBLISH", "news", "x"]), Reply::Integer(1));
    assert!(matches!(subscriber.read(), Reply::Array(_)));
}

#[test]
fn a_time_out_that_is_set_later_also_holds_for_connected_clients() {
    let server = Server::start(&[]);
    let mut silent = server.client();
    assert_eq!(silent.call(&["PING"]), simple("PONG"));
    assert_eq!(
        server.client().call(&["CONFIG", "SET", "timeout", "1"]),
        ok()
    );
    assert_eq!(silent.try_read(), None);
}

#[test]
fn more_than_maxclients_are_refused_and_places_become_free_again() {
    let server = Server::start(&["--maxclients", "3"]);
    let mut clients: Vec<Client> = (0..3).map(|_| server.client()).collect();
    for client in &mut clients {
        assert_eq!(client.call(&["PING"]), simple("PONG"));
    }
    let mut fourth = server.client();
    assert_eq!(
        fourth.try_read(),
        Some(error("ERR max number of clients reached"))
    );
    assert_eq!(fourth.try_read(), None);
    clients.pop();
    eventually("a place is free", || {
        let mut client = server.client();
        client.send(b"PING\r\n");
        (client.try_read() == Some(simple("PONG"))).then_some(())
    });
}

#[test]
fn thousands_of_half_open_connections_cost_little_and_disturb_nobody() {
    let server = Server::start(&["--maxclients", "5000"]);
    let mut open = Vec::new();
    for _ in 0..3000 {
        // Where the limit of open files is low, as many as it allows.
        match std::net::TcpStream::connect(("127.0.0.1", server.port)) {
            Ok(mut stream) => {
                use std::io::Write;
                stream.write_all(b"*3\r\n$3\r\nSET\r\n$3\r\nke").unwrap();
                open.push(stream);
            }
            Err(_) => break,
        }
    }
    println!("{} half-open connections", open.len());
    open.pop();
    let mut client = server.client();
    for _ in 0..100 {
        assert_eq!(client.call(&["PING"]), simple("PONG"));
    }
    let expected = open.len();
    eventually("all are counted", || {
        let count: usize = client.info("clients", "connected_clients").parse().unwrap();
        (count >= expected).then_some(())
    });
    drop(open);
    eventually("all are forgotten", || {
        (client.info("clients", "connected_clients") == "1").then_some(())
    });
}

#[test]
fn clients_that_hold_too_much_memory_together_lose_their_biggest() {
    let server = Server::start(&["--maxmemory-clients", "4mb"]);
    let mut small = server.client();
    let mut big = server.client();
    small.send(b"*2\r\n$4\r\nECHO\r\n$5\r\nhe");
    let mut part = b"*2\r\n$4\r\nECHO\r\n$100000000\r\n".to_vec();
    part.resize(8 << 20, b'x');
    {
        use std::io::Write;
        // It may be closed while it is still sending.
        drop(big.stream.write_all(&part));
    }
    assert_eq!(big.try_read(), None);
    small.send(b"llo\r\n");
    assert_eq!(small.read(), bulk("hello"));
    let evicted = server.client().info("stats", "evicted_clients");
    assert_eq!(evicted, "1");
}

#[test]
fn after_a_pause_is_answered_no_other_loop_changes_anything() {
    let server = Server::start(&["--threads", "2"]);
    let mut clients: Vec<Client> = (0..2).map(|_| server.client()).collect();
    // Copied before its shard is locked, which takes tens of milliseconds.
    let long = command(&["SET", "k", &"x".repeat(96 << 20)]);
    for delay_ms in [0, 2, 5, 10, 15, 20, 30, 45] {
        let [writer, boss] = &mut clients[..] else {
            panic!()
        };
        assert_eq!(boss.call(&["SET", "k", "old"]), ok());
        writer.send(&long);
        std::thread::sleep(Duration::from_millis(delay_ms));
        assert_eq!(boss.call(&["CLIENT", "PAUSE", "60000", "WRITE"]), ok());
        let seen = boss.call(&["STRLEN", "k"]);
        std::thread::sleep(Duration::from_millis(100));
        assert_eq!(boss.call(&["STRLEN", "k"]), seen, "{delay_ms} ms later");
        assert_eq!(boss.call(&["CLIENT", "UNPAUSE"]), ok());
        assert_eq!(writer.read(), ok());
    }
}
