//! A change of the settings that was answered holds for every command sent afterwards, on all
//! loops.

use super::rig::{Peer, Rig, bulk};
use crate::config::{Settings, key};

const DENIED: &[u8] = b"-NOAUTH Authentication required.\r\n";

/// Changes a setting as CONFIG SET does on another loop while this one is in the middle of a turn.
fn change(rig: &Rig, name: &str, value: &str) {
    let row = key(name).expect("a key of the table");
    let changed = rig
        .server
        .config
        .change(|settings| (row.set)(settings, value), |_| ());
    assert_eq!(changed, Ok(()));
}

/// Serves a client's request without giving the loop's own bookkeeping a chance before.
fn served(rig: &mut Rig, peer: &Peer, request: &[u8]) -> Vec<u8> {
    peer.send(request);
    rig.serve(0);
    peer.take()
}

#[test]
fn a_connection_that_a_loop_takes_in_after_a_password_was_set_needs_it() {
    let mut rig = Rig::new(1, Settings::default());
    let early = rig.connect(0);
    change(&rig, "requirepass", "secret");
    let late = rig.connect(0);
    assert_eq!(served(&mut rig, &late, b"PING\r\n"), DENIED);
    assert_eq!(served(&mut rig, &late, b"AUTH secret\r\n"), b"+OK\r\n");
    assert_eq!(served(&mut rig, &late, b"PING\r\n"), b"+PONG\r\n");
    // As in Redis, a client that connected before needs no password until it says RESET.
    assert_eq!(served(&mut rig, &early, b"PING\r\n"), b"+PONG\r\n");
    assert_eq!(served(&mut rig, &early, b"RESET\r\n"), b"+RESET\r\n");
    assert_eq!(served(&mut rig, &early, b"PING\r\n"), DENIED);
}

#[test]
fn a_password_that_was_replaced_opens_nothing_from_then_on() {
    let mut rig = Rig::new(1, Settings::default());
    change(&rig, "requirepass", "old");
    let peer = rig.connect(0);
    change(&rig, "requirepass", "new");
    let wrong = served(&mut rig, &peer, b"AUTH old\r\n");
    assert!(wrong.starts_with(b"-WRONGPASS"));
    assert_eq!(served(&mut rig, &peer, b"AUTH new\r\n"), b"+OK\r\n");
}

#[test]
fn once_the_password_is_removed_nobody_needs_it() {
    let mut rig = Rig::new(1, Settings::default());
    change(&rig, "requirepass", "secret");
    let peer = rig.connect(0);
    assert_eq!(served(&mut rig, &peer, b"PING\r\n"), DENIED);
    change(&rig, "requirepass", "");
    assert_eq!(served(&mut rig, &peer, b"PING\r\n"), b"+PONG\r\n");
    change(&rig, "requirepass", "");
    let other = rig.connect(0);
    assert!(served(&mut rig, &other, b"HELLO 3\r\n").starts_with(b"%7"));
}

#[test]
fn a_long_command_is_no_attack_once_the_password_was_taken_away() {
    let mut rig = Rig::new(1, Settings::default());
    change(&rig, "requirepass", "secret");
    let peer = rig.connect(0);
    change(&rig, "requirepass", "");
    let long = bulk(&[&b"DEL"[..]; 20]);
    assert_eq!(served(&mut rig, &peer, &long), b":0\r\n");
    let large = bulk(&[b"SET", b"k", &[b'v'; 20_000]]);
    assert_eq!(served(&mut rig, &peer, &large), b"+OK\r\n");
}

#[test]
fn a_limit_that_was_lowered_holds_for_the_next_command() {
    let mut rig = Rig::new(1, Settings::default());
    let peer = rig.connect(0);
    assert_eq!(served(&mut rig, &peer, b"PING\r\n"), b"+PONG\r\n");
    change(&rig, "proto-max-bulk-len", "1mb");
    let refused = served(&mut rig, &peer, b"*2\r\n$4\r\nECHO\r\n$1048577\r\n");
    assert!(refused.starts_with(b"-ERR Protocol error"));
}

#[test]
fn a_command_in_a_time_without_a_password_opens_nothing_for_later() {
    let mut rig = Rig::new(1, Settings::default());
    change(&rig, "requirepass", "old");
    let peer = rig.connect(0);
    change(&rig, "requirepass", "");
    assert_eq!(served(&mut rig, &peer, b"PING\r\n"), b"+PONG\r\n");
    change(&rig, "requirepass", "new");
    assert_eq!(served(&mut rig, &peer, b"PING\r\n"), DENIED);
}
