//! Programs that speak another protocol: nothing of their input is run.

use crate::common::{Reply, Server, array, bulk, command, error, ok, simple};

/// A request that a web page can have a browser send to any port of the machine.
const PAGE: &[u8] = b"POST / HTTP/1.1\r\nHost: 127.0.0.1:6379\r\nContent-Type: text/plain\r\n\r\n\
SET owned yes\r\nFLUSHALL\r\nCONFIG SET requirepass theirs\r\n";

/// Other protocols as they begin, with a command for this server behind.
const OTHERS: &[(&str, &[u8])] = &[
    ("HTTP", PAGE),
    ("HTTP", b"post /x HTTP/1.0\r\n\r\n"),
    ("HTTP", b"POST\r\n"),
    ("HTTP", b"hOsT: localhost\r\n"),
    ("HTTP", b"GET / HTTP/1.1\r\n"),
    ("HTTP", b"GET /a b HTTP/1.1\n"),
    ("HTTP", b"PUT /key HTTP/1.1\r\n"),
    ("HTTP", b"OPTIONS * HTTP/1.1\r\n"),
    ("HTTP", b"DELETE /key HTTP/1.1\r\n"),
    ("HTTP", b"COPY /from HTTP/1.1\r\n"),
    ("HTTP", b"CONNECT example.org:443 HTTP/1.1\r\n"),
    ("HTTP", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    ("RTSP", b"DESCRIBE rtsp://camera/1 RTSP/1.0\r\n"),
    ("SIP", b"SUBSCRIBE sip:a@example.org SIP/2.0\r\n"),
    // The second length has a line feed, which would end an inline command.
    ("TLS", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"),
    ("TLS", b"\x16\x03\x01\x0a\x0a\x01\x00\x0a\x06\x03\x03"),
    ("SSH", b"SSH-2.0-OpenSSH_9.6\r\n"),
    ("memcached", b"set key 0 0 5\r\nhello\r\n"),
    ("memcached", b"set key 0 -1 8 noreply\r\nFLUSHALL\r\n"),
    ("memcached", b"append key 0 0 8\r\nFLUSHALL\r\n"),
    ("memcached", b"cas key 0 0 8 77\r\nFLUSHALL\r\n"),
    ("memcached", b"ms key 8 T0\r\nFLUSHALL\r\n"),
    ("SMTP", b"EHLO example.org\r\n"),
    ("SMTP", b"helo example.org\r\n"),
    ("PROXY", b"PROXY TCP4 192.0.2.1 192.0.2.2 1 6379\r\n"),
    ("PROXY", b"\r\n\r\n\0\r\nQUIT\n\x21\x11\x00\x0c"),
    ("DICT", b"CLIENT libcurl 8.5.0\r\n"),
];

/// Inline commands that resemble the above.
const OURS: &[&[u8]] = &[
    b"GET /\r\n",
    b"GET HTTP/1.1\r\n",
    b"SET page HTTP/1.1\r\n",
    b"COPY page HTTP/1.1\r\n",
    b"SET key 0\r\n",
    b"set key 0 EX 5\r\n",
    b"append key 5\r\n",
    b"DELETE key\r\n",
    b"PUT key value\r\n",
    b"HELO 3\r\n",
    b"proxy\r\n",
    b"HELLO 2\r\n",
    b"CLIENT LIST\r\n",
    b"SET SSH-2.0-x y\r\n",
    b"MSET Host: a POST b\r\n",
];

/// Sends bytes, with commands of both forms behind, and takes what comes until the end.
fn answers(server: &Server, bytes: &[u8]) -> Vec<u8> {
    let mut client = server.client();
    client.send(
        &[
            bytes,
            b"SET owned yes\r\n",
            &command(&["SET", "owned", "yes"]),
        ]
        .concat(),
    );
    client.read_to_end()
}

#[test]
fn no_command_behind_another_protocol_runs() {
    for flags in [&[][..], &["--requirepass", "secret"]] {
        let server = Server::start(flags);
        let mut boss = server.client();
        if !flags.is_empty() {
            assert_eq!(boss.call(&["AUTH", "secret"]), ok());
        }
        assert_eq!(boss.call(&["SET", "key", "ours"]), ok());
        for (protocol, bytes) in OTHERS {
            let shown = bytes.escape_ascii();
            assert_eq!(answers(&server, bytes), b"", "{protocol}: {shown}");
            assert_eq!(boss.call(&["MGET", "owned", "key"]), pair(), "{shown}");
        }
        assert_eq!(boss.call(&["DBSIZE"]), Reply::Integer(1));
    }
}

fn pair() -> Reply {
    Reply::Array(vec![Reply::Null, bulk("ours")])
}

/// The end may come before the rest of the request does. So the pieces have no commands behind.
#[test]
fn another_protocol_is_known_although_it_arrives_byte_by_byte() {
    let server = Server::start(&[]);
    for (protocol, bytes) in OTHERS {
        let mut client = server.client();
        for byte in *bytes {
            if std::io::Write::write_all(&mut client.stream, &[*byte]).is_err() {
                break;
            }
        }
        let shown = bytes.escape_ascii();
        assert_eq!(client.read_to_end(), b"", "{protocol}: {shown}");
    }
    assert_eq!(server.client().call(&["DBSIZE"]), Reply::Integer(0));
}

#[test]
fn the_log_names_the_protocol_and_the_address_once() {
    let server = Server::start_logged(&[]);
    for (protocol, bytes) in OTHERS {
        let mut client = server.client();
        let address = client.stream.local_addr().expect("an address").to_string();
        client.send(bytes);
        client.read_to_end();
        let lines = server.logged(&address);
        assert_eq!(lines.len(), 1, "{lines:?}");
        let line = &lines[0];
        assert!(line.contains("WARN") && line.contains(protocol), "{line}");
    }
}

#[test]
fn inline_commands_that_resemble_other_protocols_are_run() {
    let server = Server::start(&[]);
    for bytes in OURS {
        let mut client = server.client();
        client.send(bytes);
        let reply = client.try_read();
        assert!(reply.is_some(), "closed: {}", bytes.escape_ascii());
        assert_eq!(client.call(&["PING"]), simple("PONG"));
    }
    let page = array(&["HTTP/1.1", "HTTP/1.1"]);
    assert_eq!(server.client().call(&["MGET", "page", "HTTP/1.1"]), page);
}

/// Commands of one read are cut and looked up ahead, up to 32 of them.
#[test]
fn of_a_pipeline_with_post_in_it_only_what_stands_before_runs() {
    let server = Server::start(&[]);
    for foreign in [
        command(&["POST", "/"]),
        command(&["host:"]),
        b"POST / HTTP/1.1\r\n".to_vec(),
        b"\x16\x03\x01\x02\x00".to_vec(),
    ] {
        for before in [0, 1, 7, 31, 32, 40] {
            let mut client = server.client();
            let first: Vec<u8> = (0..before)
                .flat_map(|i| command(&["SETRANGE", "first", "0", &format!("{i:02}")]))
                .collect();
            let then = command(&["SET", "owned", "yes"]).repeat(40);
            client.send(&[first, foreign.clone(), then].concat());
            for _ in 0..before {
                assert_eq!(client.read(), Reply::Integer(2));
            }
            assert_eq!(client.try_read(), None, "{before} before it");
        }
    }
    assert_eq!(
        server.client().call(&["EXISTS", "owned"]),
        Reply::Integer(0)
    );
}

#[test]
fn post_in_a_transaction_discards_it() {
    let server = Server::start(&[]);
    let mut client = server.client();
    let parts = [
        &command(&["MULTI"])[..],
        &command(&["SET", "owned", "yes"]),
        &command(&["POST", "/"]),
        &command(&["EXEC"]),
    ];
    client.send(&parts.concat());
    assert_eq!((client.read(), client.read()), (ok(), simple("QUEUED")));
    assert_eq!(client.try_read(), None);
    assert_eq!(
        server.client().call(&["EXISTS", "owned"]),
        Reply::Integer(0)
    );
}

#[test]
fn commands_of_other_protocols_in_this_ones_form_are_only_unknown() {
    let server = Server::start(&[]);
    let mut client = server.client();
    let wrong = error("ERR wrong number of arguments for 'get' command");
    assert_eq!(client.call(&["GET", "/", "HTTP/1.1"]), wrong);
    assert!(matches!(client.call(&["EHLO", "x"]), Reply::Error(_)));
    assert_eq!(
        client.call(&["set", "key", "0", "0", "5"]),
        error("ERR syntax error")
    );
    assert_eq!(client.call(&["PING"]), simple("PONG"));
}
