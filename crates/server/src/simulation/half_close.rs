//! A client that closes its sending side is answered everything that it has asked.

use std::time::Duration;

use super::rig::{Peer, Rig, bulk};
use crate::config::Settings;

const SETS: usize = 20_000;

fn sets() -> Vec<u8> {
    (0..SETS)
        .flat_map(|i| bulk(&[b"SET", format!("key:{i}").as_bytes(), b"v"]))
        .collect()
}

fn answered_all(rig: &mut Rig, peer: &Peer) {
    assert_eq!(peer.take().len(), SETS * b"+OK\r\n".len());
    assert!(peer.is_closed(), "the server must close its side at last");
    let observer = rig.connect(0);
    let size = rig.ask(&observer, b"DBSIZE\r\n");
    assert_eq!(size, format!(":{SETS}\r\n").as_bytes());
}

#[test]
fn commands_sent_before_a_half_close_all_run() {
    let mut rig = Rig::new(1, Settings::default());
    for cut in [0, 1, 10, 1_000, 63_000] {
        let peer = rig.connect(0);
        let requests = sets();
        peer.send(&requests[..requests.len() - cut]);
        rig.settle();
        peer.send(&requests[requests.len() - cut..]);
        peer.end();
        rig.settle();
        answered_all(&mut rig, &peer);
    }
}

#[test]
fn a_half_close_after_each_cut_of_the_last_command_loses_only_what_is_not_whole() {
    let request = bulk(&[b"SET", b"key", &[b'v'; 70_000]]);
    for missing in [0, 1, 2, 3, 69_000, 70_000, request.len() - 1] {
        let mut rig = Rig::new(1, Settings::default());
        let peer = rig.connect(0);
        peer.send(&request[..40]);
        rig.settle();
        peer.send(&request[40.min(request.len() - missing)..request.len() - missing]);
        peer.end();
        rig.settle();
        assert!(peer.is_closed());
        let whole = missing == 0;
        assert_eq!(peer.take(), if whole { &b"+OK\r\n"[..] } else { b"" });
    }
}

#[test]
fn a_half_close_by_a_slow_reader_loses_nothing() {
    let mut rig = Rig::new(1, Settings::default());
    let peer = rig.connect(0);
    let value = vec![b'x'; 100_000];
    rig.ask(&peer, &bulk(&[b"SET", b"big", &value]));
    peer.wire.borrow_mut().narrow(0, 1);
    peer.send(&b"GET big\r\n".repeat(50));
    peer.end();
    rig.settle();
    let mut replies = Vec::new();
    for _ in 0..10_000 {
        if peer.is_closed() {
            break;
        }
        peer.wire.borrow_mut().narrow(1_000, 333);
        rig.settle();
        replies.extend(peer.take());
    }
    assert!(peer.is_closed());
    assert_eq!(replies.len(), 50 * (value.len() + 11));
}

#[test]
fn a_half_close_during_a_pause_waits_for_its_end() {
    let mut rig = Rig::new(1, Settings::default());
    let other = rig.connect(0);
    let peer = rig.connect(0);
    assert_eq!(rig.ask(&other, b"CLIENT PAUSE 1000 WRITE\r\n"), b"+OK\r\n");
    peer.send(&sets());
    peer.end();
    rig.settle();
    assert_eq!(peer.take(), b"");
    rig.advance(Duration::from_secs(2));
    rig.settle();
    answered_all(&mut rig, &peer);
}

#[test]
fn a_reset_after_a_half_close_ends_the_connection() {
    let mut rig = Rig::new(1, Settings::default());
    let peer = rig.connect(0);
    peer.wire.borrow_mut().narrow(0, 1);
    peer.send(&sets());
    peer.end();
    rig.turn(0);
    peer.wire.borrow_mut().reset();
    rig.settle();
    assert!(peer.is_closed());
}

#[test]
fn a_walk_goes_on_after_a_half_close() {
    let mut rig = Rig::new(1, Settings::default());
    let peer = rig.connect(0);
    peer.send(&sets());
    rig.settle();
    peer.take();
    peer.send(b"KEYS *\r\nPING\r\n");
    peer.end();
    rig.settle();
    let reply = peer.take();
    assert!(reply.starts_with(format!("*{SETS}\r\n").as_bytes()));
    assert!(reply.ends_with(b"\r\n+PONG\r\n"));
    assert!(peer.is_closed());
}
