//! Protected mode: without a password nobody from another machine is served.

use std::sync::atomic::Ordering;

use super::rig::{Peer, Rig};
use crate::config::{Settings, key};

const DENIED: &[u8] =
    b"-DENIED Redis is running in protected mode because protected mode is enabled \
and no password is set for the default user. ";

fn change(rig: &Rig, name: &str, value: &str) {
    let row = key(name).expect("a key of the table");
    let config = &rig.server.config;
    let changed = config.change(|settings| (row.set)(settings, value), |_| ());
    assert_eq!(changed, Ok(()));
}

/// Serves a request without giving the loop a chance to follow the settings before.
fn served(rig: &mut Rig, peer: &Peer, request: &[u8]) -> Vec<u8> {
    peer.send(request);
    rig.serve(0);
    peer.take()
}

#[test]
fn only_clients_of_this_machine_are_served_without_a_password() {
    let mut rig = Rig::new(1, Settings::default());
    for local in ["127.0.0.1", "127.8.9.1", "::1", "::ffff:127.0.0.1"] {
        let peer = rig.connect_from(0, local).expect("it is let in");
        assert_eq!(
            served(&mut rig, &peer, b"PING\r\n"),
            b"+PONG\r\n",
            "{local}"
        );
    }
    for far in [
        "192.0.2.7",
        "10.0.0.1",
        "fd00::7",
        "::ffff:192.0.2.7",
        "0.0.0.0",
    ] {
        let answer = rig.connect_from(0, far).expect_err("it is not let in");
        assert!(
            answer.starts_with(DENIED) && answer.ends_with(b"\r\n"),
            "{far}"
        );
        let line_ends = answer.iter().filter(|byte| **byte == b'\n').count();
        assert_eq!(line_ends, 1, "one reply");
    }
    rig.settle();
    assert_eq!(rig.server.connected.load(Ordering::Relaxed), 4);
    assert_eq!(rig.server.totals().rejected, 5);
}

/// A loop's copy of the settings may be one change behind.
#[test]
fn what_is_in_force_when_a_loop_takes_a_connection_in_decides() {
    let mut rig = Rig::new(1, Settings::default());
    let far = "192.0.2.7";
    assert!(rig.connect_from(0, far).is_err());
    change(&rig, "protected-mode", "no");
    let open = rig.connect_from(0, far).expect("it is let in");
    assert_eq!(served(&mut rig, &open, b"PING\r\n"), b"+PONG\r\n");
    change(&rig, "protected-mode", "yes");
    assert!(rig.connect_from(0, far).is_err());
    change(&rig, "requirepass", "secret");
    let peer = rig.connect_from(0, far).expect("it is let in");
    assert!(served(&mut rig, &peer, b"PING\r\n").starts_with(b"-NOAUTH"));
    assert_eq!(served(&mut rig, &peer, b"AUTH secret\r\n"), b"+OK\r\n");
    change(&rig, "requirepass", "");
    assert!(rig.connect_from(0, far).is_err());
    // As in Redis, those who were let in stay.
    assert_eq!(served(&mut rig, &open, b"PING\r\n"), b"+PONG\r\n");
    assert_eq!(served(&mut rig, &peer, b"PING\r\n"), b"+PONG\r\n");
}

/// It came while a password was asked, and never gave one. Then the password was removed.
#[test]
fn a_client_that_waited_for_the_password_to_be_removed_is_not_served() {
    let requests: [&[u8]; 5] = [
        b"PING\r\n",
        b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n",
        b"AUTH default anything\r\n",
        b"HELLO 3 AUTH default anything\r\n",
        b"RESET\r\n",
    ];
    for request in requests {
        let mut rig = Rig::new(1, Settings::default());
        change(&rig, "requirepass", "secret");
        let near = rig.connect(0);
        let far = rig.connect_from(0, "192.0.2.7").expect("it is let in");
        change(&rig, "requirepass", "");
        let answer = served(&mut rig, &far, &request.repeat(2));
        assert!(answer.starts_with(DENIED), "{}", request.escape_ascii());
        rig.settle();
        assert!(far.is_closed());
        assert_eq!(served(&mut rig, &near, b"DBSIZE\r\n"), b":0\r\n");
    }
}

#[test]
fn after_reset_a_client_is_like_one_that_has_just_come() {
    let mut rig = Rig::new(1, Settings::default());
    change(&rig, "requirepass", "secret");
    let far = rig.connect_from(0, "192.0.2.7").expect("it is let in");
    assert_eq!(served(&mut rig, &far, b"AUTH secret\r\n"), b"+OK\r\n");
    change(&rig, "requirepass", "");
    assert_eq!(served(&mut rig, &far, b"RESET\r\n"), b"+RESET\r\n");
    assert!(served(&mut rig, &far, b"PING\r\n").starts_with(DENIED));
}
