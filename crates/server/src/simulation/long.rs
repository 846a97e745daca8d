//! Long commands in the simulated server: some clients wait for them, and the others do not.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::rig::{Peer, Rig, bulk};
use crate::config::Settings;
use crate::process::long_work::Work;

/// A server of one loop in which commands with a few arguments are long.
fn rig() -> Rig {
    let rig = Rig::new(1, Settings::default());
    let rules = rig.server.keyspace.rules();
    rules.long_ns.store(500, Ordering::Relaxed);
    rig
}

/// Sends a command and has the loop look at it. No long command begins.
fn say(rig: &mut Rig, peer: &Peer, line: &str) -> Vec<u8> {
    peer.send(format!("{line}\r\n").as_bytes());
    rig.serve(0);
    peer.take()
}

#[test]
fn others_are_served_while_a_long_command_waits_for_its_thread() {
    let mut rig = rig();
    let (long, other) = (rig.connect(0), rig.connect(0));
    rig.ask(&other, b"SET a 1\r\n");
    assert_eq!(say(&mut rig, &long, "DEL a b c"), b"");
    assert_eq!(say(&mut rig, &long, "PING"), b"", "replies stay in order");
    assert_eq!(say(&mut rig, &other, "GET a"), b"$1\r\n1\r\n");
    rig.settle();
    assert_eq!(long.take(), b":1\r\n+PONG\r\n");
}

#[test]
fn exclusive_commands_wait_for_a_long_one_and_their_loop_does_not() {
    let mut rig = rig();
    let (long, flush, other) = (rig.connect(0), rig.connect(0), rig.connect(0));
    rig.ask(&other, b"SET a 1\r\n");
    assert_eq!(say(&mut rig, &long, "MGET a a a"), b"");
    assert_eq!(say(&mut rig, &flush, "FLUSHALL"), b"");
    assert_eq!(say(&mut rig, &other, "GET a"), b"$1\r\n1\r\n");
    rig.settle();
    assert_eq!(long.take(), b"*3\r\n$1\r\n1\r\n$1\r\n1\r\n$1\r\n1\r\n");
    assert_eq!(flush.take(), b"+OK\r\n");
}

/// They stood behind the reply of the next command.
#[test]
fn a_subscribers_own_events_of_a_long_command_follow_its_reply() {
    let mut rig = rig();
    let peer = rig.connect(0);
    rig.ask(&peer, b"CONFIG SET notify-keyspace-events KEA\r\n");
    rig.ask(&peer, b"MSET a 1 b 2 c 3\r\n");
    rig.ask(&peer, b"HELLO 3\r\n");
    rig.ask(&peer, b"PSUBSCRIBE __keyevent@0__:*\r\n");
    peer.send(b"DEL a b c\r\nSET d 4\r\nPING\r\n");
    rig.settle();
    let told = String::from_utf8(peer.take()).expect("text");
    let places = [
        ":3\r\n",
        "del",
        "\r\na\r\n",
        "\r\nc\r\n",
        "+OK",
        ":set",
        "+PONG",
    ]
    .map(|text| told.find(text));
    assert!(
        places.is_sorted() && places[0].is_some(),
        "{places:?}: {told}"
    );
}

/// Its claim stayed, and no later long command began.
#[test]
fn a_parked_client_that_reads_no_output_keeps_no_long_command_from_beginning() {
    let mut rig = rig();
    let (long, deaf, other) = (rig.connect(0), rig.connect(0), rig.connect(0));
    deaf.send(&bulk(&[b"HELLO", b"3"]));
    rig.ask(&deaf, &bulk(&[b"SUBSCRIBE", b"room"]));
    assert_eq!(say(&mut rig, &long, "MGET a b c"), b"");
    assert_eq!(say(&mut rig, &deaf, "FLUSHALL"), b"");
    deaf.wire.borrow_mut().narrow(0, 0);
    let message = vec![b'x'; 2 << 20];
    other.send(&bulk(&[b"PUBLISH", b"room", &message]));
    // The message is there before the long command begins.
    (0..3).for_each(|_| rig.serve(0));
    assert_eq!(other.take(), b":1\r\n");
    rig.settle();
    assert_eq!(long.take(), b"*3\r\n$-1\r\n$-1\r\n$-1\r\n");
    assert_eq!(
        rig.ask(&other, b"MGET a b c\r\n"),
        b"*3\r\n$-1\r\n$-1\r\n$-1\r\n"
    );
}

#[test]
fn a_client_that_half_closes_while_its_command_waits_is_closed_after_the_reply() {
    let mut rig = rig();
    let peer = rig.connect(0);
    assert_eq!(say(&mut rig, &peer, "DEL a b c"), b"");
    peer.end();
    rig.serve(0);
    rig.settle();
    assert_eq!((peer.take(), peer.is_closed()), (b":0\r\n".to_vec(), true));
}

#[test]
fn a_client_that_dies_takes_its_place_among_those_who_wait_with_it() {
    let mut rig = rig();
    let (long, flush, other) = (rig.connect(0), rig.connect(0), rig.connect(0));
    assert_eq!(say(&mut rig, &long, "MSET a 1 b 2 c 3"), b"");
    assert_eq!(say(&mut rig, &flush, "FLUSHALL"), b"");
    flush.wire.borrow_mut().reset();
    long.wire.borrow_mut().reset();
    rig.serve(0);
    rig.settle();
    assert!(flush.is_closed() && long.is_closed());
    assert_eq!(
        rig.ask(&other, b"MGET a a a\r\n"),
        b"*3\r\n$1\r\n1\r\n$1\r\n1\r\n$1\r\n1\r\n"
    );
    assert_eq!(rig.server.keyspace.waiting(), 0);
}

/// It took a quarter of a second for half a million keys, and all others waited.
#[test]
fn very_many_watched_keys_are_forgotten_elsewhere() {
    let mut rig = rig();
    let peer = rig.connect(0);
    let names: Vec<Vec<u8>> = (0..1_000).map(|n| format!("k{n}").into_bytes()).collect();
    let mut words = vec![&b"WATCH"[..]];
    words.extend(names.iter().map(Vec::as_slice));
    assert_eq!(rig.ask(&peer, &bulk(&words)), b"+OK\r\n");
    assert_eq!(say(&mut rig, &peer, "UNWATCH"), b"+OK\r\n");
    assert!(
        matches!(rig.server.long_work.take(), Some(Work::Unwatch(keys)) if keys.len() == 1_000)
    );
    assert_eq!(rig.ask(&peer, b"WATCH a b\r\n"), b"+OK\r\n");
    assert_eq!(say(&mut rig, &peer, "UNWATCH"), b"+OK\r\n");
    assert!(
        rig.server.long_work.take().is_none(),
        "a few are forgotten at once"
    );
}

/// All of them went on in one turn, and nobody else was served meanwhile.
#[test]
fn very_many_parked_clients_go_on_in_portions() {
    let mut rig = rig();
    let (long, other) = (rig.connect(0), rig.connect(0));
    let parked: Vec<Peer> = (0..300).map(|_| rig.connect(0)).collect();
    assert_eq!(say(&mut rig, &long, "MGET a b c"), b"");
    for peer in &parked {
        assert_eq!(say(&mut rig, peer, "FLUSHALL"), b"");
    }
    let answered = || parked.iter().filter(|peer| !peer.take().is_empty()).count();
    rig.turn(0);
    rig.turn(0);
    let some = answered();
    assert!(some > 0 && some < 200, "{some} in a turn or two");
    assert_eq!(rig.ask(&other, b"PING\r\n"), b"+PONG\r\n");
    assert_eq!(some + answered(), 300);
}

/// The reply of a long command was put out, and nobody looked at the soft limit.
#[test]
fn a_client_that_does_not_read_the_reply_of_a_long_command_is_closed_after_the_soft_time() {
    let mut settings = Settings::default();
    settings.output_limits.normal.soft = 1_000;
    settings.output_limits.normal.soft_seconds = 1;
    let mut rig = Rig::new(1, settings);
    let rules = rig.server.keyspace.rules();
    rules.long_ns.store(500, Ordering::Relaxed);
    let (deaf, other) = (rig.connect(0), rig.connect(0));
    let value = vec![b'x'; 2_000];
    rig.ask(&other, &bulk(&[b"SET", b"a", &value]));
    deaf.wire.borrow_mut().narrow(0, 0);
    rig.ask(&deaf, b"MGET a a a\r\n");
    assert!(!deaf.is_closed());
    rig.advance(Duration::from_millis(1_100));
    rig.settle();
    assert!(deaf.is_closed());
}

/// It was read as it came, up to the limit of a command's length.
#[test]
fn what_a_client_sends_behind_a_long_command_is_not_read_before_it_has_run() {
    let mut rig = rig();
    let peer = rig.connect(0);
    let value = vec![b'x'; 1 << 20];
    peer.send(b"MGET a b c\r\n");
    rig.serve(0);
    for _ in 0..4 {
        peer.send(&bulk(&[b"ECHO", &value]));
        rig.serve(0);
    }
    let held = |rig: &mut Rig| {
        let conn = rig.loops[0].connections().next().expect("it is there");
        conn.pending
            .as_ref()
            .map_or(0, |pending| pending.bytes.len())
    };
    assert!(held(&mut rig) <= 64 << 10, "{}", held(&mut rig));
    rig.settle();
    let replies = peer.take();
    assert!(replies.starts_with(b"*3\r\n") && replies.len() > 4 << 20);
}
