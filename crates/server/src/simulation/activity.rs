//! `timeout` closes clients that are silent, and no others.

use std::time::Duration;

use super::rig::{Peer, Rig, bulk};
use crate::config::Settings;

/// Just less than the time-out.
const STEP: Duration = Duration::from_millis(900);

fn rig() -> Rig {
    let settings = Settings {
        timeout_s: 1,
        ..Settings::default()
    };
    Rig::new(1, settings)
}

/// Does something again and again, with less than the time-out in between.
fn survives(rig: &mut Rig, peer: &Peer, mut act: impl FnMut(usize)) {
    for step in 0..20 {
        act(step);
        rig.settle();
        assert!(!peer.is_closed(), "closed in step {step}");
        rig.advance(STEP);
        rig.settle();
        assert!(!peer.is_closed(), "closed after step {step}");
    }
}

#[test]
fn a_silent_client_is_closed() {
    let mut rig = rig();
    let peer = rig.connect(0);
    rig.ask(&peer, b"PING\r\n");
    rig.advance(Duration::from_millis(1_100));
    rig.settle();
    assert!(peer.is_closed());
}

#[test]
fn a_client_that_only_asks_info_is_not_silent() {
    let mut rig = rig();
    let peer = rig.connect(0);
    survives(&mut rig, &peer, |_| peer.send(b"INFO\r\n"));
}

#[test]
fn a_slow_upload_is_not_silent() {
    let mut rig = rig();
    let peer = rig.connect(0);
    let request = bulk(&[b"SET", b"k", &[b'v'; 20_000]]);
    let pieces: Vec<_> = request.chunks(request.len() / 20).collect();
    survives(&mut rig, &peer, |step| peer.send(pieces[step]));
}

#[test]
fn a_slow_download_is_not_silent() {
    let mut rig = rig();
    let peer = rig.connect(0);
    rig.ask(&peer, &bulk(&[b"SET", b"k", &[b'v'; 500_000]]));
    peer.wire.borrow_mut().narrow(0, 1_000);
    peer.send(b"GET k\r\n");
    survives(&mut rig, &peer, |_| {
        peer.wire.borrow_mut().narrow(10_000, 1_000);
    });
    assert_eq!(peer.take().len(), 200_000);
}
