//! Slow commands do not make the time stand still for those that follow.

use std::time::Duration;

use crate::common::{Client, Reply, Server, bulk, command, eventually, now, ok};

/// A server that lets LCS compare long strings.
fn server() -> Server {
    Server::start(&["--threads", "1", "--proto-max-bulk-len", "4000mb"])
}

/// Has LCS take a good while, and says how long it takes.
fn slow(client: &mut Client) -> Duration {
    let mut length = 2_000;
    loop {
        assert_eq!(client.call(&["SET", "a", &"xy".repeat(length)]), ok());
        assert_eq!(client.call(&["SET", "b", &"yx".repeat(length)]), ok());
        let began = now();
        let common = client.call(&["LCS", "a", "b", "LEN"]);
        let took = began.elapsed();
        assert!(matches!(common, Reply::Integer(_)), "{common:?}");
        if took > Duration::from_millis(30) {
            return took;
        }
        length += length / 4;
    }
}

/// On a machine that is busy otherwise, a time to live may pass before it is asked for: then once
/// more.
fn lives_on(client: &mut Client, least: i64, mut set: impl FnMut(&mut Client)) {
    eventually("the time to live begins when it is set", || {
        set(client);
        match client.call(&["PTTL", "k"]) {
            Reply::Integer(left) => (left >= least).then_some(()),
            other => panic!("{other:?}"),
        }
    });
}

#[test]
fn a_time_to_live_that_is_set_after_slow_commands_begins_then() {
    let server = server();
    let mut client = server.client();
    let ttl = slow(&mut client).as_millis();
    let lcs = command(&["LCS", "a", "b", "LEN"]).repeat(3);
    let set = command(&["SET", "k", "v", "PX", &ttl.to_string()]);
    let batch = [lcs, set].concat();
    lives_on(&mut client, ttl as i64 / 2, |client| {
        client.send(&batch);
        for _ in 0..3 {
            client.read();
        }
        assert_eq!(client.read(), ok());
    });
}

#[test]
fn a_key_that_died_while_slow_commands_ran_is_not_read_after_them() {
    let server = server();
    let mut client = server.client();
    let lcs = command(&["LCS", "a", "b", "LEN"]).repeat(3);
    let get = command(&["GET", "k"]);
    // On a machine that is busy otherwise, one may seem to take longer than the three: then once
    // more.
    eventually("the key is dead after three times its life", || {
        let ttl = slow(&mut client).as_millis().to_string();
        let set = command(&["SET", "k", "v", "PX", &ttl]);
        client.send(&[&set, &get, &lcs, &get].map(Vec::as_slice).concat());
        assert_eq!(client.read(), ok());
        let before = client.read();
        assert!([bulk("v"), Reply::Null].contains(&before), "{before:?}");
        for _ in 0..3 {
            client.read();
        }
        (client.read() == Reply::Null).then_some(())
    });
}

/// One command with very many keys is slow too. It may take longer than the time to live.
#[test]
fn a_time_to_live_that_is_set_after_a_huge_del_begins_then() {
    let server = Server::start(&["--threads", "1"]);
    let mut client = server.client();
    let keys: Vec<String> = (0..200_000).map(|i| format!("key:{i}")).collect();
    let mut words = vec!["MSET"];
    words.extend(keys.iter().flat_map(|key| [key.as_str(), "value"]));
    let mset = command(&words);
    let mut words = vec!["DEL"];
    words.extend(keys.iter().map(String::as_str));
    let batch = [command(&words), command(&["SET", "k", "v", "PX", "5"])].concat();
    lives_on(&mut client, 1, |client| {
        client.send(&mset);
        assert_eq!(client.read(), ok());
        client.send(&batch);
        assert_eq!(client.read(), Reply::Integer(keys.len() as i64));
        assert_eq!(client.read(), ok());
    });
}

#[test]
fn slow_uploads_downloads_and_questions_about_the_server_are_no_silence() {
    let server = Server::start(&["--timeout", "2"]);
    std::thread::scope(|scope| {
        scope.spawn(|| ask(&mut server.client()));
        scope.spawn(|| upload(&mut server.client()));
        scope.spawn(|| download(&mut server.client()));
    });
    let closed = server.client().info("stats", "client_idle_disconnections");
    assert_eq!(closed, "0");
}

/// For longer than the time-out, never silent for a sixth of it: a busy machine may add to that.
fn often(mut act: impl FnMut()) {
    let began = now();
    while began.elapsed() < Duration::from_millis(4_300) {
        act();
        std::thread::sleep(Duration::from_millis(300));
    }
}

fn ask(client: &mut Client) {
    often(|| drop(client.info("clients", "connected_clients")));
}

fn upload(client: &mut Client) {
    client.send(b"*2\r\n$4\r\nECHO\r\n$20\r\n");
    let mut sent = 0;
    often(|| {
        client.send(b"x");
        sent += 1;
    });
    client.send(&[&b"x".repeat(20 - sent)[..], b"\r\n"].concat());
    assert_eq!(client.read(), bulk(&"x".repeat(20)));
}

fn download(client: &mut Client) {
    use std::io::Read;
    // A third of the value is left at the end, more than the system's buffers hold: the server
    // is not done before the client is.
    socket2::SockRef::from(&client.stream)
        .set_recv_buffer_size(1 << 20)
        .expect("a socket");
    let length = 64 << 20;
    client.send(b"SETRANGE big 67108863 x\r\nGET big\r\n");
    let mut left = ":67108864\r\n$67108864\r\n\r\n".len() + length;
    let mut part = vec![0; 3 << 20];
    often(|| {
        let n = part.len().min(left);
        client
            .stream
            .read_exact(&mut part[..n])
            .expect("more of the value");
        left -= n;
    });
    client.stream.set_nonblocking(false).expect("a socket");
    client
        .stream
        .read_exact(&mut vec![0; left])
        .expect("the rest of the value");
}
