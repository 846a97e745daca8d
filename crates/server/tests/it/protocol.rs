//! Bytes on the wire: whole, in pieces, many at once, and wrong.

use crate::common::{Client, Reply, Server, bulk, command, error, eventually, ok, simple};

#[test]
fn a_pipeline_is_answered_in_order_and_completely() {
    let server = Server::start(&[]);
    let mut client = server.client();
    const N: usize = 20_000;
    let batch: Vec<u8> = (0..N)
        .flat_map(|i| command(&["ECHO", &i.to_string()]))
        .collect();
    let mut sender = client.stream.try_clone().unwrap();
    let send = std::thread::spawn(move || {
        use std::io::Write;
        sender.write_all(&batch).unwrap();
    });
    for i in 0..N {
        assert_eq!(client.read(), bulk(&i.to_string()));
    }
    send.join().unwrap();
}

#[test]
fn a_command_may_arrive_byte_by_byte() {
    let server = Server::start(&[]);
    let mut client = server.client();
    for byte in command(&["ECHO", "piecemeal"])
        .into_iter()
        .chain(*b"PING\r\n")
    {
        client.send(&[byte]);
        if byte == b'\n' {
            // Makes sure that the pieces arrive apart from each other.
            assert_eq!(server.client().call(&["PING"]), simple("PONG"));
        }
    }
    assert_eq!(client.read(), bulk("piecemeal"));
    assert_eq!(client.read(), simple("PONG"));
}

#[test]
fn inline_commands_blank_lines_and_empty_arrays() {
    let server = Server::start(&[]);
    let mut client = server.client();
    client.send(b"\r\n*0\r\n*-1\r\n  ECHO \"two words\"  \r\nPING\n");
    assert_eq!(client.read(), bulk("two words"));
    assert_eq!(client.read(), simple("PONG"));
    assert!(client.is_silent());
}

#[test]
fn protocol_errors_are_named_and_end_the_connection() {
    let server = Server::start(&[]);
    for (bytes, expected) in [
        (
            &b"*abc\r\n"[..],
            "ERR Protocol error: invalid multibulk length",
        ),
        (
            b"*20000000\r\n",
            "ERR Protocol error: invalid multibulk length",
        ),
        (b"*1\r\n:5\r\n", "ERR Protocol error: expected '$', got ':'"),
        (b"*1\r\n*1\r\n", "ERR Protocol error: expected '$', got '*'"),
        (b"*1\r\n$-5\r\n", "ERR Protocol error: invalid bulk length"),
        (b"*1\r\n$x\r\n", "ERR Protocol error: invalid bulk length"),
        (
            b"*1\r\n$9999999999\r\n",
            "ERR Protocol error: invalid bulk length",
        ),
        (
            b"SET \"unbalanced\r\n",
            "ERR Protocol error: unbalanced quotes in request",
        ),
    ] {
        let mut client = server.client();
        client.send(b"PING\r\n");
        client.send(bytes);
        assert_eq!(client.read(), simple("PONG"));
        assert_eq!(client.read(), error(expected));
        assert_eq!(
            client.try_read(),
            None,
            "the connection is closed after {expected}"
        );
    }
    let mut client = server.client();
    client.send(&vec![b'a'; 70_000]);
    assert_eq!(
        client.read(),
        error("ERR Protocol error: too big inline request")
    );
    assert_eq!(server.client().call(&["PING"]), simple("PONG"));
}

#[test]
fn wrong_commands_are_named_and_the_connection_lives() {
    let server = Server::start(&[]);
    let mut client = server.client();
    for (words, expected) in [
        (
            &["NOPE", "a", "b"][..],
            "ERR unknown command 'NOPE', with args beginning with: 'a' 'b' ",
        ),
        (
            &["ECHO"],
            "ERR wrong number of arguments for 'echo' command",
        ),
        (
            &["CLIENT"],
            "ERR wrong number of arguments for 'client' command",
        ),
        (
            &["CLIENT", "NOPE"],
            "ERR unknown subcommand 'NOPE'. Try CLIENT HELP.",
        ),
        (
            &["CLIENT", "KILL"],
            "ERR wrong number of arguments for 'client|kill' command",
        ),
        (
            &["CONFIG", "REWIND"],
            "ERR unknown subcommand 'REWIND'. Try CONFIG HELP.",
        ),
        (
            &["PING", "a", "b"],
            "ERR wrong number of arguments for 'ping' command",
        ),
    ] {
        assert_eq!(client.call(words), error(expected));
    }
    assert_eq!(client.call(&["PING", "still here"]), bulk("still here"));
}

#[test]
fn what_was_complete_is_answered_when_the_client_stops_sending() {
    let server = Server::start(&[]);
    let mut client = server.client();
    client.send(b"PING\r\n*2\r\n$4\r\nECHO\r\n$10\r\nhal");
    client.finish_sending();
    assert_eq!(client.read_to_end(), b"+PONG\r\n");
}

#[test]
fn a_client_without_password_may_send_only_little() {
    let server = Server::start(&["--requirepass", "secret"]);
    for (bytes, expected) in [
        (
            &b"*11\r\n"[..],
            "ERR Protocol error: unauthenticated multibulk length",
        ),
        (
            b"*2\r\n$4\r\nAUTH\r\n$20000\r\n",
            "ERR Protocol error: unauthenticated bulk length",
        ),
    ] {
        let mut client = server.client();
        client.send(bytes);
        assert_eq!(client.read(), error(expected));
        assert_eq!(client.try_read(), None);
    }
    let mut client = server.client();
    assert_eq!(client.call(&["AUTH", "secret"]), ok());
    let long = "x".repeat(100_000);
    assert_eq!(client.call(&["ECHO", &long]), bulk(&long));
}

#[test]
fn an_announced_length_allocates_nothing() {
    let server = Server::start(&[]);
    let before = server.status("VmRSS");
    let mut waiting: Vec<Client> = (0..200).map(|_| server.client()).collect();
    for client in &mut waiting {
        client.send(b"*2\r\n$4\r\nECHO\r\n$536870912\r\nbeginning");
    }
    eventually("all beginnings arrive", || {
        (server.client().call(&["PING"]) == simple("PONG")).then_some(())
    });
    assert!(
        server.status("VmRSS") < before + 64_000,
        "200 announcements of 512 MiB"
    );
}

#[test]
fn big_arguments_and_replies_pass_whole() {
    let server = Server::start(&[]);
    let mut client = server.client();
    let big: String = (0..5_000_000)
        .map(|i| char::from(b'a' + (i % 23) as u8))
        .collect();
    let mut sender = client.stream.try_clone().unwrap();
    let bytes = [command(&["ECHO", &big]), command(&["PING"])].concat();
    let send = std::thread::spawn(move || {
        use std::io::Write;
        sender.write_all(&bytes).unwrap();
    });
    assert_eq!(client.read(), Reply::Bulk(big.into_bytes()));
    assert_eq!(client.read(), simple("PONG"));
    send.join().unwrap();
}

#[test]
fn a_client_that_never_reads_makes_nobody_else_wait_and_holds_little() {
    let server = Server::start(&[]);
    let before = server.status("VmRSS");
    let mut greedy = server.client();
    greedy
        .stream
        .set_write_timeout(Some(std::time::Duration::from_millis(500)))
        .unwrap();
    let batch = command(&["ECHO", &"x".repeat(10_000)]).repeat(100);
    // The server stops reading when it cannot write, so sending blocks at some point.
    let blocked = (0..10_000).any(|_| {
        use std::io::Write;
        greedy.stream.write_all(&batch).is_err()
    });
    assert!(blocked);
    for _ in 0..100 {
        assert_eq!(server.client().call(&["PING"]), simple("PONG"));
    }
    assert!(server.status("VmRSS") < before + 32_000);
}
