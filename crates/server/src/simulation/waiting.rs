//! Commands that wait for keys: with CLIENT PAUSE, in the counters, and with long replies.

use std::collections::BTreeMap;
use std::time::Duration;

use super::rig::{Peer, Rig, bulk};
use crate::config::{OutputLimit, Settings};
use crate::counters::command_counts::Reading;

const TWO: &[u8] = b"*2\r\n$1\r\np\r\n$1\r\n1\r\n";
const NOTHING: &[u8] = b"*-1\r\n";

fn pass(rig: &mut Rig, ms: u64) {
    rig.advance(Duration::from_millis(ms));
    rig.settle();
}

/// A client that waits, on its own loop.
fn waits(rig: &mut Rig, owner: usize, call: &str) -> Peer {
    let peer = rig.connect(owner);
    let call = format!("{call}\r\n");
    assert_eq!(rig.ask(&peer, call.as_bytes()), b"");
    peer
}

/// Runs lines as one transaction.
fn transact(rig: &mut Rig, lines: &[&str]) {
    let admin = rig.connect(0);
    let calls = format!("MULTI\r\n{}\r\nEXEC\r\n", lines.join("\r\n"));
    let replies = rig.ask(&admin, calls.as_bytes());
    assert!(!replies.contains(&b'-'), "{replies:?}");
    admin.end();
    rig.settle();
}

#[test]
fn a_wait_for_nothing_ends_in_time_during_a_pause() {
    for mode in ["WRITE", "ALL"] {
        let mut rig = Rig::new(2, Settings::default());
        let peer = waits(&mut rig, 1, "BLPOP p 0.3");
        transact(&mut rig, &[&format!("CLIENT PAUSE 1000 {mode}")]);
        pass(&mut rig, 300);
        assert_eq!(peer.take(), b"");
        pass(&mut rig, 1);
        assert_eq!(peer.take(), NOTHING, "{mode}");
    }
}

#[test]
fn a_pause_holds_back_who_would_be_served_and_its_time_out() {
    for mode in ["WRITE", "ALL"] {
        for ends_early in [false, true] {
            let mut rig = Rig::new(2, Settings::default());
            let peers = [0, 1].map(|owner| waits(&mut rig, owner, "BLPOP p 0.4"));
            let admin = rig.connect(1);
            transact(
                &mut rig,
                &["RPUSH p 1", &format!("CLIENT PAUSE 800 {mode}")],
            );
            pass(&mut rig, 500);
            assert!(peers.iter().all(|peer| peer.take().is_empty()));
            if mode == "WRITE" {
                assert_eq!(rig.ask(&admin, b"LLEN p\r\n"), b":1\r\n");
                let info = rig.ask(&admin, b"INFO clients\r\n");
                assert!(String::from_utf8_lossy(&info).contains("blocked_clients:2"));
            }
            match ends_early && mode == "WRITE" {
                true => assert_eq!(rig.ask(&admin, b"CLIENT UNPAUSE\r\n"), b"+OK\r\n"),
                false => pass(&mut rig, 301),
            }
            assert_eq!(peers[0].take(), TWO);
            assert_eq!(peers[1].take(), NOTHING, "its time was over");
        }
    }
}

#[test]
fn who_is_held_back_by_a_pause_may_leave_and_is_not_unblocked() {
    let mut rig = Rig::new(2, Settings::default());
    let peers = [0, 1, 0].map(|owner| waits(&mut rig, owner, "BLPOP p 0"));
    let admin = rig.connect(1);
    transact(&mut rig, &["RPUSH p 1", "CLIENT PAUSE 800 WRITE"]);
    peers[0].end();
    rig.settle();
    assert!(peers[0].is_closed());
    for id in 1..=3 {
        let call = format!("CLIENT UNBLOCK {id}\r\n");
        assert_eq!(rig.ask(&admin, call.as_bytes()), b":0\r\n");
    }
    assert_eq!(rig.ask(&admin, b"CLIENT UNPAUSE\r\n"), b"+OK\r\n");
    assert_eq!(peers[1].take(), TWO);
    assert_eq!(peers[2].take(), b"", "it waits on");
    assert_eq!(rig.ask(&admin, b"CLIENT UNBLOCK 3\r\n"), b":1\r\n");
    assert_eq!(peers[2].take(), NOTHING);
}

#[test]
fn a_pause_that_ends_within_its_transaction_holds_nobody_back() {
    let mut rig = Rig::new(2, Settings::default());
    let peer = waits(&mut rig, 1, "BLPOP p 0");
    let pause = "CLIENT PAUSE 1000 ALL";
    transact(
        &mut rig,
        &[pause, "RPUSH p 0", "CLIENT UNPAUSE", "LPOP p", "RPUSH p 1"],
    );
    assert_eq!(peer.take(), TWO);
}

/// One push served them all in one turn of their loop, and nobody else had a turn before the end.
#[test]
fn others_have_their_turn_while_a_thousand_are_served() {
    let mut rig = Rig::new(1, Settings::default());
    let peers: Vec<Peer> = (0..1_000)
        .map(|_| waits(&mut rig, 0, "BLPOP p 0"))
        .collect();
    let (admin, other) = (rig.connect(0), rig.connect(0));
    let mut push = vec![&b"RPUSH"[..], b"p"];
    push.resize(1_002, b"1");
    admin.send(&bulk(&push));
    let served = |peers: &[Peer]| peers.iter().filter(|peer| peer.take() == TWO).count();
    let mut sum = 0;
    while sum == 0 {
        rig.turn(0);
        sum += served(&peers);
    }
    other.send(b"PING\r\n");
    rig.turn(0);
    rig.turn(0);
    assert_eq!(other.take(), b"+PONG\r\n");
    sum += served(&peers);
    assert!(sum < 500, "{sum}");
    rig.settle();
    assert_eq!(sum + served(&peers), 1_000);
}

fn counted(rig: &Rig, name: &str) -> Option<Reading> {
    let mut sums = BTreeMap::new();
    for handle in rig.server.loops.iter() {
        handle.command_counts.add_commands(&mut sums);
    }
    let reading = sums.remove(name)?;
    Some(Reading { ns: 0, ..reading }).filter(|reading| reading.calls > 0)
}

/// Has a client wait and calls `end`. Returns the reply, what was counted, and how many replies
/// were errors.
fn counts(call: &str, end: &[&str]) -> (Vec<u8>, Option<(u64, u64, u64)>, u64) {
    let name = call.split(' ').next().expect("a name").to_lowercase();
    let mut rig = Rig::new(2, Settings::default());
    let peer = waits(&mut rig, 1, call);
    assert_eq!(counted(&rig, &name), None, "it has not ended");
    let (before, admin) = (rig.server.totals().commands, rig.connect(0));
    for line in end {
        rig.ask(&admin, format!("{line}\r\n").as_bytes());
    }
    if end.is_empty() {
        peer.end();
    }
    pass(&mut rig, 300);
    let reading = counted(&rig, &name);
    let (calls, sent) = (reading.map_or(0, |reading| reading.calls), end.len() as u64);
    assert_eq!(rig.server.totals().commands, before + calls + sent);
    let reading = reading.map(|reading| (reading.calls, reading.failed, reading.rejected));
    (peer.take(), reading, rig.server.totals().errors)
}

/// The counts of Valkey. To Redis a wait that was ended with an error has failed, and was not
/// rejected.
#[test]
fn a_command_that_waits_counts_once_when_it_ends() {
    let served = counts("BLPOP p 0", &["RPUSH p 1"]);
    assert_eq!(served, (TWO.to_vec(), Some((1, 0, 0)), 0));
    let unblocked = counts("BLPOP p 0", &["CLIENT UNBLOCK 1"]);
    assert_eq!(unblocked, (NOTHING.to_vec(), Some((1, 0, 0)), 0));
    let timed_out = counts("BLPOP p 0.1", &["PING"]);
    assert_eq!(timed_out, (NOTHING.to_vec(), Some((1, 0, 0)), 0));
    let (reply, counted, errors) = counts("BLPOP p 0", &["CLIENT UNBLOCK 1 ERROR"]);
    assert!(reply.starts_with(b"-UNBLOCKED "));
    assert_eq!((counted, errors), (Some((1, 0, 1)), 1));
    let (reply, counted, errors) = counts("BLMOVE p t LEFT LEFT 0", &["SET t x", "RPUSH p 1"]);
    assert!(reply.starts_with(b"-WRONGTYPE "));
    assert_eq!((counted, errors), (Some((1, 1, 0)), 1));
    assert_eq!(
        counts("BLPOP p 0", &[]),
        (Vec::new(), None, 0),
        "it has left"
    );
}

#[test]
fn the_reply_of_a_served_command_is_limited_while_it_is_built() {
    let mut settings = Settings::default();
    settings.output_limits.normal = OutputLimit {
        hard: 1 << 20,
        soft: 0,
        soft_seconds: 0,
    };
    let mut rig = Rig::new(2, settings);
    let greedy = waits(&mut rig, 1, "BLMPOP 0 1 p LEFT COUNT 1000");
    let modest = waits(&mut rig, 0, "BLPOP p 0");
    let admin = rig.connect(0);
    let element = vec![b'x'; 400_000];
    let mut push = vec![&b"RPUSH"[..], b"p"];
    push.resize(12, &element);
    assert_eq!(rig.ask(&admin, &bulk(&push)), b":10\r\n");
    assert!(greedy.is_closed(), "as if it had not waited");
    assert_eq!(greedy.take(), b"");
    assert_eq!(rig.server.totals().output_limit_closes, 1);
    assert_eq!(rig.ask(&admin, b"RPUSH p 1\r\n"), b":1\r\n");
    assert_eq!(modest.take(), TWO);
}
