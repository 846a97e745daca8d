//! Subscribers that publish: each message reaches each of them once, in the one order that all see.

use tidewheel_resp::Reply;

use super::rig::{Peer, Rig, bulk};
use crate::config::Settings;
use crate::loops::loop_core::PER_TURN;

fn subscribed(rig: &mut Rig, owner: usize, channels: &[&[u8]]) -> Peer {
    let peer = rig.connect(owner);
    peer.send(b"HELLO 3\r\n");
    peer.send(&bulk(&[&[&b"SUBSCRIBE"[..]], channels].concat()));
    rig.settle();
    peer.take();
    peer
}

/// The payloads of the messages, and the numbers that PUBLISH answered.
fn heard(peer: &Peer) -> (Vec<String>, Vec<String>) {
    let (mut payloads, mut receivers) = (Vec::new(), Vec::new());
    let bytes = peer.take();
    let mut at = 0;
    while let Some((reply, used)) = Reply::read(&bytes[at..]).expect("replies") {
        at += used;
        match reply {
            Reply::Integer(count) => receivers.push(count.to_string()),
            Reply::Push(parts) => match parts.last() {
                Some(Reply::Bulk(payload)) => {
                    payloads.push(String::from_utf8_lossy(payload).into_owned());
                }
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(at, bytes.len(), "replies are whole");
    (payloads, receivers)
}

/// Three clients publish to the same channels from two loops, whose turns come in every order.
#[test]
fn publishers_that_listen_hear_everything_once_and_in_one_order() {
    for seed in 1..200_u64 {
        let mut rig = Rig::new(2, Settings::default());
        let peers: Vec<Peer> = (0..3)
            .map(|i| subscribed(&mut rig, i % 2, &[b"a", b"b"]))
            .collect();
        let silent = subscribed(&mut rig, 0, &[b"a"]);
        let mut dice = seed;
        let mut roll = |sides: u64| {
            dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (dice >> 33) % sides
        };
        let mut to_a = Vec::new();
        for step in 0..60 {
            let (who, room) = (roll(3) as usize, [&b"a"[..], b"b"][roll(2) as usize]);
            let payload = format!("{step}");
            if room == b"a" {
                to_a.push(payload.clone());
            }
            peers[who].send(&bulk(&[b"PUBLISH", room, payload.as_bytes()]));
            if roll(3) > 0 {
                rig.turn(roll(2) as usize);
            }
        }
        rig.settle();
        let (first, _) = heard(&peers[0]);
        assert_eq!(first.len(), 60, "seed {seed}");
        for peer in &peers[1..] {
            assert_eq!(heard(peer).0, first, "seed {seed}");
        }
        let order: Vec<String> = first.into_iter().filter(|m| to_a.contains(m)).collect();
        assert_eq!(heard(&silent).0, order, "seed {seed}");
    }
}

#[test]
fn a_client_with_too_many_subscriptions_gets_an_error_and_keeps_those_it_has() {
    let mut rig = Rig::new(1, Settings::default());
    let peer = subscribed(&mut rig, 0, &[b"a"]);
    let names: Vec<String> = (0..10_001).map(|i| i.to_string()).collect();
    let words = names.iter().map(String::as_bytes);
    let all: Vec<&[u8]> = [&b"PSUBSCRIBE"[..]].into_iter().chain(words).collect();
    let reply = rig.ask(&peer, &bulk(&all));
    assert!(reply.ends_with(b"-ERR too many subscriptions for one client: at most 10000 patterns, and 256 MiB in all\r\n"));
    assert_eq!(rig.server.hub.counts(), (1, 10_000));
    let heard = rig.ask(&peer, b"PUBLISH 77 x\r\n");
    assert!(heard.starts_with(b":1\r\n>4\r\n$8\r\npmessage\r\n$2\r\n77\r\n"));
}

#[test]
fn a_client_with_very_many_subscriptions_leaves_in_portions() {
    let mut rig = Rig::new(1, Settings::default());
    let leaver = rig.connect(0);
    let names: Vec<String> = (0..2_000).map(|i| i.to_string()).collect();
    let words = names.iter().map(String::as_bytes);
    rig.ask(
        &leaver,
        &bulk(
            &[&b"SUBSCRIBE"[..]]
                .into_iter()
                .chain(words)
                .collect::<Vec<_>>(),
        ),
    );
    let stays = subscribed(&mut rig, 0, &[b"5"]);
    leaver.wire.borrow_mut().break_writes();
    leaver.send(b"PING\r\n");
    rig.turn(0);
    assert!(leaver.is_closed());
    let (left, _) = rig.server.hub.counts();
    assert!(left >= names.len() - 2 * PER_TURN, "{left} names are left");
    // A message that is published meanwhile reaches the remaining subscribers.
    assert!(rig.ask(&stays, b"PUBLISH 5 x\r\n").ends_with(b"x\r\n"));
    rig.settle();
    assert_eq!(rig.server.hub.counts(), (1, 0));
}

/// Subscriptions of clients that have left are counted for nobody.
#[test]
fn memory_does_not_grow_when_clients_subscribe_and_leave_again_and_again() {
    let mut rig = Rig::new(1, Settings::default());
    let each = 5_000;
    for round in 0..10 {
        let peers: Vec<Peer> = (0..4).map(|_| rig.connect(0)).collect();
        for (who, peer) in peers.iter().enumerate() {
            let names: Vec<String> = (0..each).map(|i| format!("{round}:{who}:{i}")).collect();
            let words = names.iter().map(String::as_bytes);
            let all: Vec<&[u8]> = [&b"SUBSCRIBE"[..]].into_iter().chain(words).collect();
            peer.send(&bulk(&all));
        }
        rig.turn(0);
        let (names, _) = rig.server.hub.counts();
        assert!(
            names <= 2 * 4 * each,
            "{names} names are left in round {round}"
        );
        for peer in peers {
            peer.wire.borrow_mut().reset();
        }
    }
    rig.settle();
    assert_eq!(rig.server.hub.counts(), (0, 0));
}

#[test]
fn clients_that_leave_together_leave_in_portions() {
    let mut rig = Rig::new(1, Settings::default());
    let peers: Vec<Peer> = (0..20)
        .map(|who| {
            let names: Vec<String> = (0..PER_TURN / 2).map(|i| format!("{who}:{i}")).collect();
            let names: Vec<&[u8]> = names.iter().map(String::as_bytes).collect();
            subscribed(&mut rig, 0, &names)
        })
        .collect();
    for peer in &peers {
        peer.wire.borrow_mut().reset();
    }
    let (before, _) = rig.server.hub.counts();
    rig.turn(0);
    assert!(peers.iter().all(Peer::is_closed));
    let (left, _) = rig.server.hub.counts();
    assert!(left >= before - PER_TURN, "{left} of {before} are left");
    rig.settle();
    assert_eq!(rig.server.hub.counts(), (0, 0));
}

#[test]
fn a_message_to_oneself_follows_its_reply_in_either_protocol() {
    let mut rig = Rig::new(1, Settings::default());
    let peer = subscribed(&mut rig, 0, &[b"a"]);
    let other = subscribed(&mut rig, 0, &[b"a"]);
    let answer = rig.ask(&peer, b"PUBLISH a x\r\nPING\r\n");
    let message = b">3\r\n$7\r\nmessage\r\n$1\r\na\r\n$1\r\nx\r\n";
    assert_eq!(answer, [&b":2\r\n"[..], message, b"+PONG\r\n"].concat());
    assert_eq!(other.take(), message);
    let left = rig.ask(&peer, b"PUBLISH a y\r\nHELLO 2\r\nUNSUBSCRIBE a\r\n");
    let text = String::from_utf8_lossy(&left);
    assert_eq!(text.matches("message").count(), 1, "{text}");
    assert!(
        text.ends_with("*3\r\n$11\r\nunsubscribe\r\n$1\r\na\r\n:0\r\n"),
        "{text}"
    );
}
