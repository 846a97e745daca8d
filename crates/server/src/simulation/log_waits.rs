//! WAITAOF, while the log is not written.

use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use super::rig::{Peer, Rig};
use crate::config::Settings;
use crate::state::log::LogRequest;

const WAITS: &[u8] = b"SET k v\r\nWAITAOF 1 0 0\r\n";

/// A server whose log is written when a test says so.
fn rig() -> (Rig, Receiver<LogRequest>) {
    let rig = Rig::new(1, Settings::default());
    let (ask, asked) = channel();
    rig.server.log.start(ask);
    (rig, asked)
}

fn write(rig: &Rig) {
    let records = rig.server.keyspace.records();
    rig.server.log.set_on_disk(records, &rig.server.loops);
}

fn calls(rig: &mut Rig, other: &Peer) -> bool {
    let stats = rig.ask(other, b"INFO commandstats\r\n");
    String::from_utf8_lossy(&stats).contains("cmdstat_waitaof:calls=1,")
}

/// The end that arrived with the command was forgotten: no other end is ever reported.
#[test]
fn who_leaves_while_it_waits_for_the_log_is_gone_at_once() {
    let (mut rig, _asked) = rig();
    for settles in [false, true] {
        let peer = rig.connect(0);
        peer.send(WAITS);
        if settles {
            rig.settle();
            assert!(!peer.is_closed(), "nothing is on disk");
        }
        peer.end();
        rig.settle();
        assert!(peer.is_closed(), "settles: {settles}");
        assert_eq!(peer.take(), b"+OK\r\n");
    }
}

/// Its loop tried it again and again, and never slept.
#[test]
fn a_loop_sleeps_while_a_client_waits_for_the_log() {
    let (mut rig, _asked) = rig();
    let (peer, other) = (rig.connect(0), rig.connect(0));
    let first = rig.ask(&peer, WAITS);
    assert_eq!(first, b"+OK\r\n");
    rig.advance(Duration::from_secs(1));
    let info = rig.ask(&other, b"INFO clients\r\n");
    assert!(String::from_utf8_lossy(&info).contains("blocked_clients:1"));
    assert!(!calls(&mut rig, &other), "it has not run");
    peer.send(b"PING\r\n");
    rig.settle();
    write(&rig);
    rig.settle();
    assert_eq!(peer.take(), b"*2\r\n:1\r\n:0\r\n+PONG\r\n");
    assert!(calls(&mut rig, &other));
}

#[test]
fn a_wait_for_the_log_ends_with_its_time() {
    let (mut rig, _asked) = rig();
    let peer = rig.connect(0);
    assert_eq!(
        rig.ask(&peer, b"SET k v\r\nWAITAOF 1 0 500\r\n"),
        b"+OK\r\n"
    );
    rig.advance(Duration::from_millis(499));
    rig.settle();
    assert_eq!(peer.take(), b"");
    rig.advance(Duration::from_millis(1));
    rig.settle();
    assert_eq!(peer.take(), b"*2\r\n:0\r\n:0\r\n");
}

#[test]
fn what_is_written_during_a_pause_is_told_at_its_end() {
    let (mut rig, _asked) = rig();
    let (peer, other) = (rig.connect(0), rig.connect(0));
    assert_eq!(rig.ask(&peer, WAITS), b"+OK\r\n");
    assert_eq!(rig.ask(&other, b"CLIENT PAUSE 1000\r\n"), b"+OK\r\n");
    write(&rig);
    rig.settle();
    assert_eq!(peer.take(), b"");
    rig.advance(Duration::from_secs(2));
    rig.settle();
    assert_eq!(peer.take(), b"*2\r\n:1\r\n:0\r\n");
}

/// A word that came late took the place of the next one: with `always`, replies stayed for good.
#[test]
fn a_loop_that_has_looked_in_vain_is_told_of_the_next_write() {
    let (mut rig, _asked) = rig();
    let peer = rig.connect(0);
    assert_eq!(rig.ask(&peer, WAITS), b"+OK\r\n");
    for _ in 0..2 {
        rig.server.log.tell(&rig.server.loops);
        rig.settle();
    }
    assert!(rig.loops[0].prepare_sleep(None).is_some());
    write(&rig);
    assert!(!rig.server.loops[0].sleeps(), "it would sleep on");
    rig.settle();
    assert_eq!(peer.take(), b"*2\r\n:1\r\n:0\r\n");
}
