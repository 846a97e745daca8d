//! Checks the age of the time that commands are given, and the length of turns.

use std::time::Duration;

use tidewheel_resp::Args;

use super::rig::{Rig, bulk};
use crate::config::Settings;
use crate::time::clock;

/// A command of everybody costs a microsecond, and a walk or a comparison far more.
fn cost(args: Args<'_>) -> Duration {
    match &args[0] {
        b"LCS" => Duration::from_millis(290),
        b"KEYS" => Duration::from_millis(10),
        _ => Duration::from_micros(args.len() as u64),
    }
}

fn rig() -> Rig {
    let rig = Rig::new(1, Settings::default());
    rig.server.observer.set_cost(cost);
    rig
}

#[test]
fn a_deadline_given_after_slow_commands_counts_from_then() {
    let mut rig = rig();
    let peer = rig.connect(0);
    rig.ask(&peer, b"MSET a ohmytext b mynewtext\r\n");
    let slow = b"LCS a b LEN\r\n".repeat(3);
    let reply = rig.ask(&peer, &[&slow[..], b"SET k v PX 300\r\n"].concat());
    assert_eq!(reply, b":6\r\n:6\r\n:6\r\n+OK\r\n");
    assert_eq!(rig.ask(&peer, b"PTTL k\r\n"), b":300\r\n");
}

#[test]
fn a_key_that_died_during_a_slow_command_is_not_answered_after_it() {
    let mut rig = rig();
    let peer = rig.connect(0);
    rig.ask(&peer, b"MSET a ohmytext b mynewtext\r\n");
    let reply = rig.ask(&peer, b"SET k v PX 100\r\nLCS a b LEN\r\nGET k\r\n");
    assert_eq!(reply, b"+OK\r\n:6\r\n$-1\r\n");
}

#[test]
fn a_deadline_given_after_commands_with_many_keys_counts_from_then() {
    let mut rig = rig();
    let peer = rig.connect(0);
    for name in [&b"MSET"[..], b"DEL"] {
        // Ten of them take a hundred milliseconds, and end within one batch.
        let names: Vec<_> = (0..10_000).map(|i| format!("{i}")).collect();
        let mut words = vec![name];
        words.extend(names.iter().map(String::as_bytes));
        let mut batch = bulk(&words).repeat(10);
        batch.extend_from_slice(b"SET k v PX 50\r\nPTTL k\r\n");
        let reply = rig.ask(&peer, &batch);
        assert!(
            reply.ends_with(b"+OK\r\n:50\r\n"),
            "{}",
            reply.escape_ascii()
        );
    }
}

#[test]
fn a_deadline_given_after_a_command_that_had_to_make_room_counts_from_then() {
    let mut rig = rig();
    rig.server.observer.set_cost(|args| match args.get(1) {
        Some(b"first") => Duration::from_millis(100),
        _ => Duration::from_micros(args.len() as u64),
    });
    let peer = rig.connect(0);
    for i in 0..2_000 {
        rig.ask(&peer, format!("SET {i} {i:0100}\r\n").as_bytes());
    }
    rig.ask(&peer, b"CONFIG SET maxmemory-policy allkeys-random\r\n");
    let batch = b"CONFIG SET maxmemory 100kb\r\nSET first v\r\nSET k v PX 50\r\n";
    assert_eq!(rig.ask(&peer, batch), b"+OK\r\n".repeat(3));
    assert_eq!(rig.ask(&peer, b"PTTL k\r\n"), b":50\r\n");
}

#[test]
fn a_key_that_died_during_a_big_reply_is_not_answered_after_it() {
    let mut rig = rig();
    rig.server.observer.set_cost(|_| Duration::from_millis(2));
    let peer = rig.connect(0);
    rig.ask(&peer, &bulk(&[b"SET", b"big", &[b'x'; 100_000]]));
    let reply = rig.ask(&peer, b"SET k v PX 1\r\nGET big\r\nGET k\r\n");
    assert!(reply.ends_with(b"x\r\n$-1\r\n"));
}

#[test]
fn walks_of_one_client_hold_up_no_other_and_no_expiry() {
    let mut rig = rig();
    let greedy = rig.connect(0);
    let other = rig.connect(0);
    let listener = rig.connect(0);
    rig.ask(&other, b"CONFIG SET notify-keyspace-events Ex\r\n");
    rig.ask(&listener, b"SUBSCRIBE __keyevent@0__:expired\r\n");
    rig.ask(&other, b"SET k v PX 30\r\n");
    greedy.send(&b"KEYS x\r\n".repeat(2_000));
    other.send(b"PING\r\n");
    let began = clock::micros(rig.server.clock.now());
    rig.turn(0);
    let took = clock::micros(rig.server.clock.now()) - began;
    assert!(took < 2 * 10_000, "{took} us for one walk and a PING");
    assert_eq!(other.take(), b"+PONG\r\n");
    for _ in 0..4 {
        rig.turn(0);
    }
    assert!(listener.take().ends_with(b"expired\r\n$1\r\nk\r\n"));
    rig.settle();
    assert_eq!(greedy.take(), b"*0\r\n".repeat(2_000));
}

#[test]
fn a_turn_of_quick_commands_ends_after_a_millisecond() {
    let mut rig = rig();
    let greedy = rig.connect(0);
    greedy.send(&b"PING\r\n".repeat(10_000));
    let mut turns = 0;
    while greedy.wire.borrow().sent() < 70_000 {
        let began = clock::micros(rig.server.clock.now());
        rig.turn(0);
        let took = clock::micros(rig.server.clock.now()) - began;
        assert!(took <= 1_200, "{took} us");
        turns += 1;
    }
    assert!((8..=12).contains(&turns), "{turns}");
}

/// A command that sets them, each with a name of five bytes.
fn twenty_thousand_keys() -> Vec<u8> {
    let names: Vec<_> = (0..20_000).map(|i| format!("{i:05}")).collect();
    let pairs = names.iter().flat_map(|name| [name.as_bytes(), b"v"]);
    let words: Vec<_> = std::iter::once(&b"MSET"[..]).chain(pairs).collect();
    bulk(&words)
}

#[test]
fn one_walk_over_many_keys_gives_way_between_its_steps() {
    let mut rig = rig();
    rig.server.observer.set_cost(|args| match &args[0] {
        b"KEYS" => Duration::from_micros(300),
        _ => Duration::ZERO,
    });
    let greedy = rig.connect(0);
    let other = rig.connect(0);
    assert_eq!(rig.ask(&other, &twenty_thousand_keys()), b"+OK\r\n");
    greedy.send(b"PING\r\nKEYS *\r\nPING\r\n");
    let mut replies = Vec::new();
    for turn in 0..3 {
        other.send(b"PING\r\n");
        let began = clock::micros(rig.server.clock.now());
        rig.turn(0);
        let took = clock::micros(rig.server.clock.now()) - began;
        assert!(took <= 1_300, "{took} us");
        assert_eq!(other.take(), b"+PONG\r\n", "served in turn {turn}");
        replies.extend(greedy.take());
        assert!(replies == b"+PONG\r\n", "the walk is not at its end");
    }
    rig.settle();
    replies.extend(greedy.take());
    assert!(replies.starts_with(b"+PONG\r\n*20000\r\n$5\r\n"));
    assert!(replies.ends_with(b"\r\n+PONG\r\n"));
    assert_eq!(replies.len(), 7 + 8 + 20_000 * 11 + 7);
}

#[test]
fn the_walk_of_a_client_that_leaves_ends_with_it() {
    let mut rig = rig();
    let greedy = rig.connect(0);
    assert_eq!(rig.ask(&greedy, &twenty_thousand_keys()), b"+OK\r\n");
    greedy.send(b"KEYS *\r\n");
    rig.turn(0);
    greedy.wire.borrow_mut().reset();
    rig.settle();
    assert_eq!(
        rig.server
            .connected
            .load(std::sync::atomic::Ordering::Relaxed),
        0
    );
}
