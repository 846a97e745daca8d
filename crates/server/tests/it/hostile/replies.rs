//! Replies are a client's own and complete, however others die.

use std::sync::atomic::{AtomicBool, Ordering};

use super::tools::{flood, reset};
use crate::common::{Client, Reply, Server, bulk, command, ok, simple};

#[test]
fn the_replies_of_a_client_that_died_reach_nobody_else() {
    let server = Server::start(&["--threads", "1"]);
    let mut honest = server.client();
    assert_eq!(honest.call(&["SET", "secret", "of-another"]), ok());
    for round in 0..100 {
        let mut dying = server.client();
        dying.send(&command(&["GET", "secret"]));
        reset(dying);
        let own = honest.call(&["PING"]) == simple("PONG");
        assert!(own, "foreign bytes in round {round}");
        assert_eq!(server.client().call(&["PING"]), simple("PONG"));
    }
}

/// Replies to clients that die are left in every stage: in the socket, in the loop's buffer, and in
/// the connection's output.
#[test]
fn half_of_sixteen_clients_die_at_random_and_the_rest_read_only_their_own() {
    let server = Server::start(&["--threads", "2"]);
    let big = "another-one's".repeat(20_000);
    assert_eq!(server.client().call(&["SET", "secret", &big]), ok());
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let mut honest = Vec::new();
        for who in 0..8 {
            let (server, done) = (&server, &done);
            honest.push(scope.spawn(move || echo_on(&mut server.client(), who)));
            scope.spawn(move || die_on(server, who, done));
        }
        let ends: Vec<_> = honest.into_iter().map(|thread| thread.join()).collect();
        done.store(true, Ordering::Relaxed);
        assert!(ends.iter().all(Result::is_ok), "honest clients have failed");
    });
}

fn echo_on(client: &mut Client, who: u64) {
    for i in 0..600 {
        let words = [format!("{who}:{i}:a"), format!("{who}:{i}:b")];
        client.send(&[command(&["ECHO", &words[0]]), command(&["ECHO", &words[1]])].concat());
        let own = words.map(|word| bulk(&word));
        assert!(
            [client.read(), client.read()] == own,
            "foreign bytes were read"
        );
    }
}

/// Dies again and again, after as many commands and replies as the dice say.
fn die_on(server: &Server, who: u64, done: &AtomicBool) {
    let mut dice = who + 1;
    let mut roll = |sides: u64| {
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (dice >> 33) % sides
    };
    while !done.load(Ordering::Relaxed) {
        let mut client = server.client();
        let commands = command(&["GET", "secret"]).repeat(1 + roll(4) as usize);
        let cut = if roll(4) == 0 { roll(20) as usize } else { 0 };
        client.send(&commands[..commands.len() - cut]);
        if cut == 0 && roll(2) == 0 {
            client.read();
        }
        reset(client);
    }
}

#[test]
fn everything_that_was_sent_before_a_half_close_is_run_and_answered() {
    let server = Server::start(&[]);
    let mut watcher = server.client();
    for commands in [1, 1_000, 100_000] {
        let mut client = server.client();
        let mut sent = Vec::new();
        for i in 0..commands {
            sent.extend_from_slice(format!("SET key:{i} value\r\n").as_bytes());
        }
        // Half a command follows: it is none.
        sent.extend_from_slice(b"*3\r\n$3\r\nSET\r\n$4\r\nhalf\r\n$5\r\nva");
        let wrong = {
            let mut sender = client.stream.try_clone().expect("a socket");
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    use std::io::Write;
                    sender.write_all(&sent).expect("the server reads");
                    sender
                        .shutdown(std::net::Shutdown::Write)
                        .expect("a socket");
                });
                let replies = std::iter::from_fn(|| client.try_read());
                replies
                    .filter(|reply| *reply == ok())
                    .count()
                    .abs_diff(commands)
            })
        };
        assert_eq!(wrong, 0, "replies missing");
        assert_eq!(watcher.call(&["DBSIZE"]), Reply::Integer(commands as i64));
        assert_eq!(watcher.call(&["FLUSHALL"]), ok());
    }
}

#[test]
fn nothing_is_lost_when_a_client_that_has_not_read_yet_closes_its_half() {
    let server = Server::start(&["--threads", "1"]);
    let mut client = server.client();
    let big = "x".repeat(100_000);
    assert_eq!(client.call(&["SET", "big", &big]), ok());
    // More replies than the socket and the output's mark hold, so that commands wait.
    client.send(&b"GET big\r\n".repeat(100));
    client.finish_sending();
    let whole = std::iter::from_fn(|| client.try_read()).filter(|reply| *reply == bulk(&big));
    assert_eq!(whole.count(), 100);
    let mut other = server.client();
    assert_eq!(flood(&mut other, b"PING\r\n", 1, &simple("PONG")), 0);
}
