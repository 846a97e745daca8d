//! Subscribers that are publishers as well.

use super::tools::{cpu_seconds, script};
use crate::common::{Client, Reply, Server, bulk, command, eventually};

/// A subscriber that publishes to its own channel took each message out of the middle of all
/// waiting ones.
#[test]
fn publishing_to_oneself_costs_the_same_for_each_message_however_many_they_are() {
    const ALL: usize = 128_000;
    let server = Server::start(&["--threads", "1"]);
    let mut asker = server.client();
    let mut cost = |at_once: usize| {
        let before = cpu_seconds(&mut asker);
        for _ in 0..ALL / at_once {
            talk_to_oneself(&mut server.client(), at_once);
        }
        cpu_seconds(&mut asker) - before
    };
    let (few, many) = (cost(1_000), cost(32_000));
    assert!(
        many < 3.0 * few + 0.1,
        "{many} s at once, {few} s in portions"
    );
}

fn talk_to_oneself(client: &mut Client, messages: usize) {
    script(client, "HELLO 3\nSUBSCRIBE a");
    let sent = b"PUBLISH a m\r\n".repeat(messages);
    let mut sender = client.stream.try_clone().expect("a socket");
    std::thread::scope(|scope| {
        use std::io::Write;
        scope.spawn(move || sender.write_all(&sent).expect("the server reads"));
        let message = Reply::Push(vec![bulk("message"), bulk("a"), bulk("m")]);
        for _ in 0..messages {
            // The one before may not have left yet.
            assert!(matches!(client.read(), Reply::Integer(1 | 2)));
            assert_eq!(client.read(), message);
        }
    });
}

fn publish(server: &Server, bytes: usize) {
    let payload = "m".repeat(bytes);
    server.client().call(&["PUBLISH", "x", &payload]);
}

/// All clients together may hold 64 MB. Each got a copy of its own before most of them were closed.
/// The message is one that no socket's buffers take whole: those of 4 MB sometimes went out.
#[test]
fn one_message_for_many_silent_subscribers_takes_little_more_than_all_clients_may_hold() {
    let server = Server::start(&["--threads", "1", "--maxmemory-clients", "64mb"]);
    let mut silent: Vec<Client> = (0..200).map(|_| server.client()).collect();
    for client in &mut silent {
        script(client, "SUBSCRIBE x");
    }
    let before = server.status("VmHWM");
    publish(&server, 16 << 20);
    eventually("most are closed", || {
        let closed = server.client().info("stats", "evicted_clients");
        (closed.parse::<u64>().expect("a number") > 150).then_some(())
    });
    let grown = server.status("VmHWM").saturating_sub(before);
    assert!(grown < 160 << 10, "{grown} KiB");
}

#[test]
fn one_message_for_very_many_patterns_of_one_client_takes_no_more_than_may_wait() {
    let server = Server::start(&["--threads", "2"]);
    let mut silent = server.client();
    let patterns: Vec<String> = (1..=1_000).map(|stars| "*".repeat(stars)).collect();
    let mut words = vec!["PSUBSCRIBE"];
    words.extend(patterns.iter().map(String::as_str));
    silent.send(&command(&words));
    for _ in 0..1_000 {
        silent.read();
    }
    let before = server.status("VmHWM");
    publish(&server, 1_000_000);
    eventually("it is closed", || {
        (server.client().info("clients", "pubsub_clients") == "0").then_some(())
    });
    let grown = server.status("VmHWM").saturating_sub(before);
    // 64 MiB may wait and 32 MiB be copied; the allocator keeps what it has just got back for a
    // while.
    assert!(grown < 192 << 10, "{grown} KiB");
}

/// All names were copied before the first was confirmed.
#[test]
fn leaving_all_channels_copies_no_names_beyond_the_reply_that_may_be_built() {
    let limit = "normal 1mb 0 0 pubsub 1mb 0 0";
    let server = Server::start(&["--client-output-buffer-limit", limit]);
    let mut listener = server.client();
    for i in 0..100 {
        let name = format!("{i}{}", "c".repeat(1_000_000));
        listener.call(&["SUBSCRIBE", &name]);
    }
    let before = server.status("VmHWM");
    listener.send(b"UNSUBSCRIBE\r\n");
    // It is closed if it does not keep up.
    let heard = (0..100).take_while(|_| listener.try_read().is_some());
    let heard = heard.count();
    let grown = server.status("VmHWM").saturating_sub(before);
    assert!(grown < 16 << 10, "{grown} KiB after {heard} names");
}
