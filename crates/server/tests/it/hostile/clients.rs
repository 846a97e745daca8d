//! Each client's account includes all of its memory, and the biggest client is closed first.

use super::tools::{client_of_loop, script};
use crate::common::{Client, Reply, Server, command, eventually, ok, simple, text};

fn total_memory(asker: &mut Client, id: &str) -> u64 {
    let line = text(&asker.call(&["CLIENT", "LIST", "ID", id]));
    let word = line
        .split_ascii_whitespace()
        .find_map(|word| word.strip_prefix("tot-mem="));
    word.expect("a line of the list").parse().expect("a number")
}

fn id(client: &mut Client) -> String {
    match client.call(&["CLIENT", "ID"]) {
        Reply::Integer(id) => id.to_string(),
        other => panic!("{other:?}"),
    }
}

fn subscribe_to(first: usize, count: usize) -> Vec<u8> {
    let names: Vec<String> = (first..first + count)
        .map(|i| format!("channel:{i}"))
        .collect();
    let mut words = vec!["SUBSCRIBE"];
    words.extend(names.iter().map(String::as_str));
    command(&words)
}

#[test]
fn subscriptions_are_in_their_clients_account() {
    let server = Server::start(&[]);
    let mut asker = server.client();
    let mut listener = server.client();
    let id = id(&mut listener);
    let before = total_memory(&mut asker, &id);
    listener.send(&subscribe_to(0, 10_000));
    for _ in 0..10_000 {
        listener.read();
    }
    let grown = total_memory(&mut asker, &id) - before;
    assert!((1 << 20..8 << 20).contains(&grown), "{grown} bytes");
    listener.send(b"UNSUBSCRIBE\r\n");
    for _ in 0..10_000 {
        listener.read();
    }
    eventually("the account is settled", || {
        (total_memory(&mut asker, &id) <= before + (64 << 10)).then_some(())
    });
}

/// 200,000 channels of one client took 88 MB.
#[test]
fn subscriptions_beyond_the_clients_memory_close_their_client_and_nobody_else() {
    let server = Server::start(&["--maxmemory-clients", "4mb"]);
    let mut other = server.client();
    script(&mut other, "SUBSCRIBE news");
    let mut greedy = server.client();
    for first in (0..200_000).step_by(1_000) {
        use std::io::{Read, Write};
        let sent = greedy.stream.write_all(&subscribe_to(first, 1_000));
        if sent.is_err() || matches!(greedy.stream.read(&mut [0; 1 << 16]), Ok(0) | Err(_)) {
            break;
        }
    }
    eventually("it is closed", || {
        (server.client().info("stats", "evicted_clients") == "1").then_some(())
    });
    let published = server.client().call(&["PUBLISH", "news", "x"]);
    assert_eq!(published, Reply::Integer(1));
    other.read();
}

/// A command of very many empty arguments: the list of arguments is larger than the bytes.
#[test]
fn what_the_parser_has_learnt_of_an_unfinished_command_is_in_the_account() {
    let server = Server::start(&[]);
    let mut asker = server.client();
    let mut client = server.client();
    let id = id(&mut client);
    let arguments = 200_000;
    let mut part = format!("*{}\r\n", arguments + 1).into_bytes();
    part.extend_from_slice(&b"$0\r\n\r\n".repeat(arguments));
    client.send(&part);
    let expected = part.len() as u64 + 8 * arguments as u64;
    eventually("bytes and arguments are counted", || {
        (total_memory(&mut asker, &id) >= expected).then_some(())
    });
}

/// When the buffer for an announced command grew, all of its address space was written to.
#[test]
fn bytes_that_were_announced_and_have_not_arrived_take_no_memory() {
    let server = Server::start(&[]);
    let mut asker = server.client();
    let mut client = server.client();
    let id = id(&mut client);
    let before = server.status("VmHWM");
    client.send(b"*2\r\n$4\r\nECHO\r\n$536870912\r\n");
    let part = vec![b'x'; 1 << 20];
    for _ in 0..20 {
        client.send(&part);
    }
    eventually("it is all there", || {
        (total_memory(&mut asker, &id) >= 20 << 20).then_some(())
    });
    let grown = server.status("VmHWM").saturating_sub(before);
    assert!(grown < 64 << 10, "{grown} KiB");
    assert!(total_memory(&mut asker, &id) < 32 << 20);
}

/// Each loop closed its own biggest client, even a small one.
#[test]
fn only_the_biggest_of_all_clients_is_closed_even_while_its_loop_is_busy() {
    eventually("the loop sleeps for long enough", || {
        let server = Server::start(&["--enable-debug-command", "yes"]);
        let mut boss = server.client();
        let mut others = Vec::new();
        let mut innocent = client_of_loop(&server, &mut boss, 0, &mut others);
        let mut big = client_of_loop(&server, &mut boss, 1, &mut others);
        let mut busy = client_of_loop(&server, &mut boss, 1, &mut others);
        innocent.send(&half_of_a_long_echo(200_000));
        let id = id(&mut big);
        big.send(&half_of_a_long_echo(8 << 20));
        eventually("it is all there", || {
            (total_memory(&mut boss, &id) >= 8 << 20).then_some(())
        });
        busy.send(b"DEBUG SLEEP 0.4\r\n");
        others.clear();
        let set = boss.call(&["CONFIG", "SET", "maxmemory-clients", "4mb"]);
        assert_eq!(set, ok());
        // Each tick of the first loop looks at the sum.
        for _ in 0..50 {
            assert_eq!(boss.call(&["PING"]), simple("PONG"));
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        let in_time = busy.is_silent();
        assert_eq!(big.try_read(), None);
        innocent.send(&[&vec![b'x'; 200_000][..], b"\r\n"].concat());
        assert!(matches!(innocent.read(), Reply::Bulk(bytes) if bytes.len() == 400_000));
        eventually("one was closed", || {
            (boss.info("stats", "evicted_clients") == "1").then_some(())
        });
        in_time.then_some(())
    });
}

fn half_of_a_long_echo(half: usize) -> Vec<u8> {
    let mut bytes = format!("*2\r\n$4\r\nECHO\r\n${}\r\n", 2 * half).into_bytes();
    bytes.resize(bytes.len() + half, b'x');
    bytes
}

/// Then no further connection could be accepted, and nobody was told why.
#[test]
fn more_clients_than_the_system_lets_files_be_open_are_refused() {
    let server = Server::start(&[]);
    let mut asker = server.client();
    let pid = rustix::process::Pid::from_raw(server.pid() as i32);
    let limit = rustix::process::Rlimit {
        current: Some(328),
        maximum: Some(400),
    };
    rustix::process::prlimit(pid, rustix::process::Resource::Nofile, limit).expect("our child");
    let refused = text(&asker.call(&["CONFIG", "SET", "maxclients", "5000", "timeout", "7"]));
    let why = "ERR CONFIG SET failed (possibly related to argument 'maxclients') - The operating \
               system is not able to handle the specified number of clients, try with ";
    let fit = refused.strip_prefix(why).expect("what fits");
    let most: usize = fit.parse().expect("a number");
    assert!(
        (340..390).contains(&most),
        "{most} beside what the server needs"
    );
    assert_eq!(script(&mut asker, "CONFIG GET timeout").len(), 1);
    assert_eq!(asker.call(&["CONFIG", "SET", "maxclients", fit]), ok());
    let clients: Vec<Client> = (1..most).map(|_| server.client()).collect();
    for mut client in clients {
        assert_eq!(client.call(&["PING"]), simple("PONG"));
    }
}

/// CLIENT LIST is built in a buffer of its own, which had no limit.
#[test]
fn a_list_of_clients_beyond_what_its_asker_may_hold_is_not_gathered() {
    let server = Server::start(&["--client-output-buffer-limit", "normal 1mb 0 0"]);
    let mut named = server.client();
    let name = "x".repeat(1 << 20);
    assert_eq!(named.call(&["CLIENT", "SETNAME", &name]), ok());
    let id = id(&mut named);
    let mut words = vec!["CLIENT", "LIST", "ID"];
    words.extend(std::iter::repeat_n(id.as_str(), 500));
    let mut asker = server.client();
    let before = server.status("VmHWM");
    asker.send(&command(&words));
    assert_eq!(asker.try_read(), None, "it is closed instead");
    let grown = server.status("VmHWM") - before;
    assert!(grown < 64 << 10, "{grown} KiB");
    assert_eq!(named.call(&["PING"]), simple("PONG"));
}
