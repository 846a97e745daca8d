//! Slow commands do not make the time stand still for those that follow.

use std::time::Duration;

use crate::common::{Client, Reply, Server, bulk, command, now, ok, text};

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

#[test]
fn a_time_to_live_that_is_set_after_slow_commands_begins_then() {
    let server = server();
    let mut client = server.client();
    let ttl = slow(&mut client).as_millis().to_string();
    let lcs = command(&["LCS", "a", "b", "LEN"]).repeat(3);
    client.send(&[lcs, command(&["SET", "k", "v", "PX", &ttl])].concat());
    for _ in 0..3 {
        client.read();
    }
    assert_eq!(client.read(), ok());
    let ttl: i64 = ttl.parse().expect("a number");
    let left = time_to_live(&mut client);
    assert!(left > ttl / 2, "{left} of {ttl} ms are left");
}

fn time_to_live(client: &mut Client) -> i64 {
    match client.call(&["PTTL", "k"]) {
        Reply::Integer(left) => left,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_key_that_died_while_slow_commands_ran_is_not_read_after_them() {
    let server = server();
    let mut client = server.client();
    let ttl = slow(&mut client).as_millis().to_string();
    let lcs = command(&["LCS", "a", "b", "LEN"]).repeat(3);
    let set = command(&["SET", "k", "v", "PX", &ttl]);
    let get = command(&["GET", "k"]);
    client.send(&[set, get.clone(), lcs, get].concat());
    assert_eq!((client.read(), client.read()), (ok(), bulk("v")));
    for _ in 0..3 {
        client.read();
    }
    assert_eq!(client.read(), Reply::Null);
}

/// One command of very many keys is slow, too.
#[test]
fn a_time_to_live_that_is_set_after_a_huge_del_begins_then() {
    let server = Server::start(&["--threads", "1"]);
    let mut client = server.client();
    let keys: Vec<String> = (0..200_000).map(|i| format!("key:{i}")).collect();
    let all = |verb, value: Option<&str>| {
        let mut words = vec![verb];
        for key in &keys {
            words.push(key.as_str());
            words.extend(value);
        }
        command(&words)
    };
    client.send(&all("MSET", Some("value")));
    assert_eq!(client.read(), ok());
    // How long it takes to run, without the time for which it travels.
    let usec = |client: &mut Client| {
        let stats = text(&client.call(&["INFO", "commandstats"]));
        let line = stats
            .lines()
            .find(|line| line.starts_with("cmdstat_exists:"));
        let usec = line.and_then(|line| line.split("usec=").nth(1)?.split(',').next());
        usec.expect("it ran").parse::<i64>().expect("a number")
    };
    client.send(&all("EXISTS", None));
    client.read();
    let ttl = (usec(&mut client) / 1000).max(5);
    let set = command(&["SET", "k", "v", "PX", &ttl.to_string()]);
    // The second is longer than the time to live by what it costs to delete.
    client.send(&[all("DEL", None), set].concat());
    assert_eq!(client.read(), Reply::Integer(keys.len() as i64));
    assert_eq!(client.read(), ok());
    let left = time_to_live(&mut client);
    assert!(left > 0, "{left} of {ttl} ms are left");
}

#[test]
fn slow_uploads_downloads_and_questions_about_the_server_are_no_silence() {
    let server = Server::start(&["--timeout", "1"]);
    std::thread::scope(|scope| {
        scope.spawn(|| ask(&mut server.client()));
        scope.spawn(|| upload(&mut server.client()));
        scope.spawn(|| download(&mut server.client()));
    });
    let closed = server.client().info("stats", "client_idle_disconnections");
    assert_eq!(closed, "0");
}

/// For longer than the time-out, never silent for a third of it.
fn often(mut act: impl FnMut()) {
    let began = now();
    while began.elapsed() < Duration::from_millis(2_300) {
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
    let length = 64 << 20;
    client.send(b"SETRANGE big 67108863 x\r\nGET big\r\n");
    let mut left = ":67108864\r\n$67108864\r\n\r\n".len() + length;
    let mut part = vec![0; 6 << 20];
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
