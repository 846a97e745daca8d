//! CLIENT PAUSE holds commands back, and lets every one of them go on.

use std::time::Duration;

use super::rig::{Rig, bulk};
use crate::config::Settings;

#[test]
fn a_client_that_is_paused_while_its_output_waits_goes_on_after_the_pause() {
    let mut rig = Rig::new(1, Settings::default());
    let peer = rig.connect(0);
    // More than one call writes: the rest waits, although the socket would take it.
    let value = vec![b'x'; 3 << 19];
    rig.ask(&peer, &bulk(&[b"SET", b"big", &value]));
    rig.ask(&peer, b"GET big\r\nCLIENT PAUSE 10 WRITE\r\nSET k v\r\n");
    rig.advance(Duration::from_millis(20));
    rig.settle();
    assert_eq!(peer.take(), b"+OK\r\n");
}

#[test]
fn a_pause_of_no_time_leaves_no_loop_busy() {
    let mut rig = Rig::new(1, Settings::default());
    let peer = rig.connect(0);
    assert_eq!(rig.ask(&peer, b"CLIENT PAUSE 0\r\n"), b"+OK\r\n");
    rig.advance(Duration::from_millis(1));
    assert_eq!(rig.ask(&peer, b"PING\r\n"), b"+PONG\r\n");
}
